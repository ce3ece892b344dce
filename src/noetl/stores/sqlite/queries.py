"""The SQL of this store, by name, and how facts, timers and messages become rows.

It stands in `sql/*.sql` and nowhere else.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from noetl.ports.store import FACTS, Effects, fact_values

_FOLDER = Path(__file__).with_name("sql")  # `importlib.resources` would bring half of the library along
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_VALUES = re.compile(r"VALUES (\([?, ]+\))")
_OPTION = re.compile(r"^.* -- if (\w+)\n", re.MULTILINE)
ROWS_PER_STATEMENT = 512
"""More gains nothing. A power of two, as every number of rows that a statement is prepared for."""
_EMPTY_FACTS: dict[str, object] = {
    "started_at": 0,
    "labels": "{}",
    "priority": 0,
    "next_wake": 0,
    "ended_at": 0,
    "expires_at": 0,
}
_EMPTY_COLUMNS = [_EMPTY_FACTS.get(name, "") for name in FACTS]


def _load(file: str) -> Mapping[str, str]:
    parts = _NAME.split((_FOLDER / file).read_text("utf-8"))
    return {name: text.strip() + "\n" for name, text in zip(parts[1::2], parts[2::2], strict=True)}


READ: Final = _load("read.sql")
WRITE: Final = _load("write.sql")
CHECK: Final = _load("check.sql")
REBUILD: Final = _load("rebuild.sql")


# Cached: every insert asks for one of ten texts, and to build one takes a regular expression over the query.
@lru_cache(512)
def repeat_values(query: str, times: int) -> str:
    """The query with its one row of `VALUES` written `times` times."""
    return _VALUES.sub(lambda match: "VALUES " + ",".join([match[1]] * times), query, count=1)


def line_conditions(query: str) -> frozenset[str]:
    """What lines of the query depend on."""
    return frozenset(_OPTION.findall(query))


def choose_lines(query: str, conditions: Collection[str]) -> str:
    """The query without the lines that depend on what is not given."""
    return _OPTION.sub(lambda match: match[0] if match[1] in conditions else "", query)


def schema_script() -> str:
    return (_FOLDER / "schema.sql").read_text("utf-8")


def migration_scripts() -> list[str]:
    """The scripts that lead from one version of the schema to the next; the first makes version 1."""
    scripts = (part for part in (_FOLDER / "migrations").iterdir() if part.name.endswith(".sql"))
    return [script.read_text("utf-8") for script in sorted(scripts, key=lambda script: script.name)]


def json_text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def fact_columns(effects: Effects) -> list[object]:
    """The facts as columns, None where one stays as it is."""
    values = [*fact_values(effects)]
    if effects.labels is not None:
        values[FACTS.index("labels")] = json_text(dict(sorted(effects.labels.items())))
    return values


def full_fact_columns(effects: Effects) -> list[Any]:
    """The facts as columns, "none" where one is not given."""
    columns = zip(_EMPTY_COLUMNS, fact_columns(effects), strict=True)
    return [empty if value is None else value for empty, value in columns]


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
    keyed = [pair for pair in effects if any(_KEYED_CHANGES(pair[1]))]
    if not keyed:
        return
    for name, columns in _KEYED_COLUMNS.items():
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


_KEYED_COLUMNS: dict[str, Callable[[Any], tuple[object, ...]]] = {
    "timers": lambda due: (due,),
    "outbox": lambda body: (body,),
    "ready": lambda run: (run.pool, ",".join(run.kinds), run.priority),
    "leases": lambda run: (run.session, run.fence),
}
_KEYED_CHANGES = attrgetter(*_KEYED_COLUMNS)
