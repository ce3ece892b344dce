"""How deep a syntax tree will be, known before a recursive parser builds it."""

from noetl.expr.limits import MAX_BRACKETS, MAX_DEPTH
from noetl.model import ExpressionError

_CHAINS = frozenset({".", "|", "[", "("})
_FLAT = frozenset({"~", "=", ";"})


class Nesting:
    """An upper bound of how deep the syntax tree of one tag will be, found before it is built.

    The depth of an element is its operators, plus its longest chain of `.`, `|`, calls and
    subscripts, plus the deepest bracket in it.
    """

    __slots__ = ("best", "chain", "child", "levels", "longest", "outer")

    def __init__(self) -> None:
        self.outer: list[tuple[int, int, int, int, int]] = []
        self.levels = self.chain = self.longest = self.child = self.best = 0

    def keyword(self, text: str, offset: int) -> None:
        """Count `and`, `or`, `not`, `if`, `else`, `in` or `is`."""
        if text == "is":
            self._link(offset)
        else:
            self._level(offset)

    def operator(self, text: str, offset: int) -> None:
        """Count an operator or bracket."""
        if text in _CHAINS:
            self._link(offset)
            if text in "([":
                self._open(offset)
        elif text == "{":
            self._open(offset)
        elif text in "])}":
            self._close(offset)
        elif text in ",:":
            self._settle()
        elif text not in _FLAT:
            self._level(offset)

    def _level(self, offset: int) -> None:
        self.levels += 1
        self.chain = 0
        self._check(offset)

    def _link(self, offset: int) -> None:
        self.chain += 1
        self.longest = max(self.longest, self.chain)
        self._check(offset)

    def _open(self, offset: int) -> None:
        self.outer.append((self.levels, self.chain, self.longest, self.child, self.best))
        self.levels = self.chain = self.longest = self.child = self.best = 0
        if len(self.outer) > MAX_BRACKETS:
            raise ExpressionError(f"brackets are nested more than {MAX_BRACKETS} deep", offset=offset)

    def _settle(self) -> None:
        self.best = max(self.best, self.levels + self.longest + self.child)
        self.levels = self.chain = self.longest = self.child = 0

    def _close(self, offset: int) -> None:
        self._settle()
        inner = self.best + 1
        self.levels, self.chain, self.longest, child, self.best = self.outer.pop()
        self.child = max(child, inner)
        self._check(offset)

    def _check(self, offset: int) -> None:
        if self.levels + self.longest + self.child > MAX_DEPTH:
            raise ExpressionError(
                "the expression is nested too deeply",
                offset=offset,
                hint="split it: give parts a name with `args` or `set_ctx`",
            )
