"""Text of a playbook made fit for a picture: one line, printable, no longer than there is room.

How wide it is, is known near enough: a picture is drawn without asking for fonts.
"""

import json
import re
import unicodedata
from typing import Literal, TypeAlias, assert_never

from noetl.dsl.document.playbook import Guard
from noetl.expr.expression import Expression
from noetl.expr.template import Constant, ListTemplate, MappingTemplate, Template

LONGEST_LABEL = 80
"""Characters of a line in formats that others draw: nobody knows how much room there will be."""

_SINGLE = re.compile(r"\s*\{\{-?(?P<inside>(?:(?!\{\{|\}\}).)*?)-?\}\}\s*", re.DOTALL)
_FAILURE = re.compile(r"(?P<not>!=\s*)?['\"](?:step\.failed|call\.error)['\"]")
# Marks that turn the direction of text would turn what stands after them in the picture too.
_TURNING = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")

EventMark: TypeAlias = Literal["", "done", "failed"]

_DONE = r"['\"](?:step|loop|call)\.done['\"]"
_FAILED = r"['\"](?:step\.failed|call\.error)['\"]"
_ASKS = (
    rf"event\.name\s*(?:==\s*{_DONE}|!=\s*{_FAILED}|in\s*[\[(]\s*{_DONE}(?:\s*,\s*{_DONE})*\s*[\])]"
    rf"|(?P<failed>==\s*{_FAILED}))"
)
_ASKS_FIRST = re.compile(rf"{_ASKS}(?:\s+and\s+(?P<rest>.+))?")
_ASKS_LAST = re.compile(rf"(?P<rest>.+?)\s+and\s+{_ASKS}")
_LOOSER = re.compile(r"\b(?:or|if)\b")

_LONGEST_CONSTANT = 200

# Widths of the printable ASCII characters in Roboto, in thousandths of the font size.
_ASCII_WIDTHS = (
    *(248, 258, 320, 616, 562, 732, 622, 175, 342, 348, 431, 567, 197, 276, 264, 413),
    *(562, 562, 562, 562, 562, 562, 562, 562, 562, 562, 242, 211, 508, 549, 523, 473),
    *(898, 652, 623, 651, 656, 568, 553, 681, 713, 272, 552, 627, 539, 873, 713, 688),
    *(631, 688, 616, 594, 597, 648, 637, 887, 627, 601, 599, 265, 411, 265, 418, 451),
    *(309, 544, 562, 523, 564, 530, 348, 562, 551, 243, 239, 507, 243, 877, 552, 570),
    *(562, 568, 339, 516, 327, 551, 484, 751, 496, 473, 496, 338, 244, 338, 680),
)
_SLACK = 1.06
"""Other sans-serif fonts are a little wider, and a picture may be shown with any of them."""
_BOLD = 1.04
_LONGEST_LINE = 300
"""No line of a picture has room for more characters than this."""


def flatten(text: str) -> str:
    """One line without control characters, lone surrogates or marks of direction."""
    characters = (" " if _is_unprintable(c) else c for c in _TURNING.sub("", text))
    return " ".join("".join(characters).split())


def _is_unprintable(character: str) -> bool:
    # U+FFFE and U+FFFF of every plane are no characters: XML forbids the first two of them.
    return unicodedata.category(character) in {"Cc", "Cs"} or ord(character) & 0xFFFE == 0xFFFE


def shorten(text: str, length: int) -> str:
    """At most `length` characters; an ellipsis stands for what was left out."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def inner_source(source: str) -> str:
    """An expression without its braces, if it is nothing but one pair of them."""
    single = _SINGLE.fullmatch(source)
    return flatten(single["inside"] if single else source)


def guard_label(guard: Guard) -> str:
    """The condition as written; empty if it always holds."""
    match guard:
        case Expression():
            return inner_source(guard.source)
        case True:
            return ""
        case False:
            return "never"


def split_event_mark(condition: str) -> tuple[EventMark, str]:
    """A condition that asks how the step ended, and what else it asks: the first is a mark in pictures.

    Where `or` or `if` may bind otherwise, the condition stays whole.
    """
    for pattern in (_ASKS_FIRST, _ASKS_LAST):
        asks = pattern.fullmatch(condition)
        if asks is not None and not _LOOSER.search(asks["rest"] or ""):
            return "failed" if asks["failed"] else "done", asks["rest"] or ""
    return "", condition


def reads_failure(guard: Guard) -> bool:
    """The condition asks whether the step failed."""
    if not isinstance(guard, Expression):
        return False
    return any(comparison["not"] is None for comparison in _FAILURE.finditer(guard.source))


def data_label(data: Template) -> str:
    """A value as an expression would write it, what is inside lists and mappings left out."""
    match data:
        case Constant():
            return shorten(flatten(json.dumps(data.value, ensure_ascii=False)), _LONGEST_CONSTANT)
        case Expression():
            return inner_source(data.source)
        case ListTemplate():
            return f"[{len(data.items)} items]"
        case MappingTemplate():
            return f"{{{len(data.entries)} entries}}"
        case _:
            assert_never(data)


def number_label(value: float | Expression) -> str:
    """A number, or the expression that gives it."""
    return inner_source(value.source) if isinstance(value, Expression) else f"{value:g}"


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """The width in pixels of a line of text at this font size."""
    total = sum(_ASCII_WIDTHS[ord(c) - 32] if " " <= c <= "~" else _other_width(c) for c in text)
    return total / 1000 * size * _SLACK * (_BOLD if bold else 1.0)


def fit_text(text: str, room: float, size: float, *, bold: bool = False) -> str:
    """As much of the text as fits, with an ellipsis for the rest."""
    if len(text) <= _LONGEST_LINE and text_width(text, size, bold=bold) <= room:
        return text
    fitting = text[:_LONGEST_LINE]
    while fitting and text_width(fitting + "…", size, bold=bold) > room:
        fitting = fitting[:-1]
    # A joiner or a mark at the end would join the ellipsis.
    while fitting and (fitting[-1] == "\u200d" or unicodedata.combining(fitting[-1])):
        fitting = fitting[:-1]
    return fitting.rstrip() + "…"


def wrap_text(text: str, room: float, size: float, *, lines: int) -> tuple[str, ...]:
    """The text on at most `lines` lines, broken at spaces, the last one shortened."""
    words = text[: _LONGEST_LINE * lines].split()
    result: list[str] = []
    while words and len(result) < lines - 1:
        line = words.pop(0)
        while words and text_width(f"{line} {words[0]}", size) <= room:
            line = f"{line} {words.pop(0)}"
        result.append(fit_text(line, room, size))
    if words:
        last_line = " ".join(words) + ("…" if len(text) > _LONGEST_LINE * lines else "")
        result.append(fit_text(last_line, room, size))
    return tuple(result)


def _other_width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Cf", "Mn"}:
        return 0
    return 1000 if unicodedata.east_asian_width(character) in {"W", "F"} else 640
