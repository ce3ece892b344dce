"""Where a character of a value stands in the text of its document."""

from noetl.dsl.document.source import LINE_BREAK, Scalar, SourceLines


def position_in_text(lines: SourceLines, scalar: Scalar, offset: int) -> tuple[int, int]:
    """Line and column in the text of character `offset` of the scalar's value.

    The scalar's source and its value are walked side by side, because quotes, escapes, indentation
    and folding make them differ. A scalar that no text stands behind gives its own position, or the line
    of the text it was made of.
    """
    if not isinstance(scalar.value, str):
        return scalar.line, scalar.column
    if scalar.start < 0:
        return _position_in_origin(lines, scalar, offset)
    return lines.position(_SourceWalk(lines.text, scalar).index_of(offset))


def _position_in_origin(lines: SourceLines, scalar: Scalar, offset: int) -> tuple[int, int]:
    """The start of the line that a dialect rewrote; it rewrites expressions, and leaves the lines."""
    origin, text = scalar.origin, str(scalar.value)
    before = text.count("\n", 0, offset)
    if origin is None or not isinstance(origin.value, str):
        return scalar.line, scalar.column
    own_lines = origin.value.split("\n")
    if text.count("\n") != len(own_lines) - 1 or (not before and origin.style not in ("|", ">")):
        return scalar.line, scalar.column
    indent = len(own_lines[before]) - len(own_lines[before].lstrip())
    return position_in_text(lines, origin, sum(len(line) + 1 for line in own_lines[:before]) + indent)


class _SourceWalk:
    """Reads a scalar's source one value character at a time."""

    def __init__(self, text: str, scalar: Scalar) -> None:
        self.text = text
        self.value = str(scalar.value)
        self.style = scalar.style
        self.at = scalar.start
        self.end = scalar.end
        self.indent = 0
        if self.style in ("|", ">"):
            header = LINE_BREAK.search(text, self.at)
            self.at = min(header.end() if header else self.end, self.end)
            self.indent = _leading_blanks(text[self.at : self.end]) - _leading_blanks(self.value)
            self._skip_indent()
        elif self.style:
            self.at += 1

    def index_of(self, offset: int) -> int:
        """Where value character `offset` stands in the text."""
        for character in self.value[:offset]:
            self._step(character)
        if offset < len(self.value):
            self._skip_folding(self.value[offset])
        return min(self.at, self.end)

    def _step(self, character: str) -> None:
        self._skip_folding(character)
        source_character = self.text[self.at : self.at + 1]
        if line_break := LINE_BREAK.match(self.text, self.at, self.end):
            self.at = line_break.end()
            self._skip_indent()
        elif self.style == '"' and source_character == "\\":
            self.at += {"x": 4, "u": 6, "U": 10}.get(self.text[self.at + 1 : self.at + 2], 2)
        elif self.style == "'" and self.text.startswith("''", self.at):
            self.at += 2
        elif self.at < self.end:
            self.at += 1

    def _skip_folding(self, character: str) -> None:
        """Line breaks and indentation that folding dropped, up to what can be `character`."""
        while self.at < self.end:
            if self.style == '"' and self.text.startswith("\\\n", self.at):
                self.at += 2
                self._skip_indent()
            elif character not in " \n\t" and self.text[self.at] in " \t\n\r":
                self.at += 1
            else:
                return

    def _skip_indent(self) -> None:
        """Indentation after a line break: all of it, but in a block only what the block has."""
        limit = self.at + self.indent if self.style in ("|", ">") else self.end
        while self.at < min(limit, self.end) and self.text[self.at] in " \t":
            self.at += 1


def _leading_blanks(block: str) -> int:
    """How far the first line that is not blank is indented."""
    for line in SourceLines(block):
        if line.strip():
            return len(line) - len(line.lstrip(" "))
    return 0
