"""Which expressions a part of a playbook has, and what the paths that they read hold, as people see it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter, methodcaller
from typing import Any

from msgspec import Struct

from noetl.dsl.document.playbook import Guard, Position
from noetl.expr.expression import Expression
from noetl.expr.runtime.scope import ABSENT, Scope
from noetl.expr.template import Constant
from noetl.expr.use import Path
from noetl.model.reference import MARKER, is_manifest

_MAX_TEXT = 300
_MAX_ENTRIES = 20
_MAX_DEPTH = 5
_MAX_VALUES = 200
# The rows of a list that is stored in chunks are found by them: with some left out it is no list any more.
_MANIFEST_PARTS = ("chunks", "tail")


def truncate_value(value: Any) -> Any:
    """The value, or as much of it as fits: what was left out is marked by `…`."""
    return _Truncation().value(value, _MAX_DEPTH)


class _Truncation:
    """One value. `left` is how many more values in it are shown."""

    def __init__(self) -> None:
        self.left = _MAX_VALUES

    def value(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if isinstance(value, str):
            return value if len(value) <= _MAX_TEXT else value[:_MAX_TEXT] + "…"
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        return self.items(value, depth) if isinstance(value, list | tuple) else value

    def mapping(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        shortened: dict[str, Any] = {}
        stays = _MANIFEST_PARTS if is_manifest(value) else ()
        for key, item in value.items():
            if key in stays:
                shortened[key] = item
                continue
            if len(shortened) >= _MAX_ENTRIES or self.left < 1 or depth == 0:
                shortened["…"] = f"{len(value) - len(shortened)} more"
                break
            shortened[str(key)] = self.value(item, depth - 1)
        return shortened

    def items(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        shortened: list[Any] = []
        for item in value:
            if len(shortened) >= _MAX_ENTRIES or self.left < 1 or depth == 0:
                shortened.append(f"… {len(value) - len(shortened)} more")
                break
            shortened.append(self.value(item, depth - 1))
        return shortened


def expressions_in(value: object) -> list[Expression]:
    """The expressions in a step, a policy, a mapping, in document order; the plain document is left out."""
    expressions: list[Expression] = []
    if type(value) not in _LEAVES:
        _collect(value, expressions)
    return expressions


_LEAVES = frozenset({bool, int, float, str, type(None), frozenset, Position, Constant})
"""What has no expression in it, though some have parts: the commonest, which are then not asked for any."""


def _collect(value: Any, expressions: list[Expression]) -> None:
    kind = type(value)
    if kind is Expression:
        expressions.append(value)
        return
    # By exact type: every playbook that is loaded is walked, and asking for what a value is an instance of
    # took most of that time.
    parts_of = _PARTS.get(kind) or _PARTS.setdefault(kind, _parts_reader(kind))
    for part in parts_of(value):
        if type(part) not in _LEAVES:
            _collect(part, expressions)


_PARTS: dict[type, Callable[[Any], Iterable[Any]]] = {}
"""How the parts of a value are had, by its type."""


def _parts_reader(kind: type) -> Callable[[Any], Iterable[Any]]:
    if issubclass(kind, Struct):
        names = [name for name in kind.__struct_fields__ if name != "document"]
        if len(names) > 1:
            return attrgetter(*names)
        return lambda value: [getattr(value, name) for name in names]
    if issubclass(kind, Mapping):
        return methodcaller("values")
    return iter if issubclass(kind, tuple | list) else lambda _: ()


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
