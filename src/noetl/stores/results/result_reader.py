"""Reading what a key of the log names: stored bytes, or some rows of a stored table."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from noetl.model.table_reader import arrow_errors, arrow_library, split_row_key
from noetl.ports.results import ResultStore

OPEN_TABLES = 4
"""Tables that are kept as files for the next rows of them."""


async def read_result(results: ResultStore, key: str) -> bytes:
    """The bytes under a key; of a key for rows, a table with these alone. Raises ResultError."""
    stored, rows = split_row_key(key)
    if rows is None:
        return await results.get(stored)
    async with results.local(stored) as path:
        return await asyncio.to_thread(read_table_rows, path, *rows)


def read_table_rows(path: Path, start: int, end: int) -> bytes:
    """The table in this file with only the rows from `start` up to `end`. Raises ResultError."""
    table = TableFile(path)
    try:
        return table.rows(start, end)
    finally:
        table.close()


class TableFile:
    """A table in a file, of which rows are read. Rows that follow the last ones are found at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: Any = None
        self._stream: Any = None
        self._batch: Any = None
        self._first = 0
        """The row that the batch begins with."""

    def rows(self, start: int, end: int) -> bytes:
        """A table with the rows from `start` up to `end`. Raises ResultError."""
        arrow = arrow_library()
        with arrow_errors():
            if self._stream is None or start < self._first:
                self._open(arrow)
            sink = arrow.BufferOutputStream()
            with arrow.ipc.new_stream(sink, self._stream.schema) as out:
                while start < end and self._reach(start):
                    part = self._batch.slice(start - self._first, end - start)
                    out.write_batch(part)
                    start += part.num_rows
            found: bytes = sink.getvalue().to_pybytes()
            return found

    def close(self) -> None:
        """Frees the file. A second call does nothing."""
        if self._file is not None:
            self._file.close()
        self._file = self._stream = self._batch = None

    def _open(self, arrow: Any) -> None:
        self.close()
        # Not mapped into memory: all of it would count as ours.
        self._file = arrow.OSFile(str(self._path))
        self._stream = arrow.ipc.open_stream(self._file)
        self._first = 0

    def _reach(self, row: int) -> bool:
        """Has the batch with this row at hand; False if the table ends before it."""
        while self._batch is None or row >= self._first + self._batch.num_rows:
            following = next(self._stream, None)
            if following is None:
                return False
            self._first += self._batch.num_rows if self._batch is not None else 0
            self._batch = following
        return True


class ResultReader:
    """The same for loops, which read one part of a table after the other: it is got and unpacked once."""

    def __init__(self, results: ResultStore) -> None:
        self._results = results
        self._open: dict[str, tuple[TableFile, AsyncExitStack]] = {}
        self._opening = asyncio.Lock()

    async def read(self, key: str) -> bytes:
        """As `read_stored`."""
        stored, rows = split_row_key(key)
        if rows is None:
            return await self._results.get(stored)
        async with self._opening:
            table = await self._table(stored)
            return await asyncio.to_thread(table.rows, *rows)

    async def _table(self, key: str) -> TableFile:
        if (known := self._open.get(key)) is not None:
            return known[0]
        while len(self._open) >= OPEN_TABLES:
            await self._open.pop(next(iter(self._open)))[1].aclose()
        stack = AsyncExitStack()
        table = TableFile(await stack.enter_async_context(self._results.local(key)))
        stack.callback(table.close)
        self._open[key] = table, stack
        return table

    async def close(self) -> None:
        """Lets go of all files. A second call does nothing."""
        while self._open:
            await self._open.popitem()[1][1].aclose()
