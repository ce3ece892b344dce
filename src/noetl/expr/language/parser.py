"""From tokens to Jinja's syntax tree, in which every `lineno` is a character offset plus one."""

import re
from collections.abc import Iterable, Sequence
from typing import NoReturn, cast

from jinja2 import TemplateSyntaxError, nodes
from jinja2.lexer import Token, TokenStream
from jinja2.parser import Parser

from noetl.expr.language.absent_features import ABSENT_STATEMENTS
from noetl.expr.language.lexer import Lexeme, lex
from noetl.expr.library.operators import COMPARISONS
from noetl.expr.runtime.limits import MAX_BLOCKS
from noetl.model.errors import ExpressionError

STATEMENTS = ("call", "filter", "for", "if", "macro", "print", "set", "with")
"""The statements that there are, beside `raw`, which is the lexer's."""
_SILENT = frozenset({"comment", "raw_begin", "raw_end"})
# How tightly operators bind, from loose to tight.
_OR, _AND, _NOT, _COMPARE, _SUM, _CONCAT, _PRODUCT, _POWER = range(1, 9)
_WORDS = {"or": _OR, "and": _AND, "in": _COMPARE, "not": _COMPARE}
_SYMBOLS = {
    **dict.fromkeys(COMPARISONS, _COMPARE),
    **dict.fromkeys(("add", "sub"), _SUM),
    "tilde": _CONCAT,
    **dict.fromkeys(("mul", "div", "floordiv", "mod"), _PRODUCT),
    "pow": _POWER,
}
_OPERATORS: dict[str, type[nodes.BinExpr]] = {
    "add": nodes.Add,
    "and": nodes.And,
    "div": nodes.Div,
    "floordiv": nodes.FloorDiv,
    "mod": nodes.Mod,
    "mul": nodes.Mul,
    "or": nodes.Or,
    "pow": nodes.Pow,
    "sub": nodes.Sub,
}
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
        raise _explain_error(error, lexemes) from None
    except RecursionError:
        raise ExpressionError("the expression is nested too deeply") from None
    expression = _only_expression(body) if _is_single(lexemes) else None
    return Syntax(source, body, expression)


def _is_single(lexemes: Sequence[Lexeme]) -> bool:
    expressions = 0
    for lexeme in lexemes:
        kind = lexeme.type
        if kind == "variable_begin":
            expressions += 1
        elif kind in ("block_begin", "raw_begin") or (kind == "data" and not lexeme.text.isspace()):
            return False
    return expressions == 1


def _only_expression(body: list[nodes.Node]) -> nodes.Expr | None:
    for output in body:
        if isinstance(output, nodes.Output):
            for node in output.nodes:
                if not isinstance(node, nodes.TemplateData):
                    return node
    return None


