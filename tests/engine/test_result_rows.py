"""Some rows of stored values, against the values themselves."""

import asyncio
import hashlib
from typing import Any

import pyarrow as arrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.engine.history.result_rows import NoSuchPart, read_result_rows
from noetl.model.reference import encode_value
from noetl.ports.execution_views import ResultRows
from noetl.stores.results.memory_backend import MemoryResults

EXECUTION = "01890000-0000-7000-8000-000000000000"


def rows_of(data: bytes, offset: int, limit: int, *path: str) -> ResultRows:
    async def read() -> ResultRows:
        results = MemoryResults()
        key = f"{EXECUTION}/{hashlib.sha256(data).hexdigest()}"
        await results.put(key, data)
        return await read_result_rows(results, key, path, offset, limit)

    return asyncio.run(read())


def table(count: int, batch: int) -> bytes:
    rows = arrow.table({"id": list(range(count)), "name": [f"row {n}" for n in range(count)]})
    sink = arrow.BufferOutputStream()
    with arrow.ipc.new_stream(sink, rows.schema) as out:
        for part in rows.to_batches(max_chunksize=batch):
            out.write_batch(part)
    written: bytes = sink.getvalue().to_pybytes()
    return written


@pytest.mark.parametrize(("offset", "limit"), [(0, 10), (5, 1), (95, 10), (90, 10), (100, 10), (0, 100)])
def test_rows_of_a_table_are_those_of_the_table(offset: int, limit: int) -> None:
    page = rows_of(table(100, 7), offset, limit)
    expected = [{"id": n, "name": f"row {n}"} for n in range(100)][offset : offset + limit]
    assert (page.type, page.rows) == ("table", expected)
    assert page.next_offset == (offset + limit if offset + limit < 100 else None)
    assert page.columns == (["id", "name"] if expected else [])


@settings(max_examples=50)
@given(
    st.lists(st.integers() | st.text(max_size=5) | st.lists(st.booleans(), max_size=3), max_size=20),
    st.integers(0, 25),
    st.integers(1, 10),
)
def test_rows_of_a_list_are_its_elements(items: list[Any], offset: int, limit: int) -> None:
    for data, path in ((encode_value(items), ()), (encode_value({"a": [0, {"b": items}]}), ("a", "1", "b"))):
        page = rows_of(data, offset, limit, *path)
        assert (page.type, page.total, page.rows) == ("list", len(items), items[offset : offset + limit])
        assert page.next_offset == (offset + limit if offset + limit < len(items) else None)


def test_what_is_neither_json_nor_a_table_has_no_rows() -> None:
    for data in (b"\x89PNG....", b"{1", b"[1, 2"):
        with pytest.raises(NoSuchPart, match="neither JSON nor a table"):
            rows_of(data, 0, 10)
    with pytest.raises(NoSuchPart, match="a table has no part `id`"):
        rows_of(table(3, 3), 0, 10, "id")
