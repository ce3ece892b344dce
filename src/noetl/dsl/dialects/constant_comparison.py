"""Comparisons of a path with constant texts, found on tokens: `a.b == 'x'`, `a.b in ['x', 'y']`."""

import re
from typing import NamedTuple

from noetl.dsl.dialects.expression_text import TemplateTokens
from noetl.expr.language.lexer import SourceToken
from noetl.expr.use import Use

# What may stand beside a comparison without being part of one of its operands.
_BEFORE = frozenset(
    {"", "variable_begin", "block_begin", "lparen", "lbracket", "lbrace", "comma", "colon", "assign"}
)
_AFTER = frozenset({"", "variable_end", "block_end", "rparen", "rbracket", "rbrace", "comma", "colon"})
_WORDS_BEFORE = frozenset({"and", "or", "not", "if", "elif", "else", "set"})
_WORDS_AFTER = frozenset({"and", "or", "if", "else"})


# The comparison that most guards begin with.
_BEGINNING = re.compile(r"\{\{ *")
_FIRST = re.compile(r""" *([=!]=) *('[^'\\\n]*'|"[^"\\\n]*")(?= *(?:\}\}|(?:and|or) ))""")


class ConstantComparison(NamedTuple):
    """The constants, where the comparison begins and ends in the text, and whether it holds without them."""

    constants: list[SourceToken]
    start: int
    end: int
    negated: bool


def find_comparison(template: TemplateTokens, use: Use, end: int) -> ConstantComparison | None:
    """The comparison of a path up to the offset `end`; None if that is not all there is to it."""
    # `_on_tokens` gives the same, and has to take the text apart for that; a test holds the two equal.
    if (match := _FIRST.match(template.text, end)) and _BEGINNING.fullmatch(template.text, 0, use.offset):
        return ConstantComparison(
            [SourceToken(match.start(2), "string", match[2])], use.offset, match.end(2), match[1] == "!="
        )
    return _on_tokens(template, template.index_of(use), template.index_before(end))


def _on_tokens(template: TemplateTokens, first: int, last: int) -> ConstantComparison | None:
    return _right_of(template, first, last) or _left_of(template, first, last)


def _right_of(template: TemplateTokens, first: int, last: int) -> ConstantComparison | None:
    if not _starts_operand(template.token(first - 1)):
        return None
    start, index = template.token(first).offset, last + 1
    operator = template.token(index)
    if operator.type in ("eq", "ne"):
        value = template.token(index + 1)
        if value.type != "string" or not _ends_operand(template.token(index + 2)):
            return None
        return ConstantComparison([value], start, _end_of(value), operator.type == "ne")
    negated = operator.text == "not"
    index += negated
    if template.token(index).text != "in":
        return None
    return _string_list(template, index + 1, start, negated=negated)


def _string_list(
    template: TemplateTokens, index: int, start: int, *, negated: bool
) -> ConstantComparison | None:
    """The strings of a list or tuple that starts at `index` and has nothing else in it."""
    closing = {"lbracket": "rbracket", "lparen": "rparen"}.get(template.token(index).type)
    strings: list[SourceToken] = []
    while closing is not None:
        index += 1
        token = template.token(index)
        if token.type == "string":
            strings.append(token)
            index += 1
            token = template.token(index)
        if token.type == closing:
            # One string in round brackets is text, and `in` then looks for a part of it.
            single = closing == "rparen" and template.token(index - 1).type != "comma"
            if not _ends_operand(template.token(index + 1)) or (single and len(strings) == 1):
                return None
            return ConstantComparison(strings, start, _end_of(token), negated)
        if token.type != "comma" or not strings:
            return None
    return None


def _left_of(template: TemplateTokens, first: int, last: int) -> ConstantComparison | None:
    value, operator = template.token(first - 2), template.token(first - 1)
    if operator.type not in ("eq", "ne") or value.type != "string":
        return None
    if not _starts_operand(template.token(first - 3)) or not _ends_operand(template.token(last + 1)):
        return None
    return ConstantComparison([value], value.offset, _end_of(template.token(last)), operator.type == "ne")


def _starts_operand(token: SourceToken) -> bool:
    return token.type in _BEFORE or (token.type == "name" and token.text in _WORDS_BEFORE)


def _ends_operand(token: SourceToken) -> bool:
    return token.type in _AFTER or (token.type == "name" and token.text in _WORDS_AFTER)


def _end_of(token: SourceToken) -> int:
    return token.offset + len(token.text)
