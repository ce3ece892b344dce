"""Tables between Arrow, Parquet, CSV and JSON, some rows at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from noetl.model.json import Json
from noetl.model.outcome import ToolError
from noetl.model.table_reader import batch_rows
from noetl.tools.host.extras import install_command

ROWS = 65_536
"""Rows that are read at a time."""


def convert_table(source: Path, file_format: Literal["csv", "json", "parquet"], target: Path) -> None:
    """Writes the table in a file of Arrow's in another format. Raises ToolError."""
    arrow = _import_arrow()
    # Not mapped into memory: all of it would count as ours.
    with (
        _as_tool_error(file_format),
        arrow.OSFile(str(source)) as file,
        arrow.ipc.open_stream(file) as stream,
    ):
        match file_format:
            case "csv":
                from pyarrow import csv  # noqa: PLC0415 - as in `_import_arrow`

                with csv.CSVWriter(str(target), stream.schema) as out:
                    _write_batches(stream, out.write_batch)
            case "parquet":
                from pyarrow import parquet  # noqa: PLC0415 - as in `_import_arrow`

                with parquet.ParquetWriter(str(target), stream.schema) as out:
                    _write_batches(stream, out.write_batch)
            case "json":
                _write_json(stream, target)


def write_parquet(rows: list[dict[str, Json]], target: Path) -> None:
    """Writes rows as Parquet. Raises ToolError."""
    arrow = _import_arrow()
    from pyarrow import parquet  # noqa: PLC0415 - as in `_import_arrow`

    with _as_tool_error("parquet"):
        parquet.write_table(arrow.Table.from_pylist(rows), str(target))


def read_parquet(source: Path, target: Path) -> int:
    """Writes a file of Parquet as a table of Arrow's; how many rows it has. Raises ToolError."""
    arrow = _import_arrow()
    from pyarrow import parquet  # noqa: PLC0415 - as in `_import_arrow`

    total = 0
    with (
        _as_tool_error("parquet"),
        parquet.ParquetFile(str(source)) as file,
        arrow.OSFile(str(target), "wb") as sink,
        arrow.ipc.new_stream(sink, file.schema_arrow) as out,
    ):
        for batch in file.iter_batches(batch_size=ROWS):
            out.write_batch(batch)
            total += batch.num_rows
    return total


def arrow_columns(table: Path) -> list[str]:
    """The names of the columns of a table of Arrow's."""
    arrow = _import_arrow()
    with _as_tool_error("arrow"), arrow.OSFile(str(table)) as file, arrow.ipc.open_stream(file) as stream:
        return list(stream.schema.names)


def _write_batches(stream: Any, write: Callable[[Any], None]) -> None:
    for batch in stream:
        write(batch)


def _write_json(stream: Any, target: Path) -> None:
    before = b"["
    with target.open("wb") as file:
        for batch in stream:
            for start in range(0, batch.num_rows, 1_000):
                rows = msgspec.json.encode(batch_rows(batch.slice(start, 1_000)))
                file.write(before + rows[1:-1])
                before = b","
        file.write(b"[]" if before == b"[" else b"]")


def _import_arrow() -> Any:
    try:
        import pyarrow as arrow  # noqa: PLC0415 - an extra: only who has tables needs it
        import pyarrow.ipc  # noqa: PLC0415 - the same extra
    except ImportError:
        raise ToolError("tool", f"tables need pyarrow: {install_command('arrow')}") from None
    return arrow


@contextmanager
def _as_tool_error(file_format: str) -> Iterator[None]:
    try:
        yield
    except (_import_arrow().ArrowException, OSError, TypeError) as error:
        raise ToolError("input", f"the table cannot be read or written as {file_format}: {error}") from None
