"""The connections that a worker keeps to database servers, whatever their driver."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from noetl.model.outcome import ToolError
from noetl.tools.sql.sql_inputs import ConnectionPool

IDLE_SECONDS = 60.0
"""Seconds after which a connection that nobody uses is closed."""

Connection = TypeVar("Connection")


class PoolSize(NamedTuple):
    """How many connections there may be. `timeout` bounds the wait for a free one, in seconds."""

    min: int = 0
    max: int = 10
    timeout: float | None = None


class ConnectionDriver(Protocol[Connection]):
    """What a pool asks of a database's driver. Only `connect` raises the driver's errors."""

    async def connect(self) -> Connection: ...

    def is_open(self, connection: Connection) -> bool:
        """Whether an idle connection can be used still, as far as is known here without asking the server."""
        ...

    async def clean(self, connection: Connection) -> bool:
        """Ends a transaction and forgets all that a session keeps. False if nobody can use it any more."""
        ...

    async def close(self, connection: Connection) -> None:
        """Closes it, and has the server stop what runs on it."""
        ...


class SqlConnectionPool(Generic[Connection]):
    """Connections that are lent to one task at a time, without what the last one left."""

    def __init__(self, driver: ConnectionDriver[Connection], size: PoolSize) -> None:
        self._driver = driver
        self._size = size
        self._slots = asyncio.Semaphore(size.max)
        self._idle: list[tuple[float, Connection]] = []
        self._lent: set[Connection] = set()
        self._returns: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for one task. Raises the driver's errors, and ToolError if none comes free."""
        await self._acquire_slot()
        try:
            connection = await self._take_idle() or await self._driver.connect()
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
        connections = [*(connection for _, connection in idle), *self._lent]
        await asyncio.gather(*(self._driver.close(connection) for connection in connections))

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

    async def _take_idle(self) -> Connection | None:
        """One that is open; those that the server has closed meanwhile are dropped."""
        while self._idle:
            _, connection = self._idle.pop()  # the one used last, so that the others can grow old and go
            if self._driver.is_open(connection):
                return connection
            await self._driver.close(connection)
        return None

    async def _give_back(self, connection: Connection) -> None:
        self._lent.discard(connection)
        try:
            if not self._closed and await self._driver.clean(connection) and not self._closed:
                self._idle.append((asyncio.get_running_loop().time(), connection))
                self._start_timer()
            else:
                await self._driver.close(connection)
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
            self._run_later(self._driver.close(connection))
        self._start_timer()


class SqlConnectionPools(Generic[Connection]):
    """The pools of one tool: one for each server, user and size."""

    def __init__(self) -> None:
        self._pools: dict[tuple[object, PoolSize], SqlConnectionPool[Connection]] = {}
        self.closed = False

    def pool(
        self,
        target: object,
        knobs: str | ConnectionPool | None,
        create_driver: Callable[[], ConnectionDriver[Connection]],
    ) -> SqlConnectionPool[Connection]:
        """The pool of a target, made if there is none. ToolError when the worker is ending."""
        if self.closed:
            raise ToolError("cancelled", "the worker is ending")
        size = PoolSize()
        if isinstance(knobs, ConnectionPool):
            least = knobs.min or 0
            size = PoolSize(least, knobs.max or max(size.max, least), knobs.timeout)
        key = target, size
        if key not in self._pools:
            self._pools[key] = SqlConnectionPool(create_driver(), size)
        return self._pools[key]

    async def close(self) -> None:
        """Closes every pool. A second call does nothing."""
        self.closed = True
        pools, self._pools = self._pools, {}
        await asyncio.gather(*(pool.close() for pool in pools.values()))
