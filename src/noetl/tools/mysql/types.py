"""Values between MySQL and a task: JSON and Arrow on one side, the server's text on the other."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, Protocol

import msgspec

from noetl.model.json import Json
from noetl.tools.sql.column import (
    Column,
    Unrepresentable,
    base64_text,
    bytes_from_text,
    finite_number,
)

BINARY_CHARSET = 63
_UNSIGNED = 32
_BIT, _JSON_TYPE, _TIMESTAMP, _DATETIME = 16, 245, 7, 12
_TEXTS = {15, 249, 250, 251, 252, 253, 254}
"""VARCHAR, the BLOBs, VAR_STRING and STRING: text or bytes, as their character set says."""
_ZONE = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$")


class MysqlField(Protocol):
    """What the server says of a column of a result."""

    name: str
    type_code: int
    charsetnr: int
    length: int
    scale: int
    flags: int


class MysqlType(NamedTuple):
    """How values of a type are read: as in `Column`."""

    to_json: Callable[[Any], Json] | None = None
    arrow_type: Callable[[Any], Any] = lambda pa: pa.string()
    to_arrow: Callable[[Any], Any] | None = None


def mysql_column(field: MysqlField) -> Column:
    """The column of a result."""
    return Column(field.name, *_type_of(field))


def _type_of(field: MysqlField) -> MysqlType:
    is_unsigned = bool(field.flags & _UNSIGNED)
    if field.type_code in _TEXTS:
        return _BYTES if field.charsetnr == BINARY_CHARSET else MysqlType()
    if field.type_code in (0, 246):
        return _decimal(field)
    if field.type_code == 8:
        return MysqlType(int, lambda pa: pa.uint64() if is_unsigned else pa.int64(), int)
    return _TYPES.get(field.type_code, MysqlType())


def _decimal(field: MysqlField) -> MysqlType:
    """Exact in Arrow, too, as far as its decimals go."""
    scale = field.scale
    precision = field.length - (1 if scale else 0) - (0 if field.flags & _UNSIGNED else 1)
    if 0 <= scale <= precision <= 38:
        return MysqlType(_number, lambda pa: pa.decimal128(precision, scale), Decimal)
    return MysqlType(_number)


def _number(text: str) -> Json:
    return finite_number(Decimal(text))


def _day(text: str) -> str:
    return date.fromisoformat(_valid(text)).isoformat()


def _moment(text: str) -> str:
    return _datetime(text).isoformat()


def _datetime(text: str) -> datetime:
    return datetime.fromisoformat(_valid(text))


def _valid(text: str) -> str:
    """The text of a date. Unrepresentable if a part of it is zero, as MySQL allows."""
    if text[:4] == "0000" or "-00" in text[:10]:
        raise Unrepresentable
    return text


def _bits(value: bytes) -> int:
    return int.from_bytes(value, "big")


def _json_value(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:  # a number that no float holds
        return text


_INTEGER = MysqlType(int, lambda pa: pa.int64(), int)
_BYTES = MysqlType(base64_text, lambda pa: pa.binary(), bytes)
_TYPES = {
    1: _INTEGER,
    2: _INTEGER,
    3: _INTEGER,
    9: _INTEGER,
    13: _INTEGER,
    4: MysqlType(float, lambda pa: pa.float32(), float),
    5: MysqlType(float, lambda pa: pa.float64(), float),
    _TIMESTAMP: MysqlType(_moment, lambda pa: pa.timestamp("us"), _datetime),
    _DATETIME: MysqlType(_moment, lambda pa: pa.timestamp("us"), _datetime),
    10: MysqlType(_day, lambda pa: pa.date32(), lambda text: date.fromisoformat(_valid(text))),
    _BIT: MysqlType(_bits, lambda pa: pa.uint64(), _bits),
    242: _BYTES,
    _JSON_TYPE: MysqlType(_json_value, lambda pa: pa.json_() if hasattr(pa, "json_") else pa.string()),
    255: _BYTES,
}


def mysql_value(value: Any) -> Any:
    """A value as the driver sends it: mappings and lists as JSON, moments with a zone in UTC."""
    match value:
        case dict() | list():
            return msgspec.json.encode(value).decode()
        case bool() | None | str() | float() | bytes() | Decimal() | timedelta():
            return value
        case int():
            return value if -(1 << 63) <= value < 1 << 64 else str(value)
        case datetime():
            return _without_zone(value)
        case date() | time():
            return value
    return str(value)


def _without_zone(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None) if moment.tzinfo is not None else moment


def column_writer(field: MysqlField) -> Callable[[Any], Any] | None:
    """What makes of a value what goes into a column; None if it is sent as it is."""
    if field.type_code == 255 or (field.type_code in _TEXTS and field.charsetnr == BINARY_CHARSET):
        return lambda value: bytes_from_text(value, "BLOB")
    if field.type_code in (_TIMESTAMP, _DATETIME):
        return _moment_without_zone
    return None


def _moment_without_zone(value: Any) -> Any:
    """ISO text with a zone, as other databases have it, is a moment in UTC; the server takes no zones."""
    if not isinstance(value, str) or not _ZONE.search(value[10:]):
        return value
    try:
        return _without_zone(datetime.fromisoformat(value))
    except ValueError:
        return value
