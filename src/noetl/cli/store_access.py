"""The store that a command looks into, what it says when it cannot, and who runs an execution of it now."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec import Struct

from noetl.cli import console
from noetl.cli.command_failure import CommandFailure
from noetl.home import home_of, server_homes, store_url
from noetl.model.store_url import is_database_url
from noetl.ports.store import ExecutionRecord, Store
from noetl.settings import Configuration
from noetl.stores import is_memory_url, open_store, open_store_to_read
from noetl.stores.home_folder import Home
from noetl.stores.ownership import SERVER, Owners, SharedOwners, owners_in
from noetl.stores.server_record import read_server_record

T = TypeVar("T")


class ExecutionOwner(Struct, frozen=True):
    """A process, and the execution whose lock it holds: this one, or one that this is a child of."""

    pid: int
    execution_id: str


def with_store(
    configuration: Configuration, work: Callable[[Home, Store], Awaitable[T]], *, writing: bool = False
) -> T:
    """What `work` finds in the home and store that are set. Makes neither. Raises CommandFailure, StoreError.

    If it writes nothing, they may lie where nobody here may write.
    """

    async def play() -> T:
        home, store = open_home(configuration, writing=writing)
        try:
            return await work(home, store)
        finally:
            await store.close()

    return asyncio.run(play())


def hint_without_store(configuration: Configuration) -> str:
    """What to do where no store is: a server that runs here may keep its executions elsewhere."""
    elsewhere = "--home or --store names another place"
    if server := server_here(configuration):
        return f"--server {server} asks the server that runs here; {elsewhere}"
    return f"`noetl run FILE` makes one; {elsewhere}"


def server_here(configuration: Configuration) -> str:
    """The address of the server that commands find here; empty if none runs."""
    records = [read_server_record(home) for home in server_homes(configuration)]
    return next((record.url for record in records if record is not None), "")


def open_home(configuration: Configuration, *, writing: bool) -> tuple[Home, Store]:
    """The home and the open store in it, which must be there. Raises CommandFailure, StoreError.

    Says on stderr which home it is, if not that of the working directory.
    """
    url = store_url(configuration)
    if not has_store(configuration):
        hint = hint_without_store(configuration)
        raise CommandFailure("no-executions", f"there are no executions here yet ({url})", hint=hint)
    home = home_of(configuration)
    elsewhere = home.folder.parent != configuration.directory
    if elsewhere and not configuration.settings.store and configuration.settings.output == "text":
        console.say(f"using {console.visible(str(home.folder))}")
    return home, (open_store if writing else open_store_to_read)(url)


def has_store(configuration: Configuration) -> bool:
    """Whether there is a store to look into. Raises StoreUnusable, StoreUrlWrong."""
    url = store_url(configuration)
    # Whether there is one in a database is told when that is asked.
    return is_database_url(url) or (not is_memory_url(url) and home_of(configuration).exists)


async def find_owner(home: Home, store: Store, record: ExecutionRecord) -> ExecutionOwner | None:
    """None if nobody runs it: it has ended, or was interrupted."""
    owners = owners_in(home)
    ancestor: ExecutionRecord | None = record
    while ancestor is not None:
        if (pid := owners.owner(ancestor.execution_id)) is not None:
            return ExecutionOwner(pid, ancestor.execution_id)
        if ancestor.lives_on_server and (pid := owners.owner(SERVER, served=True)) is not None:
            return ExecutionOwner(pid, SERVER)
        ancestor = await store.execution(ancestor.parent) if ancestor.parent else None
    return None


def call_when_released(home: Home, owner: ExecutionOwner, done: Callable[[], None]) -> None:
    """Calls `done` in this loop when the owner is gone, if that is to be seen from here."""
    if owner.pid == SharedOwners.ELSEWHERE:
        return
    loop = asyncio.get_running_loop()

    def wait() -> None:
        Owners(home.owners).wait_until_released(owner.execution_id)
        if not loop.is_closed():
            loop.call_soon_threadsafe(done)

    # A daemon: whoever stops following does not wait for the owner.
    threading.Thread(target=wait, name="noetl-owner", daemon=True).start()


def status_text(record: ExecutionRecord, owner: ExecutionOwner | None) -> str:
    """The status for people: what should run and has nobody to run it is interrupted."""
    return "interrupted" if record.status == "running" and owner is None else record.status
