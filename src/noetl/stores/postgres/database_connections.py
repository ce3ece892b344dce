"""Connections to one database: each is opened when it is needed, and again when it was lost."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TypeAlias, TypeVar

import asyncpg

from noetl.ports.store import StoreClosed, StoreError
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.failures import DATABASE_ERRORS, is_lost

T = TypeVar("T")
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 60.0
"""Who gives no answer for so long is taken for gone: a network may lose it without a word."""
_SETTINGS = {
    # A plan for ten rows is right for any number, as the statements are written, and is made once.
    "plan_cache_mode": "force_generic_plan",
    # The planner expects much of functions that give rows, and would compile what runs in no time.
    "jit": "off",
    # A server that is stopped in the middle lets others go on.
    "idle_in_transaction_session_timeout": "5s",
    "statement_timeout": "50s",
    "bytea_output": "hex",
    "timezone": "UTC",
}
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
"""What is written is durable on return, whatever the database does elsewhere; stronger settings stay."""


class PostgresConnection:
    """One connection, for one after the other. `prepare` is called with each new one before it is used."""

    def __init__(
        self,
        address: DatabaseAddress,
        prepare: Callable[[Connection], Awaitable[None]],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._address = address
        self._prepare = prepare
        self._settings = {**_SETTINGS, "search_path": f"{address.schema}, pg_temp", **(settings or {})}
        self._connection: Connection | None = None
        self._turn = asyncio.Lock()
        self._closed = False
        self.waiting = 0
        """Who uses it, and who waits for that."""

    async def run(self, work: Callable[[Connection], Awaitable[T]], *, tries: int = 1) -> T:
        """What `work` gives. A lost connection is opened anew for the next try; what failed may be done.

        Raises what PostgreSQL says; the caller translates it. Raises StoreError where it cannot be opened.
        """
        self.waiting += 1
        try:
            async with self._turn:
                for left in reversed(range(tries)):
                    try:
                        return await work(await self._open())
                    except Exception as error:
                        if not (self._drop_if_lost(error) and left):
                            raise
                raise AssertionError("unreachable: the last try returns or raises")
        finally:
            self.waiting -= 1

    async def close(self) -> None:
        """After who uses it. A second call does nothing."""
        async with self._turn:
            self._closed = True
            connection, self._connection = self._connection, None
            if connection is not None:
                with suppress(*DATABASE_ERRORS):
                    await connection.close(timeout=CONNECT_SECONDS)

    async def _open(self) -> Connection:
        if self._closed:
            raise StoreClosed(f"{self._address.label} is closed")
        if self._connection is not None and self._connection.is_closed():
            self._connection = None
        if self._connection is None:
            self._connection = await self._connect()
        return self._connection

    async def _connect(self) -> Connection:
        connection = await asyncpg.connect(
            self._address.dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=ANSWER_SECONDS,
            statement_cache_size=256,
            max_cached_statement_lifetime=0,
        )
        try:
            settings = "".join(
                f"SET {name} = {_quote(name, value)};" for name, value in self._settings.items()
            )
            await connection.execute(settings)
            await connection.execute(_DURABLE)
            await self._prepare(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _drop_if_lost(self, error: Exception) -> bool:
        connection = self._connection
        lost = is_lost(error) or (connection is not None and connection.is_closed())
        if lost and connection is not None:
            connection.terminate()
            self._connection = None
        return lost


def _quote(name: str, value: str) -> str:
    return value if name == "search_path" else f"'{value}'"


class PostgresReaders:
    """Connections that only read: whoever asks gets the one that has the least to do."""

    def __init__(
        self, connections: list[PostgresConnection], failure: Callable[[Exception], StoreError]
    ) -> None:
        self._connections = connections
        self._failure = failure

    async def ask(self, work: Callable[[Connection], Awaitable[T]]) -> T:
        """Raises StoreError. What is lost on the way is asked once more."""
        connection = min(self._connections, key=lambda connection: connection.waiting)
        try:
            return await connection.run(work, tries=2)
        except DATABASE_ERRORS as error:
            raise self._failure(error) from error

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
