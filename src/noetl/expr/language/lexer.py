"""From source text to tokens that know their place.

Jinja's own lexer keeps line numbers only and tries one pattern after the other. This one knows the
same language, takes one match per token, and refuses what a recursive parser could not survive.
"""

import math
import re
import sys
from ast import literal_eval
from functools import lru_cache
from typing import Any

from jinja2.lexer import operators
from msgspec import Struct

from noetl.expr.language.depth import check_depth
from noetl.expr.runtime.limits import MAX_BRACKETS, MAX_DEPTH, MAX_NUMERAL, MAX_SOURCE, MAX_TOKENS
from noetl.model.errors import ExpressionError


class SourceToken(Struct, frozen=True):
    """A piece of source text. The texts of all tokens, joined, are the source."""

    offset: int
    type: str
    text: str


class Lexeme(Struct):
    """A token without the blanks around it, in the shape that Jinja's parser reads.

    `lineno` is the character offset plus one; `value` is what the text means.
    """

    lineno: int
    type: str
    value: Any
    text: str

    @property
    def offset(self) -> int:
        """Where the token starts."""
        return self.lineno - 1

    def test(self, expr: str) -> bool:
        """Whether this is a token of a type (`comma`), or of a type and value (`name:in`)."""
        if self.type == expr:
            return True
        return ":" in expr and expr.split(":", 1) == [self.type, self.value]

    def test_any(self, *exprs: str) -> bool:
        """Whether one of the tests holds."""
        return any(map(self.test, exprs))


_OPENING = re.compile(r"\{%[-+]?\s*raw\s*(?P<raw>-?)%\}|\{[{%#]")
_RAW_END = re.compile(r"\{%(?P<strip>[-+]?)\s*endraw\s*(?P<trim>[-+]?)%\}")
_COMMENT_END = re.compile(r"(?P<trim>[-+]?)#\}")
_BEGIN = {"{{": "variable_begin", "{%": "block_begin"}
_END = {"{{": "variable_end", "{%": "block_end"}
_CLOSING = {"{{": r"-?\}\}", "{%": r"[-+]?%\}"}
_PAIRS = {"(": ")", "[": "]", "{": "}"}

# No float begins after a dot: `a.0.1` are two subscripts. One match takes the blanks and the token.
_PART = r"""
      (?P<float>(?<!\.)\d[\d_]*(?:(?:\.\d[\d_]*)?[eE][+\-]?\d[\d_]*|\.\d[\d_]*))
    | (?P<integer>0[bB](?:_?[01])+|0[oO](?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|[1-9](?:_?\d)*|0(?:_?0)*)
    | (?P<name>\w+)
    | (?P<string>'[^'\\]*(?:\\.[^'\\]*)*'|"[^"\\]*(?:\\.[^"\\]*)*")
    | (?P<operator>\*\*|//|==|!=|>=|<=|[-+/*%~\[\](){}<>=.:|,;])
    | (?P<end>\Z)
"""
# Inside brackets nothing closes the tag: the first `}}` of `{{ {'a': {}} }}` are two brackets.
_INSIDE = re.compile(rf"\s*(?:{_PART})", re.VERBOSE | re.DOTALL)
_TAG = {
    opening: re.compile(rf"\s*(?:(?P<closing>{closing})|{_PART})", re.VERBOSE | re.DOTALL)
    for opening, closing in _CLOSING.items()
}
_ESCAPE = re.compile(
    r"\\(?:x(?P<x>[\da-fA-F]{2})|u(?P<u>[\da-fA-F]{4})|U(?P<U>[\da-fA-F]{8})|(?P<octal>[0-7]{1,3})|(?P<other>.))",
    re.DOTALL | re.ASCII,
)
_ESCAPES = dict(zip("abfnrtv\\'\"", "\a\b\f\n\r\t\v\\'\"", strict=True)) | {"\n": ""}
_SURROGATES = range(0xD800, 0xE000)
_BRACKETS = frozenset("()[]{}")


