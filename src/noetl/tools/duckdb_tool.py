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
from noetl.model.reference import Stored
from noetl.model.stream import Stream
from noetl.ports.results import ResultError
from noetl.ports.tool import Call
from noetl.tools.attempt import attempted, failure, inputs_of
from noetl.tools.duckdb import DuckdbInputs, DuckdbSpec
from noetl.tools.duckdb_database import Databases
from noetl.tools.duckdb_failure import failure_of
from noetl.tools.duckdb_session import Session, session
from noetl.tools.duckdb_tables import tables_of
from noetl.tools.duckdb_work import ROWS, Work
from noetl.tools.sql_result import Answer, inline_limit, keep_table, result_of

THREADS = 32
"""Tasks at work at the same time."""
_KNOBS = ("transaction", "fetch", "memory", "threads")


class DuckdbTool:
    """SQL in DuckDB, each task in a thread and on a connection of its own."""

    def __init__(self) -> None:
        self._databases = Databases()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="noetl-duckdb")

    async def run(self, call: Call) -> Outcome:
        return await attempted(self._attempt(call))

    def forget(self, execution_id: str) -> None:
        """Frees what was kept for an execution that has ended."""
        with suppress(RuntimeError):  # the tool is closed
            self._threads.submit(self._databases.forget, execution_id)

    async def close(self) -> None:
        self._databases.close()
        self._threads.shutdown(wait=False)

    async def _attempt(self, call: Call) -> Outcome:
        labels: Any = call.inputs.get("labels") or {}
        own = {name: value for name, value in call.inputs.items() if name != "labels"}
        inputs = inputs_of(structs.replace(call, inputs=own), DuckdbInputs)
        if isinstance(inputs.rows, dict):
            inputs = structs.replace(inputs, rows=_reference(own["rows"]))
        try:
            spec = msgspec.convert({name: call.spec.get(name) for name in _KNOBS}, DuckdbSpec)
        except msgspec.ValidationError as error:
            return failure("input", str(error))
        try:
            async with asyncio.timeout(call.timeout), AsyncExitStack() as files:
                tables = await tables_of(_given(inputs), call.objects, files)
                variables = await tables_of(labels, call.objects, files)
                return await self._done(call, Work(inputs, spec, call.folder, tables, variables))
        except TimeoutError:
            return failure("timeout", f"the SQL was not done within {call.timeout:g} s", retryable=True)
        except UnicodeError as error:
            return failure("input", f"a value that DuckDB cannot hold: {error}")
        except ResultError as error:
            return failure("not_found", f"a stored value cannot be read: {error}")

    async def _done(self, call: Call, work: Work) -> Outcome:
        database = work.inputs.database
        file = None if database in (None, "", ":memory:") else (call.folder / str(database)).resolve()
        place = (call.execution_id, file, call.folder)
        try:
            async with session(self._databases, self._threads, *place) as own:
                outcome = succeeded(await _answers(call, own, work))
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            return failure_of(error, work.place, work.words, work.unfit)
        return structs.replace(outcome, meta={"warnings": work.warnings}) if work.warnings else outcome


async def _answers(call: Call, own: Session, work: Work) -> Any:
    """Runs everything, statement by statement, and gives the task's result."""
    limit = inline_limit(call)
    await own.do(partial(work.begin, own.connection))
    answers: list[Answer] = []
    for statement in work.statements:
        found = await own.do(partial(work.run, statement, limit))
        answer = await _kept(call, own, found) if isinstance(found, Stream) else found
        answers.append(answer if work.counted is None else answer._replace(row_count=work.counted))
    await own.do(work.finish)
    return result_of(answers)


async def _kept(call: Call, own: Session, stream: Stream) -> Answer:
    """The rows as a stored table."""
    first = stream.first
    async with call.objects.draft() as draft:
        count = await own.do(partial(stream.write, draft.path))
        stored = await keep_table(call, draft, stream.columns, count, first)
    return Answer(stream.columns, stored, count)


def _given(inputs: DuckdbInputs) -> dict[str, Any]:
    """What the task itself gives as tables."""
    tables = dict(inputs.tables or {})
    if inputs.rows is not None and (inputs.into is not None or isinstance(inputs.rows, Stored)):
        tables[ROWS] = _with_names(inputs.rows)
    return tables


def _reference(rows: Any) -> Stored:
    """Rows that are no list are a reference as it came in. ToolError of kind `input` if it is none."""
    if not isinstance(rows, Stored):
        raise ToolError("input", "`rows` is a mapping: give a list of rows, or the reference to a table")
    return rows


def _with_names(rows: Any) -> Any:
    """Rows that are lists as mappings. ToolError of kind `input` if they are not all alike."""
    if not isinstance(rows, list) or not any(isinstance(row, list) for row in rows):
        return rows
    if len({len(row) if isinstance(row, list) else -1 for row in rows}) > 1:
        raise ToolError("input", "`rows` has lists of several lengths, or mappings among them")
    return [{f"column_{index}": value for index, value in enumerate(row)} for row in rows]
