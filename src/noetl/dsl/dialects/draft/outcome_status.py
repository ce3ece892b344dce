"""The draft's `outcome.status` is `success` or `error`; the canonical one is `ok` or `error`."""

from collections.abc import Iterator

from noetl.dsl.dialects.template_edits import Edit, TemplateTokens, string_constant
from noetl.expr.language.lexer import SourceToken

_DRAFT_STATUS = "('success' if outcome.status == 'ok' else outcome.status)"
_OUTCOME = frozenset({"outcome", "output"})
# What may stand beside a comparison without being part of one of its operands.
_BEFORE = frozenset(
    {"", "variable_begin", "block_begin", "lparen", "lbracket", "lbrace", "comma", "colon", "assign"}
)
_AFTER = frozenset({"", "variable_end", "block_end", "rparen", "rbracket", "rbrace", "comma", "colon"})
_WORDS_BEFORE = frozenset({"and", "or", "not", "if", "elif", "else", "set"})
_WORDS_AFTER = frozenset({"and", "or", "if", "else"})


def status_edits(template: TemplateTokens) -> Iterator[Edit]:
    """Gives every `outcome.status` its draft meaning; a comparison with constants changes those instead.

    An `outcome` of which no key is written out becomes a value with that status, wherever it goes then.
    """
    for use in template.uses:
        if use.path[0] not in _OUTCOME:
            continue
        keys = template.path_tokens(use)
        if len(keys) == 1:
            name, _, end = keys[0]
            yield Edit(use.offset, end, f"dict({name}, status={_DRAFT_STATUS[1:-1]})")
            continue
        key, last, end = keys[1]
        if key != "status":
            continue
        first = last - 2 if template.token(last).type == "name" else last - 3
        constants = _compared_constants(template, first, last) if len(keys) == 2 else None
        if constants is None:
            yield Edit(use.offset, end, template.operand_text(_DRAFT_STATUS, template.index_of(use), last))
            continue
        for token in constants:
            if string_constant(token) == "success":
                yield Edit(token.offset, token.offset + len(token.text), token.text[0] + "ok" + token.text[0])


def _compared_constants(template: TemplateTokens, first: int, last: int) -> list[SourceToken] | None:
    """The constants the status is compared with, or None if that is not all there is to it."""
    constants = _constants_right_of(template, first, last) or _constants_left_of(template, first, last)
    # The draft's status is never `ok`: a comparison with it must stay false.
    if constants is None or any(string_constant(token) == "ok" for token in constants):
        return None
    return constants


def _constants_right_of(template: TemplateTokens, first: int, last: int) -> list[SourceToken] | None:
    if not _starts_operand(template.token(first - 1)):
        return None
    index = last + 1
    operator = template.token(index)
    if operator.type in ("eq", "ne"):
        value = template.token(index + 1)
        return [value] if value.type == "string" and _ends_operand(template.token(index + 2)) else None
    if operator.text == "not":
        index += 1
    if template.token(index).text != "in":
        return None
    return _string_list(template, index + 1)


def _string_list(template: TemplateTokens, index: int) -> list[SourceToken] | None:
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
            return (
                strings
                if _ends_operand(template.token(index + 1)) and not (single and len(strings) == 1)
                else None
            )
        if token.type != "comma" or not strings:
            return None
    return None


def _constants_left_of(template: TemplateTokens, first: int, last: int) -> list[SourceToken] | None:
    value, operator = template.token(first - 2), template.token(first - 1)
    if operator.type not in ("eq", "ne") or value.type != "string":
        return None
    return (
        [value]
        if _starts_operand(template.token(first - 3)) and _ends_operand(template.token(last + 1))
        else None
    )


def _starts_operand(token: SourceToken) -> bool:
    return token.type in _BEFORE or (token.type == "name" and token.text in _WORDS_BEFORE)


def _ends_operand(token: SourceToken) -> bool:
    return token.type in _AFTER or (token.type == "name" and token.text in _WORDS_AFTER)
