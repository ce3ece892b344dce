"""Making the schema, and bringing an older one up to date."""

from collections.abc import Sequence
from types import TracebackType

import apsw

from noetl.ports.store import StoreUnusable
from noetl.stores.sqlite import queries

APPLICATION_ID = 0x4E6F4554
"""`NoET`: tells a store from the databases of other programs."""


def create_schema(connection: apsw.Connection) -> None:
    """Makes a store of an empty database. What an interrupted call left behind does not disturb.

    Raises StoreUnusable where readers and a writer cannot share a file.
    """
    connection.execute("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL")
    if connection.pragma("journal_mode", "WAL") not in ("wal", "memory"):
        hint = "choose a folder on a local disk"
        raise StoreUnusable(f"{connection.filename}: the file system cannot share a store", hint)
    _run_script(connection, queries.schema_script(), len(queries.migration_scripts()))


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

    __slots__ = ("_connection",)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                self._connection.execute("COMMIT")
        finally:
            # A COMMIT that fails may leave the transaction open or not; some errors have ended it before.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
