"""The SQL of this store, by name, and how facts, timers and messages become rows.

It stands in `sql/*.sql` and nowhere else.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from noetl.ports.store import Effects
from noetl.stores.append_rows import KEYED_COLUMNS, keyed_changes
from noetl.stores.sql_files import load_queries, load_scripts

_FOLDER = Path(__file__).with_name("sql")  # `importlib.resources` would bring half of the library along
_VALUES = re.compile(r"VALUES (\([?, ]+\))")
ROWS_PER_STATEMENT = 512
"""More gains nothing. A power of two, as every number of rows that a statement is prepared for."""
READ: Final = load_queries(_FOLDER / "read.sql")
WRITE: Final = load_queries(_FOLDER / "write.sql")
CHECK: Final = load_queries(_FOLDER / "check.sql")
REBUILD: Final = load_queries(_FOLDER / "rebuild.sql")


# Cached: every insert asks for one of ten texts, and to build one takes a regular expression over the query.
@lru_cache(512)
def repeat_values(query: str, times: int) -> str:
    """The query with its one row of `VALUES` written `times` times."""
    return _VALUES.sub(lambda match: "VALUES " + ",".join([match[1]] * times), query, count=1)


def schema_script() -> str:
    return (_FOLDER / "schema.sql").read_text("utf-8")


def migration_scripts() -> list[str]:
    """The scripts that lead from one version of the schema to the next; the first makes version 1."""
    return load_scripts(_FOLDER / "migrations")


def json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def insert_rows(connection: apsw.Connection, name: str, rows: Sequence[Sequence[Any]]) -> None:
    """Runs a query with `VALUES` for these rows; not at all for none."""
    if rows:
        insert_values(connection, name, [value for row in rows for value in row], len(rows[0]))


def insert_values(connection: apsw.Connection, name: str, values: list[Any], width: int) -> None:
    """The same for the values of all rows, one row after the other.

    Every other number of rows is a statement to prepare, which costs more than to run it. So there are ten of
    them, and what is left of one is filled up with rows of NULL, which the queries leave out. The slow path
    that it must equal is one statement for each row.
    """
    for start in range(0, len(values), ROWS_PER_STATEMENT * width):
        chunk = values[start : start + ROWS_PER_STATEMENT * width]
        rows = len(chunk) // width
        padded = 1 << (rows - 1).bit_length()
        chunk += [None] * ((padded - rows) * width)
        connection.execute(repeat_values(WRITE[name], padded), chunk)


def insert_effects(connection: apsw.Connection, effects: Sequence[tuple[int, Effects]]) -> None:
    """Sets and clears the timers, messages, ready and leased runs of executions, given by number."""
    # Nearly all are empty, and this is asked of every append that changes anything.
    keyed = [pair for pair in effects if any(keyed_changes(pair[1]))]
    if not keyed:
        return
    for name, columns in KEYED_COLUMNS.items():
        to_set: list[tuple[object, ...]] = []
        to_clear: list[tuple[object, ...]] = []
        for x, effect in keyed:
            for key, value in getattr(effect, name).items():
                if value is None:
                    to_clear.append((x, key))
                else:
                    to_set.append((x, key, *columns(value)))
        insert_rows(connection, f"clear_{name}", to_clear)
        insert_rows(connection, f"set_{name}", to_set)
