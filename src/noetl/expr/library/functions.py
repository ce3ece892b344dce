"""The functions of expressions: `name(…)`."""

from collections.abc import Callable, Mapping

from jinja2.runtime import Macro
from jinja2.utils import Namespace

from noetl.expr.library.costs import charge_call, check_costs
from noetl.expr.runtime.conversion import type_name
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import MAX_MACRO_DEPTH, MAX_RANGE
from noetl.expr.runtime.marker import refuse_marker
from noetl.expr.runtime.missing_value import Missing
from noetl.expr.runtime.scope import Scope
from noetl.model.errors import ExpressionError

_EMPTY: Mapping[str, object] = {}


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


def _dict(evaluation: Evaluation, mapping: object = _EMPTY, /, **entries: object) -> object:
    """A mapping of its arguments, over a copy of `mapping`."""
    return _merged("dict", evaluation, mapping, entries)


def _namespace(evaluation: Evaluation, mapping: object = _EMPTY, /, **entries: object) -> object:
    """What `{% set name.key = value %}` can write to, in loops, too."""
    return Namespace(_merged("namespace", evaluation, mapping, entries))


def _merged(
    name: str, evaluation: Evaluation, mapping: object, entries: dict[str, object]
) -> dict[str, object]:
    refuse_marker(mapping)
    if not isinstance(mapping, Mapping):
        raise ExpressionError(f"`{name}()` takes a mapping and named values, not {type_name(mapping)}")
    # What the copy shares with the mapping is not made here: only what is added can make values grow without
    # end. No marker can be among that: the key of one is no name.
    evaluation.budget.charge(len(mapping))
    evaluation.budget.measure(entries)
    return {**mapping, **entries}


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


def call_macro(evaluation: Evaluation, macro: object, /, *args: object, **kwargs: object) -> str:
    """`name(…)` for a name that `{% macro %}` defines; what its body does is charged there."""
    if isinstance(macro, Missing):
        macro.fail()
    if not isinstance(macro, Macro):
        raise ExpressionError(f"a macro can be called here, not {type_name(macro)}")
    charge_call(evaluation.budget, "operator", "call")
    if evaluation.macro_depth >= MAX_MACRO_DEPTH:
        raise ExpressionError(f"macros call one another more than {MAX_MACRO_DEPTH} deep")
    evaluation.macro_depth += 1
    try:
        text: str = macro(*args, **kwargs)
    finally:
        evaluation.macro_depth -= 1
    evaluation.budget.charge_text(len(text))
    return text


def charge_body(evaluation: Evaluation, weight: int) -> None:
    """What one call of a macro costs: names, constants and text charge nothing themselves."""
    evaluation.budget.charge(weight)


FUNCTIONS: dict[str, Callable[..., object]] = {
    "dict": _dict,
    "namespace": _namespace,
    "now": _now,
    "range": _range,
}
check_costs("function", FUNCTIONS)
