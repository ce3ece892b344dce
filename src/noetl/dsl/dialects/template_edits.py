"""Renaming inside expressions, on tokens: what is not renamed stays as it was, byte for byte."""

from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from noetl.dsl.dialects.nodes import new_text
from noetl.dsl.document.source import Mapping, Node, Scalar, Sequence
from noetl.expr.expression import parse
from noetl.expr.language.guard import is_template
from noetl.expr.language.lexer import SourceToken, tokenize
from noetl.expr.use import Use
from noetl.model.errors import ExpressionError

KeyPath: TypeAlias = tuple[str, ...]


class Edit(NamedTuple):
    start: int
    end: int
    text: str


class TemplateTokens:
    """One string with its tokens and what it reads. `tokens` are those that mean something."""

    __slots__ = ("_at", "tokens", "uses")

    def __init__(self, text: str) -> None:
        self.tokens = [token for token in tokenize(text) if token.type not in ("whitespace", "comment")]
        self._at = {token.offset: index for index, token in enumerate(self.tokens)}
        self.uses = parse(text).uses

    def path_tokens(self, use: Use) -> list[tuple[str, int, int]]:
        """Each key of the path with the index of its last token and the offset where it ends."""
        index = self.index_of(use)
        keys = [(self.tokens[index].text, index, _end_of(self.tokens[index]))]
        while (key_token := self._key_at(index + 1)) is not None:
            key, index = key_token
            keys.append((key, index, _end_of(self.tokens[index])))
        return keys

    def _key_at(self, index: int) -> tuple[str, int] | None:
        first, second, third = (self.token(index + offset) for offset in range(3))
        if first.type == "dot" and second.type == "name":
            # A method call reads its owner, not a key.
            return None if third.type == "lparen" else (second.text, index + 1)
        if first.type == "lbracket" and second.type == "string" and third.type == "rbracket":
            return string_constant(second), index + 2
        return None

    def operand_text(self, text: str, first: int, last: int) -> str:
        """An operand for the tokens from `first` to `last`, without its brackets where it stands alone."""
        alone = self.token(first - 1).type == "variable_begin" and self.token(last + 1).type == "variable_end"
        return text[1:-1] if alone and _is_bracketed(text) else text

    def index_of(self, use: Use) -> int:
        """The index of the token that a use starts with."""
        return self._at[use.offset]

    def token(self, index: int) -> SourceToken:
        """The token at an index; an empty one beyond either end."""
        return self.tokens[index] if 0 <= index < len(self.tokens) else _NO_TOKEN


_NO_TOKEN = SourceToken(-1, "", "")

PathResolver: TypeAlias = Callable[[KeyPath, Use], tuple[int, str] | None]
"""From a path to how many of its keys are replaced, and by what; None to leave it alone."""

EditFinder: TypeAlias = Callable[[TemplateTokens], Iterable[Edit]]


def name_edits(resolve: PathResolver) -> EditFinder:
    """Replaces the free names that `resolve` knows."""

    def edits(template: TemplateTokens) -> Iterator[Edit]:
        for use in template.uses:
            keys = template.path_tokens(use)
            resolved = resolve(tuple(key for key, _, _ in keys), use)
            if resolved is not None:
                count, text = resolved
                _, last, end = keys[count - 1]
                yield Edit(use.offset, end, template.operand_text(text, template.index_of(use), last))

    return edits


def edit_text(text: str, *finders: EditFinder) -> str:
    """The text with all edits made. Text that cannot be read is given back as it is."""
    if not is_template(text):
        return text
    try:
        template = TemplateTokens(text)
    except ExpressionError:
        return text
    # From the back: the offsets of edits still to come stay right. Two finders may give the same edit.
    edits = sorted({edit for finder in finders for edit in finder(template)}, reverse=True)
    for start, end, replacement in edits:
        text = text[:start] + replacement + text[end:]
    return text


def edit_node(node: Node, *finders: EditFinder) -> Node:
    """The value with every string in it rewritten; parts that do not change are shared."""
    if isinstance(node, Scalar):
        if not isinstance(node.value, str):
            return node
        text = edit_text(node.value, *finders)
        return node if text == node.value else new_text(text, node)
    if isinstance(node, Sequence):
        return Sequence([edit_node(item, *finders) for item in node.items], node.line, node.column)
    entries = {
        entry.key: type(entry)(entry.key, edit_node(entry.value, *finders), entry.line, entry.column)
        for entry in node
    }
    return Mapping(entries, node.line, node.column)


def string_constant(token: SourceToken) -> str:
    """The text of a string token."""
    try:
        # Jinja reads string escapes as Python does.
        return str(literal_eval(token.text))
    except (SyntaxError, ValueError):
        return token.text[1:-1]


def _is_bracketed(text: str) -> bool:
    """Whether the first character is a bracket that the last one closes."""
    if not text.startswith("("):
        return False
    depth = 0
    for token in tokenize("{{" + text + "}}")[1:-1]:
        depth += {"lparen": 1, "rparen": -1}.get(token.type, 0)
        if depth == 0:
            return _end_of(token) == len(text) + 2
    return False


def _end_of(token: SourceToken) -> int:
    return token.offset + len(token.text)
