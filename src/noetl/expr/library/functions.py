"""The functions of expressions: `name(…)`."""

from collections.abc import Callable

from noetl.expr.library.costs import charge_call, check_costs
from noetl.expr.library.operators import build_collection
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import MAX_RANGE
from noetl.expr.runtime.missing_value import Missing
from noetl.expr.runtime.scope import Scope
from noetl.model.errors import ExpressionError


def _now(evaluation: Evaluation) -> str:
    """The present moment, UTC, ISO 8601."""
    scope = evaluation.scope
    if not isinstance(scope, Scope) or scope.now is None:
        raise ExpressionError("`now()` is not available here")
    return scope.now()


def _range(_: Evaluation, start: int, stop: int | None = None, step: int = 1) -> range:
    """The whole numbers from `start` (0) to before `stop`."""
    first, last = (0, start) if stop is None else (start, stop)
    for bound in (first, last, step):
        if type(bound) is not int:
            raise ExpressionError("`range()` takes whole numbers", hint="convert with `| int`")
    if step == 0:
        raise ExpressionError("the step of `range()` cannot be zero")
    if abs(last - first) // abs(step) > MAX_RANGE:
        raise ExpressionError(f"`range()` gives at most {MAX_RANGE:,} numbers")
    return range(first, last, step)


def _dict(evaluation: Evaluation, /, **entries: object) -> object:
    """A mapping of its arguments."""
    return build_collection(evaluation, entries)


def call_function(evaluation: Evaluation, name: str, /, *args: object, **kwargs: object) -> object:
    """`name(…)` for a name of FUNCTIONS."""
    charge_call(evaluation.budget, "function", name, *args, *kwargs.values())
    for value in (*args, *kwargs.values()):
        if isinstance(value, Missing):
            value.fail()
    try:
        return FUNCTIONS[name](evaluation, *args, **kwargs)
    except (TypeError, ValueError) as error:
        raise ExpressionError(f"`{name}()` failed: {error}") from None


FUNCTIONS: dict[str, Callable[..., object]] = {"dict": _dict, "now": _now, "range": _range}
check_costs("function", FUNCTIONS)
