"""Times as text: UTC, with microseconds, as envelopes write them."""

from datetime import UTC, datetime, timedelta
from math import inf, isnan
from typing import Any

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
LAST_MOMENT = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""What is due later, or never, is due then: every store can hold it, and it can be written as text."""
_LONGEST = LAST_MOMENT / 1e6


def now_micros() -> int:
    """Microseconds since 1970, UTC."""
    return (datetime.now(UTC) - _EPOCH) // _MICROSECOND


def moment_after(now: int, seconds: float) -> int:
    """The time in so many seconds, however many: between 1970 and `LAST_MOMENT`."""
    return storable_moment(now + round(min(max(seconds, -_LONGEST), _LONGEST) * 1_000_000))


def storable_moment(moment: int) -> int:
    """The same time, or the nearest that every store can hold, whoever said it."""
    return min(max(moment, 0), LAST_MOMENT)


def seconds_of(value: Any) -> float:
    """The seconds that a value says, infinite where no float holds them. Raises TypeError, ValueError."""
    try:
        seconds = float(value)
    except OverflowError:
        return inf if value > 0 else -inf
    if isnan(seconds):
        raise ValueError("NaN is no time")
    return seconds


def iso_time(ts: int) -> str:
    """As envelopes write it: UTC, with microseconds."""
    return (_EPOCH + timedelta(microseconds=ts)).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def optional_time(ts: int | None) -> str | None:
    """The same; None for none, which stores write as 0."""
    return iso_time(ts) if ts else None


def parse_iso(text: str) -> int:
    """The microseconds since 1970 of a time in ISO 8601, UTC if it names no zone. Raises ValueError."""
    moment = datetime.fromisoformat(text)
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // _MICROSECOND
