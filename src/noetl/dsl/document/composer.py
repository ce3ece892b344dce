"""From text to nodes with their positions.

PyYAML's event parser drives a composer of our own, because the C composer recurses without a limit
and keeps no positions. Scalars follow the YAML 1.2 core schema: `on` and `no` stay text.
"""

import re
from math import isfinite
from typing import Any

import yaml
from yaml.events import (
    AliasEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)
from yaml.reader import Reader, ReaderError

from noetl.dsl.document.source import (
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_NODES,
    Mapping,
    MappingEntry,
    Node,
    Scalar,
    Sequence,
    SourceError,
    SourceLines,
)
from noetl.dsl.document.yaml_hint import syntax_hint
from noetl.model.json import ScalarValue

# What PyYAML refuses, by its own table: the C parser says where in bytes, and of lone surrogates nothing, so
# the character is looked for again.
_UNPRINTABLE = Reader.NON_PRINTABLE
_TOO_LARGE = 10**MAX_DIGITS
_INTEGERS = (
    (re.compile(r"[-+]?[0-9]+\Z"), 10),
    (re.compile(r"0x[0-9a-fA-F]+\Z"), 16),
    (re.compile(r"0o[0-7]+\Z"), 8),
)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_CONSTANTS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip


class _Composer:
    """Builds the tree from parser events, within limits on size, depth and alias expansion."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.loader = yaml.CBaseLoader(text)
        self.budget = MAX_NODES
        # With the size of each: an alias costs nothing here, but all that it stands for wherever the
        # tree is walked, so it is paid for (a document of a few lines can stand for billions of values).
        self.anchors: dict[str, tuple[Node, int]] = {}

    def document(self) -> Node | None:
        try:
            self._next()
            if type(self._next()) is StreamEndEvent:
                return None
            root = self._node(self._next(), 0)
            self._next()
            extra = self._next()
            if type(extra) is not StreamEndEvent:
                raise _error_at(extra, "yaml-feature", "a file holds one document", "split the file at `---`")
            return root
        finally:
            self.loader.dispose()

    def _next(self) -> Any:
        # The stubs say that marks may be absent; the parser always sets them.
        return self.loader.get_event()

    def _node(self, event: Any, depth: int) -> Node:
        self.budget -= 1
        if self.budget < 0:
            raise _error_at(event, "yaml-limit", f"the document has more than {MAX_NODES:,} values")
        if depth > MAX_DEPTH:
            raise _error_at(event, "yaml-limit", f"values are nested deeper than {MAX_DEPTH} levels")
        if type(event) is AliasEvent:
            return self._alias(event)
        tag = getattr(event, "tag", None)
        if tag not in (None, "!", "tag:yaml.org,2002:str"):
            raise _error_at(
                event, "yaml-feature", f"the tag `{tag}` is not supported", "write the plain value"
            )
        before = self.budget
        line, column = event.start_mark.line + 1, event.start_mark.column + 1
        node: Node
        if type(event) is ScalarEvent:
            node = _scalar(event, line, column)
        elif type(event) is SequenceStartEvent:
            node = Sequence(self._items(depth), line, column)
        else:
            node = Mapping(self._entries(depth), line, column)
        if event.anchor:
            self.anchors[event.anchor] = (node, before - self.budget + 1)
        return node

    def _alias(self, event: Any) -> Node:
        known = self.anchors.get(event.anchor)
        if known is None:
            raise _error_at(event, "yaml-syntax", f"the alias `*{event.anchor}` names no earlier anchor")
        node, size = known
        self.budget -= size
        if self.budget < 0:
            raise _error_at(
                event, "yaml-limit", f"with its aliases the document has more than {MAX_NODES:,} values"
            )
        return node

    def _items(self, depth: int) -> list[Node]:
        items: list[Node] = []
        while type(event := self._next()) is not SequenceEndEvent:
            items.append(self._node(event, depth + 1))
        return items

    def _entries(self, depth: int) -> dict[str, MappingEntry]:
        entries: dict[str, MappingEntry] = {}
        while type(event := self._next()) is not MappingEndEvent:
            if type(event) is not ScalarEvent:
                raise _error_at(
                    event, "yaml-feature", "a key must be text", 'quote an expression: "{{ … }}", not {{ … }}'
                )
            key: str = event.value
            if key == "<<" and not event.style:
                raise _error_at(
                    event, "yaml-feature", "merge keys (`<<`) are not supported", "write the keys out"
                )
            if key in entries:
                first = entries[key].line
                raise _error_at(
                    event,
                    "duplicate-key",
                    f"the key `{key}` stands twice in one mapping (first in line {first})",
                )
            mark: Any = event.start_mark
            entries[key] = MappingEntry(
                key, self._node(self._next(), depth + 1), mark.line + 1, mark.column + 1
            )
        return entries


def compose(text: str) -> Node | None:
    """The document's tree, or None if there is none. Raises SourceError."""
    if len(text) > MAX_CHARACTERS:
        raise SourceError("yaml-limit", f"the document is longer than {MAX_CHARACTERS:,} characters", 1, 1)
    try:
        return _Composer(text).document()
    except (ReaderError, UnicodeEncodeError):
        raise _character_error(text) from None
    except yaml.YAMLError as error:
        raise _syntax_error(error, text) from None


