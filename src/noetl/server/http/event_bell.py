"""Who waits for news of executions is woken when their events are durable."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from typing import TypeAlias, TypeVar

from noetl.engine.history.lookup import read_events, require_execution
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.ports.store import Store

T = TypeVar("T")
End: TypeAlias = "asyncio.Future[ExecutionState | None]"


class EventBell:
    """Rings for what happens here at once, and for what other processes write when the store says so.

    Nothing is kept for slow readers: who was woken reads from the store what it has not seen yet.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = {}
        """By execution; empty for all of them."""
        self._ends: dict[str, set[End]] = {}
        """Of executions that somebody waits for the ends of, and for nothing else."""
        self.closed = False

    @property
    def listeners(self) -> int:
        """How many wait."""
        return sum(map(len, self._waiting.values())) + sum(map(len, self._ends.values()))

    def watch(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        """What an engine calls with events that are durable."""
        for waiting in self._waiting.get(execution_id, ()):
            waiting.set()
        for waiting in self._waiting.get("", ()):
            waiting.set()
        # The state may be ahead of what is durable: then its end will be, with one of the next events.
        if state.over and state.version == events[-1].seq:
            self._tell(execution_id, state)

    async def ring_for_others(self, store: Store, elsewhere: Callable[[Set[str]], Set[str]]) -> None:
        """Rings for what other processes may have written, without end.

        `elsewhere` gives those of some executions that others may write to. Where the store cannot say what
        was written, those who wait for an execution that lives here alone are left alone: they hear of it
        from `watch`, and each look costs as much as an answer.
        """
        async for changed in store.changes():
            waiting = elsewhere(self._waiting.keys() | self._ends.keys())
            self._ring(waiting if changed is None else waiting & (changed | {""}))

    def close(self) -> None:
        """Whoever waits is told to stop: a server that ends does not wait for streams."""
        self.closed = True
        self._ring({*self._waiting, *self._ends})

    @contextmanager
    def listen(self, execution_id: str) -> Iterator[asyncio.Event]:
        """It rings when there may be new events of the execution; without an id, of any."""
        rung = asyncio.Event()
        with _listed(self._waiting, execution_id, rung):
            yield rung

    @contextmanager
    def listen_for_end(self, execution_id: str) -> Iterator[End]:
        """The state when it has ended here; None when it may have ended elsewhere, or the bell is closed."""
        end: End = asyncio.get_running_loop().create_future()
        with _listed(self._ends, execution_id, end):
            yield end

    def _ring(self, execution_ids: Iterable[str]) -> None:
        for execution_id in execution_ids:
            for waiting in self._waiting.get(execution_id, ()):
                waiting.set()
            self._tell(execution_id, None)

    def _tell(self, execution_id: str, state: ExecutionState | None) -> None:
        for end in self._ends.get(execution_id, ()):
            if not end.done():
                end.set_result(state)


@contextmanager
def _listed(lists: dict[str, set[T]], execution_id: str, listener: T) -> Iterator[None]:
    listeners = lists.setdefault(execution_id, set())
    listeners.add(listener)
    try:
        yield
    finally:
        listeners.remove(listener)
        if not listeners:
            del lists[execution_id]


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


async def wait_for_end(
    store: Store, bell: EventBell, execution_id: str, seconds: float, lives_here: Callable[[str], bool]
) -> ExecutionState | None:
    """Returns when it has ended, or after so many seconds. Raises ExecutionUnknown.

    What it gives is the state of one that has ended here meanwhile: whoever waited need not read it. The end
    of one that lives here is yet to ring, so it is not asked whether it has been.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while True:
                # Before anything is read: an end that comes meanwhile is not missed.
                with bell.listen_for_end(execution_id) as end:
                    if bell.closed or (
                        not lives_here(execution_id)
                        and (await require_execution(store, execution_id)).ended_at
                    ):
                        return None
                    if (state := await end) is not None:
                        return state
    return None
