"""One PostgreSQL for all sides of a comparison: what each keeps is in a database of its own there."""

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlencode

from bench.peers import PEERS, dbos_peer, prefect_peer
from bench.postgres_server import PASSWORD, PostgresServer, binaries, postgres_cluster
from bench.resumption import Resumption
from bench.side import Side, Unavailable, Worker, Wrap

SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "max_connections": "300",
    "shared_buffers": "256MB",
}
"""As a server keeps data that must not be lost; the tests' own are without fsync."""


class SharedDatabase(NamedTuple):
    server: PostgresServer
    numbers: Iterator[int]

    @contextmanager
    def new(self) -> Iterator[str]:
        """The URL of an empty database, which is dropped afterwards with whoever is connected to it."""
        import psycopg  # noqa: PLC0415 - it comes with the tests' PostgreSQL, which other comparisons do without

        name = f"bench{next(self.numbers)}"
        with psycopg.connect(self.server.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
            try:
                login = {"host": str(self.server.folder), "user": "postgres", "password": PASSWORD}
                yield f"postgresql:///{name}?{urlencode(login)}"
            finally:
                connection.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def description(self) -> str:
        """For the notes: what all sides share."""
        version = subprocess.run(
            [binaries() / "bin" / "postgres", "--version"], capture_output=True, text=True, check=True
        ).stdout.split()[-1]
        settings = ", ".join(f"{name}={value}" for name, value in SETTINGS.items())
        return f"{version}, one for all sides, {settings}; its memory and its flushes are not counted"


@contextmanager
def shared_database() -> Iterator[SharedDatabase]:
    """Raises ModuleNotFoundError where the tests' PostgreSQL is not installed."""
    with postgres_cluster(**SETTINGS) as cluster:
        yield SharedDatabase(cluster.server, count(1))


class DatabasePeer(Protocol):
    """A peer that can keep its state in PostgreSQL."""

    NAME: str
    DURABLE: bool

    def install(self, folder: Path) -> None: ...

    def versions(self, folder: Path) -> dict[str, str]: ...

    def serve(
        self, folder: Path, data: Path, wrap: Wrap, database: str = ""
    ) -> AbstractContextManager[Worker]: ...


DATABASE_PEERS: tuple[DatabasePeer, ...] = (dbos_peer, prefect_peer)


class PeerOnDatabase:
    """A peer as a side whose state is in PostgreSQL instead of in a file."""

    def __init__(self, peer: DatabasePeer, database: SharedDatabase) -> None:
        self.NAME = peer.NAME
        self.DURABLE = peer.DURABLE
        self.install = peer.install
        self.versions = peer.versions
        self._peer = peer
        self._database = database

    @contextmanager
    def serve(self, folder: Path, data: Path, wrap: Wrap) -> Iterator[Worker]:
        with self._database.new() as url, self._peer.serve(folder, data, wrap, url) as worker:
            yield worker

    def resume(self, folder: Path, data: Path, steps: int) -> Resumption:  # noqa: ARG002 - as `Side` says
        raise Unavailable("see the comparison without --postgres")


def peers_on(database: SharedDatabase, names: Sequence[str]) -> list[Side]:
    return [PeerOnDatabase(peer, database) for peer in DATABASE_PEERS if peer.NAME in names]


def peers_without_database(names: Sequence[str]) -> list[str]:
    able = [peer.NAME for peer in DATABASE_PEERS]
    return [peer.NAME for peer in PEERS if peer.NAME in names and peer.NAME not in able]
