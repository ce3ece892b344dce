"""One task's connection, used from threads: what is at work on it can be interrupted."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import duckdb

from noetl.tools.duckdb.databases import DuckdbConnection, DuckdbDatabases

_NUDGE = 0.02
"""Seconds between two interruptions of a statement: one that comes before it begins is lost."""
_INTERRUPT_SECONDS = 1.0
"""Seconds after which a statement that cannot be interrupted is left to itself."""

T = TypeVar("T")


class DuckdbSession:
    """Does one piece of work after the other in a thread."""

    def __init__(self, connection: DuckdbConnection, threads: ThreadPoolExecutor) -> None:
        self.connection = connection
        self.cursor: duckdb.DuckDBPyConnection = connection.cursor
        self.last_job: Future[Any] | None = None
        """The work that was begun last."""
        self._threads = threads

    async def run_in_thread(self, work: Callable[[], T]) -> T:
        """What the work gives. If the waiting is cut short, it is interrupted, or never begins."""
        job = self.last_job = self._threads.submit(work)
        waiting = asyncio.wrap_future(job)
        try:
            return await asyncio.shield(waiting)
        except asyncio.CancelledError:
            waited = 0.0
            while not job.cancel() and not job.done() and waited < _INTERRUPT_SECONDS:
                self.cursor.interrupt()
                await asyncio.wait([waiting], timeout=_NUDGE)
                waited += _NUDGE
            waiting.add_done_callback(_discard_error)
            raise


@asynccontextmanager
async def open_session(
    databases: DuckdbDatabases,
    threads: ThreadPoolExecutor,
    execution_id: str,
    file: Path | None,
    folder: Path,
) -> AsyncIterator[DuckdbSession]:
    """A connection to the file, or to the execution's database in memory. Raises `duckdb.Error`."""
    opening = threads.submit(databases.connect, execution_id, file, folder)
    try:
        connection = await asyncio.shield(asyncio.wrap_future(opening))
    except asyncio.CancelledError:
        # The thread opens it all the same, and nobody is there to take it.
        opening.add_done_callback(lambda future: _disconnect_unclaimed(databases, future))
        raise
    session = DuckdbSession(connection, threads)
    try:
        yield session
    finally:
        if session.last_job is not None and not session.last_job.done():
            # What could not be interrupted still uses the connection: its own thread closes it at its end.
            session.last_job.add_done_callback(lambda _: databases.disconnect(connection))
        else:
            await asyncio.shield(asyncio.wrap_future(threads.submit(databases.disconnect, connection)))


def _disconnect_unclaimed(databases: DuckdbDatabases, opening: "Future[DuckdbConnection]") -> None:
    if not opening.cancelled() and opening.exception() is None:
        databases.disconnect(opening.result())


def _discard_error(waiting: "asyncio.Future[Any]") -> None:
    """Nobody waits for it any more: what it raised is of no interest."""
    if not waiting.cancelled():
        waiting.exception()
