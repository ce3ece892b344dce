"""What comes out of an expression: plain JSON values, text, and truth."""

import math
from collections.abc import Mapping, Sequence, Set

from jinja2.runtime import LoopContext, Macro
from jinja2.utils import Namespace

from noetl.expr.runtime.limits import MAX_RESULT_DEPTH, Budget, integer_cost
from noetl.expr.runtime.marker import refuse_markers_in
from noetl.expr.runtime.missing_value import GuardMissing, Missing
from noetl.model.errors import ExpressionError
from noetl.model.json import Json

_SCALARS = frozenset({str, int, bool, type(None)})
_KINDS = {
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "none",
    Namespace: "a namespace",
    Macro: "a macro",
    LoopContext: "a loop",
}


def type_name(value: object) -> str:
    """What a playbook author would call this value."""
    if type(value) in _KINDS:
        return _KINDS[type(value)]
    if isinstance(value, Missing):
        return "undefined"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, Sequence | Set):
        return "a list"
    return "not a value"


def to_json(value: object, budget: Budget) -> Json:
    """The value as JSON knows it; the same object where it already is.

    Raises ExpressionError for what JSON cannot say, MissingError for an undefined (None in guards).
    """
    budget.measure(value)
    return _convert(value, budget, 0)


def _convert(value: object, budget: Budget, depth: int) -> Json:
    if type(value) in _SCALARS:
        return value  # type: ignore[return-value]  # mypy does not narrow by a set of types
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ExpressionError("the result is not a finite number")
        return value
    if isinstance(value, Missing):
        if isinstance(value, GuardMissing):
            return None
        value.fail()
    if depth > MAX_RESULT_DEPTH:
        raise ExpressionError(f"the result is nested more than {MAX_RESULT_DEPTH} levels deep")
    if isinstance(value, Mapping):
        return _convert_mapping(value, budget, depth)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Sequence | Set):
        budget.charge(len(value))
        # Scalars are let through here, and not in a call each: a list of rows is nearly all scalars.
        items = [item if type(item) in _SCALARS else _convert(item, budget, depth + 1) for item in value]
        return value if type(value) is list and all(map(_is_same, items, value)) else items
    raise ExpressionError(f"the result is {type_name(value)}, which JSON does not know")


def _convert_mapping(value: Mapping[object, object], budget: Budget, depth: int) -> Json:
    budget.charge(len(value))
    entries = {
        key if type(key) is str else _key_text(key): item
        if type(item) in _SCALARS
        else _convert(item, budget, depth + 1)
        for key, item in value.items()
    }
    # The same object: of a large value that is only handed on there is no second copy.
    if (
        type(value) is dict
        and all(map(_is_same, entries, value))
        and all(map(_is_same, entries.values(), value.values()))
    ):
        return value
    return entries  # type: ignore[return-value]  # the items are converted, or scalars


def _key_text(key: object) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, str | int):
        return str(key)
    raise ExpressionError(f"a key of a mapping is text, not {type_name(key)}")


def _is_same(left: object, right: object) -> bool:
    return left is right


def render_text(value: object, budget: Budget) -> str:
    """The value inside a longer text."""
    if type(value) is str:
        budget.charge_text(len(value))
        return value
    budget.charge(1 + (integer_cost(value) if isinstance(value, int) else 0))
    if value is None or isinstance(value, bool | int | float):
        return str(value)
    if isinstance(value, Missing):
        return str(value)
    plain = to_json(value, budget)
    refuse_markers_in(plain)
    text = str(plain)
    budget.charge_text(len(text))
    return text
