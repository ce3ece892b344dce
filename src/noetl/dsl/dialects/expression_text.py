"""The text of expressions: values and templates as parts of one, and names replaced inside of them.

Replacing works on tokens: what is not replaced stays as it was, byte for byte.
"""

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from noetl.dsl.dialects.nodes import new_entry, new_text
from noetl.dsl.document.source import Mapping, MappingEntry, Node, Scalar, Sequence
from noetl.expr.expression import Expression, expect_renamed, parse
from noetl.expr.language.guard import gives_boolean, is_concatenation, is_template
from noetl.expr.language.lexer import SourceToken, tokenize
from noetl.expr.use import Path, Use
from noetl.model.errors import ExpressionError
from noetl.model.json import ScalarValue

ERROR_GUARD = "{{ outcome.status == 'error' }}"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_OPERAND = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*|\['[^'\\]*'\])*\Z|'[^'\\]*'\Z")
_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*", re.ASCII)
_WORDS = frozenset(
    {"and", "or", "not", "if", "else", "in", "is", "true", "false", "none", "True", "False", "None"}
)
_LOOSE = re.compile(r",|\b(?:or|if)\b")
_OPENING = frozenset({"lparen", "lbracket", "lbrace"})
_CLOSING = frozenset({"rparen", "rbracket", "rbrace"})


# One text is taken apart for each of the questions that are asked of it, one right after the other.
@lru_cache(maxsize=64)
def tokens_of(text: str) -> tuple[SourceToken, ...]:
    """The tokens of a text. Raises ExpressionError."""
    return tuple(tokenize(text))


class Edit(NamedTuple):
    start: int
    end: int
    text: str


class TemplateTokens:
    """One string with its tokens and what it reads. `tokens` are those that mean something."""

    __slots__ = ("_begins", "_ends", "_tokens", "text", "uses")

    def __init__(self, text: str) -> None:
        self.text = text
        self.uses = parse(text).uses
        self._tokens: list[SourceToken] | None = None
        self._begins: dict[int, int] = {}
        self._ends: dict[int, int] = {}

    @property
    def tokens(self) -> list[SourceToken]:
        """Made when they are asked for: most edits need none."""
        if self._tokens is None:
            self._tokens = [t for t in tokens_of(self.text) if t.type not in ("whitespace", "comment")]
            self._begins = {token.offset: index for index, token in enumerate(self._tokens)}
            self._ends = {_end_of(token): index for index, token in enumerate(self._tokens)}
        return self._tokens

    def path_ends(self, use: Use) -> list[tuple[str, int]]:
        """Each key of the path with the offset where it ends."""
        end = use.offset - 1
        # Nearly every path stands there as `a.b.c`: then its tokens say the same.
        if self.text.startswith(".".join(use.path), use.offset):
            return [(key, end := end + 1 + len(key)) for key in use.path]
        index = self.index_of(use)
        keys = [(self.tokens[index].text, _end_of(self.tokens[index]))]
        while (key_token := self._key_at(index + 1)) is not None:
            key, index = key_token
            keys.append((key, _end_of(self.tokens[index])))
        return keys

    def _key_at(self, index: int) -> tuple[str, int] | None:
        first, second, third = (self.token(index + offset) for offset in range(3))
        if first.type == "dot" and second.type == "name":
            # A method call reads its owner, not a key.
            return None if third.type == "lparen" else (second.text, index + 1)
        if first.type == "lbracket" and second.type == "string" and third.type == "rbracket":
            return string_constant(second), index + 2
        return None

    def operand_text(self, text: str, use: Use, end: int) -> str:
        """An operand for a path up to this offset, without its brackets where it stands alone."""
        return text[1:-1] if _is_bracketed(text) and self.stands_alone(use, end) else text

    def stands_alone(self, use: Use, end: int) -> bool:
        """Whether nothing but a path up to this offset stands between the braces."""
        before, after = self.token(self.index_of(use) - 1), self.token(self.index_before(end) + 1)
        return before.type == "variable_begin" and after.type == "variable_end"

    def index_of(self, use: Use) -> int:
        """The index of the token that a use starts with."""
        return self._begins[use.offset] if self.tokens else -1

    def index_before(self, end: int) -> int:
        """The index of the token that ends at this offset."""
        return self._ends[end] if self.tokens else -1

    def token(self, index: int) -> SourceToken:
        """The token at an index; an empty one beyond either end."""
        return self.tokens[index] if 0 <= index < len(self.tokens) else _NO_TOKEN


_NO_TOKEN = SourceToken(-1, "", "")

PathResolver: TypeAlias = Callable[[Path, Use], tuple[int, str] | None]
"""From a path to how many of its keys are replaced, and by what; None to leave it alone."""

EditFinder: TypeAlias = Callable[[TemplateTokens], Iterable[Edit]]


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
        pieces = [token for token in tokens_of(text) if token.type not in ("data", "comment")]
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
    # Most have none of these anywhere: then they need not be taken apart to see where.
    if not _LOOSE.search(expression):
        return expression
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
        pieces = tokens_of(text)
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


def _inner_tokens(expression: str) -> Iterable[SourceToken]:
    try:
        return tokens_of(as_template(expression))[1:-1]
    except ExpressionError:
        return []


def name_edits(resolve: PathResolver) -> EditFinder:
    """Replaces the free names that `resolve` knows."""

    def edits(template: TemplateTokens) -> Iterator[Edit]:
        for use in template.uses:
            keys = template.path_ends(use)
            resolved = resolve(tuple(key for key, _ in keys), use)
            if resolved is not None:
                count, text = resolved
                _, end = keys[count - 1]
                yield Edit(use.offset, end, template.operand_text(text, use, end))

    return edits


def edit_text(text: str, *finders: EditFinder, concerns: Callable[[Use], bool] | None = None) -> str:
    """The text with all edits made. Text that cannot be read is given back as it is.

    Where no use `concerns` the finders, the text is not even taken apart.
    """
    if not is_template(text):
        return text
    try:
        if concerns is not None and not any(map(concerns, parse(text).uses)):
            return text
        template = TemplateTokens(text)
    except ExpressionError:
        return text
    # From the back: the offsets of edits still to come stay right. Two finders may give the same edit.
    edits = sorted({edit for finder in finders for edit in finder(template)}, reverse=True)
    edited = text
    for start, end, replacement in edits:
        edited = edited[:start] + replacement + edited[end:]
    if edits and (uses := _renamed_uses(parse(text), edits)) is not None:
        expect_renamed(edited, parse(text), uses)
    return edited


def _renamed_uses(expression: Expression, edits: list[Edit]) -> tuple[Use, ...] | None:
    """What the edited text reads, if nothing but paths have other names there; None if only parsing tells.

    It saves parsing a document in another dialect twice, which is most of the time that lowering it takes.
    """
    text = expression.source
    if not expression.single:
        return None
    by_start = {edit.start: edit for edit in edits}
    uses: list[Use] = []
    for use in expression.uses:
        path = use.path
        if (edit := by_start.pop(use.offset, None)) is not None:
            rename = _rename(text[edit.start : edit.end], edit.text)
            if rename is None:
                return None
            path = (*rename.new, *path[rename.replaced :])
        offset = use.offset
        for start, end, replacement in edits:
            if start < use.offset:
                if use.offset < end:
                    return None
                offset += len(replacement) - (end - start)
        uses.append(Use(path, offset, use.optional, use.length_only))
    if by_start or not _are_alike(expression.uses, uses):
        return None
    return tuple(uses)


class _Rename(NamedTuple):
    """How many keys are replaced, and by which."""

    replaced: int
    new: Path


def _rename(before: str, after: str) -> _Rename | None:
    """The path that a text begins with before an edit and after it; None if more differs than that."""
    old, new = _PATH.match(before), _PATH.match(after)
    if old is None or new is None or before[old.end() :] != after[new.end() :] or new[0] in _WORDS:
        return None
    return _Rename(old[0].count(".") + 1, tuple(new[0].split(".")))


def _are_alike(uses: Iterable[Use], renamed: Iterable[Use]) -> bool:
    """Whether paths that hold one another still do: `optional` tells what one of them proves of another."""
    pairs = [(use.path, other.path) for use, other in zip(uses, renamed, strict=True)]
    return all(
        (left[: len(right)] == right) is (new_left[: len(new_right)] == new_right)
        for left, new_left in pairs
        for right, new_right in pairs
    )


def edit_node(node: Node, *finders: EditFinder, concerns: Callable[[Use], bool] | None = None) -> Node:
    """The value with every string in it rewritten; parts that do not change are shared."""
    if isinstance(node, Scalar):
        if not isinstance(node.value, str):
            return node
        text = edit_text(node.value, *finders, concerns=concerns)
        return node if text == node.value else new_text(text, node)
    if isinstance(node, Sequence):
        items = [edit_node(item, *finders, concerns=concerns) for item in node.items]
        changed = any(item is not before for item, before in zip(items, node.items, strict=True))
        return Sequence(items, node.line, node.column) if changed else node
    entries: dict[str, MappingEntry] = {}
    changed = False
    for entry in node:
        value = edit_node(entry.value, *finders, concerns=concerns)
        entries[entry.key] = entry if value is entry.value else new_entry(entry.key, value, entry)
        changed = changed or value is not entry.value
    return Mapping(entries, node.line, node.column) if changed else node


def scalars_of(node: Node) -> Iterator[Scalar]:
    """Every scalar in a value, in order."""
    if isinstance(node, Scalar):
        yield node
        return
    for inner in node.items if isinstance(node, Sequence) else (entry.value for entry in node):
        yield from scalars_of(inner)


def string_constant(token: SourceToken) -> str:
    """The text of a string token."""
    if "\\" not in token.text:
        return token.text[1:-1]
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
    for token in tokens_of("{{" + text + "}}")[1:-1]:
        depth += {"lparen": 1, "rparen": -1}.get(token.type, 0)
        if depth == 0:
            return _end_of(token) == len(text) + 2
    return False


def _end_of(token: SourceToken) -> int:
    return token.offset + len(token.text)
