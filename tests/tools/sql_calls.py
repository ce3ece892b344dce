"""Calls of the SQL tools for tests."""

import asyncio
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa

from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.reference import ARROW_MEDIA_TYPE, StoredReference
from noetl.ports.tool import Call, Tool
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.postgres.tool import PostgresTool
from noetl.tools.sqlite.tool import SqliteTool
from tests.tools.calls import call_of

_numbers = count(1)


class SqlDatabase:
    """One database, asked through a tool of its own each time, in one execution."""

    def __init__(self, make: Callable[[], Tool], folder: Path, **target: Any) -> None:
        self.make = make
        self.target = target
        self.folder = folder
        self.execution_id = f"x{next(_numbers)}"
        self.objects = ResultStoreObjects(MemoryResults(), self.execution_id)
        self.log: list[str] = []

    def call(self, *, spec: dict[str, Any] | None = None, timeout: float = 30.0, **inputs: Any) -> Call:
        return call_of(
            "sql",
            {**self.target, **inputs},
            spec=spec,
            execution_id=self.execution_id,
            timeout=timeout,
            folder=self.folder,
            log=self.log.append,
            objects=self.objects,
        )

    def outcomes(self, *calls: Call) -> list[Outcome]:
        """Those of calls one after the other, on one tool."""

        async def run_and_close() -> list[Outcome]:
            tool = self.make()
            try:
                return [await tool.run(call) for call in calls]
            finally:
                await tool.close()

        return asyncio.run(run_and_close())

    def outcome(self, **options: Any) -> Outcome:
        return self.outcomes(self.call(**options))[0]

    def run(self, text: str | None = None, **options: Any) -> dict[str, Any]:
        """The result of a task that goes well."""
        if text is not None:
            options["command"] = text
        outcome = self.outcome(**options)
        assert outcome.error is None, outcome.error
        result: dict[str, Any] = outcome.result
        return result

    def rows(self, text: str, **options: Any) -> list[dict[str, Any]]:
        result: list[dict[str, Any]] = self.run(text, **options)["rows"]
        return result

    def error(self, text: str | None = None, **options: Any) -> ErrorInfo:
        if text is not None:
            options["command"] = text
        outcome = self.outcome(**options)
        assert outcome.error is not None, outcome.result
        return outcome.error

    def table(self, reference: Any) -> pa.Table:
        """The Arrow table that a reference stands for."""
        assert isinstance(reference, StoredReference)
        assert reference["media_type"] == ARROW_MEDIA_TYPE

        async def read() -> pa.Table:
            async with self.objects.local(reference) as path:
                with pa.OSFile(str(path)) as source:
                    return pa.ipc.open_stream(source).read_all()

        content = asyncio.run(read())
        assert (reference["length"], reference["columns"]) == (content.num_rows, content.column_names)
        return content

    def stored(self, table: pa.Table, media_type: str = ARROW_MEDIA_TYPE) -> StoredReference:
        """The reference to a table that another task kept."""

        async def keep() -> StoredReference:
            async with self.objects.draft() as draft:
                with pa.ipc.new_stream(draft.path, table.schema) as stream:
                    stream.write_table(table, max_chunksize=300)
                return await draft.keep(media_type, type="list", length=table.num_rows)

        return asyncio.run(keep())


def postgres_at(dsn: str) -> SqlDatabase:
    return SqlDatabase(PostgresTool, Path(), dsn=dsn)


def sqlite_at(folder: Path) -> SqlDatabase:
    return SqlDatabase(SqliteTool, folder, database="test.db")
