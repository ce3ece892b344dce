"""Which paths are there whenever a condition holds, and whenever it does not.

What is proven is so in guards, where a comparison with an undefined is false (`!=` and `not in` true);
elsewhere that would have raised.
"""

from jinja2 import nodes

from noetl.expr.language.path import path_of
from noetl.expr.library.filters import LENGTH_FILTERS, SCALAR_FILTERS
from noetl.expr.library.tests import COMPARISON_TESTS
from noetl.expr.use import Path

_NO_PATHS: frozenset[Path] = frozenset()
_TRUE_OF_ABSENCE = frozenset({"ne", "notin"})
_PASSED_BY_ABSENCE = frozenset(
    {"sameas", "undefined", *(test for test, name in COMPARISON_TESTS.items() if name in _TRUE_OF_ABSENCE)}
)
"""Tests that an undefined may pass; all others are false for it."""


def proven_paths(condition: nodes.Node, *, holds: bool) -> frozenset[Path]:
    """The paths that must be there, given the condition's verdict."""
    match condition:
        case nodes.Not():
            return proven_paths(condition.node, holds=not holds)
        case nodes.And() | nodes.Or():
            left, right = (
                proven_paths(condition.left, holds=holds),
                proven_paths(condition.right, holds=holds),
            )
            return left | right if isinstance(condition, nodes.And) is holds else left & right
        case nodes.Test(name="undefined"):
            return _NO_PATHS if holds else _needed_paths(condition.node)
        case nodes.Test():
            proves = holds and condition.name not in _PASSED_BY_ABSENCE
            return _needed_paths(condition.node) if proves else _NO_PATHS
        case nodes.Compare():
            return _proven_by_comparison(condition, holds=holds)
        case nodes.Filter(node=nodes.Node() as value) if holds and condition.name in LENGTH_FILTERS:
            return proven_paths(value, holds=True)
        case _:
            return _needed_paths(condition) if holds else _NO_PATHS


def _proven_by_comparison(node: nodes.Compare, *, holds: bool) -> frozenset[Path]:
    if not holds and len(node.ops) > 1:
        return _NO_PATHS
    paths = _NO_PATHS
    left = node.expr
    for operand in node.ops:
        right = operand.expr
        if (operand.op in _TRUE_OF_ABSENCE) is not holds:
            paths |= _needed_paths(left) | _needed_paths(right)
        if holds and isinstance(left, nodes.Filter) and _is_positive(operand.op, right):
            paths |= proven_paths(left, holds=True)
        left = right
    return paths


def _is_positive(op: str, right: nodes.Expr) -> bool:
    """Whether what compares so with the constant is above zero."""
    least = right.value if isinstance(right, nodes.Const) else None
    return isinstance(least, int) and (
        (least > 0 and op in ("gt", "gteq", "eq")) or (least == 0 and op == "gt")
    )


def _needed_paths(node: nodes.Node) -> frozenset[Path]:
    """The paths without which this has no value: it would be undefined or raise."""
    match node:
        case nodes.Name():
            return frozenset({(node.name,)})
        case nodes.Getattr() | nodes.Getitem():
            path = path_of(node)
            return frozenset({path}) if path else _needed_paths(node.node)
        case nodes.And() | nodes.Or() | nodes.Not():
            return _NO_PATHS
        case nodes.BinExpr():
            return _needed_paths(node.left) | _needed_paths(node.right)
        case nodes.UnaryExpr():
            return _needed_paths(node.node)
        case nodes.Filter(node=nodes.Node() as value) if node.name in SCALAR_FILTERS:
            return _needed_paths(value)
        case nodes.Call(node=nodes.Getattr() as method):
            return _needed_paths(method.node)
        case _:
            return _NO_PATHS
