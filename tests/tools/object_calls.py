"""Calls of the tools for objects, over a result store of their own."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from noetl.model.outcome import Outcome
from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference
from noetl.ports.results import ResultStore
from noetl.ports.tool import Tool
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.named_results import NamedResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from tests.tools.calls import call_of

ID = "01939d2e-0000-7000-8000-000000000001"


class ObjectCalls:
    """A tool, and an execution that uses it."""

    def __init__(self, make: Callable[[], Tool], folder: Path, kind: str) -> None:
        self.make = make
        self.folder = folder
        self.kind = kind
        self.results: ResultStore = NamedResults(
            FileResults(folder / ".results"), {"archive": FileResults(folder / ".archive")}
        )
        self.objects = ResultStoreObjects(self.results, ID)

    def call(self, *, timeout: float = 60, execution_id: str = ID, **inputs: Any) -> Outcome:
        async def run_and_close() -> Outcome:
            tool = self.make()
            try:
                return await tool.run(
                    call_of(
                        self.kind,
                        inputs,
                        execution_id=execution_id,
                        timeout=timeout,
                        folder=self.folder,
                        objects=ResultStoreObjects(self.results, execution_id),
                    )
                )
            finally:
                await tool.close()

        return asyncio.run(run_and_close())

    def ok(self, **inputs: Any) -> Any:
        outcome = self.call(**inputs)
        assert outcome.status == "ok", outcome.error
        return outcome.result

    def error(self, **inputs: Any) -> tuple[str, str]:
        outcome = self.call(**inputs)
        assert outcome.error is not None, outcome.result
        return outcome.error.kind, outcome.error.message

    def object(
        self, data: bytes, media_type: str = "application/octet-stream", **attributes: Any
    ) -> StoredReference:
        async def store() -> StoredReference:
            async with self.objects.draft() as draft:
                draft.path.write_bytes(data)
                return await draft.keep(media_type, **attributes)

        return asyncio.run(store())

    def table(self, rows: list[dict[str, Any]]) -> StoredReference:
        table = pa.Table.from_pylist(rows)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as out:
            out.write_table(table)
        data = sink.getvalue().to_pybytes()
        return self.object(data, ARROW_MEDIA_TYPE, type="list", length=len(rows), columns=table.column_names)

    def data(self, reference: StoredReference, execution_id: str = ID) -> bytes:
        async def read() -> bytes:
            async with ResultStoreObjects(self.results, execution_id).local(reference) as path:
                return path.read_bytes()

        assert isinstance(reference, StoredReference)
        return asyncio.run(read())
