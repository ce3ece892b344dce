"""What the names of a v1 expression stand for in the canonical document."""

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from functools import partial

from noetl.dsl.dialects.expression_text import (
    EditFinder,
    as_expression,
    as_operand,
    as_template,
    edit_node,
    member_expression,
    name_edits,
)
from noetl.dsl.document.source import Node
from noetl.expr.runtime.scope import NAMESPACES
from noetl.expr.use import Path, Use

# Of the task or the event at hand: never carried into a nested document.
_CURRENT_ONLY = frozenset({"_attempt", "_idempotency_key", "_prev", "_task", "event", "outcome"})
# Of these a nested document gets the one key that is read, not all there is.
_KEYED_NAMESPACES = frozenset({"args", "ctx", "iter", "workload"})


def _ignore_read() -> None:
    """Nobody wants to know."""


@dataclass(frozen=True, slots=True)
class NameBinding:
    """The expression a name stands for.

    After a result, `.result` means the same; `parts` are keys that stand for something of their
    own. `on_read` is called when the name is read.
    """

    expression: str
    is_result: bool = False
    parts: dict[str, "NameBinding"] = field(default_factory=dict)
    on_read: Callable[[], None] = _ignore_read

    def resolve(self, path: Path) -> tuple[int, str]:
        """How much of the path this stands for, and the expression."""
        count, binding = 1, self
        while count < len(path) and path[count] in binding.parts:
            binding = binding.parts[path[count]]
            count += 1
        if binding.is_result and path[count : count + 1] == ("result",):
            count += 1
        binding.on_read()
        return count, binding.expression


class V1NameScope:
    """Names, and around them the names of the outer scope."""

    def __init__(self, names: dict[str, NameBinding], outer: "V1NameScope | None" = None) -> None:
        self.names = names
        self._outer = outer

    def resolve(self, path: Path, *, optional: bool) -> tuple[int, str] | None:
        """How many keys of the path are replaced, and by what; None where nobody knows the name."""
        binding = self.names.get(path[0])
        if binding is not None:
            return binding.resolve(path)
        return self._outer.resolve(path, optional=optional) if self._outer else None

    def rewrite_value(self, node: Node) -> Node:
        """The value with the names of its expressions replaced."""
        return edit_node(node, self._finder())

    def rewrite_guard(self, node: Node) -> Node:
        """The condition likewise; what is absent there is no error."""
        return edit_node(node, name_edits(lambda path, _: self.resolve(path, optional=True)))

    def _finder(self) -> EditFinder:
        def resolve(path: Path, use: Use) -> tuple[int, str] | None:
            return self.resolve(path, optional=use.optional)

        return name_edits(resolve)


@dataclass(slots=True)
class CapturedName:
    """A name that travels into a nested document: `key` of its workload."""

    key: str
    optional: bool


class Closure(V1NameScope):
    """The scope of a nested document: whatever it reads from outside travels in its workload.

    Keys that are `taken` there mean something else.
    """

    def __init__(self, own: dict[str, NameBinding], outer: V1NameScope, taken: Iterable[str]) -> None:
        super().__init__(own, outer)
        self._outside = outer
        self._captures: dict[str, CapturedName] = {}
        self._keys = {*own, *taken}

    def resolve(self, path: Path, *, optional: bool) -> tuple[int, str] | None:
        if path[0] in self.names:
            return self.names[path[0]].resolve(path)
        if path[0] in _CURRENT_ONLY:
            return None
        count, expression = self._outside.resolve(path, optional=optional) or (1, path[0])
        if expression in _KEYED_NAMESPACES and len(path) > count:
            expression = member_expression(expression, path[count])
            count += 1
        name = path[count - 1] if path[count - 1] != "result" else path[0]
        return count, self._capture_as(expression, name, optional=optional)

    def capture(self, name: str, expression: str) -> str:
        """An expression of the document around, as the nested one can read it."""
        return self._capture_as(expression, name, optional=False)

    def captured_arguments(self) -> Iterable[tuple[str, str]]:
        """The workload of the nested document: keys, and the values that travel."""
        for expression, capture in self._captures.items():
            value = f"{expression} | default(none)" if capture.optional else expression
            yield capture.key, as_template(value)

    def _capture_as(self, expression: str, name: str, *, optional: bool) -> str:
        capture = self._captures.get(expression)
        if capture is None:
            key = unique_name(name, self._keys)
            self._keys.add(key)
            capture = self._captures[expression] = CapturedName(key, optional)
        # One read that demands the value is enough for its absence to be an error.
        capture.optional &= optional
        return member_expression("workload", capture.key)


def unique_name(name: str, taken: Set[str]) -> str:
    """The name, with `_2`, `_3`, … if it is taken."""
    number, candidate = 1, name
    while candidate in taken:
        number += 1
        candidate = f"{name}_{number}"
    return candidate


def bind_inputs(keys: Iterable[str], on_read: Callable[[str], None] | None = None) -> dict[str, NameBinding]:
    """Names that `args` answers for; those that a namespace hides are spelt out."""
    bindings: dict[str, NameBinding] = {}
    for key in keys:
        expression = member_expression("args", key) if key in NAMESPACES else key
        bindings[key] = NameBinding(expression, on_read=partial(on_read, key) if on_read else _ignore_read)
    return bindings


def bind_values(
    values: Iterable[tuple[str, Node]],
    on_copy: Callable[[str], None],
    on_inexpressible: Callable[[Node], None],
) -> dict[str, NameBinding]:
    """Names that stand for the values themselves, where `args` are not there to answer."""
    bindings: dict[str, NameBinding] = {}
    for key, node in values:
        expression = as_expression(node)
        if expression is None:
            bindings[key] = NameBinding(key, on_read=partial(on_inexpressible, node))
        else:
            bindings[key] = NameBinding(as_operand(expression), on_read=partial(on_copy, expression))
    return bindings
