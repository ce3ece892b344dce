"""Text of a playbook made fit for a picture: one line, printable, no longer than there is room."""

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
