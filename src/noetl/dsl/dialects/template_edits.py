"""Renaming inside expressions, on tokens: what is not renamed stays as it was, byte for byte."""

from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from noetl.dsl.document.source import Mapping, Node, Scalar, Sequence
from noetl.expr import SourceToken, Use, is_template, parse, tokenize
from noetl.model import ExpressionError

KeyPath: TypeAlias = tuple[str, ...]


class Edit(NamedTuple):
    start: int
    end: int
    text: str


class TemplateTokens:
    """One string with its tokens and what it reads. `code` are the tokens that mean something."""

    __slots__ = ("_at", "tokens", "uses")

    def __init__(self, text: str) -> None:
        self.tokens = [token for token in tokenize(text) if token.type not in ("whitespace", "comment")]
        self._at = {token.offset: index for index, token in enumerate(self.tokens)}
        self.uses = parse(text).uses

    def path_tokens(self, use: Use) -> list[tuple[str, int, int]]:
        """Each key of the path with the index of its last token and the offset where it ends."""
        index = self.index_of(use)
        found = [(self.tokens[index].text, index, _end(self.tokens[index]))]
        while (step := self._step(index + 1)) is not None:
            key, index = step
            found.append((key, index, _end(self.tokens[index])))
        return found

    def _step(self, index: int) -> tuple[str, int] | None:
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
        return self.tokens[index] if 0 <= index < len(self.tokens) else _NOTHING


_NOTHING = SourceToken(-1, "", "")

PathResolver: TypeAlias = Callable[[KeyPath, Use], tuple[int, str] | None]
"""From a path to how many of its keys are replaced, and by what; None to leave it alone."""

EditFinder: TypeAlias = Callable[[TemplateTokens], Iterable[Edit]]


def name_edits(resolve: PathResolver) -> EditFinder:
    """Replaces the free names that `resolve` knows."""

    def edits(source: TemplateTokens) -> Iterator[Edit]:
        for use in source.uses:
            steps = source.path_tokens(use)
            answer = resolve(tuple(key for key, _, _ in steps), use)
            if answer is not None:
                count, text = answer
                _, last, end = steps[count - 1]
                yield Edit(use.offset, end, source.operand_text(text, source.index_of(use), last))

    return edits


def edit_text(text: str, *finders: EditFinder) -> str:
    """The text with all edits made. Text that cannot be read is given back as it is."""
    if not is_template(text):
        return text
    try:
        source = TemplateTokens(text)
    except ExpressionError:
        return text
    edits = sorted({edit for finder in finders for edit in finder(source)}, reverse=True)
    for start, end, replacement in edits:
        text = text[:start] + replacement + text[end:]
    return text


def edit_node(node: Node, *finders: EditFinder) -> Node:
    """The value with every string in it rewritten; parts that do not change are shared."""
    if isinstance(node, Scalar):
        if not isinstance(node.value, str):
            return node
        text = edit_text(node.value, *finders)
        return node if text == node.value else Scalar(text, node.line, node.column)
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
            return _end(token) == len(text) + 2
    return False


def _end(token: SourceToken) -> int:
    return token.offset + len(token.text)
