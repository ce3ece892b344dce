"""What makes a string a guard, and what its syntax alone tells about its value."""

from collections.abc import Sequence

from jinja2 import nodes

from noetl.expr.language.lexer import Lexeme, lex
from noetl.expr.language.parser import parse_syntax
from noetl.model.errors import ExpressionError

_LOOSE_OPERATORS = frozenset({"and", "or", "not", "if", "else"})


def is_template(text: str) -> bool:
    """Whether `text` holds `{{`, `{%` or `{#`."""
    return "{{" in text or "{%" in text or "{#" in text


def guard_fault(source: str) -> tuple[str, str] | None:
    """The message and hint for a guard that is not one expression; None where it is one.

    What cannot even be read is left for `parse` to report.
    """
    if not is_template(source):
        return _bare_fault(source)
    try:
        lexemes = lex(source)
    except ExpressionError:
        return None
    if any(lexeme.type in ("block_begin", "raw_begin") for lexeme in lexemes):
        return (
            "a guard is an expression, not a template",
            "write one `{{ … }}` with `and`, `or`, `a if b else c`",
        )
    expressions = sum(lexeme.type == "variable_begin" for lexeme in lexemes)
    text = any(lexeme.type == "data" and lexeme.text.strip() for lexeme in lexemes)
    if expressions == 1 and not text:
        return None
    message = "a guard is one expression, with no text around it"
    if expressions > 1:
        message = "a guard is one expression, this has several"
    return message, f"write `{{{{ {_join_expressions(source, lexemes)} }}}}`"


def _bare_fault(source: str) -> tuple[str, str]:
    text = " ".join(source.split())
    if not text:
        return "the guard is empty", "write `{{ … }}`, or true"
    if text.lower() in ("true", "false"):
        return "a guard is an expression or a boolean, not text", f"write {text.lower()} without quotes"
    return "a guard is an expression in braces; as it stands this is text", f"write `{{{{ {text} }}}}`"


def _join_expressions(source: str, lexemes: Sequence[Lexeme]) -> str:
    """The guard with its braces moved to the outside."""
    parts: list[str] = []
    start = 0
    loose = False
    for lexeme in lexemes:
        if lexeme.type == "data":
            parts.append(lexeme.text.strip())
        elif lexeme.type == "variable_begin":
            start = lexeme.offset + len(lexeme.text)
            loose = False
        elif lexeme.type == "variable_end":
            inner = source[start : lexeme.offset].strip()
            parts.append(f"({inner})" if loose else inner)
        elif lexeme.type == "name" and lexeme.text in _LOOSE_OPERATORS:
            loose = True
    return " ".join(part for part in parts if part)


def gives_boolean(source: str) -> bool:
    """Whether the value is true, false or nothing, whatever its names stand for."""
    return _is_boolean(parse_syntax(source).expression)


def is_concatenation(source: str) -> bool:
    """Whether the outermost operator is `~`."""
    return isinstance(parse_syntax(source).expression, nodes.Concat)


def _is_boolean(node: nodes.Node | None) -> bool:
    match node:
        case nodes.Compare() | nodes.Test() | nodes.Not() | None:
            return True
        case nodes.And() | nodes.Or():
            return _is_boolean(node.left) and _is_boolean(node.right)
        case nodes.CondExpr():
            return _is_boolean(node.expr1) and _is_boolean(node.expr2)
        case nodes.Const():
            return not isinstance(node.value, str)
        case _:
            return False
