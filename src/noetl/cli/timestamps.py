"""Times, as people give them and as they are shown."""

import re
from datetime import UTC, datetime, timedelta

from noetl.cli.command_failure import CommandFailure

SECOND = 1_000_000
DAY = 86_400 * SECOND
"""Times and durations are microseconds, as in events."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,3})?)([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_MICROSECOND = timedelta(microseconds=1)


def now_micros() -> int:
    """Microseconds since 1970, UTC."""
    return (datetime.now(UTC) - _EPOCH) // _MICROSECOND


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


def iso_time(ts: int) -> str:
    """As envelopes write it: UTC, with microseconds."""
    return (_EPOCH + timedelta(microseconds=ts)).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def parse_iso(text: str) -> int:
    """The time that `iso_time` wrote."""
    return (datetime.fromisoformat(text) - _EPOCH) // _MICROSECOND


def local_time(ts: int) -> str:
    """For people: the time of this machine, to the second."""
    return (_EPOCH + timedelta(microseconds=ts)).astimezone().strftime("%Y-%m-%d %H:%M:%S")
