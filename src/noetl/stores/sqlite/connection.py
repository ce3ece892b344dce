"""Opening a database file as a store: to write it, or where it may only be read."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import quote

import apsw

from noetl.ports.store import StoreBusy, StoreUnusable
from noetl.stores.sqlite import queries
from noetl.stores.sqlite.error_translation import ErrorTranslation
from noetl.stores.sqlite.migration import APPLICATION_ID, create_schema, migrate_schema

MEMORY = ":memory:"
SCHEMA_VERSION = len(queries.migration_scripts())
"""The version that stores have when they are open."""
OPEN_TIMEOUT_MS = 10_000
"""How long opening waits for others who create or migrate the same file."""
_COPY = "copy it, with the files beside it, to where you may write, and look there"


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
        with nullcontext() if place == MEMORY else _lock_folder(Path(place).parent):
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


def may_write_file(place: str) -> bool:
    """Whether this process may write the file, and beside it, where SQLite keeps its log."""
    return _may(place, os.W_OK) and _may(os.path.dirname(os.path.abspath(place)), os.W_OK)


class ReadOnlyConnection:
    """A connection that changes nothing, on the disk neither.

    Where others have the store open, or left it in the middle, their log lies beside it, and SQLite takes
    it into account. Where there is none, the file is read without any lock; then `check` finds out whether
    somebody has written it meanwhile.
    """

    def __init__(self, place: str) -> None:
        """Raises StoreUnusable, StoreBusy."""
        self._place = place
        if not _may(place, os.R_OK):
            raise StoreUnusable(f"{place} cannot be read", "check the rights of the file")
        with ErrorTranslation(place):
            self._stamp = None if os.path.exists(f"{place}-wal") else _stamp(place)
            how = "mode=ro" if self._stamp is None else "mode=ro&immutable=1"
            try:
                self.connection = _connect_read_only(place, how)
            except apsw.CantOpenError:
                raise StoreUnusable(f"{place} cannot be opened without writing", _COPY) from None

    def check(self) -> None:
        """To be called after reading. Raises StoreBusy if what was read may be half old and half new."""
        if self._stamp is not None and _stamp(self._place) != self._stamp:
            raise StoreBusy(f"{self._place} was written meanwhile", "look again")


def _connect_read_only(place: str, how: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{quote(os.path.abspath(place))}?{how}", flags=flags)
    try:
        connection.set_busy_timeout(OPEN_TIMEOUT_MS)
        version = read_schema_version(connection, place)
        if version != SCHEMA_VERSION:
            message = f"{place} has an older form, schema {version}, and cannot be written"
            raise StoreUnusable(message, _COPY)
    except BaseException:
        connection.close()
        raise
    return connection


def _may(path: str, do: int) -> bool:
    return os.access(path, do, effective_ids=os.access in os.supports_effective_ids)


def _stamp(place: str) -> tuple[int, int, int]:
    found = os.stat(place)
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Waits until no other process makes or migrates a store in this folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
