"""What the tests of the PostgreSQL store are written with: a schema of its own, and a line that can be cut."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg

from bench.postgres_server import PostgresServer
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.store import PostgresStore

_numbers = count(1)
SOCKET = ".s.PGSQL.5432"


def new_address(postgres: PostgresServer, **options: str) -> DatabaseAddress:
    """An address in which no store is yet."""
    return DatabaseAddress.parse(postgres.dsn(schema=f"store_{next(_numbers)}", **options))


def with_stores(
    address: DatabaseAddress, work: Callable[..., Awaitable[Any]], count: int = 1, **options: Any
) -> Any:
    """What `work` gives, which gets so many open stores at this address."""

    async def play() -> Any:
        stores = [PostgresStore(address, **options) for _ in range(count)]
        try:
            return await work(*stores)
        finally:
            for store in stores:
                await store.close()

    return asyncio.run(play())


async def query(address: DatabaseAddress, statement: str, *arguments: Any) -> list[tuple[Any, ...]]:
    """The rows of a statement, on a connection of its own, in the schema of the store."""
    connection = await asyncpg.connect(address.dsn)
    try:
        await connection.execute(f"SET search_path = {address.schema}")
        return [tuple(row) for row in await connection.fetch(statement, *arguments)]
    finally:
        await connection.close()


class CutLine:
    """A line to PostgreSQL that is cut in the middle: what was asked arrives, and the answer does not.

    With `word` it is cut when that goes by on the way there, as often as `times` says. With `hangs` it stays open
    when PostgreSQL hangs up.
    """

    def __init__(self, server: PostgresServer, folder: Path) -> None:
        self._server = server
        self.folder = folder
        self.word = b""
        self.times = 0
        self.cuts = 0
        self.hangs = False
        self.hung_up = asyncio.Event()

    @asynccontextmanager
    async def open(self) -> AsyncIterator["CutLine"]:
        server = await asyncio.start_unix_server(self._carry, self.folder / SOCKET)
        try:
            yield self
        finally:
            server.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back_reader, back_writer = await asyncio.open_unix_connection(self._server.folder / SOCKET)
        answers = asyncio.create_task(self._copy(back_reader, writer))
        try:
            while data := await reader.read(1 << 16):
                cut = self.word and self.word in data and self.times > 0
                if cut:
                    # From here on nothing comes back; PostgreSQL does what it was asked and then hears the end.
                    self.times -= 1
                    self.cuts += 1
                    answers.cancel()
                back_writer.write(data)
                await back_writer.drain()
                if cut:
                    await back_reader.read(1)
                    break
        except OSError:
            pass
        finally:
            answers.cancel()
            back_writer.close()
            writer.close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
            self.hung_up.set()
            if not self.hangs:
                writer.close()
