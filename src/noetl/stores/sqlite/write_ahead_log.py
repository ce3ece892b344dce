"""The write-ahead log of a store file: kept longer than what is in it, and emptied in time.

A commit that makes the log longer waits for the file system's own journal as well as for the data. So
the log is lengthened by many commits' worth of zeros at once: SQLite takes them for the end of the log.
"""

import os
from contextlib import suppress

import apsw

CHECKPOINT_PAGES = 512
"""When the log has as many, its pages go into the database, and it begins again from its start."""
ROOM = 512 << 10
"""By how many bytes the log is lengthened."""
_FRAME_HEADER = 24


class WriteAheadLog:
    """The log behind one connection that writes. Nothing of it concerns a database in memory."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._frame = connection.pragma("page_size") + _FRAME_HEADER
        self._used = 0
        # A second descriptor of the file is safe: SQLite locks the shared memory beside the log, not the log.
        self._file = os.open(connection.filename_wal, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        self._size = os.fstat(self._file).st_size
        # In place of SQLite's own, which empties the log after 1,000 pages: ours has to know how full it is.
        connection.set_wal_hook(self._after_commit)

    def make_room(self) -> None:
        """To be called in a transaction that writes: so nobody else lengthens the log at the same time."""
        if self._used + ROOM // 4 > self._size:
            with suppress(OSError):  # a full disk: the commit will say so, if it needs the room
                os.write(self._file, bytes(ROOM))
            self._size = os.fstat(self._file).st_size

    def close(self) -> None:
        os.close(self._file)

    def _after_commit(self, connection: apsw.Connection, _: str, pages: int) -> int:
        self._used = pages * self._frame
        if pages >= CHECKPOINT_PAGES:
            with suppress(apsw.Error):  # as where SQLite does it: whoever commits next tries again
                connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        return apsw.SQLITE_OK
