"""Filters over dates, which are ISO 8601 text everywhere. Text without an offset is UTC."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from noetl.expr.runtime.conversion import render_text, type_name
from noetl.expr.runtime.evaluation import Evaluation
from noetl.model.errors import ExpressionError, quoted_text

# Anything else, widths above all, is the C library's own business and can grow without bound.
_FORMAT = re.compile(r"(?:[^%]|%[AaBbdfHIjMmpSUuVWwYyGZz%])*")
_MAX_FORMAT = 200
_MAX_EXCERPT = 40
_FORMAT_COST = 20_000
"""What it costs to read a format: Python makes a regular expression of it, and remembers few."""


def _parse_moment(value: object) -> datetime:
    if not isinstance(value, str):
        raise ExpressionError(
            f"a date is ISO 8601 text, not {type_name(value)}", hint="`from_timestamp` reads numbers"
        )
    try:
        moment = datetime.fromisoformat(value.strip()[:64])
    except ValueError:
        raise ExpressionError(f"`{quoted_text(value, _MAX_EXCERPT)}` is not an ISO 8601 date") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _iso(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def _to_datetime(evaluation: Evaluation, value: object, fmt: str | None = None) -> str:
    """The date as full ISO 8601 text; `fmt` says how to read other text."""
    if fmt is None:
        return _iso(_parse_moment(value))
    text = value if isinstance(value, str) else render_text(value, evaluation.budget)
    if fmt != evaluation.date_format:
        evaluation.budget.charge(_FORMAT_COST)
        evaluation.date_format = _check_format(fmt)
    try:
        moment = datetime.strptime(text[:_MAX_FORMAT], evaluation.date_format)
    except (ValueError, re.error):
        raise ExpressionError(f"`{quoted_text(text, _MAX_EXCERPT)}` does not look like `{fmt}`") from None
    return _iso(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def _date_format(_: Evaluation, value: object, fmt: str = "%Y-%m-%d") -> str:
    return _parse_moment(value).strftime(_check_format(fmt))


def _check_format(fmt: object) -> str:
    if not isinstance(fmt, str) or len(fmt) > _MAX_FORMAT or not _FORMAT.fullmatch(fmt):
        raise ExpressionError("the date format is not understood", hint="for example `%Y-%m-%d %H:%M:%S`")
    return fmt


def _date_add(_: Evaluation, value: object, **amounts: float) -> str:
    """The date moved by `weeks`, `days`, `hours`, `minutes`, `seconds`."""
    return _iso(_parse_moment(value) + timedelta(**amounts))


def _timestamp(_: Evaluation, value: object) -> float:
    """Seconds since 1970-01-01T00:00:00Z."""
    return _parse_moment(value).timestamp()


def _from_timestamp(_: Evaluation, value: object) -> str:
    if not isinstance(value, int | float):
        raise ExpressionError(f"`from_timestamp` reads a number, not {type_name(value)}")
    return _iso(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=value))


DATE_FILTERS: dict[str, Callable[..., object]] = {
    "date_add": _date_add,
    "date_format": _date_format,
    "from_timestamp": _from_timestamp,
    "timestamp": _timestamp,
    "to_datetime": _to_datetime,
}
