"""The draft's `outcome.status` is `success` or `error`; the canonical one is `ok` or `error`."""

from collections.abc import Iterator

from noetl.dsl.dialects.template_edits import Edit, TemplateTokens, string_constant
from noetl.expr import SourceToken

_GENERAL = "('success' if outcome.status == 'ok' else outcome.status)"
_STATUS = {("outcome", "status"), ("output", "status")}
# What may stand beside a comparison without being part of one of its operands.
_BEFORE = frozenset(
    {"", "variable_begin", "block_begin", "lparen", "lbracket", "lbrace", "comma", "colon", "assign"}
)
_AFTER = frozenset({"", "variable_end", "block_end", "rparen", "rbracket", "rbrace", "comma", "colon"})
_WORDS_BEFORE = frozenset({"and", "or", "not", "if", "elif", "else", "set"})
_WORDS_AFTER = frozenset({"and", "or", "if", "else"})


def status_edits(source: TemplateTokens) -> Iterator[Edit]:
    """Gives every `outcome.status` its draft meaning; a comparison with constants changes those instead."""
    for use in source.uses:
        if use.path[:2] not in _STATUS:
            continue
        steps = source.path_tokens(use)
        if len(steps) < 2:
            continue
        _, last, end = steps[1]
        first = last - 2 if source.token(last).type == "name" else last - 3
        constants = _compared(source, first, last) if len(steps) == 2 else None
        if constants is None:
            yield Edit(use.offset, end, source.operand_text(_GENERAL, source.index_of(use), last))
            continue
        for token in constants:
            if string_constant(token) == "success":
                yield Edit(token.offset, token.offset + len(token.text), token.text[0] + "ok" + token.text[0])


def _compared(source: TemplateTokens, first: int, last: int) -> list[SourceToken] | None:
    """The constants the status is compared with, or None if that is not all there is to it."""
    constants = _right_of(source, first, last) or _left_of(source, first, last)
    # The draft's status is never `ok`: a comparison with it must stay false.
    if constants is None or any(string_constant(token) == "ok" for token in constants):
        return None
    return constants


def _right_of(source: TemplateTokens, first: int, last: int) -> list[SourceToken] | None:
    if not _opens(source.token(first - 1)):
        return None
    index = last + 1
    operator = source.token(index)
    if operator.type in ("eq", "ne"):
        value = source.token(index + 1)
        return [value] if value.type == "string" and _closes(source.token(index + 2)) else None
    if operator.text == "not":
        index += 1
    if source.token(index).text != "in":
        return None
    return _listed(source, index + 1)


def _listed(source: TemplateTokens, index: int) -> list[SourceToken] | None:
    """The strings of a list or tuple that starts at `index` and has nothing else in it."""
    closing = {"lbracket": "rbracket", "lparen": "rparen"}.get(source.token(index).type)
    found: list[SourceToken] = []
    while closing is not None:
        index += 1
        token = source.token(index)
        if token.type == "string":
            found.append(token)
            index += 1
            token = source.token(index)
        if token.type == closing:
            # One string in round brackets is text, and `in` then looks for a part of it.
            single = closing == "rparen" and source.token(index - 1).type != "comma"
            return found if _closes(source.token(index + 1)) and not (single and len(found) == 1) else None
        if token.type != "comma" or not found:
            return None
    return None


def _left_of(source: TemplateTokens, first: int, last: int) -> list[SourceToken] | None:
    value, operator = source.token(first - 2), source.token(first - 1)
    if operator.type not in ("eq", "ne") or value.type != "string":
        return None
    return [value] if _opens(source.token(first - 3)) and _closes(source.token(last + 1)) else None


def _opens(token: SourceToken) -> bool:
    return token.type in _BEFORE or (token.type == "name" and token.text in _WORDS_BEFORE)


def _closes(token: SourceToken) -> bool:
    return token.type in _AFTER or (token.type == "name" and token.text in _WORDS_AFTER)
