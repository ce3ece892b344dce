"""The rows that a statement gives: JSON values while they are few, an Arrow file beyond."""

import math
from base64 import b64decode, b64encode
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from noetl.model import Json
from noetl.model.normalisation import NotJson, normalise
from noetl.model.outcome import ToolError
from noetl.model.reference import StoredReference, encode_value
from noetl.ports.results import ObjectDraft
from noetl.ports.tool import Call
from noetl.tools.host.extras import install_command
from noetl.tools.sql.statement_result import StatementResult, distinct_names, inline_limit, store_table

MAX_JSON = 16 << 20
"""Bytes of JSON that rows may take where there is no Arrow to put them into."""
BATCH_ROWS = 5_000
BATCH_BYTES = 4 << 20

DriverRow: TypeAlias = Sequence[Any]
"""One row as the driver gives it."""


class Column(NamedTuple):
    """A column. `json` makes a JSON value of a driver's; None if it is one already.

    `arrow` gives the Arrow type, with pyarrow handed in, and `store` makes what that type takes of a
    driver's value. Without a type, what the values are decides.
    """

    name: str
    to_json: Callable[[Any], Json] | None = None
    arrow_type: Callable[[Any], Any] | None = None
    to_arrow: Callable[[Any], Any] | None = None


class Unrepresentable(Exception):
    """A value that JSON has no form for."""


class ResultTable:
    """The rows of one statement, added batch by batch."""

    def __init__(self, call: Call, columns: Sequence[Column]) -> None:
        names = distinct_names([column.name for column in columns])
        self.columns = [column._replace(name=name) for column, name in zip(columns, names, strict=True)]
        self.count = 0
        self.warnings: list[str] = []
        self._call = call
        self._limit = inline_limit(call)
        self._lost: dict[str, int] = {}
        self._values: list[dict[str, Json]] = []
        self._rows: list[DriverRow] = []
        self._size = 0
        self._file: Any = None
        self._draft: ObjectDraft | None = None

    @property
    def batch_size(self) -> int:
        """How many rows to add at a time, so that they do not take much memory."""
        if not self.count:
            return 100
        return max(1, min(BATCH_ROWS, BATCH_BYTES * self.count // (self._size + 1)))

    @property
    def is_spilled(self) -> bool:
        """Whether the rows go into a file."""
        return self._file is not None

    @property
    def must_spill(self) -> bool:
        """Whether the rows are too many to be values: `spill` before adding more."""
        return self._file is None and self._size > self._limit

    def add(self, rows: Sequence[DriverRow]) -> None:
        """Takes rows; may write a file, and compute for long if they are many."""
        if not rows:
            return
        self.count += len(rows)
        if self._file is not None:
            self._file.write(rows)
            return
        values = self._json(rows)
        self._size += len(encode_value(values))
        self._values += values
        self._rows += rows

    async def open_spill_file(self, drafts: AsyncExitStack) -> Path | None:
        """Where the rows can go; None if they must stay values."""
        try:
            import pyarrow  # noqa: F401, PLC0415  # only large tables need it
        except ImportError:
            if self._size <= MAX_JSON:
                self._limit = MAX_JSON
                return None
            message = f"the rows take more than {MAX_JSON >> 20} MiB, and pyarrow is not installed"
            raise ToolError("limit", f"{message}: {install_command('arrow')}") from None
        self._draft = await drafts.enter_async_context(self._call.objects.draft())
        return self._draft.path

    def spill(self, path: Path) -> None:
        """Moves the rows so far into an Arrow file, which takes the others, too."""
        from noetl.tools.sql.arrow_stream import ArrowWriter  # noqa: PLC0415  # imports pyarrow

        self._file = ArrowWriter(path, self.columns)
        self._file.write(self._rows)
        self._rows = []
        self._lost.clear()

    def finish(self) -> None:
        """No more rows come: completes the file, if there is one."""
        if self._file is not None:
            self._file.close()
            self._lost = self._file.lost
        for name, number in self._lost.items():
            values = "a value" if number == 1 else f"{number} values"
            self.warnings.append(f"column `{name}`: null in place of {values} that JSON cannot hold")

    async def result(self) -> StatementResult:
        """What the statement gave, after the end."""
        names = [column.name for column in self.columns]
        rows: list[dict[str, Json]] | StoredReference = self._values
        if self._draft is not None:
            rows = await store_table(self._call, self._draft, names, self.count, self._values[:100])
        return StatementResult(names, rows, self.count)

    def _json(self, rows: Sequence[DriverRow]) -> list[dict[str, Json]]:
        names = [column.name for column in self.columns]
        if all(column.to_json is None for column in self.columns):
            return [dict(zip(names, row, strict=True)) for row in rows]
        converted = [self._column(*pair) for pair in zip(self.columns, zip(*rows, strict=True), strict=True)]
        return [dict(zip(names, row, strict=True)) for row in zip(*converted, strict=True)]

    def _column(self, column: Column, values: Sequence[Any]) -> Sequence[Json]:
        if (convert := column.to_json) is None:
            return values
        found: list[Json] = []
        for value in values:
            try:
                found.append(None if value is None else convert(value))
            except Unrepresentable:
                self._lost[column.name] = self._lost.get(column.name, 0) + 1
                found.append(None)
        return found


def finite_number(value: float | Decimal) -> Json:
    """A float or decimal as JSON. Lost if it is no number."""
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