def tokenize(source: str) -> list[SourceToken]:
    """Every piece of `source` in order, blanks and comments included. Raises ExpressionError."""
    tokens: list[SourceToken] = []
    end = 0
    for lexeme in lex(source):
        offset = lexeme.offset
        if offset > end:
            tokens.append(SourceToken(end, "whitespace", source[end:offset]))
        tokens.append(SourceToken(offset, lexeme.type, lexeme.text))
        end = offset + len(lexeme.text)
    return tokens


# A dialect takes a text apart right after it was parsed.
@lru_cache(maxsize=4)
def lex(source: str) -> tuple[Lexeme, ...]:
    """The tokens of `source` without blanks. Raises ExpressionError, at the place of the fault."""
    if len(source) > MAX_SOURCE:
        raise ExpressionError(f"the text is longer than {MAX_SOURCE:,} characters", offset=MAX_SOURCE)
    lexemes: list[Lexeme] = []
    position = 0
    trim = False
    while (opening := _OPENING.search(source, position)) is not None:
        start = opening.start()
        mark = opening.group()[:2]
        _add_data(lexemes, source, position, start, trim=trim, strip=source[start + 2 : start + 3] == "-")
        if opening["raw"] is not None:
            position, trim = _lex_raw(lexemes, source, opening)
        elif mark == "{#":
            position, trim = _lex_comment(lexemes, source, start)
        else:
            position, trim = _lex_tag(lexemes, source, start, mark)
        if len(lexemes) > MAX_TOKENS:
            raise ExpressionError(
                f"there are more than {MAX_TOKENS:,} tokens", offset=lexemes[MAX_TOKENS].offset
            )
    _add_data(lexemes, source, position, len(source), trim=trim, strip=False)
    return tuple(lexemes)


def _add_data(lexemes: list[Lexeme], source: str, start: int, end: int, *, trim: bool, strip: bool) -> None:
    if start == end:
        return
    text = value = source[start:end]
    if trim:
        value = value.lstrip()
    if strip:
        value = value.rstrip()
    lexemes.append(Lexeme(start + 1, "data", value, text))


def _lex_raw(lexemes: list[Lexeme], source: str, opening: re.Match[str]) -> tuple[int, bool]:
    end = _RAW_END.search(source, opening.end())
    if end is None:
        raise _unclosed_error("{% raw %}", opening.start(), "{% endraw %}")
    lexemes.append(Lexeme(opening.start() + 1, "raw_begin", "", opening.group()))
    trim = opening["raw"] == "-"
    _add_data(lexemes, source, opening.end(), end.start(), trim=trim, strip=end["strip"] == "-")
    lexemes.append(Lexeme(end.start() + 1, "raw_end", "", end.group()))
    return end.end(), end["trim"] == "-"


def _lex_comment(lexemes: list[Lexeme], source: str, start: int) -> tuple[int, bool]:
    end = _COMMENT_END.search(source, start + 2)
    if end is None:
        raise _unclosed_error("{#", start, "#}")
    lexemes.append(Lexeme(start + 1, "comment", "", source[start : end.end()]))
    return end.end(), end["trim"] == "-"


