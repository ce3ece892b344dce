"""Which executions of a server are in memory: they come when something happens to them, and go again."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from weakref import WeakValueDictionary

from noetl.engine.commit_log import CommitLog
from noetl.engine.execution import LiveExecution, UnwrittenCommand
from noetl.engine.listener import EngineListener
from noetl.engine.registry import ExecutionRegistry
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Claim
from noetl.ports.store import StoreDamaged, StoreUnusable

STATE_MEMORY = 256 << 20
"""Bytes of states that a server keeps in memory, roughly; beyond it those go that wait."""
LOOKED_AT = 64
"""How many may be let go at once: those that cannot go now can later."""


class ExecutionLoader:
    """Brings executions into memory, one object for each, and lets go of what can be read again.

    `make` gives the object of an execution, and `fold` gives that its state, unless it does not live here.
    """

    def __init__(
        self,
        registry: ExecutionRegistry,
        make: Callable[[str], LiveExecution],
        fold: Callable[[LiveExecution], Awaitable[bool]],
        *,
        commit_log: CommitLog,
        listeners: Sequence[EngineListener],
        memory: int,
    ) -> None:
        self._registry = registry
        self._make = make
        self._fold = fold
        self._commit_log = commit_log
        self._listeners = listeners
        self._memory = memory
        # Whoever has a lease, or waits for a turn, has the object of an execution that may not be in memory.
        self._objects: WeakValueDictionary[str, LiveExecution] = WeakValueDictionary()
        self._loads: dict[str, asyncio.Task[bool]] = {}
        self._pins: Counter[str] = Counter()

    def add(self, live: LiveExecution) -> None:
        """One that was begun or opened otherwise."""
        self._objects[live.execution_id] = live

    def unloaded(self, execution_id: str) -> LiveExecution:
        """The object of an execution, in memory or not."""
        live = self._objects.get(execution_id)
        if live is None:
            live = self._objects[execution_id] = self._make(execution_id)
        return live

    async def load(self, execution_id: str) -> LiveExecution | None:
        """A living execution, in memory; None if there is none here. Raises StoreError."""
        live = self.unloaded(execution_id)
        if (loading := self._loads.get(execution_id)) is None:
            loading = asyncio.get_running_loop().create_task(self._load(live))
            self._loads[execution_id] = loading
            loading.add_done_callback(lambda _: self._loads.pop(execution_id, None))
        with self.pinned([execution_id]):  # else it might go before whoever waits for it has its turn
            # Who waits may give up, and others may wait for the same.
            return live if await asyncio.shield(loading) else None

    async def _load(self, live: LiveExecution) -> bool:
        if live.loaded:
            return live.execution_id in self._registry
        if not await self._fold(live):
            return False
        self._registry.add(live)
        self.evict()
        for listener in self._listeners:
            listener.loaded(live)
        return True

    @contextmanager
    def pinned(self, execution_ids: Iterable[str]) -> Iterator[None]:
        """What is in memory of these stays there meanwhile."""
        names = list(execution_ids)
        self._pins.update(names)
        try:
            yield
        finally:
            for name in names:
                self._pins[name] -= 1
                if not self._pins[name]:
                    del self._pins[name]

    def touch(self, live: LiveExecution) -> None:
        """Something happened to it, and is durable."""
        self._registry.touch(live)
        self.evict()

    def evict(self) -> None:
        """Lets go of states until they are small enough, first where nothing happened for longest."""
        if self._registry.weight <= self._memory:
            return
        for live in self._registry.oldest(LOOKED_AT):
            if self._may_go(live):
                for listener in self._listeners:
                    listener.evicted(live)
                self._registry.remove(live)
                live.unload()
                if self._registry.weight <= self._memory:
                    return

    def _may_go(self, live: LiveExecution) -> bool:
        return live.idle and live.execution_id not in self._pins and not self._commit_log.is_held(live)

    def drop_outdated(self, live: LiveExecution) -> None:
        """Lets go of a state that somebody else has changed, if nothing was decided on it."""
        if live.loaded and self._may_go(live):
            for listener in self._listeners:
                listener.outdated(live)
            self._registry.remove(live)
            live.unload()

    async def decide_again(self, live: LiveExecution) -> None:
        """Somebody else wrote to it: what was decided here is decided on what is there now, in order.

        Where it is none of ours any more, all of that is refused. Raises StoreError if this process ends.
        """
        for listener in self._listeners:
            listener.undone(live)
        commands = live.take_unwritten()
        self._registry.remove(live)
        live.unload()
        live.reloads += 1
        # Whoever wants it meanwhile waits for this, and does not fold it a second time.
        deciding = asyncio.get_running_loop().create_task(self._decide_on_what_is_there(live, commands))
        self._loads[live.execution_id] = deciding
        deciding.add_done_callback(lambda _: self._loads.pop(live.execution_id, None))
        await asyncio.shield(deciding)

    async def _decide_on_what_is_there(
        self, live: LiveExecution, commands: Sequence[UnwrittenCommand]
    ) -> bool:
        try:
            lives = await self._commit_log.read_patiently(lambda: self._load(live))
        except (StoreDamaged, StoreUnusable):
            lives = False  # nobody can go on with it
        for listener in self._listeners:
            listener.reloaded(live)
        if not lives:
            gone = Refused(f"{live.execution_id} has ended, or is not here any more")
            for unwritten in commands:
                if unwritten.refusals is not None:
                    unwritten.refusals.append(gone)
            live.call_back()
            return False
        for unwritten in commands:
            if isinstance(unwritten.command, Claim):
                continue  # who gets a run is chosen anew
            try:
                live.submit(unwritten.command, unwritten.refusals)
            except Refused as refused:
                if unwritten.refusals is not None:
                    unwritten.refusals.append(refused)
        live.defer_callbacks()
        return True
