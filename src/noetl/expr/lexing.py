"""From source text to tokens that know their place.

Jinja's own lexer keeps line numbers only and tries one pattern after the other. This one knows the
same language, takes one match per token, and refuses what a recursive parser could not survive.
"""

import re

from jinja2.lexer import operators
from msgspec import Struct

from noetl.expr.limits import MAX_BRACKETS, MAX_DEPTH, MAX_NUMERAL, MAX_SOURCE, MAX_TOKENS
from noetl.model import ExpressionError


class Token(Struct, frozen=True):
    """A piece of source text. The texts of all tokens, joined, are the source."""

    offset: int
    type: str
    text: str


class Lexeme(Struct):
    """A token as the lexer found it; `value` is what data means after whitespace control."""

    offset: int
    type: str
    text: str
    value: str = ""


_OPENING = re.compile(r"\{%[-+]?\s*raw\s*(?P<raw>-?)%\}|\{[{%#]")
_RAW_END = re.compile(r"\{%(?P<strip>[-+]?)\s*endraw\s*(?P<trim>[-+]?)%\}")
_COMMENT_END = re.compile(r"(?P<trim>[-+]?)#\}")
_BEGIN = {"{{": "variable_begin", "{%": "block_begin"}
_CLOSING = {"{{": r"-?\}\}", "{%": r"[-+]?%\}"}
_PAIRS = {"(": ")", "[": "]", "{": "}"}

_PART = r"""
      (?P<float>(?<!\.)\d[\d_]*(?:(?:\.\d[\d_]*)?[eE][+\-]?\d[\d_]*|\.\d[\d_]*))
    | (?P<integer>0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*)
    | (?P<name>\w+)
    | (?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<operator>\*\*|//|==|!=|>=|<=|[-+/*%~\[\](){}<>=.:|,;])
    | (?P<end>$)
"""
_INSIDE = re.compile(rf"\s*(?:{_PART})", re.VERBOSE | re.DOTALL)
_TAG = {
    opening: re.compile(rf"\s*(?:(?P<closing>{closing})|{_PART})", re.VERBOSE | re.DOTALL)
    for opening, closing in _CLOSING.items()
}
_CHAINS = frozenset({".", "|", "[", "("})
_LEVELS = frozenset({"and", "or", "not", "if", "else", "in"})
_FLAT = frozenset({"~", "=", ";"})


def tokens(source: str) -> list[Token]:
    """Every piece of `source` in order, blanks and comments included. Raises ExpressionError."""
    found: list[Token] = []
    end = 0
    for lexeme in lex(source):
        if lexeme.offset > end:
            found.append(Token(end, "whitespace", source[end : lexeme.offset]))
        found.append(Token(lexeme.offset, lexeme.type, lexeme.text))
        end = lexeme.offset + len(lexeme.text)
    return found


def lex(source: str) -> list[Lexeme]:
    """The tokens of `source` without blanks. Raises ExpressionError, at the place of the fault."""
    if len(source) > MAX_SOURCE:
        raise ExpressionError(f"the text is longer than {MAX_SOURCE:,} characters", offset=MAX_SOURCE)
    found: list[Lexeme] = []
    position = 0
    trim = False
    while (opening := _OPENING.search(source, position)) is not None:
        start = opening.start()
        mark = opening.group()[:2]
        _add_data(found, source, position, start, trim=trim, strip=source[start + 2 : start + 3] == "-")
        if opening["raw"] is not None:
            position, trim = _lex_raw(found, source, opening)
        elif mark == "{#":
            position, trim = _lex_comment(found, source, start)
        else:
            position, trim = _lex_tag(found, source, start, mark)
        if len(found) > MAX_TOKENS:
            raise ExpressionError(
                f"there are more than {MAX_TOKENS:,} tokens", offset=found[MAX_TOKENS].offset
            )
    _add_data(found, source, position, len(source), trim=trim, strip=False)
    return found


def _add_data(found: list[Lexeme], source: str, start: int, end: int, *, trim: bool, strip: bool) -> None:
    if start == end:
        return
    text = value = source[start:end]
    if trim:
        value = value.lstrip()
    if strip:
        value = value.rstrip()
    found.append(Lexeme(start, "data", text, value))


