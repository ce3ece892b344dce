"""How large an expression may be, and how much one evaluation may do."""

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
CALL = 10
STEP = 10
FRESH = 6
"""What one operator or filter, one loop step, and one newly made item cost."""


class Budget:
    """The work one evaluation may still do; a unit is about one value looked at or four characters."""

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
        stack = [value]
        while stack:
            item = stack.pop()
            kind = type(item)
            if kind is str:
                self.charge(1 + (len(item) >> 2))  # type: ignore[arg-type]
            elif kind is dict:
                self.charge(1 + 2 * len(item))  # type: ignore[arg-type]
                stack.extend(item.values())  # type: ignore[attr-defined]
            elif kind is list or kind is tuple:
                self.charge(1 + len(item))  # type: ignore[arg-type]
                stack.extend(item)  # type: ignore[arg-type]
            else:
                self.charge(1)
