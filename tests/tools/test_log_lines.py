from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from noetl.tools.process.log_lines import MAX_LINE, LogLines


def fed(*parts: bytes) -> list[str]:
    logged: list[str] = []
    lines = LogLines(logged.append)
    for part in parts:
        lines.feed(part)
    lines.finish()
    return logged


def test_a_line_is_handed_over_when_it_is_whole() -> None:
    assert fed(b"a\nb", b"c\r\n\n", b"d") == ["a", "bc", "", "d"]
    assert fed(b"", b"\xc3", b"\xa4\n\xff\n") == ["ä", "\ufffd"]


def test_a_long_line_is_cut_and_says_so() -> None:
    assert fed(b"x" * (MAX_LINE + 3), b"y" * 4, b"\nz\n") == ["x" * MAX_LINE + " … 7 bytes left out", "z"]
    (line,) = fed(b"x" * (MAX_LINE - 1) + "ä".encode() + b"\n")
    assert line == "x" * (MAX_LINE - 1) + " … 1 bytes left out"


@given(st.binary(max_size=200), st.lists(st.integers(0, 200)))
def test_lines_are_the_same_wherever_the_parts_are_cut(data: bytes, cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(data)]
    parts = [data[start:end] for start, end in pairwise(bounds)]
    assert fed(*parts) == fed(data)
