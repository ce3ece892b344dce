"""From tokens to Jinja's syntax tree, in which every `lineno` is a character offset plus one."""

import re
from ast import literal_eval
from collections.abc import Iterator

from jinja2 import TemplateSyntaxError, nodes
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

from noetl.expr.lexing import Lexeme, lex
from noetl.expr.limits import MAX_BLOCKS
from noetl.model import ExpressionError

_STATEMENTS = frozenset({"for", "if", "set"})
_SILENT = frozenset({"comment", "raw_begin", "raw_end"})
_GOT = re.compile(r"got '(.*)'$", re.DOTALL)


class Syntax:
    """The parsed source. `expression` is set where the whole string is one `{{ expr }}`."""

    __slots__ = ("body", "expression", "source")

    def __init__(self, source: str, body: list[nodes.Node], expression: nodes.Expr | None) -> None:
        self.source = source
        self.body = body
        self.expression = expression


def parse_syntax(source: str) -> Syntax:
    """Read the source. Raises ExpressionError at the place of the fault."""
    lexemes = lex(source)
    parser = _OffsetParser(lexemes)
    try:
        body = parser.subparse()
    except TemplateSyntaxError as error:
        raise _explained(error) from None
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply") from None
    expression = _only_expression(body) if _is_single(lexemes) else None
    return Syntax(source, body, expression)


def _is_single(lexemes: list[Lexeme]) -> bool:
    found = 0
    for lexeme in lexemes:
        kind = lexeme.type
        if kind == "variable_begin":
            found += 1
        elif kind in ("block_begin", "raw_begin") or (kind == "data" and not lexeme.text.isspace()):
            return False
    return found == 1


def _only_expression(body: list[nodes.Node]) -> nodes.Expr | None:
    for output in body:
        if isinstance(output, nodes.Output):
            for node in output.nodes:
                if not isinstance(node, nodes.TemplateData):
                    return node
    return None


class _OffsetParser(Parser):
    """Jinja's parser over our tokens, for the few statements that playbooks may use."""

    def __init__(self, lexemes: list[Lexeme]) -> None:
        # Jinja's own constructor would read the source with its lexer; these are all its fields.
        self.stream = TokenStream(_jinja_tokens(lexemes), None, None)
        self.name = self.filename = None
        self.closed = False
        self.extensions = {}
        self._last_identifier = 0
        self._tag_stack = []
        self._end_token_stack = []

    def parse_statement(self) -> nodes.Node | list[nodes.Node]:
        token = self.stream.current
        if token.type == "name" and token.value not in _STATEMENTS and not self._ends_block(token):
            raise ExpressionError(
                f"`{{% {token.value} %}}` is not available here",
                offset=token.lineno - 1,
                hint="the statements are `if`, `for` and `set`",
            )
        if len(self._tag_stack) >= MAX_BLOCKS:
            raise ExpressionError(f"blocks are nested more than {MAX_BLOCKS} deep", offset=token.lineno - 1)
        return super().parse_statement()

    def parse_set(self) -> nodes.Assign | nodes.AssignBlock:
        node = super().parse_set()
        if isinstance(node, nodes.AssignBlock):
            self.fail("`{% set %}` needs a value: `{% set name = value %}`", node.lineno)
        return node

    def _ends_block(self, token: Token) -> bool:
        return token.value.startswith(("end", "el"))


def _jinja_tokens(lexemes: list[Lexeme]) -> Iterator[Token]:
    for lexeme in lexemes:
        kind = lexeme.type
        value: object = lexeme.text
        if kind == "data":
            value = lexeme.value
        elif kind == "string":
            value = _unescaped(lexeme)
        elif kind == "integer":
            value = int(lexeme.text.replace("_", ""), 0)
        elif kind == "float":
            value = literal_eval(lexeme.text.replace("_", ""))
        elif kind in _SILENT:
            continue
        # Token is declared with text values, but Jinja itself puts numbers there.
        yield Token(lexeme.offset + 1, kind, value)  # type: ignore[arg-type]


def _unescaped(lexeme: Lexeme) -> str:
    text = lexeme.text[1:-1]
    if "\\" not in text:
        return text
    try:
        return text.encode("ascii", "backslashreplace").decode("unicode-escape")
    except UnicodeDecodeError as error:
        raise ExpressionError(
            f"the text has a backslash that means nothing: {error.reason}",
            offset=lexeme.offset,
            hint="write `\\\\` for a backslash",
        ) from None


def _explained(error: TemplateSyntaxError) -> ExpressionError:
    """Jinja's complaint in the words of a playbook."""
    message = error.message or "the expression cannot be read"
    offset = max(error.lineno - 1, 0)
    got = _GOT.search(message)
    if "end of print statement" in message and got:
        return ExpressionError(
            f"unexpected `{got[1]}`", offset=offset, hint="an operator or `}}` is missing before it"
        )
    if got and got[1] in ("end of print statement", "end of statement block"):
        return ExpressionError("the expression ends too early", offset=offset)
    message = message.replace("Jinja was looking for the following tags:", "expected").replace("'", "`")
    return ExpressionError(message[:1].lower() + message[1:].rstrip("."), offset=offset)
