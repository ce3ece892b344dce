"""Renaming inside expressions, on tokens: what is not renamed stays as it was, byte for byte."""

from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeAlias

from noetl.dsl.document.source import Mapping, Node, Scalar, Sequence
from noetl.expr import Token, Use, is_template, parse, tokens
from noetl.model import ExpressionError

Path: TypeAlias = tuple[str, ...]


class Edit(NamedTuple):
    start: int
    end: int
    text: str


class Source:
    """One string with its tokens and what it reads. `code` are the tokens that mean something."""

    __slots__ = ("_at", "code", "uses")

    def __init__(self, text: str) -> None:
        self.code = [token for token in tokens(text) if token.type not in ("whitespace", "comment")]
        self._at = {token.offset: index for index, token in enumerate(self.code)}
        self.uses = parse(text).uses

    def steps(self, use: Use) -> list[tuple[str, int, int]]:
        """Each key of the path with the index of its last token and the offset where it ends."""
        index = self.index(use)
        found = [(self.code[index].text, index, _end(self.code[index]))]
        while (step := self._step(index + 1)) is not None:
            key, index = step
            found.append((key, index, _end(self.code[index])))
        return found

    def _step(self, index: int) -> tuple[str, int] | None:
        first, second, third = (self.token(index + offset) for offset in range(3))
        if first.type == "dot" and second.type == "name":
            # A method call reads its owner, not a key.
            return None if third.type == "lparen" else (second.text, index + 1)
        if first.type == "lbracket" and second.type == "string" and third.type == "rbracket":
            return constant(second), index + 2
        return None

    def fitting(self, text: str, first: int, last: int) -> str:
        """An operand for the tokens from `first` to `last`, without its brackets where it stands alone."""
        alone = self.token(first - 1).type == "variable_begin" and self.token(last + 1).type == "variable_end"
        return text[1:-1] if alone and _is_bracketed(text) else text

    def index(self, use: Use) -> int:
        """The index of the token that a use starts with."""
        return self._at[use.offset]

    def token(self, index: int) -> Token:
        """The token at an index; an empty one beyond either end."""
        return self.code[index] if 0 <= index < len(self.code) else _NOTHING


_NOTHING = Token(-1, "", "")

Resolve: TypeAlias = Callable[[Path, Use], tuple[int, str] | None]
"""From a path to how many of its keys are replaced, and by what; None to leave it alone."""

Finder: TypeAlias = Callable[[Source], Iterable[Edit]]


def renamed(resolve: Resolve) -> Finder:
    """Replaces the free names that `resolve` knows."""

    def edits(source: Source) -> Iterator[Edit]:
        for use in source.uses:
            steps = source.steps(use)
            answer = resolve(tuple(key for key, _, _ in steps), use)
            if answer is not None:
                count, text = answer
                _, last, end = steps[count - 1]
                yield Edit(use.offset, end, source.fitting(text, source.index(use), last))

    return edits


def rewritten(text: str, *finders: Finder) -> str:
    """The text with all edits made. Text that cannot be read is given back as it is."""
    if not is_template(text):
        return text
    try:
        source = Source(text)
    except ExpressionError:
        return text
    edits = sorted({edit for finder in finders for edit in finder(source)}, reverse=True)
    for start, end, replacement in edits:
        text = text[:start] + replacement + text[end:]
    return text


def rewritten_node(node: Node, *finders: Finder) -> Node:
    """The value with every string in it rewritten; parts that do not change are shared."""
    if isinstance(node, Scalar):
        if not isinstance(node.value, str):
            return node
        text = rewritten(node.value, *finders)
        return node if text == node.value else Scalar(text, node.line, node.column)
    if isinstance(node, Sequence):
        return Sequence([rewritten_node(item, *finders) for item in node.items], node.line, node.column)
    entries = {
        entry.key: type(entry)(entry.key, rewritten_node(entry.value, *finders), entry.line, entry.column)
        for entry in node
    }
    return Mapping(entries, node.line, node.column)


def constant(token: Token) -> str:
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
    for token in tokens("{{" + text + "}}")[1:-1]:
        depth += {"lparen": 1, "rparen": -1}.get(token.type, 0)
        if depth == 0:
            return _end(token) == len(text) + 2
    return False


def _end(token: Token) -> int:
    return token.offset + len(token.text)
