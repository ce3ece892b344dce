"""How facts, timers and messages become rows."""

from collections.abc import Sequence
from typing import Any

import apsw
import msgspec

from noetl.ports.store import FACTS, Effects
from noetl.stores.sqlite.queries import WRITE, repeat_values

ROWS = 512
"""Rows in one statement; more gains nothing."""

_NONE: dict[str, object] = {"labels": "{}", "priority": 0, "next_wake": 0, "ended_at": 0, "expires_at": 0}


def json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def fact_columns(effects: Effects) -> list[object]:
    """The facts as columns, None where one stays as it is."""
    values = [getattr(effects, name) for name in FACTS]
    if effects.labels is not None:
        values[FACTS.index("labels")] = json_text(dict(sorted(effects.labels.items())))
    return values


def full_fact_columns(effects: Effects) -> list[Any]:
    """The facts as columns, "none" where one is not given."""
    given = zip(FACTS, fact_columns(effects), strict=True)
    return [_NONE.get(name, "") if value is None else value for name, value in given]


def insert_rows(connection: apsw.Connection, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Runs a query with `VALUES` for these rows; not at all for none."""
    if rows:
        insert_values(connection, name, [value for row in rows for value in row], len(rows[0]))


def insert_values(connection: apsw.Connection, name: str, values: list[Any], width: int) -> None:
    """The same for the values of all rows, one row after the other.

    Every other number of rows is a statement to prepare, which costs more than to run it. So there are ten of
    them, and what is left of one is filled up with rows of NULL, which the queries leave out.
    """
    for start in range(0, len(values), ROWS * width):
        part = values[start : start + ROWS * width]
        rows = len(part) // width
        times = 1 << (rows - 1).bit_length()
        part += [None] * ((times - rows) * width)
        connection.execute(repeat_values(WRITE[name], times), part)


def insert_effects(connection: apsw.Connection, effects: Sequence[tuple[int, Effects]]) -> None:
    """Sets and clears the timers and messages of executions, given by number."""
    if not effects:
        return
    due: list[tuple[object, ...]] = []
    done: list[tuple[object, ...]] = []
    unsent: list[tuple[object, ...]] = []
    unwanted: list[tuple[object, ...]] = []
    for x, effect in effects:
        for key, time in effect.timers.items():
            (done if time is None else due).append((x, key) if time is None else (x, key, time))
        for key, body in effect.outbox.items():
            (unwanted if body is None else unsent).append((x, key) if body is None else (x, key, body))
    insert_rows(connection, "clear_timers", done)
    insert_rows(connection, "set_timers", due)
    insert_rows(connection, "clear_messages", unwanted)
    insert_rows(connection, "set_messages", unsent)
