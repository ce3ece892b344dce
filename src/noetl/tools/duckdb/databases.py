"""The databases that tasks have open: one in memory for each execution, and files while they are used."""

from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import duckdb

from noetl.model.outcome import ToolError
from noetl.scratch_folder import ScratchFolder
from noetl.tools.duckdb.auth import Attachment

MAX_IN_MEMORY = 128
"""Databases in memory that are kept; beyond that, those unused for longest go first."""
_CONFIG: dict[str, Any] = {
    "autoinstall_known_extensions": "false",  # nothing is downloaded that nobody asked for
    "TimeZone": "UTC",
}


class DuckdbDatabase:
    """An open database. `users` counts the tasks at work in it; `stays_open` is for when there are none."""

    def __init__(self, file: Path | None) -> None:
        self._spill_folder = None if file else ScratchFolder("duckdb")
        # Beside a file, DuckDB spills next to it; in memory it would do so in the process's own folder.
        spill = {"temp_directory": str(self._spill_folder.path)} if self._spill_folder else {}
        config = {**_CONFIG, **spill}
        self.connection = duckdb.connect(str(file or ":memory:"), config=config)
        self.users = 0
        self.stays_open = file is None
        self._attached: dict[str, Attachment] = {}
        self._attaching = Lock()

    def cursor(self, folder: Path) -> duckdb.DuckDBPyConnection:
        """A connection of its own, which finds files in this folder, too, where parameters name them."""
        cursor = self.connection.cursor()
        cursor.execute("SET file_search_path = ?", [str(folder)])
        return cursor

    def attach(self, cursor: duckdb.DuckDBPyConnection, attachment: Attachment) -> None:
        """Attaches what a credential is for; another one of this name goes, unless a task may be using it.

        Raises `duckdb.Error` and ToolError of kind `credential`.
        """
        with self._attaching:
            before = self._attached.get(attachment.name)
            if before not in (None, attachment) and self.users > 1:
                message = f"`{attachment.name}` is another database for a task that is at work"
                raise ToolError("credential", f"{message}: give one of the credentials an `alias`")
            if attachment.secret is not None:
                cursor.execute(attachment.secret)
            if attachment.target is not None:
                mode = "" if before is None else "IF NOT EXISTS " if before == attachment else "OR REPLACE "
                cursor.execute(f"ATTACH {mode}{attachment.target}")
            self._attached[attachment.name] = attachment

    def close(self) -> None:
        self.connection.close()
        if self._spill_folder:
            self._spill_folder.remove()


class DuckdbConnection(NamedTuple):
    """A task's own connection."""

    key: str
    database: DuckdbDatabase
    cursor: duckdb.DuckDBPyConnection


class DuckdbDatabases:
    """May be used from any thread."""

    def __init__(self) -> None:
        self._open: dict[str, DuckdbDatabase] = {}
        self._forgotten: set[str] = set()
        self._lock = Lock()

    def connect(self, execution_id: str, file: Path | None, folder: Path) -> DuckdbConnection:
        """A connection to the file, or to the execution's database in memory. Raises `duckdb.Error`."""
        key = f"file:{file}" if file else execution_id
        with self._lock:
            self._sweep()
            database = self._open.pop(key, None) or DuckdbDatabase(file)
            self._open[key] = database  # the one used last is last
            connection = DuckdbConnection(key, database, database.cursor(folder))
            database.users += 1
            self._shrink()
            return connection

    def disconnect(self, connection: DuckdbConnection) -> None:
        """Closes the connection; what it did not commit is gone."""
        connection.cursor.close()
        with self._lock:
            connection.database.users -= 1
            self._release(connection.key, connection.database)

    def forget(self, execution_id: str) -> None:
        """Nobody gets the execution's database in memory any more. It does not wait; `sweep` closes it."""
        # Without the lock: the event loop calls this, and a thread may hold it while it opens a large file.
        self._forgotten.add(execution_id)

    def sweep(self) -> None:
        """Closes what is forgotten, when the last task in it has ended."""
        with self._lock:
            self._sweep()

    def close(self) -> None:
        with self._lock:
            for key in list(self._open):
                self._drop(key)

    def _sweep(self) -> None:
        while self._forgotten:
            self._drop(self._forgotten.pop())

    def _shrink(self) -> None:
        idle = [key for key, database in self._open.items() if not database.users]
        for key in idle[: max(len(self._open) - MAX_IN_MEMORY, 0)]:
            self._drop(key)

    def _drop(self, key: str) -> None:
        if database := self._open.pop(key, None):
            database.stays_open = False
            self._release(key, database)

    def _release(self, key: str, database: DuckdbDatabase) -> None:
        if not database.users and not database.stays_open:
            if self._open.get(key) is database:
                del self._open[key]
            database.close()
