"""Connections to a store file: what SQLite's failures mean, the schema and its older versions, opening."""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import apsw

from noetl.ports.store import StoreBusy, StoreError, StoreFull, StoreUnusable
from noetl.stores.private_files import open_private_file, restrict_file
from noetl.stores.sqlite import queries

APPLICATION_ID = 0x4E6F4554
"""`NoET`: tells a store from the databases of other programs."""
MEMORY = ":memory:"
SCHEMA_VERSION = len(queries.migration_scripts())
"""The version that stores have when they are open."""
OPEN_TIMEOUT_MS = 10_000
"""How long opening waits for others who create or migrate the same file."""
_IDENTITY = """
SELECT (SELECT application_id FROM pragma_application_id),
  (SELECT user_version FROM pragma_user_version),
  count(*)
FROM sqlite_schema
"""
_LOG_MODES = ("wal", "memory")
"""The journal modes of a store: readers and a writer share a file with its log; memory has none."""
_COPY = "copy it, with the files beside it, to where you may write, and look there"


class ErrorTranslation:
    """Raises StoreError, naming the file, where SQLite fails inside.

    A class, not a generator with `contextmanager`, which costs more: every read and commit enters it.
    """

    __slots__ = ("_filename",)

    def __init__(self, filename: str) -> None:
        self._filename = filename

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, apsw.Error):
            raise _store_error(self._filename, error) from error


