"""Values and templates as parts of one expression."""

import re
from collections.abc import Iterable

from noetl.dsl.document.source import Mapping, Node, Scalar
from noetl.expr.expression import parse
from noetl.expr.language.guard import gives_boolean, is_concatenation, is_template
from noetl.expr.language.lexer import SourceToken, tokenize
from noetl.model.errors import ExpressionError
from noetl.model.json import ScalarValue

ERROR_GUARD = "{{ outcome.status == 'error' }}"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OPERAND = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*|\['[^'\\]*'\])*\Z|'[^'\\]*'\Z")
_WORDS = frozenset(
    {"and", "or", "not", "if", "else", "in", "is", "true", "false", "none", "True", "False", "None"}
)
_OPENING = frozenset({"lparen", "lbracket", "lbrace"})
_CLOSING = frozenset({"rparen", "rbracket", "rbrace"})


def member_expression(owner: str, key: str) -> str:
    """The expression for a key of `owner`."""
    if _NAME.match(key) and key not in _WORDS:
        return f"{owner}.{key}"
    return f"{owner}[{literal_expression(key)}]"


def literal_expression(value: ScalarValue) -> str:
    """A constant as an expression."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def as_template(expression: str) -> str:
    return "{{ " + expression + " }}"


def inner_expression(text: str) -> str | None:
    """What stands between the braces of a single `{{ … }}`, or None where there is more or less."""
    try:
        if not is_template(text) or not parse(text).single:
            return None
        pieces = [token for token in tokenize(text) if token.type not in ("data", "comment")]
    except ExpressionError:
        return None
    return "".join(token.text for token in pieces[1:-1]).strip()


def as_expression(node: Node) -> str | None:
    """An expression with the value of the node, or None where it uses statements (`{% … %}`)."""
    if isinstance(node, Scalar):
        if isinstance(node.value, str) and is_template(node.value):
            return inner_expression(node.value) or _concatenation(node.value)
        return literal_expression(node.value)
    if isinstance(node, Mapping):
        return _collection_expression(
            "{", ((f"{literal_expression(entry.key)}: ", entry.value) for entry in node), "}"
        )
    return _collection_expression("[", (("", item) for item in node.items), "]")


def as_operand(expression: str) -> str:
    """The expression so that it can stand as an operand or before a `.`."""
    return expression if _OPERAND.match(expression) else f"({expression})"


def as_conjunct(expression: str) -> str:
    """The expression so that it can stand between two `and`."""
    # `and` binds tighter than `or` and `if`, and a comma would make a tuple: not so inside brackets.
    depth = 0
    for token in _inner_tokens(expression):
        if token.type in _OPENING:
            depth += 1
        elif token.type in _CLOSING:
            depth -= 1
        elif depth == 0 and (token.type == "comma" or (token.type == "name" and token.text in ("or", "if"))):
            return f"({expression})"
    return expression


def negate_guard(expression: str) -> str:
    """Holds where a guard of this expression does not: the text `false`, too, makes a guard fail."""
    if gives_boolean(as_template(expression)):
        return f"not {as_operand(expression)}"
    return f"not ({as_operand(expression)} | bool)"


def _collection_expression(opening: str, parts: Iterable[tuple[str, Node]], closing: str) -> str | None:
    expressions: list[str] = []
    for front, node in parts:
        expression = as_expression(node)
        if expression is None:
            return None
        expressions.append(front + as_conjunct(expression))
    return f"{opening}{', '.join(expressions)}{closing}"


def _concatenation(text: str) -> str | None:
    """Text with expressions in it as one concatenation."""
    parts: list[str] = []
    inside: list[str] = []
    try:
        pieces = tokenize(text)
        parse(text)
    except ExpressionError:
        return None
    for token in pieces:
        match token.type:
            case "data":
                parts.append(literal_expression(token.text))
            case "block_begin" | "raw_begin":
                return None
            case "variable_begin":
                if token.text != "{{":
                    return None
                inside = []
            case "variable_end":
                if token.text != "}}":
                    return None
                parts.append(_concatenation_operand("".join(inside).strip()))
            case "comment":
                pass
            case _:
                inside.append(token.text)
    return " ~ ".join(parts if len(parts) > 1 else [*parts, "''"])


def _concatenation_operand(expression: str) -> str:
    """The expression so that it can stand beside `~`."""
    return expression if is_concatenation(as_template(expression)) else as_operand(expression)


def _inner_tokens(expression: str) -> list[SourceToken]:
    try:
        return tokenize(as_template(expression))[1:-1]
    except ExpressionError:
        return []
