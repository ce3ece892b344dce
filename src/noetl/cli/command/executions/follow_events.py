"""Events as they come, also from another process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from noetl.cli.store_access import call_when_released, find_owner
from noetl.engine.history.lookup import read_events
from noetl.events.bodies import RunSuspended
from noetl.events.event import Event
from noetl.ports.store import ENDED_STATUSES, Store
from noetl.stores.home_folder import Home


async def follow_events(
    home: Home, store: Store, execution_id: str, *, after: int = 0
) -> AsyncIterator[list[Event]]:
    """Pages of events above `after`, until the execution is over or nobody runs it.

    Raises HistoryUnreadable.
    """
    async for _, page in _follow(home, store, {execution_id: after}, execution_id, children=False):
        yield page


def follow_with_children(
    home: Home, store: Store, execution_id: str
) -> AsyncIterator[tuple[str, list[Event]]]:
    """The same from the beginning, with the pages of the children that it waits for, each with its id."""
    return _follow(home, store, {execution_id: 0}, execution_id, children=True)


async def _follow(
    home: Home, store: Store, positions: dict[str, int], execution_id: str, *, children: bool
) -> AsyncIterator[tuple[str, list[Event]]]:
    """`positions` has the last event that was read of each execution that is followed."""
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
            unread = list(positions)
            for name in unread:  # it grows by the children that are met
                async for page in read_events(store, name, after=positions[name]):
                    positions[name] = page[-1].seq
                    yield name, page
                    started = _children_in(page) if children else []
                    unread += [child for child in started if child not in positions]
                    positions |= {child: positions.get(child, 0) for child in started}
            if (
                record is None
                or owner is None
                or (record.status in ENDED_STATUSES and positions[execution_id] >= record.version)
            ):
                return
            if not watching:
                watching = True
                call_when_released(home, owner, released)
            await bell.wait()


def _children_in(page: list[Event]) -> list[str]:
    bodies = (event.body for event in page)
    return [body.child for body in bodies if isinstance(body, RunSuspended) and body.child]


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
