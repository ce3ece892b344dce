"""Who uses a store in a database: any number of servers at a time, or one who must be alone with it.

A lock of a session of PostgreSQL says so. It is gone with the connection of its owner.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from noetl.ports.store import StoreBusy, StoreError
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.database_connections import Connection, PostgresConnection
from noetl.stores.postgres.database_schema import PostgresSchema
from noetl.stores.postgres.failures import DATABASE_ERRORS
from noetl.stores.postgres.queries import WRITE

LOOK_SECONDS = 2.0
"""How often it is seen to that the connection is there, and the lock with it."""
_KEEPALIVES = {
    # A machine that is gone says nothing: PostgreSQL asks after it, and frees the lock after ten seconds.
    "tcp_keepalives_idle": "4",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "application_name": "noetl server",
}


class DatabaseUse:
    """The right to serve a store, or to have it `alone`. `stop` is set once somebody else has it alone."""

    def __init__(self, address: DatabaseAddress, stop: asyncio.Event, *, alone: bool) -> None:
        schema = PostgresSchema(address)
        self._failure = schema.failure
        self._label = address.label
        self._connection = PostgresConnection(address, schema.prepare, _KEEPALIVES)
        self._stop = stop
        self._alone = alone

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[None]:
        """Raises StoreBusy if others hinder it, also at the end, and StoreError."""
        try:
            try:
                await self._connection.run(self._take)
            except DATABASE_ERRORS as error:
                raise self._failure(error) from error
            keeping = asyncio.create_task(self._keep())
            try:
                yield
            finally:
                keeping.cancel()
                [outcome] = await asyncio.gather(keeping, return_exceptions=True)
            if isinstance(outcome, StoreBusy):
                raise outcome
        finally:
            await self._connection.close()

    async def _take(self, connection: Connection) -> None:
        """Unless this connection has it. Raises StoreBusy."""
        if await connection.fetchval(WRITE["has_lock"]):
            return
        if not await connection.fetchval(WRITE["have_database" if self._alone else "use_database"]):
            if self._alone:
                raise StoreBusy(f"{self._label} is served by a server", "stop all servers on it")
            raise StoreBusy(f"{self._label} is being copied", "start the server when that is done")

    async def _keep(self) -> None:
        """Takes it again where the connection was lost."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with suppress(*DATABASE_ERRORS, _Away):  # the database is away, for others, too
                try:
                    await self._connection.run(self._take)
                except StoreBusy:
                    self._stop.set()
                    raise
                except StoreError as error:
                    raise _Away from error


class _Away(Exception):
    """The connection cannot be opened now."""
