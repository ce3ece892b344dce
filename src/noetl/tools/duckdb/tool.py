"""Runs the kind `duckdb`."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import duckdb
import msgspec
import pyarrow as pa
from msgspec import structs

from noetl.model.outcome import Outcome, ToolError, succeeded
from noetl.model.reference import JSON_MEDIA_TYPE, StoredReference
from noetl.model.table_stream import TableStream
from noetl.ports.results import ExecutionObjects, ResultError
from noetl.ports.tool import Call
from noetl.tools.duckdb.databases import DuckdbDatabases
from noetl.tools.duckdb.failure import duckdb_failure
from noetl.tools.duckdb.insert import ROWS_TABLE
from noetl.tools.duckdb.kind import DuckdbInputs, DuckdbSpec
from noetl.tools.duckdb.session import DuckdbSession, open_session
from noetl.tools.duckdb.statement_runner import StatementRunner
from noetl.tools.duckdb.tables import source_tables
from noetl.tools.host.read_reference import read_reference
from noetl.tools.host.result_limits import inline_limit
from noetl.tools.host.tool_attempt import as_outcome, error_outcome, inputs_of
from noetl.tools.sql.statement_result import StatementResult, sql_task_result, store_table

THREADS = 32
"""Tasks at work at the same time."""
_KNOBS = ("transaction", "fetch", "memory", "threads")


class DuckdbTool:
    """SQL in DuckDB, each task in a thread and on a connection of its own."""

    def __init__(self) -> None:
        self._databases = DuckdbDatabases()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="noetl-duckdb")

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    def forget(self, execution_id: str) -> None:
        """Frees what was kept for an execution that has ended."""
        self._databases.forget(execution_id)
        with suppress(RuntimeError):  # the tool is closed
            self._threads.submit(self._databases.sweep)

    async def close(self) -> None:
        self._databases.close()
        self._threads.shutdown(wait=False)

    async def _attempt(self, call: Call) -> Outcome:
        labels: Any = call.inputs.get("labels") or {}
        declared = {name: value for name, value in call.inputs.items() if name != "labels"}
        inputs = inputs_of(structs.replace(call, inputs=declared), DuckdbInputs)
        if isinstance(inputs.rows, dict):
            # Typed inputs are copies, in which a reference is a mapping like any other.
            inputs = structs.replace(inputs, rows=_check_reference(declared["rows"]))
        try:
            spec = msgspec.convert({name: call.spec.get(name) for name in _KNOBS}, DuckdbSpec)
        except msgspec.ValidationError as error:
            return error_outcome("input", str(error))
        try:
            async with asyncio.timeout(call.timeout), AsyncExitStack() as files:
                inputs = await _with_stored_rows(inputs, call.objects)
                tables = await source_tables(_declared_tables(inputs), call.objects, files)
                variables = await source_tables(labels, call.objects, files)
                return await self._run_sql(
                    call, StatementRunner(inputs, spec, call.folder, tables, variables)
                )
        except TimeoutError:
            return error_outcome("timeout", f"the SQL was not done within {call.timeout:g} s", retryable=True)
        except UnicodeError as error:
            return error_outcome("input", f"a value that DuckDB cannot hold: {error}")
        except ResultError as error:
            return error_outcome("not_found", f"a stored value cannot be read: {error}")

    async def _run_sql(self, call: Call, runner: StatementRunner) -> Outcome:
        database = runner.inputs.database
        file = None if database in (None, "", ":memory:") else (call.folder / str(database)).resolve()
        try:
            async with open_session(
                self._databases, self._threads, call.execution_id, file, call.folder
            ) as session:
                outcome = succeeded(await _run_statements(call, session, runner))
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            return duckdb_failure(error, runner.position, runner.labels, runner.unfit)
        return structs.replace(outcome, meta={"warnings": runner.warnings}) if runner.warnings else outcome


async def _run_statements(call: Call, session: DuckdbSession, runner: StatementRunner) -> Any:
    """Runs everything, statement by statement, and gives the task's result."""
    limit = inline_limit(call)
    await session.run_in_thread(partial(runner.begin, session.connection))
    results: list[StatementResult] = []
    for statement in runner.statements:
        rows = await session.run_in_thread(partial(runner.run, statement, limit))
        result = await _store_stream(call, session, rows) if isinstance(rows, TableStream) else rows
        results.append(result if runner.total_rows is None else result._replace(row_count=runner.total_rows))
    await session.run_in_thread(runner.finish)
    return sql_task_result(results)


async def _store_stream(call: Call, session: DuckdbSession, stream: TableStream) -> StatementResult:
    """The rows as a stored table."""
    first = stream.preview_rows
    async with call.objects.draft() as draft:
        count = await session.run_in_thread(partial(stream.write, draft.path))
        stored = await store_table(call, draft, stream.columns, count, first)
    return StatementResult(stream.columns, stored, count)


async def _with_stored_rows(inputs: DuckdbInputs, objects: ExecutionObjects) -> DuckdbInputs:
    """The inputs, with rows that are stored as values in place of their reference. Raises ResultError."""
    rows = inputs.rows
    if not isinstance(rows, StoredReference) or rows.get("media_type", JSON_MEDIA_TYPE) != JSON_MEDIA_TYPE:
        return inputs
    value = await read_reference(rows, objects)
    return structs.replace(inputs, rows=value) if isinstance(value, list) else inputs


def _declared_tables(inputs: DuckdbInputs) -> dict[str, Any]:
    """What the task's own inputs name as tables."""
    tables = dict(inputs.tables or {})
    if isinstance(inputs.rows, StoredReference):
        tables[ROWS_TABLE] = inputs.rows
    return tables


def _check_reference(rows: Any) -> StoredReference:
    """Rows that are no list are a reference as it came in. ToolError of kind `input` if it is none."""
    if not isinstance(rows, StoredReference):
        raise ToolError("input", "`rows` is a mapping: give a list of rows, or the reference to a table")
    return rows