def _lex_tag(lexemes: list[Lexeme], source: str, start: int, mark: str) -> tuple[int, bool]:
    """Read one `{{ … }}` or `{% … %}`; answer where it ends and whether it eats the blanks after it."""
    position = start + 3 if source[start + 2 : start + 3] in ("-", "+") else start + 2
    lexemes.append(Lexeme(start + 1, _BEGIN[mark], "", source[start:position]))
    first = len(lexemes)
    brackets: list[tuple[str, int]] = []
    match_outside, match_inside = _TAG[mark].match, _INSIDE.match
    while True:
        match = (match_inside if brackets else match_outside)(source, position)
        if match is None:
            raise _unreadable_error(source, position)
        kind = match.lastgroup
        position = match.end()
        text = match[kind]  # type: ignore[index]  # every alternative has a name
        offset = position - len(text)
        value: object = text
        if kind == "name":
            if not (text.isascii() or text.isidentifier()):
                raise ExpressionError(f"`{text}` is not a name", offset=offset)
        elif kind == "operator":
            kind = operators[text]
            if text in _BRACKETS:
                _track_bracket(brackets, text, offset)
        elif kind == "closing":
            # No tree is deeper than its tokens are many.
            if len(lexemes) - first > MAX_DEPTH:
                check_depth(lexemes[first:])
            lexemes.append(Lexeme(offset + 1, _END[mark], "", text))
            return position, text[0] == "-"
        elif kind == "end":
            raise _unfinished_error(brackets, mark, start)
        else:
            value = _parse_constant(kind, text, offset)
        lexemes.append(Lexeme(offset + 1, kind, value, text))  # type: ignore[arg-type]  # it has one, as above
        if len(lexemes) > MAX_TOKENS:
            raise ExpressionError(f"there are more than {MAX_TOKENS:,} tokens", offset=offset)


def _parse_constant(kind: str | None, text: str, offset: int) -> object:
    if kind == "string":
        return _unescape(text, offset) if "\\" in text else text[1:-1]
    if len(text) > MAX_NUMERAL:
        raise ExpressionError("the number is too long", offset=offset)
    digits = text.replace("_", "")
    if kind == "integer":
        return int(digits, 0)
    number = literal_eval(digits)
    if number in (math.inf, -math.inf):
        raise ExpressionError("the number is too large", offset=offset)
    return number


def _unescape(text: str, offset: int) -> str:
    """The text between the quotes with Python's escapes; a backslash before anything else is itself."""

    def character(match: re.Match[str]) -> str:
        kind = match.lastgroup
        if kind == "other" and match["other"] not in "xuUN":
            return _ESCAPES.get(match["other"], match[0])
        code = -1 if kind == "other" else int(match[kind or 0], 8 if kind == "octal" else 16)
        if not 0 <= code <= sys.maxunicode or code in _SURROGATES:
            raise ExpressionError(
                f"`{match[0]}` is not a character",
                offset=offset + 1 + match.start(),
                hint="write `\\\\` for a backslash",
            )
        return chr(code)

    return _ESCAPE.sub(character, text[1:-1])


def _track_bracket(open_brackets: list[tuple[str, int]], text: str, offset: int) -> None:
    if text in _PAIRS:
        open_brackets.append((text, offset))
        if len(open_brackets) > MAX_BRACKETS:
            raise ExpressionError(f"brackets are nested more than {MAX_BRACKETS} deep", offset=offset)
    else:
        if not open_brackets:
            raise ExpressionError(f"`{text}` closes nothing", offset=offset)
        bracket, position = open_brackets.pop()
        if _PAIRS[bracket] != text:
            raise ExpressionError(
                f"`{text}` does not close the `{bracket}` at character {position + 1}",
                offset=offset,
                hint=f"`{_PAIRS[bracket]}` is missing",
            )


def _unfinished_error(open_brackets: list[tuple[str, int]], mark: str, start: int) -> ExpressionError:
    if open_brackets:
        bracket, position = open_brackets[-1]
        return _unclosed_error(bracket, position, _PAIRS[bracket])
    return _unclosed_error(mark, start, "}}" if mark == "{{" else "%}")


def _unclosed_error(opening: str, offset: int, closing: str) -> ExpressionError:
    return ExpressionError(f"`{opening}` is never closed", offset=offset, hint=f"add `{closing}`")


def _unreadable_error(source: str, position: int) -> ExpressionError:
    while source[position].isspace():
        position += 1
    character = source[position]
    if character in "'\"":
        return _unclosed_error(character, position, character)
    hints = {
        "&": "write `and`",
        "!": "write `not`",
        "$": "names stand alone: `{{ name }}`",
        "?": "write `a if b else c`",
    }
    return ExpressionError(f"unexpected `{character}`", offset=position, hint=hints.get(character, ""))
