"""Times, values and counts: as people give them, and in words for people."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from noetl.cli.command_failure import CommandFailure
from noetl.cli.console import visible
from noetl.model.outcome import ErrorInfo
from noetl.model.secret import MASK, is_secret, mask_secret
from noetl.model.timestamp import now_micros
from noetl.model.yaml_scalars import yaml_block, yaml_scalar

SECOND = 1_000_000
DAY = 86_400 * SECOND
"""Times and durations are microseconds, as in events."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MICROSECOND = timedelta(microseconds=1)


def parse_time(text: str, option: str) -> int:
    """The time that is meant: so long ago (`90m`, `2h`, `3d`), or a date or time in ISO 8601.

    A time without a zone is that of this machine. Raises CommandFailure.
    """
    word = text.strip()
    if match := _AGE.fullmatch(word.lower()):
        return max(0, now_micros() - round(float(match[1]) * _SECONDS[match[2]] * SECOND))
    try:
        return max(0, (datetime.fromisoformat(word).astimezone(UTC) - _EPOCH) // _MICROSECOND)
    except (ValueError, OverflowError, OSError):
        hint = "so long ago, as in 90m, 2h, 3d or 4w, or a time as in 2025-01-31T08:00"
        raise CommandFailure("argument", f"{option}: `{text}` is not a time", hint=hint) from None


def local_time(ts: int) -> str:
    """For people: the time of this machine, to the second."""
    return (_EPOCH + timedelta(microseconds=ts)).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def duration_text(micros: int) -> str:
    """`0.12 s`, `4.1 s`, `2 min 5 s`, `3 h 12 min`."""
    seconds = max(micros, 0) / SECOND
    if seconds < 9.95:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3_600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3_600:,} h {rounded % 3_600 // 60} min"


def yaml_lines(value: Any, indent: str = "") -> Iterator[str]:
    """The value as YAML, line by line; secrets show as `***`, control characters are escaped."""
    value = _mask_if_secret(value)
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _entry_lines(f"{indent}{yaml_scalar(key)}:", item, indent)
    elif isinstance(value, list) and value:
        for item in value:
            lines = list(yaml_lines(item, indent + "  "))
            yield f"{indent}- {lines[0][len(indent) + 2 :]}"
            yield from lines[1:]
    else:
        yield f"{indent}{_leaf_text(value)}"


def _entry_lines(head: str, item: Any, indent: str) -> Iterator[str]:
    item = _mask_if_secret(item)
    if isinstance(item, dict | list) and item:
        yield head
        yield from yaml_lines(item, indent + "  ")
    elif isinstance(item, str) and (text := yaml_block(item, indent + "  ")) is not None:
        yield from f"{head} {text}".replace("\t", "    ").split("\n")
    else:
        yield f"{head} {_leaf_text(item)}"


def _leaf_text(value: Any) -> str:
    if isinstance(value, dict | list):
        return "{}" if isinstance(value, dict) else "[]"
    # Without the quotes that YAML wants around asterisks: it stands for a secret, it is not the text.
    return MASK if value == MASK else yaml_scalar(value)


def _mask_if_secret(value: Any) -> Any:
    return mask_secret(value) if is_secret(value) else value


def cut_lines(lines: list[str], most: int, width: int = 200) -> list[str]:
    """The first lines, each no longer than `width`; how many were left out stands at the end."""
    cut = [line if len(line) <= width else line[: width - 1] + "…" for line in lines[:most]]
    left = len(lines) - len(cut)
    return [*cut, f"… {left:,} more lines"] if left else cut


def first_line(message: str, width: int = 200) -> str:
    """The first line of a message, without anything that steers a terminal."""
    head, _, tail = message.strip().partition("\n")
    text = visible(head)
    return text[: width - 1] + "…" if len(text) > width else f"{text} …" if tail.strip() else text


def error_text(error: ErrorInfo | None) -> str:
    """An error on one line: `connection: it broke`."""
    return f"{error.kind}: {first_line(error.message)}" if error is not None else "it does not say why"


def pluralize(number: int, noun: str) -> str:
    """The number with its noun: `1 error`, `2 errors`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
