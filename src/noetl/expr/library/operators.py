"""The operators of expressions, each refusing what it cannot finish in good time."""

import operator
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized

from noetl.expr.library.costs import charge_call
from noetl.expr.runtime.conversion import render_text, type_name
from noetl.expr.runtime.evaluation import Evaluation
from noetl.expr.runtime.limits import CALL_COST, MAX_INTEGER_BITS, NEW_ITEM_COST
from noetl.expr.runtime.marker import (
    ReferenceUnresolved,
    SecretRefused,
    may_equal,
    refuse_marker,
    refuse_markers_in,
)
from noetl.expr.runtime.missing_value import Missing
from noetl.model.errors import ExpressionError
from noetl.model.reference import MARKER, escape_key, is_reference
from noetl.model.secret import is_secret

Number = int | float
COMPARISONS: dict[str, tuple[str, Callable[..., bool]]] = {
    "eq": ("==", operator.eq),
    "ne": ("!=", operator.ne),
    "lt": ("<", operator.lt),
    "lteq": ("<=", operator.le),
    "gt": (">", operator.gt),
    "gteq": (">=", operator.ge),
}
"""Jinja's names of the comparisons, with how they are written."""
_ARITHMETIC: dict[str, Callable[..., object]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}


def calculate(evaluation: Evaluation, symbol: str, left: object, right: object) -> object:
    """`left symbol right` for `+ - * / // % **`."""
    for side in (left, right):
        if isinstance(side, Missing):
            side.fail()
        if type(side) is dict:
            refuse_marker(side)
    charge_call(evaluation.budget, "operator", symbol, left, right)
    if isinstance(left, Number) and isinstance(right, Number):
        return _calculate_number(symbol, left, right)
    if symbol == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if symbol == "+" and isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return [*left, *right]
    if symbol == "*":
        if isinstance(left, str | list | tuple) and isinstance(right, int):
            return _repeat(evaluation, left, right)
        if isinstance(right, str | list | tuple) and isinstance(left, int):
            return _repeat(evaluation, right, left)
    hint = ""
    if symbol == "+" and isinstance(left, str) != isinstance(right, str):
        hint = "join text with `~`, or convert with `| int`"
    elif symbol == "%" and isinstance(left, str):
        hint = "write `'…' | format(…)`, or join text with `~`"
    raise ExpressionError(
        f"`{symbol}` does not work between {type_name(left)} and {type_name(right)}", hint=hint
    )


def apply_sign(evaluation: Evaluation, symbol: str, value: object) -> object:
    """`-value` or `+value`."""
    if isinstance(value, Missing):
        value.fail()
    refuse_marker(value)
    charge_call(evaluation.budget, "operator", f"{symbol}x", value)
    if not isinstance(value, Number):
        hint = "convert it, for example with `| int`"
        raise ExpressionError(f"`{symbol}` does not work on {type_name(value)}", hint=hint)
    return -value if symbol == "-" else +value


def negate(evaluation: Evaluation, value: object) -> bool:
    """`not value`."""
    charge_call(evaluation.budget, "operator", "not", value)
    return not value


def _calculate_number(symbol: str, left: Number, right: Number) -> object:
    if isinstance(left, int) and isinstance(right, int) and symbol in ("*", "**"):
        bits = left.bit_length() * max(right, 1) if symbol == "**" else left.bit_length() + right.bit_length()
        if bits > MAX_INTEGER_BITS and abs(left) > 1:
            raise ExpressionError(f"`{symbol}` gives a number that is too large")
    try:
        result = _ARITHMETIC[symbol](left, right)
    except ZeroDivisionError:
        raise ExpressionError("division by zero") from None
    except OverflowError:
        raise ExpressionError(f"`{symbol}` gives a number that is too large") from None
    if isinstance(result, complex):
        raise ExpressionError(f"`{symbol}` has no real result here")
    return result


def _repeat(evaluation: Evaluation, value: str | list[object] | tuple[object, ...], times: int) -> object:
    times = max(times, 0)
    if isinstance(value, str):
        evaluation.budget.charge_text(len(value) * times)
        return value * times
    before = evaluation.budget.left
    evaluation.budget.measure(value)
    evaluation.budget.charge((before - evaluation.budget.left) * times)
    return list(value) * times


def compare(evaluation: Evaluation, left: object, *operands: object) -> bool:
    """`left op right [op right …]`, with the operators by Jinja's names for them."""
    for index in range(0, len(operands), 2):
        right = operands[index + 1]
        if not _compare_pair(evaluation, left, str(operands[index]), right):
            return False
        left = right
    return True


def _compare_pair(evaluation: Evaluation, left: object, name: str, right: object) -> bool:
    if isinstance(left, Missing):
        return left.answer_comparison(name)
    if isinstance(right, Missing):
        return right.answer_comparison(name)
    if (type(left) is dict or type(right) is dict) and _differ_in_kind(left, name, right):
        return name == "ne"
    if name in ("in", "notin"):
        refuse_marker(right)
        if type(left) is dict and is_reference(left) and isinstance(right, Sequence) and right:
            raise ReferenceUnresolved(left)
    charge_call(evaluation.budget, "operator", name, left, right)
    if name == "in":
        return _contains(right, left)
    if name == "notin":
        return not _contains(right, left)
    # Equality looks inside only where the lengths are the same.
    if (
        not isinstance(left, str)
        and isinstance(left, Sized)
        and isinstance(right, Sized)
        and len(left) == len(right)
    ):
        refuse_markers_in(left)
        refuse_markers_in(right)
    symbol, function = COMPARISONS[name]
    try:
        return bool(function(left, right))
    except TypeError:
        raise ExpressionError(
            f"`{symbol}` does not work between {type_name(left)} and {type_name(right)}",
            hint="convert one of them, for example with `| int`",
        ) from None


