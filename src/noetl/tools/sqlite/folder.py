"""Connections to SQLite for which relative paths begin in a folder, not where the process was started."""

from itertools import count
from pathlib import Path

import apsw

MEMORY = ":memory:"

_numbers = count(1)


def connect_in_folder(database: Path | None, folder: Path) -> apsw.Connection:
    """Opens the file, or a database in memory. What it attaches or writes by name is in the folder.

    Raises apsw.Error.
    """
    files = _Folder(folder)
    return apsw.Connection(MEMORY if database is None else str(database), vfs=files.name)


class _Folder(apsw.VFS):
    """The files of the machine, seen from a folder. It is known to SQLite while a connection uses it."""

    def __init__(self, folder: Path) -> None:
        self.name = f"noetl-{next(_numbers)}"
        self._folder = folder.absolute()
        super().__init__(self.name, "")

    def xFullPathname(self, name: str) -> str:  # noqa: N802  # as SQLite calls it
        return str(self._folder / name)
