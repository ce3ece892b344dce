"""Bringing a store up to date."""

import asyncio
from typing import NamedTuple

from noetl.cli.command_failure import CommandFailure
from noetl.home import home_of, store_url
from noetl.settings import Configuration
from noetl.stores import open_store, store_file_of
from noetl.stores.sqlite.connection import SCHEMA_VERSION, file_schema_version


class Migration(NamedTuple):
    """The version of a store's schema, before and after. 0: there was no store."""

    url: str
    before: int
    after: int


def migrate_store(configuration: Configuration) -> Migration:
    """Opens the store, which migrates it, or makes it. Raises CommandFailure, StoreError."""
    url = store_url(configuration)
    file = store_file_of(url)
    if file is None:
        raise CommandFailure(
            "store-url", f"{url} is memory, which keeps nothing", hint="sqlite:///path.db names a file"
        )
    before = file_schema_version(str(file)) if file.is_file() else 0
    if not configuration.settings.store:
        home_of(configuration).make()
    asyncio.run(_open(url))
    return Migration(url, before, SCHEMA_VERSION)


async def _open(url: str) -> None:
    await open_store(url).close()
