"""Opening a database file as a store."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import apsw

from noetl.ports.store import StoreUnusable
from noetl.stores.sqlite import queries
from noetl.stores.sqlite.error_translation import ErrorTranslation
from noetl.stores.sqlite.migration import APPLICATION_ID, create_schema, migrate_schema

MEMORY = ":memory:"
SCHEMA_VERSION = len(queries.migration_scripts())
"""The version that stores have when they are open."""
OPEN_TIMEOUT_MS = 10_000
"""How long opening waits for others who create or migrate the same file."""


def open_writer(place: str) -> apsw.Connection:
    """A connection to a store of the current schema; creates or migrates it first where necessary.

    Raises StoreUnusable, StoreBusy.
    """
    with ErrorTranslation(place):
        connection = _connect(place)
        try:
            _prepare(connection, place)
        except BaseException:
            connection.close()
            raise
        return connection


def open_reader(place: str) -> apsw.Connection:
    """Another connection to a store that is open already. It cannot write."""
    with ErrorTranslation(place):
        connection = _connect(place)
        connection.execute("PRAGMA query_only = ON")
        return connection


def file_schema_version(place: str) -> int:
    """The version of a file as it is, without changing it; 0 if it is no store yet.

    Raises StoreUnusable, also for a version newer than ours.
    """
    with ErrorTranslation(place):
        connection = apsw.Connection(place, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return read_schema_version(connection, place)
        finally:
            connection.close()


def _connect(place: str) -> apsw.Connection:
    connection = apsw.Connection(place)
    connection.set_busy_timeout(OPEN_TIMEOUT_MS)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


def _prepare(connection: apsw.Connection, place: str) -> None:
    if connection.readonly("main"):
        raise apsw.ReadOnlyError(place)
    if read_schema_version(connection, place) != SCHEMA_VERSION:
        # changing the journal mode does not wait for others, and two may do it at once
        with nullcontext() if place == MEMORY else _alone(Path(place).parent):
            if version := read_schema_version(connection, place):
                migrate_schema(connection, version, queries.migration_scripts())
            else:
                create_schema(connection)


def read_schema_version(connection: apsw.Connection, place: str) -> int:
    """The version of an open file; 0 if it is no store yet. Raises StoreUnusable."""
    application = connection.pragma("application_id")
    version = connection.pragma("user_version")
    if application != APPLICATION_ID:
        if version or application or connection.execute("SELECT count(*) FROM sqlite_schema").get:
            raise StoreUnusable(f"{place} is a database of another program", "choose another file")
        return 0
    if version > SCHEMA_VERSION:
        message = f"{place} was written by a newer NoETL: schema {version}, this one knows {SCHEMA_VERSION}"
        raise StoreUnusable(message, "upgrade NoETL, or choose another file")
    return int(version)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Waits until no other process makes or migrates a store in this folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