class _OffsetParser(Parser):
    """Jinja's parser over our tokens, for the few statements that playbooks may use."""

    def __init__(self, lexemes: Sequence[Lexeme]) -> None:
        # Jinja's own constructor would read the source with its lexer; these are all its fields.
        self.stream = TokenStream(_parser_tokens(lexemes), None, None)
        self.name = self.filename = None
        self.closed = False
        self.extensions = {}
        self._last_identifier = 0
        self._tag_stack = []
        self._end_token_stack = []
        self._open: list[tuple[str, int]] = []

    def parse_statement(self) -> nodes.Node | list[nodes.Node]:
        """One of the statements that there are."""
        token = self.stream.current
        name = str(token.value)
        if name not in STATEMENTS:
            raise _unknown_statement_error(name, token.lineno - 1)
        if len(self._open) >= MAX_BLOCKS:
            raise ExpressionError(f"blocks are nested more than {MAX_BLOCKS} deep", offset=token.lineno - 1)
        self._open.append((name, token.lineno - 1))
        statement = super().parse_statement()
        self._open.pop()
        return statement

    def fail_eof(self, *_: object, **__: object) -> NoReturn:
        """The source ended inside a block."""
        name, offset = self._open[-1]
        hint = f"add `{{% end{name} %}}`"
        if name == "set":
            hint = f"give it a value, `{{% set name = value %}}`, or {hint}"
        raise ExpressionError(f"`{{% {name} %}}` is never closed", offset=offset, hint=hint)

    def parse_or(self) -> nodes.Expr:
        """An expression without `if`."""
        return self._climb(_OR)

    def _climb(self, floor: int) -> nodes.Expr:
        """An expression whose operators all bind at least as tightly as `floor`.

        Jinja's grammar (`Parser.parse_or` and below), in one loop instead of a function per level: with the
        lexer this reads three times as fast, and a bracket takes fewer frames of the stack.
        """
        stream = self.stream
        token = stream.current
        if floor <= _NOT and token.type == "name" and token.value == "not":
            next(stream)
            left: nodes.Expr = nodes.Not(self._climb(_NOT), lineno=token.lineno)
        else:
            left = self.parse_unary()
        while True:
            token = stream.current
            word = token.type == "name"
            name = token.value if word else token.type
            level = (_WORDS if word else _SYMBOLS).get(name, 0)
            if level < floor or (name == "not" and not stream.look().test("name:in")):
                return left
            if level == _COMPARE:
                left = self._compare(left)
            elif level == _CONCAT:
                left = self._concat(left)
            else:
                next(stream)
                left = _OPERATORS[name](left, self._climb(level + 1), lineno=token.lineno)

    def _compare(self, left: nodes.Expr) -> nodes.Expr:
        stream = self.stream
        lineno = stream.current.lineno
        operands: list[nodes.Operand] = []
        while True:
            token = stream.current
            name = token.value if token.type == "name" else token.type
            if name == "not" and token.type == "name" and stream.look().test("name:in"):
                next(stream)
                name = "notin"
            elif name != "in" if token.type == "name" else name not in COMPARISONS:
                return nodes.Compare(left, operands, lineno=lineno)
            next(stream)
            operands.append(nodes.Operand(name, self._climb(_COMPARE + 1), lineno=token.lineno))

    def _concat(self, left: nodes.Expr) -> nodes.Expr:
        lineno = self.stream.current.lineno
        parts = [left]
        while self.stream.current.type == "tilde":
            next(self.stream)
            parts.append(self._climb(_CONCAT + 1))
        return nodes.Concat(parts, lineno=lineno)


def _unknown_statement_error(name: str, offset: int) -> ExpressionError:
    if name in ("elif", "else") or name.startswith("end"):
        return ExpressionError(f"`{{% {name} %}}` closes nothing", offset=offset)
    hint = (
        ABSENT_STATEMENTS.get(name) or f"the statements are {', '.join(f'`{known}`' for known in STATEMENTS)}"
    )
    return ExpressionError(f"`{{% {name} %}}` is not available here", offset=offset, hint=hint)


def _parser_tokens(lexemes: Sequence[Lexeme]) -> Iterable[Token]:
    """The tokens that mean something to the parser; a lexeme has all that it asks of a token."""
    return cast("Iterable[Token]", [lexeme for lexeme in lexemes if lexeme.type not in _SILENT])


def _explain_error(error: TemplateSyntaxError, lexemes: Sequence[Lexeme]) -> ExpressionError:
    """Jinja's complaint in the words of a playbook."""
    message = error.message or "the expression cannot be read"
    offset = max(error.lineno - 1, 0)
    got = _GOT.search(message)
    if message.startswith("Expected an expression"):
        return ExpressionError("an expression is missing", offset=offset)
    if message.startswith("unexpected 'end of"):
        return ExpressionError("the expression ends too early", offset=offset)
    if got and "end of print statement" in message:
        text = next((lexeme.text for lexeme in lexemes if lexeme.offset == offset), got[1])
        return ExpressionError(
            f"unexpected `{text}`", offset=offset, hint="an operator or `}}` is missing before it"
        )
    if got and got[1] in ("end of print statement", "end of statement block"):
        return ExpressionError("the expression ends too early", offset=offset)
    message = message.replace("'", "`")
    return ExpressionError(message[:1].lower() + message[1:].rstrip("."), offset=offset)
