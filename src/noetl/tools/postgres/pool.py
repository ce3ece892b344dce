"""The connections that a worker keeps to one PostgreSQL server."""

import asyncio
import logging
import select
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple, TypeAlias

import psycopg
from psycopg.generators import fetch
from psycopg.pq import ExecStatus, TransactionStatus

from noetl.model.outcome import ToolError
from noetl.tools.postgres.types import ADAPTERS

IDLE_SECONDS = 60.0
"""Seconds after which a connection that nobody uses is closed."""
_CANCEL_SECONDS = 2.0
"""Seconds for a server to hear that a query is to end."""

# Without a handler, Python prints the driver's warnings on stderr; what they warn of, outcomes say.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

PostgresConnection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]


class PoolSize(NamedTuple):
    """How many connections there may be. `timeout` bounds the wait for a free one, in seconds."""

    min: int = 0
    max: int = 10
    timeout: float | None = None


class StreamCursor(psycopg.AsyncRawCursor[tuple[Any, ...]]):
    """Streams what any statement gives, also one that gives no rows; afterwards it says what became of it.

    It overrides the driver's own step, with names of its insides, which `test_postgres_driver` pins: the
    driver's `stream` refuses statements without rows, so that each had to be parsed to know which they are,
    or run by `execute`, which holds all rows in memory.
    """

    def _stream_fetchone_gen(self, first: bool) -> Any:  # noqa: FBT001 - as the driver calls it
        result = yield from fetch(self._pgconn)
        if result is None or result.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            return self._take_rows(result, first=first)
        while (yield from fetch(self._pgconn)):
            pass  # until the server is ready, as the connection could not be used before
        self._set_results([result])
        return None

    def _take_rows(self, result: Any, *, first: bool) -> Any:
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
    """Connections in autocommit mode, each lent to one task at a time, without what the last one left.

    Not `psycopg_pool`: that connects in the background, so that a task would learn of a wrong password by a
    timeout only, and its end waits for the queries that run instead of cancelling them.
    """

    def __init__(self, conninfo: str, size: PoolSize) -> None:
        self._conninfo = conninfo
        self._size = size
        self._slots = asyncio.Semaphore(size.max)
        self._idle: list[tuple[float, PostgresConnection]] = []
        self._lent: set[PostgresConnection] = set()
        self._returns: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PostgresConnection]:
        """A connection for one task. Raises psycopg.Error, and ToolError if none comes free."""
        await self._acquire_slot()
        try:
            connection = self._take_idle() or await _connect(self._conninfo)
        except BaseException:  # a cancelled wait for the server, too
            self._slots.release()
            raise
        self._lent.add(connection)
        try:
            yield connection
        except asyncio.CancelledError:
            # Not awaited: who cancels shall not wait for the server to clean up.
            self._run_later(self._give_back(connection))
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
        await asyncio.gather(*self._returns)
        idle, self._idle = self._idle, []
        for connection in [*(connection for _, connection in idle), *self._lent]:
            with suppress(psycopg.Error):
                await connection.cancel_safe(timeout=_CANCEL_SECONDS)
            await connection.close()

    async def _acquire_slot(self) -> None:
        if self._closed:
            raise ToolError("cancelled", "the worker is ending")
        try:
            async with asyncio.timeout(self._size.timeout):
                await self._slots.acquire()
        except TimeoutError:
            if self._size.timeout is None:
                raise  # not of this wait
            message = f"all {self._size.max} connections were busy for {self._size.timeout:g} s"
            raise ToolError("timeout", f"{message}: `spec.pool.max` allows more", retryable=True) from None

    def _take_idle(self) -> PostgresConnection | None:
        """One that is open; those that the server has closed meanwhile are dropped."""
        while self._idle:
            _, connection = self._idle.pop()  # the one used last, so that the others can grow old and go
            if not connection.closed and not _has_input(connection):
                return connection
            connection.pgconn.finish()
        return None

    async def _give_back(self, connection: PostgresConnection) -> None:
        self._lent.discard(connection)
        try:
            if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                await connection.rollback()
            # One that is still at work was cut off: nobody knows what comes next on it.
            if connection.info.transaction_status == TransactionStatus.IDLE and not self._closed:
                await reset_connection(connection)
                self._idle.append((asyncio.get_running_loop().time(), connection))
                self._start_timer()
                return
            await connection.close()
        except psycopg.Error:
            connection.pgconn.finish()  # whatever is wrong with it, it goes
        finally:
            self._slots.release()

    def _run_later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._returns.add(task)  # the loop itself keeps no task alive
        task.add_done_callback(self._returns.discard)

    def _start_timer(self) -> None:
        if self._timer is None and len(self._idle) > self._size.min:
            self._timer = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._close_idle)

    def _close_idle(self) -> None:
        """Closes those that were idle for long, the longest first."""
        self._timer = None
        before = asyncio.get_running_loop().time() - IDLE_SECONDS
        while len(self._idle) > self._size.min and self._idle[0][0] <= before:
            _, connection = self._idle.pop(0)
            self._run_later(connection.close())
        self._start_timer()


def _has_input(connection: PostgresConnection) -> bool:
    """Whether something came in that nobody asked for: the last words of a server that has hung up."""
    # `SELECT 1` would cost each task a round trip, and `select` takes no descriptor above 1023.
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


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
