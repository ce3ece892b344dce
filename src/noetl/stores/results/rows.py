"""Reading what a key of the log names: stored bytes, or some rows of a stored table."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from noetl.model.table import rows_between, rows_in_key
from noetl.ports.results import ResultStore

OPEN_TABLES = 4
"""Tables that are kept as files for the next rows of them."""


async def read_stored(results: ResultStore, key: str) -> bytes:
    """The bytes under a key; of a key for rows, a table with these alone. Raises ResultError."""
    stored, rows = rows_in_key(key)
    if rows is None:
        return await results.get(stored)
    async with results.local(stored) as path:
        return await asyncio.to_thread(rows_between, path, *rows)


class StoredReader:
    """The same for loops, which read one part of a table after the other: it is got and unpacked once."""

    def __init__(self, results: ResultStore) -> None:
        self._results = results
        self._open: dict[str, tuple[Path, AsyncExitStack]] = {}
        self._opening = asyncio.Lock()

    async def read(self, key: str) -> bytes:
        """As `read_stored`."""
        stored, rows = rows_in_key(key)
        if rows is None:
            return await self._results.get(stored)
        async with self._opening:
            path = await self._table(stored)
            return await asyncio.to_thread(rows_between, path, *rows)

    async def _table(self, key: str) -> Path:
        if (known := self._open.get(key)) is not None:
            return known[0]
        while len(self._open) >= OPEN_TABLES:
            await self._open.pop(next(iter(self._open)))[1].aclose()
        stack = AsyncExitStack()
        path = await stack.enter_async_context(self._results.local(key))
        self._open[key] = path, stack
        return path

    async def close(self) -> None:
        """Lets go of all files. A second call does nothing."""
        while self._open:
            await self._open.popitem()[1][1].aclose()
