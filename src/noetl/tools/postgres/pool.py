"""The connections that a worker keeps to one PostgreSQL server."""

import asyncio
import logging
import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg.generators import fetch
from psycopg.pq import ExecStatus, TransactionStatus

from noetl.model.outcome import ToolError
from noetl.tools.postgres.types import ADAPTERS

IDLE_SECONDS = 60.0
"""Seconds after which a connection that nobody uses is closed."""
_PATIENCE = 2.0
"""Seconds for a server to hear that a query is to end."""

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # what it warns of, outcomes say

PostgresConnection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]


class PoolSize(NamedTuple):
    """How many connections there may be. `timeout` bounds the wait for a free one, in seconds."""

    min: int = 0
    max: int = 10
    timeout: float | None = None


class StreamCursor(psycopg.AsyncRawCursor[tuple[Any, ...]]):
    """Streams what any statement gives, also one that gives no rows; afterwards it says what became of it."""

    def _stream_fetchone_gen(self, first: bool) -> Any:  # noqa: FBT001  # as the driver calls it
        result = yield from fetch(self._pgconn)
        if result is None or result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return self._some(result, first=first)
        while (yield from fetch(self._pgconn)):
            pass
        self._set_results([result])
        return None

    def _some(self, result: Any, *, first: bool) -> Any:
        if result is None:
            return None
        if result.status not in (ExecStatus.SINGLE_TUPLE, ExecStatus.TUPLES_CHUNK):
            self._raise_for_result(result)
        self.pgresult = result
        self._tx.set_pgresult(result, set_loaders=first)
        if first:
            self._make_row = self._make_row_maker()
        return result


class PostgresPool:
    """Connections in autocommit mode, each lent to one task at a time, without what the last one left."""

    def __init__(self, conninfo: str, size: PoolSize) -> None:
        self._conninfo = conninfo
        self._size = size
        self._free = asyncio.Semaphore(size.max)
        self._idle: list[tuple[float, PostgresConnection]] = []
        self._lent: set[PostgresConnection] = set()
        self._cleaning: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PostgresConnection]:
        """A connection for one task. Raises psycopg.Error, and ToolError if none comes free."""
        await self._turn()
        try:
            connection = self._ready() or await _connect(self._conninfo)
        except BaseException:
            self._free.release()
            raise
        self._lent.add(connection)
        try:
            yield connection
        except asyncio.CancelledError:
            self._later(self._give_back(connection))
            raise
        except BaseException:
            await self._give_back(connection)
            raise
        await self._give_back(connection)

    async def close(self) -> None:
        """Closes every connection; tasks that use one fail. A second call does nothing."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.gather(*self._cleaning)
        idle, self._idle = self._idle, []
        for connection in [*(one for _, one in idle), *self._lent]:
            with suppress(psycopg.Error):
                await connection.cancel_safe(timeout=_PATIENCE)
            await connection.close()

    async def _turn(self) -> None:
        if self._closed:
            raise ToolError("cancelled", "the worker is ending")
        try:
            async with asyncio.timeout(self._size.timeout):
                await self._free.acquire()
        except TimeoutError:
            if self._size.timeout is None:
                raise
            message = f"all {self._size.max} connections were busy for {self._size.timeout:g} s"
            raise ToolError("timeout", f"{message}: `spec.pool.max` allows more", retryable=True) from None

    def _ready(self) -> PostgresConnection | None:
        """One that is open; those that the server has closed meanwhile are dropped."""
        while self._idle:
            _, connection = self._idle.pop()
            if not connection.closed and not _has_input(connection):
                return connection
            connection.pgconn.finish()
        return None

    async def _give_back(self, connection: PostgresConnection) -> None:
        self._lent.discard(connection)
        try:
            if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                await connection.rollback()
            if connection.info.transaction_status == TransactionStatus.IDLE and not self._closed:
                await reset_connection(connection)
                self._idle.append((asyncio.get_running_loop().time(), connection))
                self._watch()
                return
            await connection.close()
        except psycopg.Error:
            connection.pgconn.finish()  # whatever is wrong with it, it goes
        finally:
            self._free.release()

    def _later(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._cleaning.add(task)
        task.add_done_callback(self._cleaning.discard)

    def _watch(self) -> None:
        if self._timer is None and len(self._idle) > self._size.min:
            self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._trim)

    def _trim(self) -> None:
        """Closes those that were idle for long, the longest first."""
        self._timer = None
        before = asyncio.get_running_loop().time() - IDLE_SECONDS
        while len(self._idle) > self._size.min and self._idle[0][0] <= before:
            _, connection = self._idle.pop(0)
            self._later(connection.close())
        self._watch()


def _has_input(connection: PostgresConnection) -> bool:
    """Whether something came in that nobody asked for: the last words of a server that has hung up."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


async def _connect(conninfo: str) -> PostgresConnection:
    # What the driver prepares by itself would be forgotten with the session, and the driver not know it.
    connection = await psycopg.AsyncConnection.connect(
        conninfo, autocommit=True, prepare_threshold=None, context=ADAPTERS, cursor_factory=StreamCursor
    )
    await _iso_dates(connection)
    return connection


async def reset_connection(connection: PostgresConnection) -> None:
    """Forgets settings, temporary tables, locks and all else that a session keeps."""
    await connection.execute("DISCARD ALL")
    await _iso_dates(connection)


async def _iso_dates(connection: PostgresConnection) -> None:
    """Has the server write dates as the rest of the tool reads them, whatever its settings are."""
    if not (connection.info.parameter_status("DateStyle") or "").startswith("ISO"):
        await connection.execute("SET datestyle = ISO")
