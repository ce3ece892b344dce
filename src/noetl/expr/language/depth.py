"""How deep a syntax tree will be, known before a recursive parser builds it."""

from collections.abc import Iterable
from typing import Protocol

from noetl.expr.runtime.limits import MAX_DEPTH
from noetl.model.errors import ExpressionError

_LINKS = frozenset({".", "|", "[", "(", "is"})
_OPENING = frozenset({"(", "[", "{"})
_CLOSING = frozenset({")", "]", "}"})
_SEPARATORS = frozenset({",", ":"})
# `~` is not among them: however many there are, the parser makes one flat node of them.
_LEVELS = frozenset(
    {
        "and",
        "or",
        "not",
        "if",
        "else",
        "in",
        "+",
        "-",
        "*",
        "/",
        "//",
        "%",
        "**",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
    }
)


class TokenText(Protocol):
    """A token, as far as it matters here."""

    @property
    def offset(self) -> int: ...
    @property
    def text(self) -> str: ...


def check_depth(tokens: Iterable[TokenText]) -> None:
    """Refuse one tag whose tree would be too deep; its brackets are balanced. Raises ExpressionError.

    The depth of an element is its operators, plus its longest chain of `.`, `|`, calls and
    subscripts, plus the deepest bracket in it.
    """
    outer: list[tuple[int, int, int, int, int]] = []
    levels = chain = longest = child = deepest = 0
    for token in tokens:
        text = token.text
        if text in _LEVELS:
            levels, chain = levels + 1, 0
        elif text in _SEPARATORS:
            deepest = max(deepest, levels + longest + child)
            levels = chain = longest = child = 0
        elif text in _CLOSING:
            inner = max(deepest, levels + longest + child) + 1
            levels, chain, longest, child, deepest = outer.pop()
            child = max(child, inner)
        elif text in _LINKS:
            chain += 1
            longest = max(longest, chain)
        if levels + longest + child > MAX_DEPTH:
            raise ExpressionError(
                "the expression is nested too deeply",
                offset=token.offset,
                hint="split it: give parts a name with `args` or `set_ctx`",
            )
        if text in _OPENING:
            outer.append((levels, chain, longest, child, deepest))
            levels = chain = longest = child = deepest = 0
