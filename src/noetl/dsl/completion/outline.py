"""The structure of a text that may be no YAML at this moment, read by its indentation alone."""

import re
from typing import Any, Literal, NamedTuple, TypeAlias

from noetl.dsl.completion.flow_text import FlowText, OutlinePath

PlaceRole: TypeAlias = Literal["key", "value", "text"]

_DASHES = re.compile(r"(?:-(?: +|$))*")
_KEY = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([^\s#'"\[{&*!|>%@`,][^#]*?)) *:(?=\s|$)""")
_BLOCK = re.compile(r"[|>][-+0-9]*\s*(?:#.*)?$")
_IN_BRACKETS = re.compile(r"""[^,}\]:"'#]*""")
_WORD = re.compile(r"[\w.-]*")
_COMMENT = re.compile(r"(?:^|\s)#.*$")


class Place(NamedTuple):
    """Where something is to be written: `path` leads to the mapping of a key, or to a value.

    It takes the place of the characters from `start` up to `end` of its line, counted from 0. `text` is the
    text within a block of it, up to there, for a place in text.
    """

    path: OutlinePath
    role: PlaceRole
    start: int
    end: int
    text: str = ""


class _Frame(NamedTuple):
    indent: int
    container: dict[str, Any] | list[Any]
    path: OutlinePath

    @property
    def last(self) -> str | int | None:
        """The key or the number of what was begun last in it."""
        if isinstance(self.container, list):
            return len(self.container) - 1
        return next(reversed(self.container), None)


class _Run(NamedTuple):
    """Lines that are the value of one key: a block of text, or brackets that are open."""

    indent: int
    path: OutlinePath
    container: dict[str, Any] | list[Any]
    key: str | int
    lines: list[str]
    flow: FlowText | None


class Outline:
    """`root` is the document as plain values, with scalars as text; `place` what is at a line and column.

    The place is None where nothing can be said: in comments, or in a line that lines up with nothing.
    """

    def __init__(self, text: str, line: int, column: int) -> None:
        self.root: dict[str, Any] = {}
        self.place: Place | None = None
        self._frames = [_Frame(0, self.root, ())]
        self._run: _Run | None = None
        lines = text.splitlines() or [""]
        self._cursor_line = line - 1
        for number, content in enumerate([*lines, ""] if self._cursor_line >= len(lines) else lines):
            self._read_line(content, min(column - 1, len(content)) if number == self._cursor_line else None)
        self._end_run()

    def at(self, path: OutlinePath) -> Any:
        """The value at a path; None if there is none."""
        value: Any = self.root
        for key in path:
            if isinstance(value, dict) and isinstance(key, str):
                value = value.get(key)
            elif isinstance(value, list) and isinstance(key, int) and key < len(value):
                value = value[key]
            else:
                return None
        return value

    def _read_line(self, content: str, cursor: int | None) -> None:
        stripped = content.lstrip(" ")
        indent = len(content) - len(stripped)
        if self._run is not None and self._continues(self._run, content, indent, cursor):
            self._read_on(self._run, content, 0, cursor)
            return
        self._end_run()
        if not stripped or stripped.startswith("#"):
            if cursor is not None and not stripped:
                self.place = self._key_place(cursor, cursor, cursor)
            return
        behind = self._read_dashes(content, indent)
        self._read_rest(content, behind, cursor)

    def _read_on(self, run: _Run, content: str, begin: int, cursor: int | None) -> None:
        """The part of a line from `begin` on, which belongs to a value that goes over lines."""
        if run.flow is None:
            if cursor is not None:
                text = "\n".join([*run.lines, content[:cursor]])
                self.place = Place(run.path, "text", cursor, cursor, text)
            run.lines.append(content)
            return
        middle = begin if cursor is None else max(begin, cursor)
        run.flow.feed(content[begin:middle])
        if cursor is not None and cursor > begin:
            self.place = _place_in_brackets(run.path, run.flow, content, cursor)
        run.flow.feed(content[middle:] + "\n")
        if run.flow.closed:
            self._end_run()

    @staticmethod
    def _continues(run: _Run, content: str, indent: int, cursor: int | None) -> bool:
        if not content.strip():
            return cursor is None or cursor > run.indent
        return indent > run.indent or (run.flow is not None and content.strip()[0] in "}]")

    def _end_run(self) -> None:
        if self._run is not None:
            flow = self._run.flow
            value = flow.value if flow is not None else "\n".join(self._run.lines)
            self._run.container[self._run.key] = value  # type: ignore[index]  # a key of this container
            self._run = None

    def _read_dashes(self, content: str, indent: int) -> int:
        """Opens the lists whose items begin in the line; where the rest of it begins."""
        dashes = _DASHES.match(content, indent)
        end = dashes.end() if dashes is not None else indent
        for column in range(indent, end):
            if content[column] == "-":
                items = self._list_at(column)
                if items is not None:
                    items.append(None)
        return end

    def _read_rest(self, content: str, start: int, cursor: int | None) -> None:
        key = _KEY.match(content, start)
        if key is None:
            self._read_word(content, start, cursor)
            return
        name = next(group for group in key.groups() if group is not None)
        if cursor is not None and start <= cursor < key.end():
            self.place = self._key_place(start, start, key.end() - 1)
        frame = self._mapping_at(start)
        if frame is None:
            return
        assert isinstance(frame.container, dict)  # noqa: S101 - `_mapping_at` gives no other
        frame.container.pop(name, None)
        frame.container[name] = None
        self._read_value(content, key.end(), cursor, frame, name)

    def _read_word(self, content: str, start: int, cursor: int | None) -> None:
        """A line without a key: one that is being written, or an item of a list."""
        word = _WORD.match(content, start)
        end = word.end() if word is not None else start
        if cursor is not None and start <= cursor <= end:
            self.place = self._key_place(start, start, end)
            return
        top = self._frames[-1]
        if isinstance(top.container, list) and top.container and content[start:].strip():
            self._read_value(content, start, cursor, top, len(top.container) - 1)

    def _read_value(
        self, content: str, start: int, cursor: int | None, frame: _Frame, key: str | int
    ) -> None:
        rest = content[start:]
        begin = start + len(rest) - len(rest.lstrip(" "))
        path = (*frame.path, key)
        value = content[begin:]
        if value[:1] in ("{", "[") and not value.startswith("{{"):
            self._run = _Run(frame.indent, path, frame.container, key, [], FlowText())
            self._read_on(self._run, content, begin, cursor)
            return
        if _BLOCK.match(value):
            self._run = _Run(frame.indent, path, frame.container, key, [], None)
            return
        text = _COMMENT.sub("", value).rstrip()
        frame.container[key] = text.strip("'\"") or None  # type: ignore[index]  # a key of this container
        if cursor is not None and cursor >= start:
            self.place = _value_place(content, path, min(begin, cursor), cursor, text)

    def _list_at(self, column: int) -> list[Any] | None:
        while self._frames[-1].indent > column:
            self._frames.pop()
        top = self._frames[-1]
        if isinstance(top.container, list) and top.indent == column:
            return top.container
        items: list[Any] = []
        return items if self._begin(items, column, top) else None

    def _mapping_at(self, column: int) -> _Frame | None:
        while self._frames[-1].indent > column:
            self._frames.pop()
        if self._frames[-1].indent == column and isinstance(self._frames[-1].container, list):
            self._frames.pop()
        top = self._frames[-1]
        if top.indent == column and isinstance(top.container, dict):
            return top
        return self._frames[-1] if self._begin({}, column, top) else None

    def _begin(self, container: dict[str, Any] | list[Any], column: int, parent: _Frame) -> bool:
        """Makes it the value of what was begun last in its parent, unless that has one already."""
        key = parent.last
        if key is None or parent.container[key] is not None:  # type: ignore[index]  # its own key
            return False
        parent.container[key] = container  # type: ignore[index]  # its own key
        self._frames.append(_Frame(column, container, (*parent.path, key)))
        return True

    def _key_place(self, column: int, start: int, end: int) -> Place | None:
        frames = list(self._frames)
        while frames[-1].indent > column:
            frames.pop()
        if frames[-1].indent == column and isinstance(frames[-1].container, list) and len(frames) > 1:
            frames.pop()
            if frames[-1].indent != column:
                return None
        top = frames[-1]
        if top.indent == column and isinstance(top.container, dict):
            return Place(top.path, "key", start, end)
        key = top.last
        if key is None or top.container[key] is not None:  # type: ignore[index]  # its own key
            return None
        return Place((*top.path, key), "key", start, end)


def _value_place(content: str, path: OutlinePath, start: int, cursor: int, text: str) -> Place | None:
    """Between the quotes if there are some; nothing behind the value, where a comment may be."""
    end = start + len(text)
    if text[:1] in ("'", '"') and cursor > start:
        start += 1
        if len(text) > 1 and text.endswith(text[0]):
            end -= 1
    if cursor > max(end, start) and _COMMENT.search(content[:cursor]):
        return None
    return Place(path, "value", start, max(end, cursor), content[start:cursor])


def _place_in_brackets(path: OutlinePath, flow: FlowText, content: str, cursor: int) -> Place | None:
    start = cursor - len(flow.word)
    if flow.closed or start < 0:
        return None
    behind = _IN_BRACKETS.match(content, cursor)
    end = cursor + (len(behind[0].rstrip()) if behind is not None else 0)
    role: PlaceRole = "key" if flow.is_key else "value"
    return Place((*path, *flow.path), role, start, end, content[start:cursor])
