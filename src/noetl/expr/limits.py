"""How large an expression may be, and how much one evaluation may do."""

from typing import Any

from noetl.model import ExpressionError

MAX_SOURCE = 1_000_000
"""Characters of one string that holds expressions."""
MAX_TOKENS = 10_000
"""Tokens inside the tags of one string."""
MAX_DEPTH = 48
"""Levels of operators, calls and subscripts under one another."""
MAX_BRACKETS = 16
"""Brackets inside one another; the parser needs a dozen frames for each."""
MAX_BLOCKS = 6
"""`{% if %}` and `{% for %}` inside one another."""
MAX_NUMERAL = 320
"""Characters of one number in the source."""
MAX_TEXT = 10_000_000
"""Characters of one text."""
MAX_RANGE = 1_000_000
MAX_INTEGER_BITS = 4096
MAX_RESULT_DEPTH = 100

BUDGET = 10_000_000
"""Units of work; one takes about 0.1 µs."""
CALL = 10
STEP = 10
FRESH = 6
"""What one operator, one loop step, and one newly made item cost."""


class Budget:
    """The work one evaluation may still do; a unit is one value looked at or four characters."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = BUDGET

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
        cost = 0
        stack: list[Any] = [value]
        while stack:
            item = stack.pop()
            kind = type(item)
            if kind is str:
                cost += 1 + (len(item) >> 2)
            elif kind is dict:
                cost += 1 + len(item)
                stack.extend(item.values())
            elif kind is list or kind is tuple:
                cost += 1
                stack.extend(item)
            else:
                cost += 1
            if cost + len(stack) > self.left:
                break
        self.charge(cost + len(stack))
