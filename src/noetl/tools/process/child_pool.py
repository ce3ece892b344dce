"""A bounded pool of warm children, grown on demand."""

import asyncio
from collections.abc import Callable, Coroutine

from noetl.tools.process.child_process import WarmChild

_GRACE = 1.0
"""Seconds in which an idle child may end by itself."""


class ChildPool:
    """At most `size` children. One is idle for at most `idle` seconds, and replaced after `uses` tasks."""

    def __init__(self, start: Callable[[], WarmChild], *, size: int, idle: float, uses: int) -> None:
        self._start = start
        self._idle_limit = idle
        self._uses = uses
        self._slots = asyncio.Semaphore(size)
        self._idle: list[WarmChild] = []
        """The one used last is last, and the next to be used: its memory is warm, and the others grow old."""
        self._busy: set[WarmChild] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._sweeper: asyncio.TimerHandle | None = None
        self.closed = False

    async def take(self) -> WarmChild:
        """A child for one task; waits while all are busy. To be given back in any case."""
        await self._slots.acquire()
        try:
            child = self._idle_child() or self._start()
        except BaseException:
            self._slots.release()
            raise
        self._busy.add(child)
        return child

    def give_back(self, child: WarmChild, *, reusable: bool) -> None:
        """Keeps the child for the next task, or kills it."""
        self._busy.discard(child)
        if reusable and not child.spent and child.task_count < self._uses and not self.closed:
            self._keep(child)
        else:
            self._end(child)
        self._slots.release()

    async def close(self) -> None:
        """Ends every child: the busy ones at once, the idle ones with a moment to end by themselves."""
        self.closed = True
        if self._sweeper:
            self._sweeper.cancel()
        for child in self._busy:
            child.kill()
        retiring = [child.retire(_GRACE) for child in self._idle]
        self._idle.clear()
        await asyncio.gather(*retiring)
        while self._ending:
            await asyncio.wait(self._ending)

    def _idle_child(self) -> WarmChild | None:
        while self._idle:
            child = self._idle.pop()
            # It may have said so after its last answer, or the system or an operator may have killed it.
            if child.alive and not child.spent:
                return child
            self._end(child)
        return None

    def _keep(self, child: WarmChild) -> None:
        loop = asyncio.get_running_loop()
        child.idle_since = loop.time()
        self._idle.append(child)
        if self._sweeper is None:
            self._sweeper = loop.call_later(self._idle_limit, self._sweep)

    def _sweep(self) -> None:
        """Ends the children that have been idle for too long: they are first in the list."""
        loop = asyncio.get_running_loop()
        self._sweeper = None
        while self._idle and self._idle[0].idle_since + self._idle_limit <= loop.time():
            self._in_background(self._idle.pop(0).retire(_GRACE))
        if self._idle:
            wake = self._idle[0].idle_since + self._idle_limit
            self._sweeper = loop.call_at(wake, self._sweep)

    def _end(self, child: WarmChild) -> None:
        child.kill()
        self._in_background(_reap(child))

    def _in_background(self, ending: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(ending)
        self._ending.add(task)  # the loop itself holds tasks by weak references only
        task.add_done_callback(self._ending.discard)


async def _reap(child: WarmChild) -> None:
    await child.reap()
