"""The tests of expressions: `value is name`."""

from collections.abc import Callable, Mapping, Sequence
from types import UnionType

from jinja2 import pass_context

from noetl.expr.library.operators import calculate, compare
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.marker import refuse_marker
from noetl.expr.runtime.missing_value import Missing
from noetl.model.reference import is_reference


def _comparison_test(name: str) -> Callable[..., bool]:
    @pass_context
    def test(evaluation: Evaluation, value: object, other: object) -> bool:
        return compare(evaluation, value, name, other)

    return test


def _remainder_test(divisor: int, remainder: int) -> Callable[..., bool]:
    @pass_context
    def test(evaluation: Evaluation, value: object) -> bool:
        return _remainder_of(evaluation, value, divisor) == remainder

    return test


def _remainder_of(evaluation: Evaluation, value: object, divisor: object) -> object:
    for side in (value, divisor):
        if isinstance(side, Missing):
            side.answer_comparison("eq")
            return None
    return calculate(evaluation, "%", value, divisor)


@pass_context
def _divisible_by(evaluation: Evaluation, value: object, divisor: object) -> bool:
    return _remainder_of(evaluation, value, divisor) == 0


def _case_test(function: Callable[[str], bool]) -> Callable[..., bool]:
    def test(value: object) -> bool:
        if isinstance(value, Missing):
            return value.answer_comparison("eq")
        refuse_marker(value)
        return isinstance(value, str) and function(value)

    return test


def _kind_test(kinds: type | UnionType, *names: str) -> Callable[..., bool]:
    """Whether a value is of these types, or stands for one that is."""

    def test(value: object) -> bool:
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

TESTS: dict[str, Callable[..., bool]] = {
    **{test: _comparison_test(name) for test, name in COMPARISON_TESTS.items()},
    "boolean": lambda value: isinstance(value, bool),
    "defined": lambda value: not isinstance(value, Missing),
    "divisibleby": _divisible_by,
    "even": _remainder_test(2, 0),
    "false": lambda value: value is False,
    "float": lambda value: isinstance(value, float),
    "integer": lambda value: type(value) is int,
    "iterable": _kind_test(Sequence | Mapping, "text", "list", "mapping"),
    "lower": _case_test(str.islower),
    "mapping": _kind_test(Mapping, "mapping"),
    "none": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float),
    "odd": _remainder_test(2, 1),
    "sameas": lambda value, other: value is other,
    "sequence": _kind_test(Sequence, "text", "list"),
    "string": _kind_test(str, "text"),
    "true": lambda value: value is True,
    "undefined": lambda value: isinstance(value, Missing),
    "upper": _case_test(str.isupper),
}
"""A test of the kind of a value is false for an undefined; a comparison obeys the site's rule."""
