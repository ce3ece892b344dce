"""Tables as Arrow streams: written batch by batch, and read so."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from noetl.model.outcome import ToolError
from noetl.tools.sql.column import Column, DriverRow, base64_text, convert_values

_EXACT = 1 << 53
"""Beyond this, up and down, a float does not hold every integer."""


class ArrowWriter:
    """An Arrow stream that is being written. The types stand with the first rows, or widen later."""

    def __init__(self, path: Path, columns: Sequence[Column]) -> None:
        self.lost: dict[str, int] = {}
        self._path = path
        self._columns = columns
        self._types = [column.arrow_type(pa) if column.arrow_type else pa.null() for column in columns]
        self._beyond_float: set[str] = set()
        self._writer: pa.RecordBatchStreamWriter | None = None

    def write(self, rows: Sequence[DriverRow]) -> None:
        by_column = zip(self._columns, zip(*rows, strict=True), strict=True)
        values = [convert_values(column.name, raw, column.to_arrow, self.lost) for column, raw in by_column]
        types = [
            known if column.arrow_type else self._widen(column.name, known, column_values)
            for column, known, column_values in zip(self._columns, self._types, values, strict=True)
        ]
        if types != self._types:
            self._retype(types)
        arrays = [_to_array(*column) for column in zip(self._columns, values, types, strict=True)]
        self._open().write_batch(pa.record_batch(arrays, schema=self._schema))

    def close(self) -> None:
        self._open().close()

    @property
    def _schema(self) -> pa.Schema:
        names = [column.name for column in self._columns]
        return pa.schema(zip(names, self._types, strict=True))

    def _open(self) -> pa.RecordBatchStreamWriter:
        if self._writer is None:
            self._writer = pa.ipc.new_stream(self._path, self._schema)
        return self._writer

    def _widen(self, name: str, known: pa.DataType, values: Sequence[Any]) -> pa.DataType:
        """The type that holds these values, too: text where floats are among integers too wide for them."""
        if any(isinstance(value, int) and abs(value) > _EXACT for value in values):
            # Remembered, for the floats that spoil the column may come in a later batch.
            self._beyond_float.add(name)
        wider = wider_type(known, values)
        return pa.string() if wider == pa.float64() and name in self._beyond_float else wider

    def _retype(self, types: list[pa.DataType]) -> None:
        """Gives columns wider types, those of rows that are written already as well."""
        writer, self._writer = self._writer, None
        self._types = types
        if writer is None:
            return
        writer.close()
        old = self._path.with_name(f"{self._path.name}.old")
        # A stream has one schema at its head: it cannot be widened in its place, so it is written anew.
        self._path.rename(old)
        try:
            for batch in ArrowFile(old).to_batches():
                columns = zip(self._columns, batch.columns, types, strict=True)
                arrays = [_widen_array(*column) for column in columns]
                self._open().write_batch(pa.record_batch(arrays, schema=self._schema))
        finally:
            old.unlink()


def wider_type(known: pa.DataType, values: Sequence[Any]) -> pa.DataType:
    """The narrowest type that holds these values and all that the known one holds."""
    kinds = {type(value) for value in values} - {type(None)}
    if not kinds:
        return known
    if kinds <= {int} and known in (pa.null(), pa.int64()):
        return pa.int64()
    if kinds <= {int, float} and known in (pa.null(), pa.int64(), pa.float64()):
        return pa.float64()
    if kinds <= {bytes} and known in (pa.null(), pa.binary()):
        return pa.binary()
    return pa.string()


def _to_array(column: Column, values: Sequence[Any], type_: pa.DataType) -> pa.Array:
    if column.arrow_type is None and type_ == pa.string():
        values = [_text(value) for value in values]
    try:
        return pa.array(values, type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise ToolError("sql", f"column `{column.name}` does not fit into Arrow's {type_}: {error}") from None


def _widen_array(column: Column, array: pa.Array, type_: pa.DataType) -> pa.Array:
    return array if array.type == type_ else _to_array(column, array.to_pylist(), type_)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return base64_text(value) if isinstance(value, bytes) else str(value)


def read_arrow_rows(
    path: Path, batch_rows: int
) -> tuple[list[str], Callable[[], Iterator[list[tuple[Any, ...]]]]]:
    """The columns of an Arrow stream, and its rows batch by batch. ToolError if it is none."""
    try:
        with pa.OSFile(str(path)) as source:
            names = pa.ipc.open_stream(source).schema.names
    except pa.ArrowException as error:
        raise ToolError("input", f"`rows` is no Arrow stream: {error}") from None

    def batches() -> Iterator[list[tuple[Any, ...]]]:
        for batch in ArrowFile(path).to_batches():
            # A batch has as many rows as its writer liked: only so many become Python objects at a time.
            for start in range(0, batch.num_rows, batch_rows):
                part = batch.slice(start, batch_rows)
                yield list(zip(*(column.to_pylist() for column in part.columns), strict=True))

    return names, batches


class ArrowFile:
    """A stored Arrow stream that can be read any number of times, some rows at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table from its beginning, for whoever speaks Arrow's interface."""
        return pa.ipc.open_stream(pa.OSFile(str(self._path))).__arrow_c_stream__(requested_schema)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        # Read, not mapped into memory: all of a mapped file would count as ours where memory is bounded.
        with pa.OSFile(str(self._path)) as file:
            yield from pa.ipc.open_stream(file)