def _lex_raw(found: list[Lexeme], source: str, opening: re.Match[str]) -> tuple[int, bool]:
    end = _RAW_END.search(source, opening.end())
    if end is None:
        raise _unclosed("{% raw %}", opening.start(), "{% endraw %}")
    found.append(Lexeme(opening.start(), "raw_begin", opening.group()))
    trim = opening["raw"] == "-"
    _add_data(found, source, opening.end(), end.start(), trim=trim, strip=end["strip"] == "-")
    found.append(Lexeme(end.start(), "raw_end", end.group()))
    return end.end(), end["trim"] == "-"


def _lex_comment(found: list[Lexeme], source: str, start: int) -> tuple[int, bool]:
    end = _COMMENT_END.search(source, start + 2)
    if end is None:
        raise _unclosed("{#", start, "#}")
    found.append(Lexeme(start, "comment", source[start : end.end()]))
    return end.end(), end["trim"] == "-"


def _lex_tag(found: list[Lexeme], source: str, start: int, mark: str) -> tuple[int, bool]:
    """Read one `{{ … }}` or `{% … %}`; answer where it ends and whether it eats the blanks after it."""
    position = start + 3 if source[start + 2 : start + 3] in ("-", "+") else start + 2
    found.append(Lexeme(start, _BEGIN[mark], source[start:position]))
    outside = _TAG[mark]
    open_brackets: list[tuple[str, int]] = []
    nesting = _Nesting()
    while True:
        match = (_INSIDE if open_brackets else outside).match(source, position)
        if match is None:
            raise _unreadable(source, position)
        kind = match.lastgroup or ""
        text = match[kind]
        offset = match.end() - len(text)
        position = match.end()
        if kind == "operator":
            _balance(open_brackets, text, offset)
            nesting.operator(text, offset)
            found.append(Lexeme(offset, operators[text], text))
        elif kind == "closing":
            found.append(Lexeme(offset, _BEGIN[mark].replace("begin", "end"), text))
            return position, text[0] == "-"
        elif kind == "end":
            if open_brackets:
                bracket, place = open_brackets[-1]
                raise _unclosed(bracket, place, _PAIRS[bracket])
            raise _unclosed(mark, start, mark.translate({ord("{"): "}"})[::-1])
        else:
            nesting.operand(text, kind, offset)
            found.append(Lexeme(offset, kind, text))
        if len(found) > MAX_TOKENS:
            raise ExpressionError(f"there are more than {MAX_TOKENS:,} tokens", offset=offset)


class _Nesting:
    """An upper bound of how deep the syntax tree of one tag will be, found before it is built.

    The depth of an element is its operators, plus its longest chain of `.`, `|`, calls and
    subscripts, plus the deepest bracket in it.
    """

    __slots__ = ("best", "chain", "child", "levels", "longest", "outer")

    def __init__(self) -> None:
        self.outer: list[tuple[int, int, int, int, int]] = []
        self.levels = self.chain = self.longest = self.child = self.best = 0

    def operand(self, text: str, kind: str, offset: int) -> None:
        if kind == "name":
            if text in _LEVELS:
                self._level(offset)
            elif text == "is":
                self._link(offset)
            elif not text.isidentifier():
                raise ExpressionError(f"`{text}` is not a name", offset=offset)
        elif kind != "string" and len(text) > MAX_NUMERAL:
            raise ExpressionError("the number is too long", offset=offset)

    def operator(self, text: str, offset: int) -> None:
        if text in _CHAINS:
            self._link(offset)
            if text in _PAIRS:
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


def _balance(open_brackets: list[tuple[str, int]], text: str, offset: int) -> None:
    if text in _PAIRS:
        open_brackets.append((text, offset))
    elif text in "])}":
        if not open_brackets:
            raise ExpressionError(f"`{text}` closes nothing", offset=offset)
        bracket, place = open_brackets.pop()
        if _PAIRS[bracket] != text:
            raise ExpressionError(
                f"`{text}` does not close the `{bracket}` at character {place + 1}",
                offset=offset,
                hint=f"`{_PAIRS[bracket]}` is missing",
            )


def _unclosed(opening: str, offset: int, closing: str) -> ExpressionError:
    return ExpressionError(f"`{opening}` is never closed", offset=offset, hint=f"add `{closing}`")


def _unreadable(source: str, position: int) -> ExpressionError:
    while source[position].isspace():
        position += 1
    character = source[position]
    if character in "'\"":
        return _unclosed(character, position, character)
    hints = {
        "&": "write `and`",
        "!": "write `not`",
        "$": "names stand alone: `{{ name }}`",
        "?": "write `a if b else c`",
    }
    return ExpressionError(f"unexpected `{character}`", offset=position, hint=hints.get(character, ""))
