"""How large an expression may be, and how much one evaluation may do."""

from typing import Any

from noetl.model import normalisation
from noetl.model.errors import ExpressionError

MAX_SOURCE = 1_000_000
"""Characters of one string that holds expressions."""
MAX_TOKENS = 10_000
"""Tokens inside the tags of one string."""
MAX_DEPTH = 160
"""Levels of operators, calls and subscripts under one another."""
MAX_BRACKETS = 16
"""Brackets inside one another; the parser needs a dozen frames for each."""
MAX_BLOCKS = 6
"""`{% if %}`, `{% for %}` and other statements inside one another."""
MAX_MACRO_DEPTH = 32
"""Calls of macros inside one another."""
MAX_NUMERAL = 320
"""Characters of one number in the source."""
MAX_TEXT = 10_000_000
"""Characters of one text."""
MAX_RANGE = 1_000_000
"""Numbers of one `range()`."""
MAX_INTEGER_BITS = normalisation.MAX_INTEGER_BITS
MAX_RESULT_DEPTH = normalisation.MAX_DEPTH
"""What the results of tasks are held to holds for the values of expressions."""

WORK_BUDGET = 6_000_000
"""Units of work; one takes about 0.1 µs."""
CALL_COST = 10
STEP_COST = 6
NEW_ITEM_COST = 4
"""What one operator, one loop step, and one newly made item cost."""

_SIZED = frozenset({dict, list, str, tuple})
_SHORT_INTEGER = 1 << 64


def integer_cost(number: int) -> int:
    """What it costs to write a whole number: the time grows with the square of its digits."""
    return number.bit_length() ** 2 >> 16


class Budget:
    """The work one evaluation may still do; a unit is one value looked at or four characters."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = WORK_BUDGET

    def charge(self, units: int) -> None:
        """Refuse the work before it is done."""
        self.left -= units
        if self.left < 0:
            raise ExpressionError(
                "the expression does too much work",
                hint="loop over the data with `loop`, or do the work in a task",
            )

    def charge_text(self, length: int) -> None:
        """Refuse a text of this length before it is made."""
        if length > MAX_TEXT:
            raise ExpressionError(f"the text would be longer than {MAX_TEXT:,} characters")
        self.charge(length >> 2)

    def measure(self, value: object) -> None:
        """Charge every value inside `value`, counting shared parts as often as they appear."""
        self.charge(_size(value, {}, self.left))


def _size(value: Any, known: dict[int, int], limit: int) -> int:
    """What it would cost to look at every value inside; only roughly right above `limit`.

    `known` are the sizes of lists and mappings already counted, so that lists made of each other
    cost no time.
    """
    kind = type(value)
    if kind is str:
        return 1 + (len(value) >> 2)
    if kind is int:
        return 1 + integer_cost(value)
    if kind is not list and kind is not dict and kind is not tuple:
        return 1
    if (size := known.get(id(value))) is not None:
        return size
    total = 1 + len(value)  # one each for what is inside; only what has a size is looked into
    for item in value.values() if kind is dict else value:
        if total > limit:
            break
        if type(item) in _SIZED:
            total += _size(item, known, limit - total)
        elif type(item) is int and not -_SHORT_INTEGER < item < _SHORT_INTEGER:
            total += integer_cost(item)
    known[id(value)] = total
    return total
