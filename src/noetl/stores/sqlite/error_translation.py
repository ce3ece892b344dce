"""What SQLite says when it fails, as our errors."""

from types import TracebackType

import apsw

from noetl.ports.store import StoreBusy, StoreError, StoreFull, StoreUnusable


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
