"""Which expressions a part of a playbook has, and what the paths that they read hold."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from noetl.dsl.document.playbook import Guard
from noetl.expr.expression import Expression
from noetl.expr.runtime.scope import ABSENT, Scope
from noetl.expr.use import Path
from noetl.kernel.truncate import truncate_value
from noetl.model.reference import MARKER


def expressions_in(value: object) -> Iterator[Expression]:
    """The expressions in a step, a policy, a mapping; the plain document is left out."""
    match value:
        case Expression():
            yield value
        case Struct():
            for name in value.__struct_fields__:
                if name != "document":
                    yield from expressions_in(getattr(value, name))
        case Mapping():
            for item in value.values():
                yield from expressions_in(item)
        case tuple() | list():
            for item in value:
                yield from expressions_in(item)


class PathRead(Struct, frozen=True, omit_defaults=True):
    """One path that an expression reads, and what stood there. `missing`: nothing did."""

    path: str
    value: Any = None
    missing: bool = False


def paths_read(guard: Guard, scope: Scope) -> tuple[PathRead, ...]:
    """What a condition reads in this scope, each path once."""
    if not isinstance(guard, Expression):
        return ()
    reads = []
    for path in dict.fromkeys(use.path for use in guard.uses):
        value = value_in_scope(scope, path)
        name = ".".join(path)
        reads.append(
            PathRead(name, missing=True) if value is ABSENT else PathRead(name, truncate_value(value))
        )
    return tuple(reads)


def value_in_scope(scope: Scope, path: Path) -> object:
    """The value of a path, or ABSENT."""
    if len(path) > 1 and path[1] == "data":
        value, keys = scope.resolve_data(path[0]), path[2:]
    else:
        value, keys = scope.resolve(path[0]), path[1:]
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            return ABSENT
        value = value[key]
    return value


def reads_stand_ins(expressions: Iterable[Expression], scope: Scope) -> bool:
    """Whether one of them reads what only stands for a value that is elsewhere or secret."""
    paths = {use.path for expression in expressions for use in expression.uses}
    return any(holds_stand_in(value_in_scope(scope, path)) for path in _shortest(paths))


def _shortest(paths: Iterable[Path]) -> Iterator[Path]:
    all_paths = set(paths)
    for path in all_paths:
        if not any(path[:length] in all_paths for length in range(1, len(path))):
            yield path


def holds_stand_in(value: object) -> bool:
    if isinstance(value, Mapping):
        return MARKER in value or any(map(holds_stand_in, value.values()))
    return isinstance(value, list | tuple) and any(map(holds_stand_in, value))
