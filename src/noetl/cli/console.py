"""Standard output and standard error: one way to write to each."""

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

Paint: TypeAlias = Callable[[str, str], str]
"""Gives a text the look of a role: `error`, `warning`, `position`, `faint`, `caret`."""


def can_ask(output: str) -> bool:
    """Whether somebody can answer, and reads the question."""
    return output == "text" and all(stream and stream.isatty() for stream in (sys.stdin, sys.stderr))


def write_bytes(data: bytes) -> bool:
    """Write to stdout. A reader that is gone (`| head`) is no error: the rest goes nowhere.

    False if nobody reads any more, for those who would write without end.
    """
    if sys.stdout is None:
        return False
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return True
    except OSError as error:
        # What is still in the buffer would fail again when Python exits, with a traceback.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            error.filename = "standard output"
            raise
        return False


def write_text(text: str) -> bool:
    """Write to stdout, in its encoding; what that cannot say is escaped. False as for `write`."""
    if sys.stdout is None:
        return False
    return write_bytes(text.encode(sys.stdout.encoding or "utf-8", "backslashreplace"))


def json_bytes(value: object) -> bytes:
    """The value as an indented JSON document."""
    import json

    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    # A file name that is not UTF-8 holds lone surrogates; escaped, they are JSON.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def write_json(value: object) -> None:
    """Write the one JSON document of a command to stdout."""
    write_bytes(json_bytes(value))


def write_json_lines(values: Iterable[object]) -> bool:
    """Write JSON documents, each on its line. False as for `write`."""
    import json

    lines = "".join(json.dumps(value, ensure_ascii=False, allow_nan=False) + "\n" for value in values)
    return write_bytes(lines.encode("utf-8", "backslashreplace"))


def say(message: str) -> None:
    """A message for people, on stderr. Nobody listening is no error."""
    if sys.stderr is not None:
        encoding = sys.stderr.encoding or "utf-8"
        with contextlib.suppress(OSError):
            sys.stderr.write(message.encode(encoding, "backslashreplace").decode(encoding) + "\n")
            sys.stderr.flush()


def visible(text: str) -> str:
    """The text with control characters made visible: a document shall not steer the terminal."""
    # Nearly every text is printable, and one call in C says so; `_visible_character` for each character gives
    # the same, and costs a call of Python for each.
    if text.isprintable():
        return text
    return "".join(_visible_character(character) for character in text)


def _visible_character(character: str) -> str:
    code = ord(character)
    if character.isprintable():
        return character
    if character in "\n\t":
        return " "
    if code < 0x20:
        return chr(0x2400 + code)
    return "\N{REPLACEMENT CHARACTER}"


def plain_paint(_role: str, text: str) -> str:
    """The paint of a stream that is no terminal."""
    return text


def color_paint(role: str, text: str) -> str:
    """The paint of a terminal."""
    import click

    match role:
        case "error" | "warning":
            return click.style(text, fg="red" if role == "error" else "yellow", bold=True)
        case "position" | "caret":
            return click.style(text, bold=True)
        case _:
            return click.style(text, dim=True)


def stdout_paint(*, color: bool) -> Paint:
    """The paint for stdout: colour on a terminal, unless the settings turn it off."""
    return color_paint if color and sys.stdout is not None and sys.stdout.isatty() else plain_paint


def stderr_paint(*, color: bool) -> Paint:
    """The paint for stderr, likewise."""
    return color_paint if color and sys.stderr is not None and sys.stderr.isatty() else plain_paint


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under their names; nothing at all for no rows."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    return "".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() + "\n"
        for row in (head, *rows)
    )