def _differ_in_kind(left: object, name: str, right: object) -> bool:
    """Whether what stands for a value cannot be equal to the other.

    Raises ReferenceUnresolved or SecretRefused if it could.
    """
    for marker, counterpart in ((left, right), (right, left)):
        if is_secret(marker):
            if name in ("eq", "ne") and counterpart is None:
                return True
            raise SecretRefused(marker)
        if is_reference(marker):
            if name in ("eq", "ne") and not may_equal(marker, counterpart):
                return True
            if name not in ("in", "notin") or marker is right:
                raise ReferenceUnresolved(marker)
    return False


def _contains(container: object, value: object) -> bool:
    if isinstance(container, str):
        if not isinstance(value, str):
            raise ExpressionError(
                f"`in` looks for text in text, not for {type_name(value)}",
                hint="convert it with `| string`, or put the choices in a list",
            )
        return value in container
    if isinstance(container, Mapping):
        return isinstance(value, str | int | float | None) and value in container
    if isinstance(container, range):
        # Python compares all but whole numbers with each number of the range.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        return isinstance(value, int) and value in container
    if isinstance(container, Sequence):
        if isinstance(value, str | Sequence | Mapping):
            refuse_markers_in(container)
        return value in container
    raise ExpressionError(f"`in` needs a list, a mapping or text on its right, not {type_name(container)}")


def join_text(evaluation: Evaluation, *parts: object) -> str:
    """`a ~ b ~ …`."""
    charge_call(evaluation.budget, "operator", "~")
    texts = [render_text(part, evaluation.budget) for part in parts]
    evaluation.budget.charge_text(sum(map(len, texts)))
    return "".join(texts)


def build_mapping(evaluation: Evaluation, *parts: object) -> object:
    """`{key: value, …}` of keys and values in turn."""
    keys = parts[::2]
    for key in keys:
        if isinstance(key, str | float | Missing | None):
            continue
        # The hash of a tuple is computed from all that is in it, each time.
        if not isinstance(key, int) or is_long_integer(key):
            raise ExpressionError(f"a key of a mapping is text, not {type_name(key)}")
    return build_collection(evaluation, dict(zip(keys, parts[1::2], strict=True)))


def is_long_integer(number: int) -> bool:
    """Whether other whole numbers have the same hash, so that a dictionary of them takes quadratic time."""
    return number.bit_length() >= sys.hash_info.modulus.bit_length()


def get_item(evaluation: Evaluation, owner: object, key: object) -> object:
    """`owner[key]` with a key that is computed."""
    charge_call(evaluation.budget, "operator", "[]", owner, key)
    # A tuple's hash is computed from all that is in it, each time.
    return evaluation.undefined(owner, key) if isinstance(key, tuple) else evaluation.item(owner, key)


def build_collection(evaluation: Evaluation, value: object) -> object:
    """A list or mapping written in the expression: charged for all it holds."""
    charge_call(evaluation.budget, "operator", "{:}" if type(value) is dict else "[,]", value)
    if type(value) is dict and MARKER in value:
        return {escape_key(key) if isinstance(key, str) else key: item for key, item in value.items()}
    return value


def slice_value(evaluation: Evaluation, value: object, start: object, stop: object, step: object) -> object:
    """`value[start:stop:step]`."""
    if isinstance(value, Missing):
        return value
    for part in (start, stop, step):
        if isinstance(part, Missing):
            part.fail()
        if part is not None and type(part) is not int:
            raise ExpressionError(f"the bounds of a slice are whole numbers, not {type_name(part)}")
    refuse_marker(value)
    if not isinstance(value, str | list | tuple | range):
        raise ExpressionError(f"only text and lists have slices, not {type_name(value)}")
    if step == 0:
        raise ExpressionError("the step of a slice cannot be zero")
    bounds: slice[int | None, int | None, int | None] = slice(start, stop, step)  # type: ignore[arg-type]  # checked above
    length = len(range(*bounds.indices(len(value))))
    charge_call(evaluation.budget, "operator", "[:]", value)
    evaluation.budget.charge(length >> 2 if isinstance(value, str) else length)
    return value[bounds]


class LoopSteps:
    """What a `{% for %}` goes through; every step is charged."""

    __slots__ = ("_budget", "_cost", "_items")

    def __init__(self, evaluation: Evaluation, value: object, cost: int) -> None:
        self._budget = evaluation.budget
        self._cost = cost
        self._items = as_iterable(value)
        charge_call(evaluation.budget, "operator", "for", value)

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[object]:
        for item in self._items:
            self._budget.charge(self._cost)
            yield item


def as_iterable(value: object) -> Sequence[object] | Mapping[object, object]:
    """The value as something to go through: a list, the keys of a mapping, the characters of text."""
    if isinstance(value, Missing):
        return list(value)
    refuse_marker(value)
    if isinstance(value, Sequence | Mapping):
        return value
    raise ExpressionError(f"{type_name(value)} cannot be iterated; a list, a mapping or text can")


def charge_new_items(evaluation: Evaluation, count: int) -> None:
    """Charge for `count` items about to be made."""
    evaluation.budget.charge(CALL_COST + count * NEW_ITEM_COST)
