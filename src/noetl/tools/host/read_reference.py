"""Reading what references stand for."""

import asyncio
from typing import Any

from noetl.kernel import resolve_references
from noetl.model.reference import MARKER, StoredReference, decode_value
from noetl.ports.results import ExecutionObjects

_MARK = MARKER.encode()


async def read_reference(reference: StoredReference, objects: ExecutionObjects) -> Any:
    """The value that a reference to JSON stands for; tables and files in it stay references.

    Raises ResultError.
    """

    async def get(key: str) -> bytes:
        async with objects.local({"key": key}) as path:
            return await asyncio.to_thread(path.read_bytes)

    data = await get(reference["key"])
    value = await asyncio.to_thread(decode_value, data)
    return await resolve_references(value, get, largest_table=0) if _MARK in data else value
