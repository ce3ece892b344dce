"""A document with the position of every key and value. `composer` makes it of text.

Nothing here imports PyYAML: who shows a line of a document, or knows how long one may be, needs none.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import TypeAlias

from noetl.model.errors import NoetlError
from noetl.model.json import Json, ScalarValue

MAX_CHARACTERS = 8_000_000
MAX_NODES = 500_000
MAX_DEPTH = 64
MAX_DIGITS = 300
"""Of a whole number: so it is finite as a float, too, and far from the 4,300 digits that `int` refuses."""


class Scalar:
    """A single value. `start` and `end` are offsets into the text it was read from.

    Of one that a dialect made of another, `origin` is that other.
    """

    __slots__ = ("column", "end", "line", "origin", "start", "style", "value")

    def __init__(
        self,
        value: ScalarValue,
        line: int,
        column: int,
        *,
        style: str = "",
        start: int = -1,
        end: int = -1,
        origin: "Scalar | None" = None,
    ) -> None:
        self.value = value
        self.line = line
        self.column = column
        self.style = style
        self.start = start
        self.end = end
        self.origin = origin


class Sequence:
    __slots__ = ("column", "items", "line")

    def __init__(self, items: "list[Node]", line: int, column: int) -> None:
        self.items = items
        self.line = line
        self.column = column


class MappingEntry:
    """A key of a mapping, where it stands, and its value."""

    __slots__ = ("column", "key", "line", "value")

    def __init__(self, key: str, value: "Node", line: int, column: int) -> None:
        self.key = key
        self.value = value
        self.line = line
        self.column = column


class Mapping:
    __slots__ = ("column", "entries", "line")

    def __init__(self, entries: dict[str, MappingEntry], line: int, column: int) -> None:
        self.entries = entries
        self.line = line
        self.column = column

    def get(self, key: str) -> "Node | None":
        entry = self.entries.get(key)
        return entry.value if entry else None

    def __contains__(self, key: str) -> bool:
        return key in self.entries

    def __iter__(self) -> Iterator[MappingEntry]:
        return iter(self.entries.values())


Node: TypeAlias = Scalar | Sequence | Mapping
Located: TypeAlias = Scalar | Sequence | Mapping | MappingEntry


def node_value(node: Node) -> Json:
    """The node's value without positions."""
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [node_value(item) for item in node.items]
    return {entry.key: node_value(entry.value) for entry in node}


def node_of(value: Json, at: Located) -> Node:
    """A node tree for a plain value, every part of it placed where `at` stands."""
    if isinstance(value, dict):
        entries = {
            key: MappingEntry(key, node_of(item, at), at.line, at.column) for key, item in value.items()
        }
        return Mapping(entries, at.line, at.column)
    if isinstance(value, list):
        return Sequence([node_of(item, at) for item in value], at.line, at.column)
    return Scalar(value, at.line, at.column)


def mapping_node(at: Located, entries: "dict[str, Node]") -> Mapping:
    """A mapping placed where `at` stands; each key is placed where its value stands."""
    return Mapping(
        {key: MappingEntry(key, node, node.line, node.column) for key, node in entries.items()},
        at.line,
        at.column,
    )


LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line in YAML."""


class SourceLines:
    """A text by lines, as YAML counts them: `str.splitlines` knows others, and every line would be off."""

    __slots__ = ("_starts", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(line_break.end() for line_break in LINE_BREAK.finditer(text))]

    def position(self, index: int) -> tuple[int, int]:
        """Line and column, both from 1, of a character."""
        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1

    def __iter__(self) -> Iterator[str]:
        return iter(LINE_BREAK.split(self.text))


class SourceError(NoetlError):
    """The text is no document we read; `code` says which kind of fault it is."""

    def __init__(self, code: str, message: str, line: int, column: int, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.column = column
        self.hint = hint
