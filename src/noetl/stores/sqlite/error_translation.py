"""What SQLite says when it fails, as our errors."""

from types import TracebackType

import apsw

from noetl.ports.store import StoreBusy, StoreError, StoreFull, StoreUnusable


class ErrorTranslation:
    """Raises StoreError, naming `place`, where SQLite fails inside."""

    __slots__ = ("_place",)

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, apsw.Error):
            raise _as_ours(self._place, error) from error


def _as_ours(place: str, error: apsw.Error) -> StoreError:
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreBusy(f"{place} is locked by another process", "try again when it is done")
        case apsw.FullError():
            return _full(place)
        case apsw.IOError() if vars(error).get("extendedresult") == apsw.SQLITE_IOERR_SHMSIZE:
            return _full(place)
        case apsw.IOError():
            return StoreError(f"{place}: {error}", "see whether the disk is in order, and has room left")
        case apsw.NotADBError():
            return StoreUnusable(f"{place} is not a store: it is no SQLite database", "choose another file")
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return StoreUnusable(f"{place} cannot be written", "check the rights of the file and its folder")
        case apsw.CantOpenError():
            hint = "its folder must exist, you must be allowed to write there, and have files left to open"
            return StoreUnusable(f"{place} cannot be opened", hint)
        case apsw.CorruptError():
            return StoreUnusable(f"{place} is damaged: {error}", "restore it from a copy")
        case _:
            return StoreError(f"{place}: {error}")


def _full(place: str) -> StoreFull:
    return StoreFull(f"{place}: no room left on the disk", "free some space")
