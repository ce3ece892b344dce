"""The rows that a SQL task is given: what is picked of them fast is what is picked one by one."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noetl.model.outcome import ToolError
from noetl.tools.sql import input_rows
from noetl.tools.sql.input_rows import BATCH, Keys, rows_from_list

NAMES = ["a", "b", "c"]
VALUES = st.integers() | st.none()
MAPPINGS = st.lists(st.dictionaries(st.sampled_from(NAMES), VALUES), min_size=1)
LISTS = st.lists(st.lists(VALUES, max_size=3), min_size=1)


def picked_fast(rows: list[Any], keys: Keys, *, lenient: bool) -> Any:
    try:
        return [list(row) for batch in rows_from_list(rows).pick(keys, lenient=lenient) for row in batch]
    except ToolError as error:
        return str(error)


def picked_slowly(rows: list[Any], keys: Keys, *, lenient: bool) -> Any:
    try:
        return [
            list(input_rows._pick_key_by_key(row, keys, number, lenient=lenient))
            for number, row in enumerate(rows, start=1)
        ]
    except ToolError as error:
        return str(error)


@given(MAPPINGS, st.lists(st.sampled_from(NAMES)), st.booleans())
def test_values_by_name_are_picked_fast_as_they_are_key_by_key(
    rows: list[Any], keys: list[str], lenient: bool
) -> None:
    assert picked_fast(rows, keys, lenient=lenient) == picked_slowly(rows, keys, lenient=lenient)


@given(LISTS, st.lists(st.integers(0, 3)))
def test_values_by_position_are_picked_fast_as_they_are_key_by_key(rows: list[Any], keys: list[int]) -> None:
    assert picked_fast(rows, keys, lenient=False) == picked_slowly(rows, keys, lenient=False)


def test_a_row_that_lacks_a_value_in_a_later_batch_has_its_number() -> None:
    rows = [{"a": n, "b": n} for n in range(BATCH + 5)]
    del rows[BATCH + 2]["b"]
    assert picked_fast(rows, ["a", "b"], lenient=False) == f"row {BATCH + 3} has no `b`"
    assert picked_fast(rows, ["a", "b"], lenient=True)[BATCH + 2] == [BATCH + 2, None]
