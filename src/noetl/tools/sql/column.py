"""The columns of SQL tables: what becomes of a driver's values in JSON and in Arrow."""

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias

from noetl.model.json import Json
from noetl.model.normalisation import NotJson, normalise
from noetl.model.outcome import ToolError

DriverRow: TypeAlias = Sequence[Any]
"""One row as the driver gives it."""


class Column(NamedTuple):
    """A column. `to_json` makes a JSON value of a driver's; None if it is one already.

    `arrow_type` gives the Arrow type, with pyarrow handed in, and `to_arrow` makes what that type takes of
    a driver's value. Without a type, what the values are decides.
    """

    name: str
    to_json: Callable[[Any], Json] | None = None
    arrow_type: Callable[[Any], Any] | None = None
    to_arrow: Callable[[Any], Any] | None = None


class Unrepresentable(Exception):
    """A value that JSON has no form for."""


def convert_values(
    column: str, values: Sequence[Any], convert: Callable[[Any], Any] | None, lost: dict[str, int]
) -> Sequence[Any]:
    """The values of a column, converted, null where that cannot be; `lost` counts these by column."""
    if convert is None:
        return values
    converted: list[Any] = []
    for value in values:
        try:
            converted.append(None if value is None else convert(value))
        except Unrepresentable:
            lost[column] = lost.get(column, 0) + 1
            converted.append(None)
    return converted


def finite_number(value: float | Decimal) -> Json:
    """A float or decimal as JSON. Unrepresentable if it is no number."""
    if not math.isfinite(value):
        raise Unrepresentable
    return normalise(value)


def base64_text(value: bytes) -> str:
    return b64encode(value).decode()


def bytes_from_text(value: Any, type_: str) -> Any:
    r"""What text stands for in a column of bytes: base64, as results have it, or digits after `\x`.

    ToolError of kind `input` if it is neither. Other values stay as they are.
    """
    if not isinstance(value, str):
        return value
    try:
        if value.startswith("\\x"):
            return bytes.fromhex(value.replace("\\x", " "))
        return b64decode(value, validate=True)
    except ValueError as error:
        raise ToolError("input", f"a value for a column of type {type_} is no base64: {error}") from None


def json_from_driver(value: Any) -> Json:
    """Any other value of a driver as JSON."""
    match value:
        case float() | Decimal():
            return finite_number(value)
        case bytes() | bytearray() | memoryview():
            return base64_text(bytes(value))
        case list() | tuple():
            return [None if item is None else json_from_driver(item) for item in value]
    try:
        return normalise(value)
    except NotJson:
        return str(value)
