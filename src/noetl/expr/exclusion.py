"""Guards that cannot hold together."""

from collections.abc import Hashable
from functools import lru_cache
from typing import NamedTuple

from jinja2 import nodes

from noetl.dsl.playbook import Guard
from noetl.expr.parsing import parse_syntax

_OPPOSITES = {"ne": "eq", "notin": "in", "lteq": "gt", "lt": "gteq"}


class Claim(NamedTuple):
    """A condition by its syntax, and whether it is claimed or denied."""

    node: nodes.Node
    holds: bool

    @property
    def text(self) -> str:
        return repr(self.node)


def exclude_each_other(one: Guard, other: Guard) -> bool:
    """Whether the syntax alone shows that both cannot hold."""
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    return _exclude(_claims_of(one.source), _claims_of(other.source))


@lru_cache(1024)
def _claims_of(source: str) -> tuple[Claim, ...]:
    expression = parse_syntax(source).expression
    return () if expression is None else tuple(_claims(expression, holds=True))


def _claims(node: nodes.Node, *, holds: bool) -> list[Claim]:
    """What must be so for the condition to hold (or not): all of these."""
    match node:
        case nodes.Not():
            return _claims(node.node, holds=not holds)
        case nodes.And() if holds:
            return _claims(node.left, holds=True) + _claims(node.right, holds=True)
        case nodes.Or() if not holds:
            return _claims(node.left, holds=False) + _claims(node.right, holds=False)
        case nodes.Compare(ops=[operand]) if operand.op in _OPPOSITES:
            turned = nodes.Operand(_OPPOSITES[operand.op], operand.expr)
            return [Claim(nodes.Compare(node.expr, [turned]), not holds)]
        case nodes.Test(name="undefined"):
            return [Claim(nodes.Test(node.node, "defined", [], [], None, None), not holds)]
        case _:
            return [Claim(node, holds)]


def _exclude(one: tuple[Claim, ...], other: tuple[Claim, ...]) -> bool:
    claimed = {(claim.text, claim.holds) for claim in one}
    if any((claim.text, not claim.holds) in claimed for claim in other):
        return True
    if _differ(one, other):
        return True
    return any(_denies(claim, other) for claim in one) or any(_denies(claim, one) for claim in other)


def _denies(claim: Claim, others: tuple[Claim, ...]) -> bool:
    """Whether each of the alternatives that the claim leaves contradicts the others."""
    match claim:
        case Claim(nodes.Or() as node, True):
            sides = (_claims(node.left, holds=True), _claims(node.right, holds=True))
        case Claim(nodes.And() as node, False):
            sides = (_claims(node.left, holds=False), _claims(node.right, holds=False))
        case _:
            return False
    return all(_exclude(tuple(side), others) for side in sides)


def _differ(one: tuple[Claim, ...], other: tuple[Claim, ...]) -> bool:
    """Whether the same thing would have to equal two different constants."""
    values = dict(filter(None, map(_allowed, one)))
    return any(
        values[found[0]].isdisjoint(found[1])
        for found in map(_allowed, other)
        if found is not None and found[0] in values
    )


def _allowed(claim: Claim) -> tuple[str, frozenset[Hashable]] | None:
    """An expression and the constants that it may equal, if the claim says so."""
    match claim:
        case Claim(nodes.Compare(ops=[nodes.Operand(op="eq", expr=nodes.Const() as const)]) as node, True):
            return repr(node.expr), frozenset({const.value})
        case Claim(nodes.Compare(ops=[nodes.Operand(op="in", expr=nodes.List() as listed)]) as node, True):
            constants = [item.value for item in listed.items if isinstance(item, nodes.Const)]
            return (repr(node.expr), frozenset(constants)) if len(constants) == len(listed.items) else None
    return None
