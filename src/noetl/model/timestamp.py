"""Times as text: UTC, with microseconds, as envelopes write them."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def now_micros() -> int:
    """Microseconds since 1970, UTC."""
    return (datetime.now(UTC) - _EPOCH) // _MICROSECOND


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
