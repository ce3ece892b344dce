"""The stores, and how a URL names one."""

from pathlib import Path

from noetl.ports.store import Store, StoreUnusable
from noetl.stores.sqlite import SqliteStore

__all__ = ["file_of", "open_store"]

_SQLITE = "sqlite://"
_HINT = "sqlite:///relative/path.db, sqlite:////absolute/path.db or sqlite:///:memory:"


def open_store(url: str) -> Store:
    """The store at this URL, made if it does not exist. Raises StoreUnusable."""
    path = file_of(url)
    return SqliteStore.in_memory() if path is None else SqliteStore.at(path)


def file_of(url: str) -> Path | None:
    """The file that a URL names; None for memory. Raises StoreUnusable if it names no store."""
    if not url.startswith(_SQLITE):
        raise StoreUnusable(f"`{url}` is not the URL of a store", _HINT)
    path = url.removeprefix(_SQLITE)
    if path in ("", "/:memory:"):
        return None
    if not path.startswith("/") or path.endswith("/"):
        raise StoreUnusable(f"`{url}` names no file", _HINT)
    return Path(path[1:])
