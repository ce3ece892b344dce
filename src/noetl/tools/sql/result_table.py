"""The rows that a statement gives: JSON values while they are few, an Arrow file beyond."""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from noetl.model.json import Json
from noetl.model.outcome import ToolError
from noetl.model.reference import StoredReference, encode_value
from noetl.ports.results import ObjectDraft
from noetl.ports.tool import Call
from noetl.tools.host.extras import install_command
from noetl.tools.host.result_limits import inline_limit
from noetl.tools.sql.column import Column, DriverRow, convert_values
from noetl.tools.sql.statement_result import StatementResult, distinct_names, store_table

MAX_JSON = 16 << 20
"""Bytes of JSON that rows may take where there is no Arrow to put them into."""
BATCH_ROWS = 5_000
BATCH_BYTES = 4 << 20


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
            return 100  # enough to learn how wide a row is
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
        values = self._to_json(rows)
        self._size += len(encode_value(values))
        self._values += values
        self._rows += rows

    async def open_spill_file(self, drafts: AsyncExitStack) -> Path | None:
        """Where the rows can go; None if they must stay values."""
        try:
            import pyarrow  # noqa: F401, PLC0415 - an extra, and slow to import: only large tables need it
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
        from noetl.tools.sql.arrow_stream import ArrowWriter  # noqa: PLC0415 - imports pyarrow, an extra

        self._file = ArrowWriter(path, self.columns)
        # From the driver's rows, not from the JSON: dates and decimals keep their types in Arrow.
        self._file.write(self._rows)
        self._rows = []
        self._lost.clear()  # Arrow may hold what JSON cannot: it counts anew

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

    def _to_json(self, rows: Sequence[DriverRow]) -> list[dict[str, Json]]:
        names = [column.name for column in self.columns]
        if any(column.to_json is not None for column in self.columns):
            # By column, not by row: most columns need no conversion, and those are not looked into.
            by_column = zip(self.columns, zip(*rows, strict=True), strict=True)
            converted = [
                convert_values(column.name, raw, column.to_json, self._lost) for column, raw in by_column
            ]
            rows = list(zip(*converted, strict=True))
        return [dict(zip(names, row, strict=True)) for row in rows]