def _store_error(filename: str, error: apsw.Error) -> StoreError:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"{filename} is locked by another process", "try again when it is done")
        case apsw.FullError():
            return _store_full(filename)
        # The memory that processes share is a file: no room for it means a full disk.
        case apsw.IOError() if vars(error).get("extendedresult") == apsw.SQLITE_IOERR_SHMSIZE:
            return _store_full(filename)
        case apsw.IOError():
            return StoreError(f"{filename}: {error}", "see whether the disk is in order, and has room left")
        case apsw.NotADBError():
            return StoreUnusable(
                f"{filename} is not a store: it is no SQLite database", "choose another file"
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreUnusable(
                f"{filename} cannot be written", "check the rights of the file and its folder"
            )
        case apsw.CantOpenError():
            hint = "its folder must exist, you must be allowed to write there, and have files left to open"
            return StoreUnusable(f"{filename} cannot be opened", hint)
        case apsw.CorruptError():
            return StoreUnusable(f"{filename} is damaged: {error}", "restore it from a copy")
        case _:
            return StoreError(f"{filename}: {error}")


def _store_full(filename: str) -> StoreFull:
    return StoreFull(f"{filename}: no room left on the disk", "free some space")


def create_schema(connection: apsw.Connection) -> None:
    """Makes a store of an empty database. What an interrupted call left behind does not disturb.

    Raises StoreUnusable where readers and a writer cannot share a file.
    """
    connection.execute("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL")
    _use_log(connection)
    _run_script(connection, queries.schema_script(), len(queries.migration_scripts()))


def _use_log(connection: apsw.Connection) -> None:
    if connection.pragma("journal_mode", "WAL") not in _LOG_MODES:
        hint = "choose a folder on a local disk"
        raise StoreUnusable(f"{connection.filename}: the file system cannot share a store", hint)


def migrate_schema(connection: apsw.Connection, version: int, scripts: Sequence[str]) -> None:
    """Runs the scripts after the first `version`. Each is one transaction: one that fails changes nothing."""
    for number, script in enumerate(scripts[version:], version + 1):
        _run_script(connection, script, number)


def _run_script(connection: apsw.Connection, script: str, version: int) -> None:
    with Transaction(connection):
        connection.execute(script)
        connection.pragma("application_id", APPLICATION_ID)
        connection.pragma("user_version", version)


class Transaction:
    """Commits what is written inside, or takes all of it back when something is raised."""

    __slots__ = ("_connection", "_execute")

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        # Of one cursor: a connection's own `execute` makes one each time.
        self._execute = connection.cursor().execute

    def __enter__(self) -> None:
        self._execute("BEGIN IMMEDIATE")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._execute("COMMIT")
        finally:
            # A COMMIT that fails may leave the transaction open or not; some errors have ended it before.
            if self._connection.in_transaction:
                self._execute("ROLLBACK")


def open_writer(filename: str) -> apsw.Connection:
    """A connection to a store of the current schema; creates or migrates it first where necessary.

    Raises StoreUnusable, StoreBusy.
    """
    with ErrorTranslation(filename):
        if filename != MEMORY:
            _create_file(filename)
        connection = _connect(filename)
        try:
            _prepare(connection, filename)
        except BaseException:
            connection.close()
            raise
        return connection


def open_reader(filename: str) -> apsw.Connection:
    """Another connection to a store that is open already. It cannot write."""
    with ErrorTranslation(filename):
        connection = _connect(filename)
        connection.execute("PRAGMA query_only = ON")
        return connection


def file_schema_version(filename: str) -> int:
    """The version of a file as it is, without changing it; 0 if it is no store yet.

    Raises StoreUnusable, also for a version newer than ours.
    """
    with ErrorTranslation(filename):
        connection = apsw.Connection(filename, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return read_schema_version(connection, filename)
        finally:
            connection.close()


def file_faults(filename: str) -> list[str]:
    """What is wrong with the pages of a file, at most ten; indexes are not compared. Raises StoreError."""
    with ErrorTranslation(filename):
        connection = apsw.Connection(filename, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            rows = connection.execute("PRAGMA quick_check(10)").fetchall()
        except apsw.CorruptError as error:
            return [str(error)]
        finally:
            connection.close()
    return [str(message) for (message,) in rows if message != "ok"]


def _create_file(filename: str) -> None:
    """Makes an empty file that SQLite takes for a new database, and whose rights it gives its log."""
    with suppress(OSError):  # it is there, or SQLite will say why it cannot be
        os.close(open_private_file(filename, os.O_RDWR | os.O_EXCL))


def _connect(filename: str) -> apsw.Connection:
    connection = apsw.Connection(filename)
    connection.set_busy_timeout(OPEN_TIMEOUT_MS)
    connection.execute("PRAGMA synchronous = FULL")
    # Up to here the log stays as long as it was: to lengthen it costs more than to write over it.
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


def _prepare(connection: apsw.Connection, filename: str) -> None:
    if connection.readonly("main"):
        raise apsw.ReadOnlyError(filename)
    version = read_schema_version(connection, filename)
    if filename != MEMORY:
        # Now that it is known to be ours. The log and its index, if they are there, have the old rights.
        database = connection.filename
        for file in (database, f"{database}-wal", f"{database}-shm"):
            restrict_file(file)
    # The mode, too: it is not that of a log after the power went while the file was made, nor in a copy that
    # `VACUUM INTO` has made.
    if version != SCHEMA_VERSION or connection.pragma("journal_mode") not in _LOG_MODES:
        # A lock of our own: changing the journal mode does not wait for others, and two may do it at once.
        with nullcontext() if filename == MEMORY else _lock_folder(Path(filename).parent):
            # Read again: another process may have made or migrated it while we waited for the lock.
            if version := read_schema_version(connection, filename):
                _use_log(connection)
                migrate_schema(connection, version, queries.migration_scripts())
            else:
                create_schema(connection)


def read_schema_version(connection: apsw.Connection, filename: str) -> int:
    """The version of an open file; 0 if it is no store yet. Raises StoreUnusable."""
    # In one statement: between two, another process may make the store, and it would look like a foreign one.
    application, version, tables = connection.execute(_IDENTITY).get
    if application != APPLICATION_ID:
        if version or application or tables:
            raise StoreUnusable(f"{filename} is a database of another program", "choose another file")
        return 0
    if version > SCHEMA_VERSION:
        message = (
            f"{filename} was written by a newer NoETL: schema {version}, this one knows {SCHEMA_VERSION}"
        )
        raise StoreUnusable(message, "upgrade NoETL, or choose another file")
    return int(version)


def may_write_file(filename: str) -> bool:
    """Whether this process may write the file, and beside it, where SQLite keeps its log."""
    return _may_access(filename, os.W_OK) and _may_access(os.path.dirname(os.path.abspath(filename)), os.W_OK)


class ReadOnlyConnection:
    """A connection that changes nothing, on the disk neither.

    Where others have the store open, or left it in the middle, their log lies beside it, and SQLite takes
    it into account. Where there is none, the file is read without any lock; then `check` finds out whether
    somebody has written it meanwhile.
    """

    def __init__(self, filename: str) -> None:
        """Raises StoreUnusable, StoreBusy."""
        self._filename = filename
        if not _may_access(filename, os.R_OK):
            raise StoreUnusable(f"{filename} cannot be read", "check the rights of the file")
        with ErrorTranslation(filename):
            self._unlocked_stamp = None if os.path.exists(f"{filename}-wal") else _file_stamp(filename)
            # `immutable`, because SQLite would else make a log and shared memory beside the file.
            uri_query = "mode=ro" if self._unlocked_stamp is None else "mode=ro&immutable=1"
            try:
                self.connection = _connect_read_only(filename, uri_query)
            except apsw.CantOpenError:
                raise StoreUnusable(f"{filename} cannot be opened without writing", _COPY) from None

    def check(self) -> None:
        """To be called after reading. Raises StoreBusy if what was read may be half old and half new."""
        if self._unlocked_stamp is not None and _file_stamp(self._filename) != self._unlocked_stamp:
            raise StoreBusy(f"{self._filename} was written meanwhile", "look again")


def _connect_read_only(filename: str, uri_query: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(f"file:{quote(os.path.abspath(filename))}?{uri_query}", flags=flags)
    try:
        connection.set_busy_timeout(OPEN_TIMEOUT_MS)
        version = read_schema_version(connection, filename)
        if version != SCHEMA_VERSION:
            message = f"{filename} has an older form, schema {version}, and cannot be written"
            raise StoreUnusable(message, _COPY)
    except BaseException:
        connection.close()
        raise
    return connection


def _may_access(path: str, mode: int) -> bool:
    # Of the effective user, as SQLite's own opens are judged; not every system can say.
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _file_stamp(filename: str) -> tuple[int, int, int]:
    status = os.stat(filename)
    return status.st_ino, status.st_size, status.st_mtime_ns


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Waits until no other process makes or migrates a store in this folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
