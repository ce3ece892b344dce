"""What the paths of an expression hold: for people who ask why it came out as it did."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from noetl.dsl.document.playbook import Guard
from noetl.expr import Expression, Path, Scope
from noetl.expr.runtime.scope import ABSENT
from noetl.kernel.truncate import truncate_value

MARK = "$noetl"
"""The key of what only stands for a value: a reference, a manifest, a secret."""


class PathRead(Struct, frozen=True, omit_defaults=True):
    """One path that an expression reads, and what stood there. `missing`: nothing did."""

    path: str
    value: Any = None
    missing: bool = False


def paths_read(guard: Guard, scope: Scope) -> tuple[PathRead, ...]:
    """What a condition reads in this scope, each path once."""
    if not isinstance(guard, Expression):
        return ()
    found = []
    for path in dict.fromkeys(use.path for use in guard.uses):
        value = value_in_scope(scope, path)
        name = ".".join(path)
        found.append(
            PathRead(name, missing=True) if value is ABSENT else PathRead(name, truncate_value(value))
        )
    return tuple(found)


def value_in_scope(scope: Scope, path: Path) -> object:
    """The value of a path, or ABSENT."""
    if len(path) > 1 and path[1] == "data":
        value, rest = scope.resolve_data(path[0]), path[2:]
    else:
        value, rest = scope.resolve(path[0]), path[1:]
    for key in rest:
        if not isinstance(value, Mapping) or key not in value:
            return ABSENT
        value = value[key]
    return value


def reads_stand_ins(expressions: Iterable[Expression], scope: Scope) -> bool:
    """Whether one of them reads what only stands for a value that is elsewhere or secret."""
    paths = {use.path for expression in expressions for use in expression.uses}
    return any(holds_stand_in(value_in_scope(scope, path)) for path in _shortest(paths))


def _shortest(paths: Iterable[Path]) -> Iterator[Path]:
    known = set(paths)
    for path in known:
        if not any(path[:length] in known for length in range(1, len(path))):
            yield path


def holds_stand_in(value: object) -> bool:
    if isinstance(value, Mapping):
        return MARK in value or any(map(holds_stand_in, value.values()))
    return isinstance(value, list | tuple) and any(map(holds_stand_in, value))
