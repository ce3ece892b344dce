"""Values between PostgreSQL and a task: JSON and Arrow on one side, the server's text on the other."""

from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, NamedTuple

import msgspec
import psycopg
from psycopg import postgres
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.types.json import set_json_loads
from psycopg.types.string import TextLoader

from noetl.model.json import Json
from noetl.tools.sql.column import (
    Column,
    Unrepresentable,
    base64_text,
    bytes_from_text,
    finite_number,
    json_from_driver,
)

_RANGES = [
    f"{name}{ending}"
    for name in ("int4", "int8", "num", "date", "ts", "tstz")
    for ending in ("range", "multirange")
]
# Read as the server writes them: Python's types hold neither `infinity` nor years before 1 or after 9999.
_AS_TEXT = [
    "date",
    "time",
    "timetz",
    "timestamp",
    "timestamptz",
    "interval",
    "uuid",
    "inet",
    "cidr",
    *_RANGES,
]


class PostgresType(NamedTuple):
    """How values of a type are read: as in `Column`."""

    to_json: Callable[[Any], Json] | None = None
    arrow_type: Callable[[Any], Any] = lambda pa: pa.string()
    to_arrow: Callable[[Any], Any] | None = None


def result_column(described: psycopg.Column) -> Column:
    """The column of a result."""
    info = postgres.types.get(described.type_code)
    if info is None:
        return Column(described.name, *PostgresType())
    type_ = _numeric(described) if info.name == "numeric" else _TYPES.get(info.name, PostgresType())
    # An array of JSON stays what it is: each item may be a list itself, which `_array` would look into.
    if info.array_oid == described.type_code and type_ is not _JSON:
        type_ = _array(type_)
    return Column(described.name, *type_)


def _day(text: str) -> str:
    if len(text) != 10 or not text[0].isdigit():
        raise Unrepresentable
    return text


def _reader(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return parse(text)
        except ValueError:
            raise Unrepresentable from None

    return read


_datetime = _reader(datetime.fromisoformat)


def _moment(text: str) -> str:
    """ISO 8601 of what the server writes. Unrepresentable if infinite, or of a year without four digits."""
    return str(_datetime(text).isoformat())


def _finite(value: Decimal) -> Decimal:
    if not value.is_finite():
        raise Unrepresentable
    return value


def _json_text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _numeric(described: psycopg.Column) -> PostgresType:
    """Exact in Arrow, too: a decimal where precision and scale are declared, else text."""
    precision, scale = described.precision, described.scale
    if precision and scale is not None and 0 <= scale <= precision <= 38:
        return PostgresType(finite_number, lambda pa: pa.decimal128(precision, scale), _finite)
    return PostgresType(finite_number, to_arrow=lambda value: str(_finite(value)))


def _array(item: PostgresType) -> PostgresType:
    return PostgresType(
        to_json=None if item.to_json is None else _each(item.to_json),
        arrow_type=lambda pa: pa.list_(item.arrow_type(pa)),
        to_arrow=None if item.to_arrow is None else _each(item.to_arrow),
    )


def _each(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def items(values: list[Any]) -> list[Any]:
        return [
            None if item is None else items(item) if isinstance(item, list) else convert(item)
            for item in values
        ]

    return items


_JSON = PostgresType(None, lambda pa: pa.json_() if hasattr(pa, "json_") else pa.string(), _json_text)
_TYPES = {
    "bool": PostgresType(arrow_type=lambda pa: pa.bool_()),
    "int2": PostgresType(arrow_type=lambda pa: pa.int16()),
    "int4": PostgresType(arrow_type=lambda pa: pa.int32()),
    "int8": PostgresType(arrow_type=lambda pa: pa.int64()),
    "oid": PostgresType(arrow_type=lambda pa: pa.int64()),
    "float4": PostgresType(finite_number, lambda pa: pa.float32()),
    "float8": PostgresType(finite_number, lambda pa: pa.float64()),
    "bytea": PostgresType(base64_text, lambda pa: pa.binary()),
    "date": PostgresType(_day, lambda pa: pa.date32(), _reader(date.fromisoformat)),
    "time": PostgresType(None, lambda pa: pa.time64("us"), _reader(time.fromisoformat)),
    "timestamp": PostgresType(_moment, lambda pa: pa.timestamp("us"), _datetime),
    "timestamptz": PostgresType(_moment, lambda pa: pa.timestamp("us", "UTC"), _datetime),
    "json": _JSON,
    "jsonb": _JSON,
    "record": PostgresType(json_from_driver, to_arrow=lambda value: _json_text(json_from_driver(value))),
}


class JsonDumper(Dumper):
    """Mappings and lists as JSON text of no type: the server takes it for what it needs there."""

    def dump(self, obj: Any) -> bytes:
        return msgspec.json.encode(obj)


def _load_json(data: str | bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except msgspec.DecodeError:  # a number that no float holds
        return data if isinstance(data, str) else bytes(data).decode()


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    for name in _AS_TEXT:
        adapters.register_loader(name, TextLoader)
    set_json_loads(_load_json, adapters)
    for kind in (dict, list):
        adapters.register_dumper(kind, JsonDumper)
    return adapters


ADAPTERS = _adapters()


class TargetType(NamedTuple):
    """What a value is written to: the type's name, and that of its items if it is an array."""

    type: str
    items: str | None

    @property
    def write(self) -> Callable[[Any], Any] | None:
        """What makes of a value what the driver can send; None if it can any."""
        if self.items is not None:
            return lambda value: _array_literal(value, of_json=self.items in ("json", "jsonb"))
        return {"json": _json_value, "jsonb": _json_value, "bytea": _bytes}.get(self.type)


def _array_literal(value: Any, *, of_json: bool) -> Any:
    """A list as the server reads arrays. With `of_json`, its items are JSON, lists among them too."""
    if of_json and isinstance(value, str) and value.startswith("["):
        value = msgspec.json.decode(value)  # as a table has it
    if not isinstance(value, list):
        return value
    return "{" + ",".join(_item_literal(item, of_json=of_json) for item in value) + "}"


def _item_literal(value: Any, *, of_json: bool) -> str:
    match value:
        case None:
            return "NULL"
        case list() if not of_json:
            return str(_array_literal(value, of_json=False))
        case str() if not of_json:
            text = value
        case bytes():
            text = f"\\x{value.hex()}"
        case datetime() | date() | time() | Decimal():
            text = str(value)
        case _:
            text = _json_text(value)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _json_value(value: Any) -> Any:
    """Text is JSON already."""
    return value if value is None or isinstance(value, str) else _json_text(value)


def _bytes(value: Any) -> Any:
    return bytes_from_text(value, "bytea")
