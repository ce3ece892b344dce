"""The stores, and how a URL names one."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from noetl.model.store_url import is_database_url
from noetl.ports.store import Store, StoreUnusable, StoreUrlWrong
from noetl.stores.home_folder import home_with
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.sqlite.store import SqliteStore
from noetl.stores.sqlite.writer import Inline

if TYPE_CHECKING:
    from noetl.ports.shared_rows import SharedRows
    from noetl.stores.postgres.upkeep import DatabaseHealth

__all__ = [
    "is_memory_url",
    "make_database_views",
    "migrate_database",
    "open_store",
    "open_store_to_read",
    "read_database_health",
    "shared_rows_of",
    "store_file_of",
    "use_database",
]

_SQLITE = "sqlite://"
_HINT = (
    "sqlite:///relative/path.db, sqlite:////absolute/path.db, sqlite:///:memory: or "
    "postgresql://USER:PASSWORD@HOST/DATABASE"
)
SERVER_PATIENCE = 1.0
"""Seconds for which a server's store waits for a database that went away, before the server says so."""


def open_store(url: str, *, inline: Inline = "commits") -> Store:
    """The store at this URL, made if it does not exist. Raises StoreUnusable, StoreUrlWrong.

    `inline` says what is written by the loop's own thread: for a server only what is quick. A database is
    reached by the first call; StoreError then.
    """
    if is_database_url(url):
        return _open_database(url, patient=inline == "commits")
    path = store_file_of(url)
    if path is None:
        return SqliteStore.in_memory()
    home_with(path).restrict()
    return SqliteStore.at(path, inline=inline)


def open_store_to_read(url: str) -> Store:
    """The store at this URL, which must be there, also where it may not be written.

    There, whatever writes raises StoreUnusable. Raises StoreUnusable, StoreUrlWrong.
    """
    if is_database_url(url):
        return _open_database(url, patient=True)
    path = store_file_of(url)
    if path is None:
        return SqliteStore.in_memory()
    home_with(path).restrict()
    return SqliteStore.to_read(path)


def is_memory_url(url: str) -> bool:
    """Whether nothing is there any more when the process ends. Raises StoreUrlWrong, StoreUnusable."""
    return not is_database_url(url) and store_file_of(url) is None


def _open_database(url: str, *, patient: bool) -> Store:
    address = DatabaseAddress.parse(url)
    with _with_driver():
        from noetl.stores.postgres.store import PostgresStore  # noqa: PLC0415 - an extra, which few have

        return PostgresStore(address) if patient else PostgresStore(address, patience=SERVER_PATIENCE)


@asynccontextmanager
async def use_database(url: str, stop: asyncio.Event, *, alone: bool = False) -> AsyncIterator[None]:
    """The right to serve a store in a database, beside other servers, or to be `alone` with it.

    Once somebody else is alone with it `stop` is set. Who serves a store in a file has the lock of its home.
    Raises StoreBusy, also at the end, and StoreError.
    """
    if not is_database_url(url):
        yield
        return
    with _with_driver():
        from noetl.stores.postgres.database_use import DatabaseUse  # noqa: PLC0415 - likewise

        use = DatabaseUse(DatabaseAddress.parse(url), stop, alone=alone)
    async with use.hold():
        yield


def shared_rows_of(store: Store) -> "SharedRows | None":
    """What servers on the same store share; None if it is served by one."""
    return getattr(store, "shared", None)


async def migrate_database(url: str) -> tuple[int, int]:
    """The schema of a store in a database, before and after it was brought up to date; 0: there was none.

    Raises StoreError.
    """
    address = DatabaseAddress.parse(url)
    with _with_driver():
        from noetl.stores.postgres.upkeep import migrate_schema_of  # noqa: PLC0415 - likewise

        return await migrate_schema_of(address)


async def make_database_views(url: str) -> str:
    """The schema beside a store in a database that has its tables as views now. Raises StoreError."""
    address = DatabaseAddress.parse(url)
    with _with_driver():
        from noetl.stores.postgres.upkeep import make_views_of  # noqa: PLC0415 - likewise

        return await make_views_of(address)


async def read_database_health(url: str, now: int) -> "DatabaseHealth":
    """What an operator should know about a store in a database; `now` in microseconds. Raises StoreError."""
    address = DatabaseAddress.parse(url)
    with _with_driver():
        from noetl.stores.postgres.upkeep import read_health_of  # noqa: PLC0415 - likewise

        return await read_health_of(address, now)


@contextmanager
def _with_driver() -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        message = f"a store in PostgreSQL needs {error.name}"
        raise StoreUnusable(message, "pip install 'noetl[postgres-store]'") from None


def store_file_of(url: str) -> Path | None:
    """The file that a URL names; None for memory and for a database. Raises StoreUrlWrong, StoreUnusable."""
    if is_database_url(url):
        return None
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
