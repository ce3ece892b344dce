"""A bounded pool of warm children, grown on demand."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

from noetl.tools.process.child_process import WarmChild

_GRACE = 1.0
"""Seconds in which an idle child may end by itself."""


class ChildLease:
    """A child in use. Set `spent` if it is not to be used again."""

    def __init__(self, child: WarmChild) -> None:
        self.child = child
        self.spent = False


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

    @asynccontextmanager
    async def lease(self) -> AsyncIterator[ChildLease]:
        """A child for one task; waits while all are busy. It is killed if the block raises."""
        async with self._slots:
            lease = ChildLease(self._take())
            reusable = False
            try:
                yield lease
                reusable = not lease.spent and not lease.child.spent
            finally:
                self._busy.discard(lease.child)
                if reusable and lease.child.task_count < self._uses and not self.closed:
                    self._keep(lease.child)
                else:
                    self._end(lease.child)

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

    def _take(self) -> WarmChild:
        child = None
        while self._idle and child is None:
            idle = self._idle.pop()
            # It may have said so after its last answer, or the system or an operator may have killed it.
            if idle.alive and not idle.spent:
                child = idle
            else:
                self._end(idle)
        child = child or self._start()
        self._busy.add(child)
        return child

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
