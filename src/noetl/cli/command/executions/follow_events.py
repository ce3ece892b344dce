"""Events as they come, also from another process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from noetl.cli.execution_owner import call_when_released, find_owner
from noetl.engine.history.lookup import read_events
from noetl.events.event import Event
from noetl.ports.store import ENDED_STATUSES, Store
from noetl.stores.home_folder import Home


async def follow_events(
    home: Home, store: Store, execution_id: str, *, after: int = 0
) -> AsyncIterator[list[Event]]:
    """Pages of events above `after`, until the execution is over or nobody runs it.

    Raises HistoryUnreadable.
    """
    async with _bell(store) as bell:
        watching = False

        def released() -> None:
            nonlocal watching
            watching = False
            bell.set()

        while True:
            # Before anything is read: what comes meanwhile rings again, and is not slept over.
            bell.clear()
            # Asked before reading: what an owner wrote before it went is read, too.
            record = await store.execution(execution_id)
            owner = await find_owner(home, store, record) if record else None
            async for page in read_events(store, execution_id, after=after):
                after = page[-1].seq
                yield page
            if (
                record is None
                or owner is None
                or (record.status in ENDED_STATUSES and after >= record.version)
            ):
                return
            if not watching:
                watching = True
                call_when_released(home, owner, released)
            await bell.wait()


@asynccontextmanager
async def _bell(store: Store) -> AsyncIterator[asyncio.Event]:
    """Rings when the store may have something new."""
    bell = asyncio.Event()

    async def listen() -> None:
        try:
            async for _ in store.changes():
                bell.set()
        finally:
            bell.set()  # whoever reads next learns what is wrong with the store

    listening = asyncio.create_task(listen())
    try:
        yield bell
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening
