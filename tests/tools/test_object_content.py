"""What is passed on as it lies in the store is what reading and writing it would give."""

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noetl.kernel.references.resolve import resolve_references
from noetl.model.reference import JSON_MEDIA_TYPE, StoredReference, encode_value, escape
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.host.read_reference import read_reference
from noetl.tools.objects import content

KEYS = st.text(max_size=4) | st.sampled_from(["$noetl", "$$noetl", "noetl", 'x$noetl"'])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS | KEYS, lambda items: st.lists(items, max_size=4) | st.dictionaries(KEYS, items, max_size=4)
)


async def store(objects: ResultStoreObjects, data: bytes) -> StoredReference:
    async with objects.draft() as draft:
        draft.path.write_bytes(data)
        return await draft.keep(JSON_MEDIA_TYPE)


@given(VALUES)
def test_a_stored_value_is_written_as_json_whether_it_is_parsed_or_not(value: Any) -> None:
    async def write_both() -> tuple[bytes, bytes]:
        objects = ResultStoreObjects(MemoryResults(), "x")
        reference = await store(objects, encode_value(escape(value)))
        async with content.content_file(objects, reference, "json") as (path, _):
            fast = path.read_bytes()
        async with objects.draft() as draft:
            await content._write_content(objects, reference, "json", draft.path)
            return fast, draft.path.read_bytes()

    fast, slow = asyncio.run(write_both())
    assert fast == slow


@given(VALUES)
def test_a_reference_is_read_as_if_everything_in_it_were_resolved(value: Any) -> None:
    async def read_both() -> tuple[Any, Any]:
        objects = ResultStoreObjects(MemoryResults(), "x")
        reference = await store(objects, encode_value(escape(value)))

        async def read_object(key: str) -> bytes:
            async with objects.local({"key": key}) as path:
                return Path(path).read_bytes()

        return await read_reference(reference, objects), await resolve_references(
            dict(reference), read_object, largest_table=0
        )

    fast, slow = asyncio.run(read_both())
    assert fast == slow
