"""How stores on one database hear of each other: `NOTIFY`, on a connection of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import asyncpg

from noetl.ports.store import StoreError
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.database_connections import Connection, PostgresConnection
from noetl.stores.postgres.database_schema import PostgresSchema
from noetl.stores.postgres.failures import DATABASE_ERRORS

LOOK_SECONDS = 1.0
"""How often everybody looks who has heard nothing: a doorbell may be out of order."""
RING_SECONDS = 0.005
"""At most so often it is rung: in the whole cluster, those who notify commit one after the other."""


class Doorbell:
    """Rings for others after this store wrote, and hears theirs."""

    def __init__(self, address: DatabaseAddress, schema: PostgresSchema) -> None:
        self._channel = f"noetl_{address.schema}"
        self._schema = schema
        self._connection = PostgresConnection(address, self._prepare)
        self._hearers: set[asyncio.Event] = set()
        self._ringing: asyncio.Task[None] | None = None
        self._rings_again = False
        self._closed = False

    def ring(self) -> None:
        """Others hear of it soon. Whatever is rung meanwhile is one ring."""
        self._rings_again = True
        if not self._closed and (self._ringing is None or self._ringing.done()):
            self._ringing = asyncio.create_task(self._ring())

    async def hear(self) -> AsyncIterator[None]:
        """Rings at once, whenever another one may have written, and each second; until it is closed."""
        rung = asyncio.Event()
        self._hearers.add(rung)
        try:
            while not self._closed:
                rung.clear()
                await self._quietly("SELECT")
                yield
                if not self._closed:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(rung.wait(), LOOK_SECONDS)
        finally:
            self._hearers.discard(rung)

    async def close(self) -> None:
        """A second call does nothing."""
        self._closed = True
        self._wake()
        if self._ringing is not None:
            await asyncio.gather(self._ringing, return_exceptions=True)
        await self._connection.close()

    async def _ring(self) -> None:
        while self._rings_again:
            self._rings_again = False
            await self._quietly(f"NOTIFY {self._channel}")
            await asyncio.sleep(RING_SECONDS)

    async def _quietly(self, statement: str) -> None:
        """Who is not heard now is found at the next look."""
        with suppress(*DATABASE_ERRORS, StoreError):
            await self._connection.run(lambda connection: connection.execute(statement))

    async def _prepare(self, connection: Connection) -> None:
        await self._schema.prepare(connection)
        await connection.add_listener(self._channel, self._on_ring)
        self._wake()  # what was rung while nobody listened

    def _on_ring(self, connection: object, process: int, _channel: str, _payload: object) -> None:
        own = isinstance(connection, asyncpg.Connection) and connection.get_server_pid() == process
        if not own:
            self._wake()

    def _wake(self) -> None:
        for rung in self._hearers:
            rung.set()
