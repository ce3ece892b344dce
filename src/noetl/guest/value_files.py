"""Values that do not go through the pipe: files that hold inputs, and tables and bytes that become files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from noetl.guest.frame import InputFile, ResultFile, file_mark, replace_file_marks
from noetl.model.normalisation import NotJson
from noetl.model.reference import ARROW_MEDIA_TYPE

BYTES = "application/octet-stream"
_MISSING = "pyarrow is not installed: pip install 'noetl[arrow]'"


def load_input_files(value: Any, files: Sequence[InputFile]) -> Any:
    """The value with what the files hold in their places."""
    return replace_file_marks(value, [_read_input(file) for file in files]) if files else value


def _read_input(file: InputFile) -> Any:
    if file.form == "path":
        return {**file.details, "path": file.path}
    try:
        import pyarrow as pa  # noqa: PLC0415 - only code that gets a table needs it
        import pyarrow.ipc  # noqa: PLC0415 - likewise
    except ImportError:
        raise ImportError(f"a table cannot be read: {_MISSING}") from None
    with pa.memory_map(file.path) as source:
        table = pa.ipc.open_stream(source).read_all()
    match file.form:
        case "arrow":
            return table
        case "pandas":
            return table.to_pandas()
    from noetl.model.table_reader import batch_rows  # noqa: PLC0415 - likewise

    return [row for batch in table.to_batches() for row in batch_rows(batch)]


class ResultFileWriter:
    """The objects that one result becomes: files beside each other, whose names begin with `path`."""

    def __init__(self, path: str, limit: int) -> None:
        self.files: list[ResultFile] = []
        self._path = path
        self._limit = limit

    def value(self, value: Any) -> Any:
        """What stands for a value that is no JSON: rows if it is a small table. NotJson if it is no table."""
        if isinstance(value, bytes | bytearray | memoryview):
            path = self._next()
            path.write_bytes(value)
            return self._add(ResultFile(media_type=BYTES))
        reader = _batch_reader(value)
        if reader is None:
            hint = ": `.tolist()` may give one" if hasattr(value, "tolist") else ""
            raise NotJson(f"is of type `{type(value).__name__}`, which JSON has no form for{hint}")
        from noetl.model.table_stream import TableRows, read_batches  # noqa: PLC0415 - needs pyarrow

        table = read_batches(reader, reader.schema.names, self._limit)
        if isinstance(table, TableRows):
            return table.rows
        preview = msgspec.json.encode(table.preview_rows).decode()
        columns = table.columns
        details = {"type": "list", "length": table.write(self._next()), "columns": columns}
        return self._add(ResultFile(media_type=ARROW_MEDIA_TYPE, preview=preview, details=details))

    def _next(self) -> Path:
        return Path(f"{self._path}-{len(self.files)}")

    def _add(self, file: ResultFile) -> Any:
        self.files.append(file)
        return file_mark(len(self.files) - 1)


def _batch_reader(value: Any) -> Any:
    """A reader of record batches over a frame or table of pandas, pyarrow or others; None if it is none."""
    is_pandas = type(value).__module__.partition(".")[0] == "pandas"
    frame = is_pandas and hasattr(value, "columns")
    if not frame and (is_pandas or not hasattr(value, "__arrow_c_stream__")):
        return None  # a series of pandas streams, too, but it is no table
    name = type(value).__name__
    try:
        import pyarrow as pa  # noqa: PLC0415 - only code that gives a table needs it
    except ImportError:
        raise NotJson(f"is a `{name}`, and {_MISSING}") from None
    try:
        if frame:
            # An index that is more than the numbers of the rows becomes a column.
            return pa.Table.from_pandas(value).replace_schema_metadata(None).to_reader()
        return pa.RecordBatchReader.from_stream(value)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise NotJson(f"is a `{name}` that is no table for Arrow: {error}") from None
