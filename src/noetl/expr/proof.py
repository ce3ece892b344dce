"""Which names must be set for a guard to hold, or not to hold."""

from functools import lru_cache

from jinja2 import nodes

from noetl.dsl.checks.flow.paths import Path
from noetl.dsl.playbook import Guard
from noetl.expr.parsing import parse_syntax
from noetl.expr.paths import path_of

_DENIED_BY_ABSENCE = frozenset(
    {"boolean", "defined", "float", "integer", "mapping", "number", "string", "true"}
)
"""Tests that nothing undefined passes."""


def proven_by(guard: Guard, *, holds: bool) -> tuple[Path, ...]:
    """The paths that are set, namespace first, given the guard's verdict.

    In a guard every comparison with an undefined value is false but `!=` and `not in` (semantics §2).
    """
    return () if isinstance(guard, bool) else _proven_by(guard.source, holds)


@lru_cache(1024)
def _proven_by(source: str, holds: bool) -> tuple[Path, ...]:  # noqa: FBT001 - a key of the cache
    expression = parse_syntax(source).expression
    return () if expression is None else tuple(_proven(expression, holds=holds))


def _proven(node: nodes.Node, *, holds: bool) -> set[Path]:
    match node:
        case nodes.Name() | nodes.Getattr() | nodes.Getitem() if holds:
            found = path_of(node)
            return {found[1]} if found else set()
        case nodes.Not():
            return _proven(node.node, holds=not holds)
        case nodes.And() | nodes.Or():
            left, right = _proven(node.left, holds=holds), _proven(node.right, holds=holds)
            return left | right if isinstance(node, nodes.And) is holds else left & right
        case nodes.Test(name="undefined"):
            return _proven(node.node, holds=True) if not holds else set()
        case nodes.Test() if holds and node.name in _DENIED_BY_ABSENCE:
            return _proven(node.node, holds=True)
        case nodes.Compare():
            return _proven_by_comparison(node, holds=holds)
        case nodes.Filter(name="length" | "count") if holds:
            return _proven(node.node, holds=True) if node.node else set()
        case _:
            return set()


def _proven_by_comparison(node: nodes.Compare, *, holds: bool) -> set[Path]:
    if len(node.ops) != 1:
        return set()
    op, left, right = node.ops[0].op, node.expr, node.ops[0].expr
    if (op in ("ne", "notin")) is holds:
        return set()
    if not holds and op not in ("ne", "notin"):
        return set()
    if holds and op in ("gt", "gteq", "eq") and isinstance(left, nodes.Filter):
        least = right.value if isinstance(right, nodes.Const) else None
        more_than_none = isinstance(least, int) and (least > 0 or (least == 0 and op == "gt"))
        return _proven(left, holds=True) if more_than_none else set()
    return {found[1] for side in (left, right) if (found := path_of(side))}
