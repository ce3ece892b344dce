"""The benchmarks of stores do what they say, in a small size: their figures mean nothing then."""

import argparse

from bench.long_history import measure_long_history
from bench.postgres_store import measure_postgres_store


def test_the_store_in_postgresql_is_measured_beside_the_database() -> None:
    small = argparse.Namespace(rounds=1, commits=2, sample=20, executions=500, claims=20, minutes=0.001)
    measured = {row.name: row for row in measure_postgres_store(small)}
    assert all(row.value > 0 for row in measured.values())
    goals = {row.goal for row in measured.values()} - {""}
    assert goals == {"at least 60", "at most 1.2", "at least 70"}


def test_a_long_history_is_measured_beside_shorter_ones() -> None:
    measured = [*measure_long_history(50, 1_500, 2_500)]
    assert all(row.value > 0 for row in measured)
    assert [row.goal for row in measured if row.goal] == [
        "under 2",
        "at most 1.5",
        "at most 1.5",
        "at most 2",
    ]
