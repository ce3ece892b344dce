"""Opening a store that may be read here and not written."""

import os
from urllib.parse import quote

import apsw

from noetl.ports.store import StoreBusy, StoreUnusable
from noetl.stores.sqlite.connection import OPEN_TIMEOUT_MS, SCHEMA_VERSION, read_schema_version
from noetl.stores.sqlite.error_translation import ErrorTranslation

_COPY = "copy it, with the files beside it, to where you may write, and look there"


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
                self.connection = _connect(place, how)
            except apsw.CantOpenError:
                raise StoreUnusable(f"{place} cannot be opened without writing", _COPY) from None

    def check(self) -> None:
        """To be called after reading. Raises StoreBusy if what was read may be half old and half new."""
        if self._stamp is not None and _stamp(self._place) != self._stamp:
            raise StoreBusy(f"{self._place} was written meanwhile", "look again")


def _connect(place: str, how: str) -> apsw.Connection:
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
