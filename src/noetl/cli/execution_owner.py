"""Who runs an execution now."""

import asyncio
import threading
from collections.abc import Callable

from msgspec import Struct

from noetl.ports.store import ExecutionRecord, Store
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners


class ExecutionOwner(Struct, frozen=True):
    """A process, and the execution whose lock it holds: this one, or one that this is a child of."""

    pid: int
    execution_id: str


async def find_owner(home: Home, store: Store, record: ExecutionRecord) -> ExecutionOwner | None:
    """None if nobody runs it: it has ended, or was interrupted."""
    owners = Owners(home.owners)
    ancestor: ExecutionRecord | None = record
    while ancestor is not None:
        if (pid := owners.owner(ancestor.execution_id)) is not None:
            return ExecutionOwner(pid, ancestor.execution_id)
        ancestor = await store.execution(ancestor.parent) if ancestor.parent else None
    return None


def call_when_released(home: Home, owner: ExecutionOwner, done: Callable[[], None]) -> None:
    """Calls `done` in this loop when the owner is gone."""
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
