"""Reading what a key of the log names: stored bytes, or some rows of a stored table."""

import asyncio

from noetl.model.table import rows_between, rows_in_key
from noetl.ports.results import ResultStore


async def read_stored(results: ResultStore, key: str) -> bytes:
    """The bytes under a key; of a key for rows, a table with these alone. Raises ResultError."""
    stored, rows = rows_in_key(key)
    if rows is None:
        return await results.get(stored)
    async with results.local(stored) as path:
        return await asyncio.to_thread(rows_between, path, *rows)
