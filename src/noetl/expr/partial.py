"""What is known of an expression's value while only some of its names are."""

import enum
import operator
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from jinja2 import nodes
from msgspec import Struct

from noetl.expr import truthy
from noetl.expr.paths import path_of


class Known(Struct, frozen=True):
    value: object


class Hazy(enum.Enum):
    """A value of which less is known than the value itself."""

    MISSING = "not there"
    TRUE = "something that counts as true"
    FALSE = "something that counts as false, or not there"
    UNKNOWN = "anything"


Value: TypeAlias = Known | Hazy


class Facts(Struct, frozen=True):
    """Paths with what is known of them, and text that stands for other text."""

    values: Mapping[tuple[str, ...], Value]
    spellings: Mapping[str, str] = {}

    def look_up(self, path: tuple[str, ...]) -> Value:
        """What is known of a path; keys of what is not there are not there either."""
        for length in range(len(path), 0, -1):
            if (value := self.values.get(path[:length])) is not None:
                if length == len(path):
                    return value
                return Hazy.UNKNOWN if value in (Hazy.TRUE, Hazy.UNKNOWN) else Hazy.MISSING
        return Hazy.UNKNOWN


def truth(value: Value) -> bool | None:
    """Whether a condition with this value holds; None if that is not known."""
    match value:
        case Known():
            return truthy(value.value)
        case Hazy.TRUE:
            return True
        case Hazy.UNKNOWN:
            return None
        case _:
            return False


def evaluate(node: nodes.Expr, facts: Facts) -> Value:
    """As much as the facts tell of an expression's value."""
    match node:
        case nodes.Const():
            spelt = facts.spellings.get(node.value, node.value) if isinstance(node.value, str) else node.value
            return Known(spelt)
        case nodes.Name() | nodes.Getattr() | nodes.Getitem():
            found = path_of(node)
            return facts.look_up(found[1]) if found else Hazy.UNKNOWN
        case nodes.Not():
            return _from_truth(_negated(_plain_truth(evaluate(node.node, facts))))
        case nodes.And() | nodes.Or():
            return _logic(node, facts)
        case nodes.CondExpr():
            return _choice(node, facts)
        case nodes.Compare():
            return _comparison(node, facts)
        case nodes.List() | nodes.Tuple():
            items = [evaluate(item, facts) for item in node.items]
            known = [item.value for item in items if isinstance(item, Known)]
            return Known(known) if len(known) == len(items) else Hazy.UNKNOWN
        case nodes.Test():
            return _test(node, facts)
        case nodes.Filter():
            return _filter(node, facts)
        case nodes.Call(node=nodes.Getattr() as method):
            return _method(method, node, facts)
        case _:
            return Hazy.UNKNOWN


def _plain_truth(value: Value) -> bool | None:
    """The truth of an operand, where the text `false` is true: only a whole condition reads text."""
    return bool(value.value) if isinstance(value, Known) else truth(value)


def _negated(holds: bool | None) -> bool | None:  # noqa: FBT001 - three values, not a flag
    return None if holds is None else not holds


def _from_truth(holds: bool | None) -> Value:  # noqa: FBT001 - three values, not a flag
    return Hazy.UNKNOWN if holds is None else Known(holds)


def _logic(node: nodes.And | nodes.Or, facts: Facts) -> Value:
    decides = isinstance(node, nodes.Or)
    left = evaluate(node.left, facts)
    holds = _plain_truth(left)
    if holds is not None:
        return left if holds is decides else evaluate(node.right, facts)
    if _plain_truth(evaluate(node.right, facts)) is decides:
        return Hazy.TRUE if decides else Hazy.FALSE
    return Hazy.UNKNOWN


def _choice(node: nodes.CondExpr, facts: Facts) -> Value:
    other = Known("") if node.expr2 is None else evaluate(node.expr2, facts)
    holds = _plain_truth(evaluate(node.test, facts))
    if holds is not None:
        return evaluate(node.expr1, facts) if holds else other
    one = evaluate(node.expr1, facts)
    if one == other:
        return one
    same = truth(one)
    if same is None or same is not truth(other):
        return Hazy.UNKNOWN
    return Hazy.TRUE if same else Hazy.FALSE


_OPERATIONS: dict[str, Callable[[Any, Any], object]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "lteq": operator.le,
    "gt": operator.gt,
    "gteq": operator.ge,
    "in": lambda left, right: operator.contains(right, left),
    "notin": lambda left, right: not operator.contains(right, left),
}


def _comparison(node: nodes.Compare, facts: Facts) -> Value:
    """Several comparisons in a row hold if each does."""
    left = evaluate(node.expr, facts)
    verdicts = []
    for operand in node.ops:
        right = evaluate(operand.expr, facts)
        verdicts.append(_compared(operand.op, left, right))
        left = right
    if False in verdicts:
        return Known(value=False)
    return Hazy.UNKNOWN if None in verdicts else Known(value=True)


def _compared(op: str, left: Value, right: Value) -> bool | None:
    if Hazy.MISSING in (left, right):
        return op in ("ne", "notin")
    if not isinstance(left, Known) or not isinstance(right, Known):
        return None
    try:
        return bool(_OPERATIONS[op](left.value, right.value))
    except TypeError:
        return None


_COMPARING_TESTS = {"eq": "eq", "==": "eq", "equalto": "eq", "ne": "ne", "!=": "ne", "in": "in"}


def _test(node: nodes.Test, facts: Facts) -> Value:
    value = evaluate(node.node, facts)
    if node.name in _COMPARING_TESTS and len(node.args) == 1:
        other = evaluate(node.args[0], facts)
        return _from_truth(_compared(_COMPARING_TESTS[node.name], value, other))
    there = None if value in (Hazy.UNKNOWN, Hazy.FALSE) else value is not Hazy.MISSING
    match node.name:
        case "defined":
            return _from_truth(there)
        case "undefined":
            return _from_truth(_negated(there))
        case "none" if there is not None:
            return Known(value == Known(None))
        case _:
            return Hazy.UNKNOWN


def _filter(node: nodes.Filter, facts: Facts) -> Value:
    value = evaluate(node.node, facts) if node.node is not None else Hazy.UNKNOWN
    if node.name in ("default", "d") and not node.args[1:] and not node.kwargs:
        if value is Hazy.MISSING:
            return evaluate(node.args[0], facts) if node.args else Known("")
        return value if isinstance(value, Known) or value is Hazy.TRUE else Hazy.UNKNOWN
    text = value.value if isinstance(value, Known) else None
    if isinstance(text, str) and not node.args and node.name in ("lower", "upper", "trim", "string"):
        return Known(
            {"lower": text.lower(), "upper": text.upper(), "trim": text.strip()}.get(node.name, text)
        )
    return Hazy.UNKNOWN


def _method(method: nodes.Getattr, call: nodes.Call, facts: Facts) -> Value:
    owner = evaluate(method.node, facts)
    args = [evaluate(argument, facts) for argument in call.args]
    match owner, args:
        case Known(value=str() as text), [Known(value=str() as part)]:
            if method.attr == "startswith":
                return Known(text.startswith(part))
            if method.attr == "endswith":
                return Known(text.endswith(part))
    return Hazy.UNKNOWN
