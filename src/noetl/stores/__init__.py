"""The stores, and how a URL names one."""

from pathlib import Path

from noetl.ports.store import Store, StoreUnusable, StoreUrlWrong
from noetl.stores.home_folder import home_with
from noetl.stores.sqlite.store import SqliteStore
from noetl.stores.sqlite.writer import Inline

__all__ = ["open_store", "open_store_to_read", "store_file_of"]

_SQLITE = "sqlite://"
_HINT = "sqlite:///relative/path.db, sqlite:////absolute/path.db or sqlite:///:memory:"


def open_store(url: str, *, inline: Inline = "commits") -> Store:
    """The store at this URL, made if it does not exist. Raises StoreUnusable, StoreUrlWrong.

    `inline` says what is written by the loop's own thread: for a server only what is quick.
    """
    path = store_file_of(url)
    if path is None:
        return SqliteStore.in_memory()
    home_with(path).restrict()
    return SqliteStore.at(path, inline=inline)


def open_store_to_read(url: str) -> Store:
    """The store at this URL, which must be there, also where it may not be written.

    There, whatever writes raises StoreUnusable. Raises StoreUnusable, StoreUrlWrong.
    """
    path = store_file_of(url)
    if path is None:
        return SqliteStore.in_memory()
    home_with(path).restrict()
    return SqliteStore.to_read(path)


def store_file_of(url: str) -> Path | None:
    """The file that a URL names; None for memory. Raises StoreUrlWrong, StoreUnusable."""
    if not url.startswith(_SQLITE):
        raise StoreUrlWrong(f"`{url}` is not the URL of a store", _HINT)
    path = url.removeprefix(_SQLITE)
    if path in ("", "/:memory:"):
        return None
    if not path.startswith("/") or path.endswith("/"):
        raise StoreUrlWrong(f"`{url}` names no file", _HINT)
    try:
        path.encode()
    except UnicodeEncodeError:
        raise StoreUnusable(f"{path[1:]} is not UTF-8, as the path of a store must be", _HINT) from None
    return Path(path[1:])
