"""The tests of expressions: `value is name`."""

from collections.abc import Callable, Mapping, Sequence
from types import UnionType

from jinja2 import pass_context

from noetl.expr.library.operators import calculate, compare
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.marker import refuse_marker
from noetl.expr.runtime.missing_value import Missing
from noetl.model.reference import is_reference


def _comparison(name: str) -> Callable[..., bool]:
    @pass_context
    def test(evaluation: Evaluation, value: object, other: object) -> bool:
        return compare(evaluation, value, name, other)

    return test


def _remainder(divisor: int, remainder: int) -> Callable[..., bool]:
    @pass_context
    def test(evaluation: Evaluation, value: object) -> bool:
        return _remains(evaluation, value, divisor) == remainder

    return test


def _remains(evaluation: Evaluation, value: object, divisor: object) -> object:
    for side in (value, divisor):
        if isinstance(side, Missing):
            side.answer_comparison("eq")
            return None
    return calculate(evaluation, "%", value, divisor)


@pass_context
def _divisible_by(evaluation: Evaluation, value: object, divisor: object) -> bool:
    return _remains(evaluation, value, divisor) == 0


def _cased(function: Callable[[str], bool]) -> Callable[..., bool]:
    def test(value: object) -> bool:
        if isinstance(value, Missing):
            return value.answer_comparison("eq")
        refuse_marker(value)
        return isinstance(value, str) and function(value)

    return test


def _of_kind(kinds: type | UnionType, *names: str) -> Callable[..., bool]:
    """Whether a value is of these types, or stands for one that is."""

    def test(value: object) -> bool:
        return value.get("type") in names if is_reference(value) else isinstance(value, kinds)

    return test


TESTS: dict[str, Callable[..., bool]] = {
    **dict.fromkeys(("==", "eq", "equalto"), _comparison("eq")),
    **dict.fromkeys(("!=", "ne"), _comparison("ne")),
    **dict.fromkeys(("<", "lt", "lessthan"), _comparison("lt")),
    **dict.fromkeys(("<=", "le"), _comparison("lteq")),
    **dict.fromkeys((">", "gt", "greaterthan"), _comparison("gt")),
    **dict.fromkeys((">=", "ge"), _comparison("gteq")),
    "boolean": lambda value: isinstance(value, bool),
    "defined": lambda value: not isinstance(value, Missing),
    "divisibleby": _divisible_by,
    "even": _remainder(2, 0),
    "false": lambda value: value is False,
    "float": lambda value: isinstance(value, float),
    "in": _comparison("in"),
    "integer": lambda value: type(value) is int,
    "iterable": _of_kind(Sequence | Mapping, "text", "list", "mapping"),
    "lower": _cased(str.islower),
    "mapping": _of_kind(Mapping, "mapping"),
    "none": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float),
    "odd": _remainder(2, 1),
    "sameas": lambda value, other: value is other,
    "sequence": _of_kind(Sequence, "text", "list"),
    "string": _of_kind(str, "text"),
    "true": lambda value: value is True,
    "undefined": lambda value: isinstance(value, Missing),
    "upper": _cased(str.isupper),
}
"""A test of the kind of a value is false for an undefined; a comparison obeys the site's rule."""
