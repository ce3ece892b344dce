"""The tests of expressions: `value is name`."""

from collections.abc import Callable, Mapping, Sequence
from types import UnionType

from jinja2 import pass_context

from noetl.expr.library.costs import charge_call, check_costs
from noetl.expr.library.operators import calculate, compare
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.marker import refuse_marker
from noetl.expr.runtime.missing_value import Missing
from noetl.model.reference import is_reference

Test = Callable[..., bool]


def _charged_test(name: str, function: Test) -> Test:
    @pass_context
    def test(evaluation: Evaluation, value: object, *args: object, **kwargs: object) -> bool:
        charge_call(evaluation.budget, "test", name, value, *args, *kwargs.values())
        return function(evaluation, value, *args, **kwargs)

    return test


def _comparison_test(name: str) -> Callable[..., bool]:
    def test(evaluation: Evaluation, value: object, other: object) -> bool:
        return compare(evaluation, value, name, other)

    return test


def _remainder_test(divisor: int, remainder: int) -> Callable[..., bool]:
    def test(evaluation: Evaluation, value: object) -> bool:
        return _remainder_of(evaluation, value, divisor) == remainder

    return test


def _remainder_of(evaluation: Evaluation, value: object, divisor: object) -> object:
    for side in (value, divisor):
        if isinstance(side, Missing):
            side.answer_comparison("eq")
            return None
    return calculate(evaluation, "%", value, divisor)


def _divisible_by(evaluation: Evaluation, value: object, divisor: object) -> bool:
    return _remainder_of(evaluation, value, divisor) == 0


def _case_test(function: Callable[[str], bool]) -> Callable[..., bool]:
    def test(_: Evaluation, value: object) -> bool:
        if isinstance(value, Missing):
            return value.answer_comparison("eq")
        refuse_marker(value)
        return isinstance(value, str) and function(value)

    return test


def _kind_test(kinds: type | UnionType, *names: str) -> Callable[..., bool]:
    """Whether a value is of these types, or stands for one that is."""

    def test(_: Evaluation, value: object) -> bool:
        return value.get("type") in names if is_reference(value) else isinstance(value, kinds)

    return test


COMPARISON_TESTS: dict[str, str] = {
    **dict.fromkeys(("==", "eq", "equalto"), "eq"),
    **dict.fromkeys(("!=", "ne"), "ne"),
    **dict.fromkeys(("<", "lt", "lessthan"), "lt"),
    **dict.fromkeys(("<=", "le"), "lteq"),
    **dict.fromkeys((">", "gt", "greaterthan"), "gt"),
    **dict.fromkeys((">=", "ge"), "gteq"),
    "in": "in",
}
"""Tests that compare, with Jinja's names of the comparisons."""

_TESTS: dict[str, Test] = {
    **{test: _comparison_test(name) for test, name in COMPARISON_TESTS.items()},
    "boolean": lambda _, value: isinstance(value, bool),
    "defined": lambda _, value: not isinstance(value, Missing),
    "divisibleby": _divisible_by,
    "even": _remainder_test(2, 0),
    "false": lambda _, value: value is False,
    "filter": lambda evaluation, value: isinstance(value, str) and value in evaluation.environment.filters,
    "float": lambda _, value: isinstance(value, float),
    "integer": lambda _, value: type(value) is int,
    "iterable": _kind_test(Sequence | Mapping, "text", "list", "mapping"),
    "lower": _case_test(str.islower),
    "mapping": _kind_test(Mapping, "mapping"),
    "none": lambda _, value: value is None,
    "number": lambda _, value: isinstance(value, int | float),
    "odd": _remainder_test(2, 1),
    "sameas": lambda _, value, other: value is other,
    "sequence": _kind_test(Sequence, "text", "list"),
    "string": _kind_test(str, "text"),
    "test": lambda evaluation, value: isinstance(value, str) and value in evaluation.environment.tests,
    "true": lambda _, value: value is True,
    "undefined": lambda _, value: isinstance(value, Missing),
    "upper": _case_test(str.isupper),
}
check_costs("test", _TESTS)

TESTS: dict[str, Test] = {name: _charged_test(name, function) for name, function in _TESTS.items()}
"""A test of the kind of a value is false for an undefined; a comparison obeys the site's rule."""
