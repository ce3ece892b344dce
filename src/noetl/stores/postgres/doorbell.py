"""How stores on one database hear of each other: `NOTIFY`, on a connection of its own."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
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
NAMES_BYTES = 7_900
"""Of the names of executions that go with a ring. PostgreSQL takes 8,000."""
MOST_NAMES = 2_000
"""Beyond it a ring says nothing of what was written: whoever hears it looks at all that matters to him."""
_ANYTHING = "*"


class _Hearer:
    """What was rung since somebody looked; `names` is None if that may be anything."""

    def __init__(self) -> None:
        self.rung = asyncio.Event()
        self.names: set[str] | None = None

    def take(self) -> frozenset[str] | None:
        self.rung.clear()
        names, self.names = self.names, set()
        return None if names is None else frozenset(names)

    def ring(self, names: Iterable[str] | None) -> None:
        if names is None or self.names is None:
            self.names = None
        else:
            self.names.update(names)
        self.rung.set()


class Doorbell:
    """Rings for others after this store wrote, and hears theirs."""

    def __init__(self, address: DatabaseAddress, schema: PostgresSchema) -> None:
        self._channel = f"noetl_{address.schema}"
        self._schema = schema
        self._connection = PostgresConnection(address, self._prepare)
        self._hearers: set[_Hearer] = set()
        self._ringing: asyncio.Task[None] | None = None
        self._rings_again = False
        self._names: set[str] = set()
        self._closed = False

    def ring(self, execution_ids: Iterable[str]) -> None:
        """Others hear soon that these were written to. Whatever is rung meanwhile is one ring."""
        self._rings_again = True
        self._names.update(execution_ids)
        if not self._closed and (self._ringing is None or self._ringing.done()):
            self._ringing = asyncio.create_task(self._ring())

    async def hear(self) -> AsyncIterator[frozenset[str] | None]:
        """Rings at once, whenever another one may have written, and each second; until it is closed."""
        hearer = _Hearer()
        self._hearers.add(hearer)
        try:
            while not self._closed:
                await self._quietly("SELECT")
                yield hearer.take()
                if not self._closed:
                    try:
                        await asyncio.wait_for(hearer.rung.wait(), LOOK_SECONDS)
                    except TimeoutError:
                        hearer.ring(None)
        finally:
            self._hearers.discard(hearer)

    async def close(self) -> None:
        """A second call does nothing."""
        self._closed = True
        self._wake(None)
        if self._ringing is not None:
            await asyncio.gather(self._ringing, return_exceptions=True)
        await self._connection.close()

    async def _ring(self) -> None:
        while self._rings_again:
            self._rings_again = False
            names, self._names = self._names, set()
            for payload in _payloads(names):
                await self._quietly(f"NOTIFY {self._channel}, '{payload}'")
            await asyncio.sleep(RING_SECONDS)

    async def _quietly(self, statement: str) -> None:
        """Who is not heard now is found at the next look."""
        with suppress(*DATABASE_ERRORS, StoreError):
            await self._connection.run(lambda connection: connection.execute(statement))

    async def _prepare(self, connection: Connection) -> None:
        await self._schema.prepare(connection)
        await connection.add_listener(self._channel, self._on_ring)
        self._wake(None)  # what was rung while nobody listened

    def _on_ring(self, connection: object, process: int, _channel: str, payload: object) -> None:
        own = isinstance(connection, asyncpg.Connection) and connection.get_server_pid() == process
        if not own:
            self._wake(None if payload == _ANYTHING else [name for name in str(payload).split(",") if name])

    def _wake(self, names: Iterable[str] | None) -> None:
        for hearer in self._hearers:
            hearer.ring(names)


def _payloads(names: set[str]) -> Iterator[str]:
    """All that are to be told, in as few pieces as they fit in. A name is any text."""
    plain = all(name.isascii() and not {*name} & {",", "'", _ANYTHING} for name in names)
    if not plain or len(names) > MOST_NAMES or any(len(name) > NAMES_BYTES for name in names):
        yield _ANYTHING
        return
    piece: list[str] = []
    size = 0
    for name in names:
        if size + len(name) > NAMES_BYTES:
            yield ",".join(piece)
            piece, size = [], 0
        piece.append(name)
        size += len(name) + 1
    yield ",".join(piece)
