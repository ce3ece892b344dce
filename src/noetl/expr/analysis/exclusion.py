"""Conditions that cannot hold together."""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from jinja2 import nodes

from noetl.expr.analysis.uses import ParsedCondition

_OPPOSITES = {"ne": "eq", "notin": "in"}
_DENIED = {"lteq": "gt", "lt": "gteq"}
"""What does not hold if these do. Of an undefined neither does."""
_MAX_COMBINATIONS = 64
"""Combinations of alternatives that are looked at; conditions with more may hold together."""


class ConditionClaim(NamedTuple):
    """That a condition holds, or that it does not. `text` is its syntax."""

    node: nodes.Node
    holds: bool
    text: str
    subject: str
    """What may equal one of the constants alone, if the claim says that of something."""
    constants: frozenset[Hashable]


ConditionClaims: TypeAlias = tuple[ConditionClaim, ...]


def mutually_exclusive(left: ParsedCondition, right: ParsedCondition) -> bool:
    """Whether the syntax alone shows that both cannot hold."""
    waiting = [_claims_of(left) + _claims_of(right)]
    for _ in range(_MAX_COMBINATIONS):
        claims = waiting.pop()
        if not _contradict(claims):
            alternatives = _split_alternatives(claims)
            if not alternatives:
                return False
            waiting += alternatives
        if not waiting:
            return True
    return False


@lru_cache(1024)  # a condition is compared with each of its neighbours, and its source read anew
def _claims_of(condition: ParsedCondition) -> ConditionClaims:
    syntax = condition.syntax().expression
    return () if syntax is None else tuple(_split_claims(syntax, holds=True))


def _split_claims(node: nodes.Node, *, holds: bool) -> Iterator[ConditionClaim]:
    """What must be so for the condition to hold (or not): all of these."""
    match node:
        case nodes.Not():
            yield from _split_claims(node.node, holds=not holds)
        case nodes.And() | nodes.Or() if isinstance(node, nodes.And) is holds:
            yield from _split_claims(node.left, holds=holds)
            yield from _split_claims(node.right, holds=holds)
        case nodes.Compare(ops=[operand]) if operand.op in _OPPOSITES:
            yield _make_claim(_with_operator(node, _OPPOSITES[operand.op]), holds=not holds)
        case nodes.Compare(ops=[operand]) if operand.op in _DENIED and holds:
            yield _make_claim(node, holds=True)
            yield _make_claim(_with_operator(node, _DENIED[operand.op]), holds=False)
        case nodes.Test(name="undefined"):
            yield _make_claim(nodes.Test(node.node, "defined", [], [], None, None), holds=not holds)
        case _:
            yield _make_claim(node, holds=holds)


def _make_claim(node: nodes.Node, *, holds: bool) -> ConditionClaim:
    subject = ""
    listed: list[nodes.Expr] = []
    match node:
        case nodes.Compare(ops=[nodes.Operand(op="eq", expr=right)]) if holds:
            subject, listed = repr(node.expr), [right]
        case nodes.Compare(
            ops=[nodes.Operand(op="in", expr=nodes.List(items=items) | nodes.Tuple(items=items))]
        ) if holds:
            subject, listed = repr(node.expr), items
    constants = [item.value for item in listed if isinstance(item, nodes.Const)]
    if len(constants) < len(listed):
        subject = ""
    return ConditionClaim(node, holds, repr(node), subject, frozenset(constants))


def _with_operator(node: nodes.Compare, op: str) -> nodes.Compare:
    return nodes.Compare(node.expr, [nodes.Operand(op, node.ops[0].expr)])


def _contradict(claims: ConditionClaims) -> bool:
    """Whether one claim denies another, or something would have to equal different constants."""
    verdicts: dict[str, bool] = {}
    values: dict[str, frozenset[Hashable]] = {}
    for claim in claims:
        if verdicts.setdefault(claim.text, claim.holds) is not claim.holds:
            return True
        if claim.subject:
            values[claim.subject] = claim.constants & values.get(claim.subject, claim.constants)
            if not values[claim.subject]:
                return True
    return False


def _split_alternatives(claims: ConditionClaims) -> list[ConditionClaims]:
    """The first claim that leaves a choice replaced by each of its sides; none if all are settled."""
    for index, claim in enumerate(claims):
        node = claim.node
        if isinstance(node, nodes.And | nodes.Or):
            remaining = claims[:index] + claims[index + 1 :]
            sides = (node.left, node.right)
            return [remaining + tuple(_split_claims(side, holds=claim.holds)) for side in sides]
    return []
