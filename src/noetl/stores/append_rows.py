"""What an append is made of: its rows as they are numbered and checked, its facts as columns."""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

from msgspec.json import encode

from noetl.ports.store import FACTS, Append, Effects, fact_values

_EMPTY_FACTS: dict[str, object] = {
    "started_at": 0,
    "labels": "{}",
    "priority": 0,
    "next_wake": 0,
    "ended_at": 0,
    "expires_at": 0,
}
_EMPTY_COLUMNS = [_EMPTY_FACTS.get(name, "") for name in FACTS]
_LABELS = FACTS.index("labels")
KEYED_COLUMNS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "timers": lambda due: (due,),
    "outbox": lambda body: (body,),
    "ready": lambda run: (run.pool, ",".join(run.kinds), run.priority),
    "leases": lambda run: (run.session, run.fence),
}
"""Of the effects that have keys: the columns of a value beside execution and key."""
keyed_changes = attrgetter(*KEYED_COLUMNS)


def validate_append(append: Append) -> None:
    """Raises ValueError if the rows are not what an append is made of."""
    first = append.expected_version + 1
    if not append.rows or [row.seq for row in append.rows] != list(range(first, first + len(append.rows))):
        raise ValueError(f"{append.execution_id}: rows must be numbered {first}, {first + 1}, …")
    if not append.rows[-1].last:
        raise ValueError(f"{append.execution_id}: the last row of an append must be marked")
    if append.start_key and append.expected_version:
        raise ValueError(f"{append.execution_id}: only the first append can have a start key")


def fact_columns(effects: Effects) -> list[object]:
    """The facts as columns, None where one stays as it is."""
    values = [*fact_values(effects)]
    if effects.labels is not None:
        values[_LABELS] = encode(dict(sorted(effects.labels.items()))).decode()
    return values


def full_fact_columns(effects: Effects) -> list[object]:
    """The facts as columns, "none" where one is not given."""
    columns = zip(_EMPTY_COLUMNS, fact_columns(effects), strict=True)
    return [empty if value is None else value for empty, value in columns]
