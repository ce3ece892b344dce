"""What to do about text that is not YAML: the parser says only what it expected."""

import re

_KEY = re.compile(r"(?:- +)*[^\s#'\"\[{][^#]*?:(?=\s|$)")
_TIGHT_KEY = re.compile(r"\s*(?:- +)*[A-Za-z_]\w*:[^\s/]")
_DASHES = re.compile(r"(?:- +)*")


def syntax_hint(lines: list[str], line: int, column: int, message: str, context_line: int) -> str:
    """A hint for what the parser says of a line, both counted from 1; empty if nothing is known to help.

    `context_line` is where that began what the parser could not finish, or 0.
    """
    text = lines[line - 1] if line <= len(lines) else ""
    indent = text[: len(text) - len(text.lstrip())]
    if text[column - 1 : column] == "\t":
        return "YAML is indented with spaces, never with tabs"
    if message.endswith("cannot start any token"):
        return "quote a value that begins with this character"
    if message.endswith("could not find expected ':'") and context_line:
        return f"line {context_line} is neither a key with a colon nor an item with `-`"
    above = [number for number in range(1, line) if _has_content(lines[number - 1])]
    if message.endswith("mapping values are not allowed in this context"):
        return _second_value_hint(lines, above, text, len(indent), column)
    expects_item = message.endswith("did not find expected '-' indicator")
    if (expects_item or message.endswith("did not find expected key")) and column == len(indent) + 1:
        return _indent_hint([lines[number - 1] for number in above], text, len(indent), item=expects_item)
    return ""


def _second_value_hint(lines: list[str], above: list[int], text: str, indent: int, column: int) -> str:
    """A colon, where a value has begun already: in this line or in the one above."""
    if _KEY.match(text[: column - 1].lstrip()):
        return "quote a value that holds a colon and a blank"
    before = above[-1] if above else 0
    if not before:
        return ""
    if _TIGHT_KEY.match(lines[before - 1]):
        return f"put a blank after the colon in line {before}"
    if indent > _columns(lines[before - 1])[-1]:
        return f"it is indented further than line {before}, which has a value already: line them up"
    return ""


def _indent_hint(above: list[str], text: str, indent: int, *, item: bool) -> str:
    """A line that lines up with none of those that are open above it, or with one of the other sort.

    `item`: one of those is expected, and not a key.
    """
    columns: list[int] = []
    for line in above:
        first = _columns(line)[0]
        columns = [column for column in columns if column < first] + _columns(line)
    if columns and indent not in columns:
        listing = " or ".join(map(str, columns))
        return f"it is indented by {indent}, and what it could belong to by {listing}: line it up with that"
    is_item = text.lstrip().startswith("- ")
    if is_item and not item:
        return "an item with `-` stands among keys: indent it further, or give it a key of its own"
    if item and not is_item:
        return "a key stands among items with `-`: line it up with the keys of the item above"
    return ""


def _has_content(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _columns(line: str) -> list[int]:
    """Where a line begins, and where what stands behind its dashes does."""
    indent = len(line) - len(line.lstrip())
    behind = indent
    columns = [indent]
    if (dashes := _DASHES.match(line[indent:])) is not None:
        behind += dashes.end()
    if behind > indent:
        columns.append(behind)
    return columns
