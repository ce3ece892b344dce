"""The texts that an expression compares paths with."""

from collections.abc import Iterator
from typing import NamedTuple

from jinja2 import nodes

from noetl.expr.analysis.uses import ParsedCondition
from noetl.expr.language.path import path_of
from noetl.expr.use import Path


class ComparedText(NamedTuple):
    """`path` is compared with `text`, which stands at `offset` of the source."""

    path: Path
    text: str
    offset: int


def compared_texts(condition: ParsedCondition) -> Iterator[ComparedText]:
    """Every text that a path is said to be, not to be, or to be among, in the order of the source."""
    syntax = condition.syntax()
    for root in [syntax.expression] if syntax.expression is not None else syntax.body:
        if isinstance(root, nodes.Compare):
            yield from _of_comparison(root)
        for comparison in root.find_all(nodes.Compare):
            yield from _of_comparison(comparison)


def _of_comparison(comparison: nodes.Compare) -> Iterator[ComparedText]:
    match comparison.ops:
        case [nodes.Operand(op="eq" | "ne", expr=right)]:
            for side, other in ((comparison.expr, right), (right, comparison.expr)):
                yield from _of_constants(side, [other])
        case [nodes.Operand(op="in" | "notin", expr=nodes.List() | nodes.Tuple() as listing)]:
            yield from _of_constants(comparison.expr, listing.items)


def _of_constants(side: nodes.Expr, others: list[nodes.Expr]) -> Iterator[ComparedText]:
    path = path_of(side)
    if path is None:
        return
    for other in others:
        if isinstance(other, nodes.Const) and isinstance(other.value, str):
            yield ComparedText(path, other.value, other.lineno - 1)
