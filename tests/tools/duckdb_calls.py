"""Calls of the DuckDB tool for tests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.ports.results import ExecutionObjects
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.duckdb.tool import DuckdbTool
from tests.tools.calls import call_of

T = TypeVar("T")


class DuckdbCalls:
    """One tool, and calls of it in a folder of its own."""

    def __init__(self, folder: Path, tool: DuckdbTool) -> None:
        self.folder = folder
        self.tool = tool

    def objects(self, execution: str = "x") -> ExecutionObjects:
        return ResultStoreObjects(FileResults(self.folder / ".results"), execution)

    async def outcome(
        self,
        query: Any = None,
        *,
        spec: dict[str, Json] | None = None,
        timeout: float = 30.0,
        execution: str = "x",
        **inputs: Any,
    ) -> Outcome:
        all_inputs = inputs if query is None else {"query": query, **inputs}
        return await self.tool.run(
            call_of(
                "duckdb",
                all_inputs,
                spec=spec,
                execution_id=execution,
                timeout=timeout,
                folder=self.folder,
                log=print,
                objects=self.objects(execution),
            )
        )

    async def result(self, query: Any = None, **options: Any) -> Any:
        """The result of a call that succeeds."""
        outcome = await self.outcome(query, **options)
        assert outcome.error is None, outcome.error
        return outcome.result

    async def rows(self, query: Any = None, **options: Any) -> Any:
        return (await self.result(query, **options))["rows"]

    async def error(self, query: Any = None, **options: Any) -> tuple[str, str]:
        """Kind and message of the error of a call that fails. After it the tool runs another call well."""
        outcome = await self.outcome(query, **options)
        assert outcome.error is not None, outcome.result
        assert await self.rows("select 1 as one") == [{"one": 1}]
        return outcome.error.kind, outcome.error.message


def with_duckdb(folder: Path, work: Callable[[DuckdbCalls], Awaitable[T]]) -> T:
    """What the work gives, with a tool that is closed at the end."""

    async def run_and_close() -> T:
        tool = DuckdbTool()
        try:
            return await work(DuckdbCalls(folder, tool))
        finally:
            await tool.close()

    return asyncio.run(run_and_close())
