"""The two stores of `noetl store copy`: nobody else may use them meanwhile, and files lie beside them."""

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from msgspec import Struct

from noetl.cli.command_failure import CommandFailure
from noetl.engine.archive.store_copy import read_execution_ids
from noetl.engine.segment_log import copy_log_files
from noetl.home import home_of, result_store_of
from noetl.model.store_url import is_database_url, without_password
from noetl.model.timestamp import now_micros
from noetl.ports.store import Store, StoreBusy
from noetl.settings import Configuration
from noetl.stores import (
    open_store,
    open_store_to_read,
    read_database_health,
    store_file_of,
    use_database,
)
from noetl.stores.home_folder import Home, home_with
from noetl.stores.ownership import Owners
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.server_record import ServerRunning, only_server

_GO_ON = "the same command goes on then"


class StoreAddress(Struct, frozen=True):
    """A store that a URL names. `homes` are the folders that may belong to it, the likeliest first."""

    url: str
    homes: tuple[Home, ...]

    @property
    def label(self) -> str:
        return without_password(self.url)

    @property
    def in_database(self) -> bool:
        return is_database_url(self.url)

    @property
    def identity(self) -> tuple[str, ...]:
        """The same for all URLs that are seen to mean the same store."""
        if self.in_database:
            address = DatabaseAddress.parse(self.url)
            return address.dsn, address.schema
        return (os.path.realpath(self.homes[0].store),)


def store_address_of(configuration: Configuration, url: str) -> StoreAddress:
    """The store of this URL, which is also that of the settings. Raises CommandFailure, StoreError."""
    file = store_file_of(url)
    if is_database_url(url):
        return StoreAddress(url, (home_of(configuration),))
    if file is None:
        hint = "sqlite:///path.db names a file, postgresql://HOST/DATABASE a database"
        raise CommandFailure("store-url", f"{url} is memory, which keeps nothing", hint=hint)
    return StoreAddress(url, (home_with(configuration.directory / file), home_of(configuration)))


@asynccontextmanager
async def open_to_copy(source: StoreAddress, target: StoreAddress) -> AsyncIterator[tuple[Store, Store]]:
    """Both stores, open, and nobody's else: no server may begin on them, and nobody take up what lives there.

    Makes `target` if it is not there. Raises CommandFailure, ServerRunning, StoreBusy, StoreError.
    """
    await _require_store(source)
    async with AsyncExitStack() as held:
        await _reserve(held, source)
        first = open_store_to_read(source.url)
        held.push_async_callback(first.close)
        await first.feed_end()  # what cannot be read ends it before anything is made
        if not target.in_database:
            target.homes[0].make()
        await _reserve(held, target)
        second = open_store(target.url)
        held.push_async_callback(second.close)
        owners = _owners_of((source, target))
        await _own_living(held, source, first, owners)
        await _own_living(held, target, second, owners)
        yield first, second


async def _require_store(address: StoreAddress) -> None:
    if address.in_database:
        there = (await read_database_health(address.url, now_micros())).schema_version > 0
    else:
        there = address.homes[0].exists
    if not there:
        hint = "the first URL is the store that is copied, the second the one that is copied into"
        raise CommandFailure("no-executions", f"there is no store at {address.label}", hint=hint)


async def _reserve(held: AsyncExitStack, address: StoreAddress) -> None:
    """No server uses it until the stack ends. Raises StoreBusy."""
    if address.in_database:
        await held.enter_async_context(use_database(address.url, asyncio.Event(), alone=True))
        return
    for home in _distinct_homes(address):
        if home.folder.is_dir():
            try:
                held.enter_context(only_server(home))
            except ServerRunning as running:
                raise StoreBusy(str(running), f"`noetl server stop` ends it; {_GO_ON}") from None


def _owners_of(addresses: Sequence[StoreAddress]) -> list[Owners]:
    """Each file once: a process that has a lock is refused it a second time."""
    homes = {os.path.realpath(home.owners): home for address in addresses for home in address.homes}
    return [Owners(home.owners) for home in homes.values() if home.folder.is_dir()]


async def _own_living(
    held: AsyncExitStack, address: StoreAddress, store: Store, owners: Sequence[Owners]
) -> None:
    """Nobody takes up what lives there until the stack ends. Raises StoreBusy."""
    for execution_id in await read_execution_ids(store, living=True):
        for folder in owners:
            ownership = folder.acquire(execution_id)
            if ownership is not None:
                held.enter_context(ownership)
            elif (pid := folder.owner(execution_id)) != os.getpid():
                message = f"execution {execution_id} in {address.label} is run by process {pid or 'unknown'}"
                hint = f"wait for its end, or interrupt it (Ctrl-C, `kill -INT`); {_GO_ON}"
                raise StoreBusy(message, hint)


def folders_beside(source: StoreAddress, target: StoreAddress) -> list[tuple[Path, str]]:
    """Where a file's homes have results and logs that `target` has not, and their name in one."""
    if source.in_database:
        return []
    own = target.homes[0]
    own_paths = set() if target.in_database else {os.path.realpath(path) for path in (own.results, own.logs)}
    folders = [
        folder
        for home in _distinct_homes(source)
        for folder in ([home.results] if target.in_database else [home.results, home.logs])
    ]
    missing = [folder for folder in folders if os.path.realpath(folder) not in own_paths]
    return [(folder, folder.name) for folder in missing if _has_files(folder)]


def _distinct_homes(address: StoreAddress) -> list[Home]:
    return list({os.path.realpath(home.folder): home for home in address.homes}.values())


async def copy_logs(
    configuration: Configuration, source: StoreAddress, target: StoreAddress, store: Store
) -> int:
    """Takes files of logs to the results of a database; how many.

    In files they stay files, which `hints_for_files` names. Raises CommandFailure, StoreError, ResultError.
    """
    if source.in_database or not target.in_database:
        return 0
    results = result_store_of(configuration, target.homes[0], store)
    try:
        return sum([await copy_log_files(home.logs, store, results) for home in _distinct_homes(source)])
    except OSError as error:
        raise CommandFailure("file", f"{error.filename}: {error.strerror or error}", exit_code=3) from None
    finally:
        await results.close()


def hints_for_files(source: StoreAddress, target: StoreAddress) -> list[str]:
    """What is not in the store, and how TO finds it."""
    home = target.homes[0]
    hints = []
    for folder, name in folders_beside(source, target):
        hint = f"not copied: {folder}; copy it to {home.folder / name}"
        if name == home.results.name and target.in_database:
            hint = f"not copied: {folder}; TO finds it with NOETL_RESULT_STORE={folder.absolute().as_uri()}"
        hints.append(hint)
    if source.in_database and not target.in_database:
        hints.append(
            "results and logs that were in the database are in the file: TO finds them with"
            " NOETL_RESULT_STORE=store:"
        )
    return hints


def _has_files(folder: Path) -> bool:
    return any(names for _, _, names in os.walk(folder))
