"""Tables that are stored in Arrow's stream format: as rows of JSON values, whole or some at a time."""

import base64
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from noetl.model.errors import ResultError
from noetl.model.json import Json
from noetl.model.normalisation import NotJson, normalise
from noetl.model.reference import decode_value, escape

ROWS_PER_READ = 1_000
"""Rows that a loop over a table reads at a time."""
_ARROW_STREAM_START = b"\xff\xff\xff\xff"
"""How a stream begins, and no JSON text can."""
_JSON_COLUMN = "extension<arrow.json>"
"""The type of columns whose text is JSON."""


def decode_value_or_table(data: bytes) -> Any:
    """What stored bytes stand for, as it may stand in the log: a JSON value, or the rows of a table.

    Raises ResultError if they are a table that cannot be read.
    """
    return escape(table_rows(data)) if is_table(data) else decode_value(data)


def is_table(data: bytes) -> bool:
    """Whether stored bytes are a table; the first four tell."""
    return data.startswith(_ARROW_STREAM_START)


def table_rows(data: bytes) -> list[Json]:
    """The rows of a table as mappings. Raises ResultError.

    Beyond what results are normalised to: NaN, infinity and times out of range are null, bytes are base64,
    durations seconds, and intervals with months or days as ISO 8601 has them.
    """
    return [row for batch in _batches(data) for row in batch_rows(batch)]


def row_key(key: str, index: int) -> tuple[str, int]:
    """The key of some rows of the table under `key`, that at `index` among them; and the first of them."""
    start = index - index % ROWS_PER_READ
    return f"{key}#{start}-{start + ROWS_PER_READ}", start


def split_row_key(key: str) -> tuple[str, tuple[int, int] | None]:
    """The key of what is stored, and which of its rows are meant; None: all that is stored."""
    stored, _, rows = key.partition("#")
    if not rows:
        return stored, None
    start, _, end = rows.partition("-")
    return stored, (int(start), int(end))


def _batches(data: bytes) -> Iterator[Any]:
    with arrow_errors(), arrow_library().ipc.open_stream(data) as stream:
        yield from stream


def batch_rows(batch: Any) -> list[dict[str, Json]]:
    """The rows of a record batch. Raises ResultError."""
    arrow = arrow_library()
    columns = [[_json_value(value) for value in _column_values(arrow, column)] for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _column_values(arrow: Any, column: Any) -> Iterable[object]:
    if str(column.type) == _JSON_COLUMN:
        return [None if text is None else decode_value(text) for text in column.to_pylist()]
    kind = _without_nanoseconds(arrow, column.type)
    if kind != column.type:
        column = column.cast(kind, safe=False)  # what is below a microsecond is cut off
    try:
        # The column in one call. Value by value, the slow path, is for columns with a value that fails.
        values: list[object] = column.to_pylist(maps_as_pydicts="lossy")
    except (OverflowError, ValueError):  # a time that Python has no form for, such as infinity
        return [_python_value_or_none(value) for value in column]
    return values


def _python_value_or_none(value: Any) -> object:
    try:
        python_value: object = value.as_py(maps_as_pydicts="lossy")
    except (OverflowError, ValueError):
        return None
    return python_value


def _without_nanoseconds(arrow: Any, kind: Any) -> Any:
    """The type with microseconds in their place: Python has no type for them."""
    types = arrow.types
    if types.is_list(kind):
        return arrow.list_(_without_nanoseconds(arrow, kind.value_type))
    if types.is_struct(kind):
        return arrow.struct([field.with_type(_without_nanoseconds(arrow, field.type)) for field in kind])
    if not types.is_temporal(kind) or getattr(kind, "unit", "") != "ns":
        return kind
    if types.is_timestamp(kind):
        return arrow.timestamp("us", kind.tz)
    return arrow.duration("us") if types.is_duration(kind) else arrow.time64("us")


def _json_value(value: object) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Decimal():
            return normalise(value) if value.is_finite() else None
        case dict():
            return {str(key): _json_value(item) for key, item in value.items()}
        case tuple() if hasattr(value, "nanoseconds"):
            return _interval(*value)
        case list() | tuple():
            return [_json_value(item) for item in value]
        case bytes():
            return base64.b64encode(value).decode()
        case timedelta():
            return value.total_seconds()
        case UUID():
            return str(value)
    try:
        return normalise(value)
    except NotJson as error:
        raise _wrong_table(f"a table holds what JSON has no form for: {error}") from None


def _interval(months: int, days: int, nanoseconds: int) -> str:
    """As ISO 8601 writes it: `P1M2DT0.5S`."""
    days_part = "".join(f"{number}{unit}" for number, unit in ((months, "M"), (days, "D")) if number)
    seconds = normalise(Decimal(nanoseconds) / 1_000_000_000) if nanoseconds else 0
    return f"P{days_part}T{seconds}S" if seconds or not days_part else f"P{days_part}"


def arrow_library() -> Any:
    """pyarrow, where it is installed. Raises ResultError."""
    try:
        import pyarrow as arrow  # noqa: PLC0415 - only who has tables needs it
        import pyarrow.ipc  # noqa: PLC0415 - likewise
    except ImportError:
        missing = ResultError("a table cannot be read without pyarrow", "pip install 'noetl[arrow]'")
        missing.kind = "tool"
        raise missing from None
    return arrow


@contextmanager
def arrow_errors() -> Iterator[None]:
    """Raises ResultError where the stream is not what it should be."""
    try:
        yield
    except (OSError, arrow_library().ArrowException) as error:
        raise _wrong_table(f"a table cannot be read: {error}", "write it again") from None


def _wrong_table(message: str, hint: str = "") -> ResultError:
    error = ResultError(message, hint)
    error.kind = "input"
    return error
