"""What is known of an expression's value while only some of its names are."""

import enum
import re
from collections.abc import Mapping
from typing import TypeAlias

from jinja2 import nodes
from msgspec import Struct

from noetl.expr.analysis.uses import ParsedCondition
from noetl.expr.language.path import path_of
from noetl.expr.language.plain_source import read_plain
from noetl.expr.language.transform import OLDER_EVENT_NAMES, with_current_event_names
from noetl.expr.library.filters import DEFAULT_FILTERS
from noetl.expr.library.operators import COMPARISONS
from noetl.expr.library.tests import COMPARISON_TESTS
from noetl.expr.runtime.truth import truthy
from noetl.expr.use import Path


class KnownValue(Struct, frozen=True):
    value: object


class Uncertain(enum.Enum):
    """A value of which less is known than the value itself."""

    MISSING = "not there"
    TRUE = "something that counts as true"
    FALSE = "something that counts as false, or not there"
    UNKNOWN = "anything"


AbstractValue: TypeAlias = KnownValue | Uncertain


Facts: TypeAlias = Mapping[Path, AbstractValue]
"""Paths with what is known of them."""

_USUAL_SOURCE = re.compile(
    r"\s*\{\{\s*(\w+)\.(\w+)\s*(==|!=)\s*'([^'\\]*)'\s*(and\b(?!.*\b(?:or|if)\b).*)?\}\}\s*", re.DOTALL
)
"""One comparison, perhaps with more conditions after it: most conditions."""


def verdicts(condition: ParsedCondition, cases: Mapping[str, Facts]) -> dict[str, bool | None]:
    """For each case whether the condition holds; None if that depends on more than its facts."""
    # The slow path below reads the source again, which takes ten times as long, and `validate` asks this of
    # every guard of a document.
    usual = _verdicts_by_pattern(condition, cases) or _verdicts_on_plain(condition, cases)
    if usual is not None:
        return usual
    expression = condition.syntax().expression
    if expression is None:
        return dict.fromkeys(cases)
    return {name: _truth(_evaluate(expression, facts)) for name, facts in cases.items()}


def _verdicts_by_pattern(
    condition: ParsedCondition, cases: Mapping[str, Facts]
) -> dict[str, bool | None] | None:
    """The verdicts of a condition of the usual form, or None if they need a closer look.

    They are those of `_evaluate`, but of a conjunction with a constant condition in it less may be known.
    """
    usual = _USUAL_SOURCE.fullmatch(condition.source)
    if usual is None:
        return None
    first, second, operator, text, conjunction = usual.groups()
    path, more_uses = (first, second), condition.uses[1:]
    accepted = OLDER_EVENT_NAMES.get(text, (text,)) if path == ("event", "name") else (text,)
    results: dict[str, bool | None] = {}
    for name, facts in cases.items():
        value = facts.get(path)
        if not isinstance(value, KnownValue):
            return None
        holds = (value.value in accepted) == (operator == "==")
        if holds and conjunction:
            if not more_uses or any(_look_up(facts, use.path) is not Uncertain.UNKNOWN for use in more_uses):
                return None
            results[name] = None
        else:
            results[name] = holds
    return results


def _verdicts_on_plain(
    condition: ParsedCondition, cases: Mapping[str, Facts]
) -> dict[str, bool | None] | None:
    """The verdicts of a path that is compared with a constant, or None if its value is known.

    They are those of `_evaluate`.
    """
    plain = read_plain(condition.source)
    if plain is None or not plain.operator:
        return None
    results: dict[str, bool | None] = {}
    for name, facts in cases.items():
        value = _look_up(facts, plain.path)
        if isinstance(value, KnownValue):
            return None
        results[name] = plain.operator == "!=" if value is Uncertain.MISSING else None
    return results


def _look_up(facts: Facts, path: Path) -> AbstractValue:
    """What is known of a path; keys of what is not there are not there either."""
    for length in range(len(path), 0, -1):
        if (value := facts.get(path[:length])) is not None:
            if length == len(path):
                return value
            return Uncertain.UNKNOWN if value in (Uncertain.TRUE, Uncertain.UNKNOWN) else Uncertain.MISSING
    return Uncertain.UNKNOWN


def _truth(value: AbstractValue) -> bool | None:
    """Whether a condition with this value holds; None if that is not known."""
    match value:
        case KnownValue():
            return truthy(value.value)
        case Uncertain.TRUE:
            return True
        case Uncertain.UNKNOWN:
            return None
        case _:
            return False


def _evaluate(node: nodes.Expr, facts: Facts) -> AbstractValue:
    """As much as the facts tell of an expression's value."""
    match node:
        case nodes.Const():
            return KnownValue(node.value)
        case nodes.Name() | nodes.Getattr() | nodes.Getitem():
            path = path_of(node)
            return _look_up(facts, path) if path else Uncertain.UNKNOWN
        case nodes.Not():
            return _from_truth(_negate(_plain_truth(_evaluate(node.node, facts))))
        case nodes.And() | nodes.Or():
            return _evaluate_logic(node, facts)
        case nodes.CondExpr():
            return _evaluate_choice(node, facts)
        case nodes.Compare():
            return _evaluate_comparison(with_current_event_names(node), facts)
        case nodes.List() | nodes.Tuple():
            items = [_evaluate(item, facts) for item in node.items]
            known = [item.value for item in items if isinstance(item, KnownValue)]
            return KnownValue(known) if len(known) == len(items) else Uncertain.UNKNOWN
        case nodes.Test():
            return _evaluate_test(node, facts)
        case nodes.Filter():
            return _evaluate_filter(node, facts)
        case nodes.Call(node=nodes.Getattr() as method):
            return _evaluate_method(method, node, facts)
        case _:
            return Uncertain.UNKNOWN


