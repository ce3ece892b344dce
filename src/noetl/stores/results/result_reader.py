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
        self._first_row = 0
        """The row that the batch begins with."""

    def rows(self, start: int, end: int) -> bytes:
        """A table with the rows from `start` up to `end`. Raises ResultError."""
        arrow = arrow_library()
        with arrow_errors():
            # A stream of Arrow has no index: rows before the batch at hand are found from its beginning only.
            if self._stream is None or start < self._first_row:
                self._open(arrow)
            sink = arrow.BufferOutputStream()
            with arrow.ipc.new_stream(sink, self._stream.schema) as out:
                while start < end and self._advance_to(start):
                    batch = self._batch.slice(start - self._first_row, end - start)
                    out.write_batch(batch)
                    start += batch.num_rows
            table: bytes = sink.getvalue().to_pybytes()
            return table

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
        self._first_row = 0

    def _advance_to(self, row: int) -> bool:
        """Has the batch with this row at hand; False if the table ends before it."""
        while self._batch is None or row >= self._first_row + self._batch.num_rows:
            next_batch = next(self._stream, None)
            if next_batch is None:
                return False
            self._first_row += self._batch.num_rows if self._batch is not None else 0
            self._batch = next_batch
        return True


class ResultReader:
    """As `read_result`, the slow path that it must equal, for loops, which read a table part by part.

    It is got, unpacked and opened once, and read on from where the last part ended.
    """

    def __init__(self, results: ResultStore) -> None:
        self._results = results
        self._tables: dict[str, tuple[TableFile, AsyncExitStack]] = {}
        self._tables_lock = asyncio.Lock()

    async def read(self, key: str) -> bytes:
        """As `read_result`."""
        stored, rows = split_row_key(key)
        if rows is None:
            return await self._results.get(stored)
        # One at a time: another could close the table that is read, and the position in it is shared.
        async with self._tables_lock:
            table = await self._table(stored)
            return await asyncio.to_thread(table.rows, *rows)

    async def _table(self, key: str) -> TableFile:
        if (open_table := self._tables.get(key)) is not None:
            return open_table[0]
        # The one that was opened first goes: a loop that still reads it opens it again, which is only slower.
        while len(self._tables) >= OPEN_TABLES:
            await self._tables.pop(next(iter(self._tables)))[1].aclose()
        stack = AsyncExitStack()
        table = TableFile(await stack.enter_async_context(self._results.local(key)))
        stack.callback(table.close)
        self._tables[key] = table, stack
        return table

    async def close(self) -> None:
        """Lets go of all files. A second call does nothing."""
        while self._tables:
            await self._tables.popitem()[1][1].aclose()
