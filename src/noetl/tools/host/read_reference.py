"""Reading what references stand for."""

import asyncio
from collections.abc import Mapping
from typing import Any

from noetl.kernel.references.resolve import resolve_references
from noetl.model.reference import MARKER, decode_value
from noetl.ports.results import ExecutionObjects

_MARKER_BYTES = MARKER.encode()


async def read_reference(reference: Mapping[str, Any], objects: ExecutionObjects) -> Any:
    """The value that a reference to JSON or a manifest stands for; tables and files in it stay references.

    Raises ResultError.
    """

    async def read_object(key: str) -> bytes:
        async with objects.local({"key": key}) as path:
            return await asyncio.to_thread(path.read_bytes)

    if "chunks" in reference or "path" in reference:
        return await resolve_references(dict(reference), read_object, largest_table=0)
    data = await read_object(reference["key"])
    value = await asyncio.to_thread(decode_value, data)
    # The fast path of `resolve_references`, which walks through the value: bytes without the marker name
    # nothing else, and searching bytes is far quicker.
    if _MARKER_BYTES not in data:
        return value
    return await resolve_references(value, read_object, largest_table=0)
