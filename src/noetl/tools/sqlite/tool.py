"""Runs the kind `sqlite`."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import apsw

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, ErrorKind, Outcome, ToolError, failed
from noetl.ports.tool import Call
from noetl.tools.host.input_rules import name_phrase
from noetl.tools.host.tool_attempt import as_outcome, error_outcome
from noetl.tools.sql.input_rows import open_input_rows
from noetl.tools.sql.sql_inputs import SqlSpec
from noetl.tools.sql.sql_task import BoundStatement, decode_sql_task
from noetl.tools.sql.statement_result import StatementResult, sql_outcome
from noetl.tools.sqlite.kind import SqliteInputs, check
from noetl.tools.sqlite.session import MEMORY, SqliteSession, connect_in_folder

THREADS = 32
"""Tasks at work at the same time."""
_PAUSE = 0.02
"""Seconds between two attempts to stop a thread."""
_FILE_KEYS = ("database", "path", "db_name", "url", "dsn", "value")
"""What a credential may call the file."""

OK: dict[str, Json] = {"code": "SQLITE_OK", "message": None}
"""`outcome.sqlite` of a success."""

_KINDS: dict[int, ErrorKind] = {
    apsw.SQLITE_AUTH: "permission",
    apsw.SQLITE_PERM: "permission",
    apsw.SQLITE_READONLY: "permission",
    apsw.SQLITE_CANTOPEN: "not_found",
    apsw.SQLITE_TOOBIG: "limit",
    apsw.SQLITE_FULL: "limit",
}
_RETRYABLE = {apsw.SQLITE_BUSY, apsw.SQLITE_LOCKED}


class SqliteTool:
    """SQL on files, and on one database in memory for each execution."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="noetl-sqlite")
        self._memory: dict[str, _MemoryDatabase] = {}
        self._sessions: set[SqliteSession] = set()
        self._closed = False

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        self._closed = True
        while self._sessions:
            for session in self._sessions:
                session.stop()
            await asyncio.sleep(_PAUSE)
        self._threads.shutdown(wait=False)
        for execution_id in list(self._memory):
            self.forget(execution_id)

    def forget(self, execution_id: str) -> None:
        """Frees the database in memory; while a task still uses it, that task's end does."""
        memory = self._memory.pop(execution_id, None)
        if memory is not None and not memory.lock.locked():
            memory.connection.close()

    async def _attempt(self, call: Call) -> Outcome:
        inputs, spec = decode_sql_task(call, SqliteInputs, SqlSpec, check)
        path = _database_path(call, inputs)
        async with AsyncExitStack() as resources:
            rows = None
            if call.inputs.get("rows") is not None:
                rows = await resources.enter_async_context(open_input_rows(call))
            session = SqliteSession(call, inputs, spec, rows, resources)
            try:
                async with asyncio.timeout(call.timeout):
                    results = await self._results(call, path, session)
            except apsw.Error as error:
                if self._closed:
                    return error_outcome("cancelled", "the worker is ending")
                return _sqlite_failure(error, session.current, path)
            except UnicodeDecodeError as error:
                return error_outcome(
                    "sql", f"text that is not UTF-8, which a CAST to BLOB would give: {error}"
                )
            except (OverflowError, UnicodeError) as error:
                return error_outcome("input", f"a value that SQLite cannot hold: {error}")
            except TimeoutError:
                position = f"{session.current.position()}: " if session.current else ""
                return error_outcome(
                    "timeout", f"{position}not done within {call.timeout:g} s", retryable=True
                )
            return sql_outcome(call, results, session.warnings, sqlite=dict(OK))

    async def _results(self, call: Call, path: Path | None, session: SqliteSession) -> list[StatementResult]:
        if self._closed:
            raise ToolError("cancelled", "the worker is ending")
        if path is not None:
            return await self._in_thread(session, partial(session.run_on_file, path))
        if (memory := self._memory.get(call.execution_id)) is None:
            memory = self._memory[call.execution_id] = _MemoryDatabase(call.folder)
        async with memory.lock:
            return await self._in_thread(session, partial(session.run, memory.connection))

    async def _in_thread(
        self, session: SqliteSession, work: Callable[[], list[StatementResult]]
    ) -> list[StatementResult]:
        """What the work gives. If this is cancelled, it ends when the thread has."""
        task = self._threads.submit(work)
        running = asyncio.wrap_future(task)
        self._sessions.add(session)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            while not task.cancel() and not task.done():
                session.stop()  # again and again: an interruption between two statements is lost
                await asyncio.wait([running], timeout=_PAUSE)
            if not running.cancelled():
                running.exception()  # nobody else will ask for it
            raise
        finally:
            self._sessions.discard(session)


class _MemoryDatabase:
    """A database that lives as long as its execution does here; tasks take turns."""

    def __init__(self, folder: Path) -> None:
        self.connection = connect_in_folder(None, folder)
        self.lock = asyncio.Lock()


def _database_path(call: Call, inputs: SqliteInputs) -> Path | None:
    """The file of the database; None for the one in memory."""
    name = inputs.database
    if inputs.auth is not None:
        if not isinstance(inputs.auth, dict):
            raise ToolError("credential", f"the credential `{inputs.auth}` is not known here")
        name = next((inputs.auth[key] for key in _FILE_KEYS if isinstance(inputs.auth.get(key), str)), None)
        if not name:
            raise ToolError("credential", f"the credential has no {name_phrase(_FILE_KEYS[:2], 'or')}")
        name = name.removeprefix("sqlite:///")
    if name is not None and "\0" in name:
        raise ToolError("input", f"`database` is no path: {name!r}")
    return None if name in (None, "", MEMORY) else call.folder / str(name)


def _sqlite_failure(error: apsw.Error, bound: BoundStatement | None, database: Path | None) -> Outcome:
    """The outcome of an error, which came while the statement `bound` ran."""
    result = getattr(error, "result", 0)
    message = str(error)
    if result in (apsw.SQLITE_CANTOPEN, apsw.SQLITE_NOTADB) and database is not None:
        message = f"{message}: {database}"
    if bound is not None:
        message = f"{bound.position(_line(error, bound))}: {message}"
    # What the driver refuses has no code: values that do not go with the statement.
    kind = _KINDS.get(result, "sql") if result else "input"
    code = _code(error)
    return failed(
        ErrorInfo(kind=kind, message=message, retryable=result in _RETRYABLE, details={"code": code}),
        sqlite={"code": code, "message": str(error)},
    )


def _code(error: apsw.Error) -> Json:
    """The name of the code, the extended one if there is."""
    extended = apsw.mapping_extended_result_codes.get(getattr(error, "extendedresult", 0))
    name: Json = extended or apsw.mapping_result_codes.get(getattr(error, "result", 0))
    return name


def _line(error: apsw.Error, bound: BoundStatement) -> int:
    """The line of the statement that SQLite points to, from 1."""
    offset = getattr(error, "error_offset", -1)
    return bound.text.encode()[:offset].count(b"\n") + 1 if offset >= 0 else 1
