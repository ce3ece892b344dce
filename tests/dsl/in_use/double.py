"""A script that a row of the tables runs."""


def main(n: int) -> int:
    return n * 2
