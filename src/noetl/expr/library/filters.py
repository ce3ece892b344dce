"""The filters of expressions: `value | name(…)`. All take and give plain values, and give lists at once."""

from collections.abc import Callable

from jinja2 import pass_context

from noetl.expr.library.costs import charge_call, check_costs
from noetl.expr.library.date_filters import DATE_FILTERS
from noetl.expr.library.list_filters import LIST_FILTERS
from noetl.expr.library.text_filters import TEXT_FILTERS
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import CALL_COST
from noetl.expr.runtime.marker import referenced_length, refuse_marker
from noetl.expr.runtime.missing_value import GuardMissing, Missing
from noetl.model.errors import ExpressionError
from noetl.model.reference import is_reference

Filter = Callable[..., object]

DEFAULT_FILTERS = frozenset({"d", "default"})
"""Filters that provide for what is undefined."""
LENGTH_FILTERS = frozenset({"count", "length"})
"""Filters that need no more of a value than its length."""


@pass_context
def _default(evaluation: Evaluation, value: object, default: object = "", boolean: bool = False) -> object:  # noqa: FBT001, FBT002 - as Jinja has it
    """`default` where the value is undefined, or where it is false and `boolean` is set."""
    charge_call(evaluation.budget, "filter", "default", value)
    return default if isinstance(value, Missing) or (boolean and not value) else value


def _checked_filter(name: str, function: Filter, *, empty: bool) -> Filter:
    """The filter with its rules for undefined values, its cost, and its name in errors.

    In a guard an undefined value passes through; to filters over lists (`empty`) it is an empty list.
    """

    @pass_context
    def call(evaluation: Evaluation, value: object, /, *args: object, **kwargs: object) -> object:
        if isinstance(value, Missing):
            if not isinstance(value, GuardMissing):
                value.fail()
            if not empty:
                return value
            value = []
        if type(value) is dict:
            if name in LENGTH_FILTERS and is_reference(value):
                return referenced_length(value)
            refuse_marker(value)
        for argument in (*args, *kwargs.values()):
            if isinstance(argument, GuardMissing):
                return argument
            if isinstance(argument, Missing):
                argument.fail()
            if type(argument) is dict:
                refuse_marker(argument)
        evaluation.budget.charge(CALL_COST)
        charge_call(evaluation.budget, "filter", name, value, *args, *kwargs.values())
        try:
            return function(evaluation, value, *args, **kwargs)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise ExpressionError(f"filter `{name}` failed: {error}") from None

    return call


SCALAR_FILTERS: dict[str, Filter] = TEXT_FILTERS | DATE_FILTERS
"""Filters that leave the undefined of a guard as it is; to those over lists it is an empty list."""

FILTERS: dict[str, Filter] = {
    **dict.fromkeys(DEFAULT_FILTERS, _default),
    **{name: _checked_filter(name, function, empty=True) for name, function in LIST_FILTERS.items()},
    **{name: _checked_filter(name, function, empty=False) for name, function in SCALAR_FILTERS.items()},
}
check_costs("filter", FILTERS)
