"""What other processes ask of an execution: by letter to its owner, or at once if it has none."""

import asyncio
from typing import Literal

from noetl.kernel.net.commands import Cancel
from noetl.ports.store import ExecutionUnknown, Store
from noetl.server.letters import Order, write_letter
from noetl.server.live import Live
from noetl.server.playbooks import Playbooks
from noetl.server.service import AlreadyRunning, Service
from noetl.stores.owner import Owners

PATIENCE = 5.0
"""Seconds that the owner has for reading its letters."""


class Nobody:
    """The dispatcher where nothing runs: what is ready stays ready."""

    def decided(self, live: Live) -> None: ...

    def ready(self, live: Live) -> None: ...

    def changed(self, live: Live, run: str) -> None: ...

    def halted(self, live: Live) -> None: ...

    def over(self, live: Live) -> None: ...


async def ask(
    store: Store, owners: Owners, playbooks: Playbooks, execution_id: str, order: Order
) -> Literal["done", "sent"]:
    """`done`: it is recorded. `sent`: its owner has not read it yet, and will.

    Raises ExecutionUnknown, Refused, StoreError.
    """
    while owners.owner(execution_id) is None:
        try:
            await _decide_here(store, owners, playbooks, execution_id, order)
        except AlreadyRunning:
            continue  # somebody took it up in between
        return "done"
    if await store.execution(execution_id) is None:
        raise ExecutionUnknown(f"there is no execution {execution_id}")
    letter = await store.send(execution_id, write_letter(order))
    try:
        async with asyncio.timeout(PATIENCE):
            async for _ in store.changes():
                if letter.id not in {one.id for one in await store.inbox([execution_id])}:
                    return "done"
    except TimeoutError:
        if owners.owner(execution_id) is None:
            await store.take([letter])
            return await ask(store, owners, playbooks, execution_id, order)
    return "sent"


async def _decide_here(
    store: Store, owners: Owners, playbooks: Playbooks, execution_id: str, order: Order
) -> None:
    service = Service(store, playbooks, owners, Nobody())
    live = await service.open(execution_id)
    service.lives[execution_id] = live
    try:
        service.void_leases(live)
        if isinstance(order, Cancel):
            await service.children.take_up(live)
        live.give(order)
        await service.journal.flush()
    finally:
        await service.close()
