"""Values between Snowflake and a task: JSON and Arrow on one side, the driver's on the other."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec

from noetl.model.json import Json
from noetl.tools.sql.column import (
    Column,
    base64_text,
    bytes_from_text,
    finite_number,
    json_from_driver,
)

FIXED, TEXT, VARIANT, OBJECT, ARRAY, BINARY = 0, 2, 5, 9, 10, 11
SEMI_STRUCTURED = {VARIANT, OBJECT, ARRAY}


class SnowflakeType(NamedTuple):
    """How values of a type are read: as in `Column`."""

    to_json: Callable[[Any], Json] | None = None
    arrow_type: Callable[[Any], Any] | None = None
    to_arrow: Callable[[Any], Any] | None = None


def snowflake_column(described: Any) -> Column:
    """The column of a result, as the driver describes it."""
    if described.type_code == FIXED:
        return Column(described.name, *_fixed(described.precision or 38, described.scale or 0))
    return Column(described.name, *_TYPES.get(described.type_code, _OTHER))


def _fixed(precision: int, scale: int) -> SnowflakeType:
    if scale == 0 and precision <= 18:
        return SnowflakeType(None, lambda pa: pa.int64())
    return SnowflakeType(_number, lambda pa: pa.decimal128(precision, scale), Decimal)


def _number(value: int | Decimal) -> Json:
    if isinstance(value, int) and abs(value) < 1 << 63:
        return value
    return finite_number(Decimal(value))


def _iso(value: date | time | datetime) -> str:
    return value.isoformat()


def _json_value(text: Any) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:  # words that are not JSON, such as `undefined`
        return text


def _json_text(value: Any) -> Any:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


_JSON = SnowflakeType(_json_value, lambda pa: pa.json_() if hasattr(pa, "json_") else pa.string(), _json_text)
_LOCAL = SnowflakeType(_iso, lambda pa: pa.timestamp("us"))
_MOMENT = SnowflakeType(_iso, lambda pa: pa.timestamp("us", "UTC"))
_OTHER = SnowflakeType(json_from_driver)
_TYPES = {
    1: SnowflakeType(finite_number, lambda pa: pa.float64()),
    TEXT: SnowflakeType(None, lambda pa: pa.string()),
    3: SnowflakeType(_iso, lambda pa: pa.date32()),
    4: _LOCAL,
    VARIANT: _JSON,
    6: _MOMENT,
    7: _MOMENT,
    8: _LOCAL,
    OBJECT: _JSON,
    ARRAY: _JSON,
    BINARY: SnowflakeType(lambda value: base64_text(bytes(value)), lambda pa: pa.binary(), bytes),
    12: SnowflakeType(_iso, lambda pa: pa.time64("us")),
    13: SnowflakeType(None, lambda pa: pa.bool_()),
}


def snowflake_value(value: Any) -> Any:
    """A value as the driver sends it: mappings and lists as JSON text, moments as ISO text."""
    match value:
        case dict() | list():
            return msgspec.json.encode(value).decode()
        case datetime() | date() | time():
            return value.isoformat()
    return value


def rows_to_load(rows: Sequence[Sequence[Any]], types: Sequence[int | None]) -> list[tuple[Any, ...]]:
    """The rows as they go into columns of these types: bytes for base64, and one type of values in a column.

    The driver sends a column as a list, of the type that its first value has.
    """
    columns = []
    for index, values in enumerate(zip(*rows, strict=True)):
        type_code = types[index] if index < len(types) else None
        if type_code == BINARY:
            columns.append([bytes_from_text(value, "BINARY") for value in values])
        elif type_code in SEMI_STRUCTURED:
            columns.append([_semi_structured(value) for value in values])
        else:
            columns.append(_uniform([snowflake_value(value) for value in values]))
    return list(zip(*columns, strict=True))


def _semi_structured(value: Any) -> Any:
    """Text is JSON already, as results of queries are not: they are values."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _uniform(values: list[Any]) -> list[Any]:
    if len({type(value) for value in values if value is not None}) < 2:
        return values
    return [value if value is None else _text(value) for value in values]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