def _plain_truth(value: AbstractValue) -> bool | None:
    """The truth of an operand, where the text `false` is true: only a whole condition reads text."""
    return bool(value.value) if isinstance(value, KnownValue) else _truth(value)


def _negate(holds: bool | None) -> bool | None:  # noqa: FBT001 - three values, not a flag
    return None if holds is None else not holds


def _from_truth(holds: bool | None) -> AbstractValue:  # noqa: FBT001 - three values, not a flag
    return Uncertain.UNKNOWN if holds is None else KnownValue(holds)


def _evaluate_logic(node: nodes.And | nodes.Or, facts: Facts) -> AbstractValue:
    decides = isinstance(node, nodes.Or)
    left = _evaluate(node.left, facts)
    holds = _plain_truth(left)
    if holds is not None:
        return left if holds is decides else _evaluate(node.right, facts)
    if _plain_truth(_evaluate(node.right, facts)) is decides:
        return Uncertain.TRUE if decides else Uncertain.FALSE
    return Uncertain.UNKNOWN


def _evaluate_choice(node: nodes.CondExpr, facts: Facts) -> AbstractValue:
    otherwise = KnownValue("") if node.expr2 is None else _evaluate(node.expr2, facts)
    holds = _plain_truth(_evaluate(node.test, facts))
    if holds is not None:
        return _evaluate(node.expr1, facts) if holds else otherwise
    then = _evaluate(node.expr1, facts)
    if then == otherwise:
        return then
    same = _truth(then)
    if same is None or same is not _truth(otherwise):
        return Uncertain.UNKNOWN
    return Uncertain.TRUE if same else Uncertain.FALSE


def _evaluate_comparison(node: nodes.Compare, facts: Facts) -> AbstractValue:
    """Several comparisons in a row hold if each does."""
    left = _evaluate(node.expr, facts)
    verdicts = []
    for operand in node.ops:
        right = _evaluate(operand.expr, facts)
        verdicts.append(_compare(operand.op, left, right))
        left = right
    if False in verdicts:
        return KnownValue(value=False)
    return Uncertain.UNKNOWN if None in verdicts else KnownValue(value=True)


def _compare(op: str, left: AbstractValue, right: AbstractValue) -> bool | None:
    if Uncertain.MISSING in (left, right):
        return op in ("ne", "notin")
    if not isinstance(left, KnownValue) or not isinstance(right, KnownValue):
        return None
    try:
        if op in ("in", "notin"):
            return (left.value in right.value) is (op == "in")  # type: ignore[operator]  # what holds nothing raises
        return bool(COMPARISONS[op][1](left.value, right.value))
    except TypeError:
        return None


# Tests of order (`lt`, `ge`, …) are not among them: their verdict stays open.
_EQUALITY_TESTS = {test: name for test, name in COMPARISON_TESTS.items() if name in ("eq", "ne", "in")}


def _evaluate_test(node: nodes.Test, facts: Facts) -> AbstractValue:
    value = _evaluate(node.node, facts)
    if node.name in _EQUALITY_TESTS and len(node.args) == 1:
        expected = _evaluate(node.args[0], facts)
        return _from_truth(_compare(_EQUALITY_TESTS[node.name], value, expected))
    there = None if value in (Uncertain.UNKNOWN, Uncertain.FALSE) else value is not Uncertain.MISSING
    match node.name:
        case "defined":
            return _from_truth(there)
        case "undefined":
            return _from_truth(_negate(there))
        case "none" if there is not None:
            return KnownValue(value == KnownValue(None))
        case _:
            return Uncertain.UNKNOWN


def _evaluate_filter(node: nodes.Filter, facts: Facts) -> AbstractValue:
    value = _evaluate(node.node, facts) if node.node is not None else Uncertain.UNKNOWN
    if node.name in DEFAULT_FILTERS and not node.args[1:] and not node.kwargs:
        if value is Uncertain.MISSING:
            return _evaluate(node.args[0], facts) if node.args else KnownValue("")
        return value if isinstance(value, KnownValue) or value is Uncertain.TRUE else Uncertain.UNKNOWN
    if node.name == "bool" and not node.args:
        return _from_truth(_truth(value))
    text = value.value if isinstance(value, KnownValue) else None
    if isinstance(text, str) and not node.args and node.name in ("lower", "upper", "trim", "string"):
        return KnownValue(
            {"lower": text.lower(), "upper": text.upper(), "trim": text.strip()}.get(node.name, text)
        )
    return Uncertain.UNKNOWN


def _evaluate_method(method: nodes.Getattr, call: nodes.Call, facts: Facts) -> AbstractValue:
    owner = _evaluate(method.node, facts)
    args = [_evaluate(argument, facts) for argument in call.args]
    match owner, args:
        case KnownValue(value=str() as text), [KnownValue(value=str() as part)]:
            if method.attr == "startswith":
                return KnownValue(text.startswith(part))
            if method.attr == "endswith":
                return KnownValue(text.endswith(part))
    return Uncertain.UNKNOWN
