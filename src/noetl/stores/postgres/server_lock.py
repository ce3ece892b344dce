"""One server at a time on a store in a database: a lock that is gone with its owner's connection.

A process that is stopped keeps its connection. So whoever has the lock beats each second, and who waits for
it ends the connection of one that does not. What that process does when it goes on is refused: others have
moved the versions.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from noetl.ports.store import StoreBusy, StoreError
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.database_connections import Connection, PostgresConnection
from noetl.stores.postgres.database_schema import PostgresSchema
from noetl.stores.postgres.failures import DATABASE_ERRORS
from noetl.stores.postgres.queries import WRITE

BEAT_SECONDS = 1.0
SILENT_SECONDS = 6.0
"""Who has not beaten for so long is stopped, or so busy that it cannot serve."""
_KEEPALIVES = {
    # A machine that is gone says nothing: PostgreSQL asks after it, and frees the lock after ten seconds.
    "tcp_keepalives_idle": "4",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "application_name": "noetl server",
}


class DatabaseServerLock:
    """The right to serve a store. `stop` is set once somebody else has it, and `on_taken` hears of it."""

    def __init__(
        self, address: DatabaseAddress, stop: asyncio.Event, on_taken: Callable[[StoreBusy], None]
    ) -> None:
        schema = PostgresSchema(address)
        self._failure = schema.failure
        self._label = address.label
        self._connection = PostgresConnection(address, schema.prepare, _KEEPALIVES)
        self._stop = stop
        self._on_taken = on_taken

    @asynccontextmanager
    async def hold(self, on_standby: Callable[[], None] | None) -> AsyncIterator[bool]:
        """False if it was told to stop while it waited. It waits, and says so, if there is `on_standby`.

        Else raises StoreBusy if another server has it; also at the end, if one took it. Raises StoreError.
        """
        try:
            if not await self._wait(on_standby):
                yield False
                return
            beating = asyncio.create_task(self._beat())
            try:
                yield True
            finally:
                beating.cancel()
                [outcome] = await asyncio.gather(beating, return_exceptions=True)
            if isinstance(outcome, StoreBusy):
                raise outcome
        finally:
            await self._connection.close()

    async def _wait(self, on_standby: Callable[[], None] | None) -> bool:
        announced = False
        while not self._stop.is_set():
            try:
                await self._connection.run(self._take)
            except StoreBusy:
                if on_standby is None:
                    raise
                if not announced:
                    on_standby()
                    announced = True
            except DATABASE_ERRORS as error:
                if not announced:
                    raise self._failure(error) from error
            except StoreError:
                if not announced:
                    raise
            else:
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), BEAT_SECONDS)
        return False

    async def _take(self, connection: Connection) -> None:
        """Takes it, unless this connection has it, and beats. Raises StoreBusy if another one has it."""
        if not await connection.fetchval(WRITE["have_server_lock"]):
            if not await connection.fetchval(WRITE["take_server_lock"]):
                await self._end_silent_holder(connection)
                return
            await connection.execute(WRITE["forget_beats"])
        await connection.execute(WRITE["beat"])

    async def _end_silent_holder(self, connection: Connection) -> None:
        holder = await connection.fetchrow(WRITE["server_lock_holder"])
        if holder is not None and holder["silence"] > SILENT_SECONDS:
            # With the right of a user over his own connections. Its lock is free in a moment.
            await connection.fetchval("SELECT pg_terminate_backend($1, 1000)", holder["pid"])
            if await connection.fetchval(WRITE["take_server_lock"]):
                await connection.execute(WRITE["forget_beats"])
                await connection.execute(WRITE["beat"])
                return
        where = f" ({holder['address']} since {holder['since']})" if holder is not None else ""
        message = f"{self._label} is served by another server{where}"
        raise StoreBusy(message, "stop that one, wait for it with --standby, or name another ?schema=NAME")

    async def _beat(self) -> None:
        """Takes it again where the connection was lost, as long as nobody else has it."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                await self._connection.run(self._take)
            except StoreBusy as error:
                self._stop.set()
                self._on_taken(error)
                raise
            except (*DATABASE_ERRORS, StoreError):
                continue  # the database is away, for others, too