def _scalar(event: Any, line: int, column: int) -> Scalar:
    start, end = event.start_mark.index, event.end_mark.index
    if event.style or event.tag:
        return Scalar(event.value, line, column, style=event.style or "", start=start, end=end)
    return Scalar(_core_value(event), line, column, start=start, end=end)


def _core_value(event: Any) -> ScalarValue:
    text: str = event.value
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in "0123456789+-.":
        for pattern, base in _INTEGERS:
            if pattern.match(text):
                return _integer(event, base)
        if _FLOAT.match(text) and isfinite(number := float(text)):
            return number
        if text.lower().lstrip("+-") in (".inf", ".nan") or _FLOAT.match(text):
            raise _error_at(
                event, "yaml-feature", f"`{text}` is no JSON number", "quote it to keep it as text"
            )
    return text


def _integer(event: Any, base: int) -> int:
    """Whatever its base, no longer than `MAX_DIGITS` as it is written elsewhere: in JSON and in messages."""
    text: str = event.value
    if base != 10 or len(text) <= MAX_DIGITS:
        number = int(text, base)
        if number < _TOO_LARGE:
            return number
    message = f"the number has more than {MAX_DIGITS} digits"
    raise _error_at(event, "yaml-limit", message, "quote it to keep it as text")


def _error_at(event: Any, code: str, message: str, hint: str = "") -> SourceError:
    mark = event.start_mark
    return SourceError(code, message, mark.line + 1, mark.column + 1, hint)


def _syntax_error(error: yaml.YAMLError, text: str) -> SourceError:
    problem, context = getattr(error, "problem_mark", None), getattr(error, "context_mark", None)
    message = str(getattr(error, "problem", None) or error)
    if context_text := getattr(error, "context", None):
        message = f"{context_text}, {message}"
    end = SourceLines(text).position(len(text.rstrip()))
    # What is still open at the end of the file is best shown where it began.
    at_end = problem is not None and (problem.line + 1, problem.column + 1) > end
    mark = context if at_end and context is not None else problem or context
    line, column = min((mark.line + 1, mark.column + 1), end) if mark else (1, 1)
    lines = list(SourceLines(text))
    hint = syntax_hint(lines, line, column, message, context.line + 1 if context is not None else 0)
    return SourceError("yaml-syntax", message, line, column, hint)


def _character_error(text: str) -> SourceError:
    """YAML has no place for control characters and lone surrogates."""
    character = _UNPRINTABLE.search(text)
    line, column = SourceLines(text).position(character.start()) if character else (1, 1)
    name = f"U+{ord(character[0]):04X}" if character else "one of them"
    hint = "remove it; between double quotes an escape can stand for it"
    return SourceError("yaml-syntax", f"the character {name} cannot stand in a YAML file", line, column, hint)
