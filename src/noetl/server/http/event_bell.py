"""Who waits for news of executions is woken when their events are durable."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

from noetl.engine.history.lookup import read_events, require_execution
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.ports.store import ExecutionRecord, Store


class EventBell:
    """Rings for what happens here at once, and for what other processes write when the store says so.

    Nothing is kept for slow readers: who was woken reads from the store what it has not seen yet.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[asyncio.Event, bool]] = {}
        """By execution, empty for all; whether they wait for nothing but its end."""
        self.closed = False

    @property
    def listeners(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values()))

    def watch(self, execution_id: str, _events: Sequence[Event], state: ExecutionState) -> None:
        """What an engine calls with events that are durable."""
        for waiting, for_end in self._waiting.get(execution_id, {}).items():
            if not for_end or state.over:
                waiting.set()
        for waiting in self._waiting.get("", ()):
            waiting.set()

    async def ring_for_others(self, store: Store) -> None:
        """Rings for everybody whenever another process may have written something, without end."""
        async for _ in store.changes():
            self._ring_all()

    def close(self) -> None:
        """Whoever waits is told to stop: a server that ends does not wait for streams."""
        self.closed = True
        self._ring_all()

    @contextmanager
    def listen(self, execution_id: str, *, for_end: bool = False) -> Iterator[asyncio.Event]:
        """With `for_end` it rings when the execution may have ended; each ring costs a look at the store.

        Without an id it rings for all executions.
        """
        rung = asyncio.Event()
        self._waiting.setdefault(execution_id, {})[rung] = for_end
        try:
            yield rung
        finally:
            waiting = self._waiting[execution_id]
            del waiting[rung]
            if not waiting:
                del self._waiting[execution_id]

    def _ring_all(self) -> None:
        for listeners in self._waiting.values():
            for waiting in listeners:
                waiting.set()


async def follow_execution(
    store: Store, bell: EventBell, execution_id: str, after: int
) -> AsyncIterator[list[Event]]:
    """Pages of events above `after` as they come, until the execution is over or the bell is closed."""
    with bell.listen(execution_id) as rung:
        while True:
            # Before anything is read: what comes meanwhile rings again, and is not slept over.
            rung.clear()
            record = await store.execution(execution_id)
            async for page in read_events(store, execution_id, after=after):
                after = page[-1].seq
                yield page
            if record is None or bell.closed or (record.ended_at and after >= record.version):
                return
            await rung.wait()


async def wait_for_end(store: Store, bell: EventBell, execution_id: str, seconds: float) -> ExecutionRecord:
    """The execution when it has ended, or after so many seconds as it is then. Raises ExecutionUnknown."""
    with bell.listen(execution_id, for_end=True) as rung:
        try:
            async with asyncio.timeout(seconds):
                while True:
                    rung.clear()
                    record = await require_execution(store, execution_id)
                    if record.ended_at or bell.closed:
                        return record
                    await rung.wait()
        except TimeoutError:
            return await require_execution(store, execution_id)
