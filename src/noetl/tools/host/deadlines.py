"""Bounds on how long work may take, with one timer for all of it: most is done long before."""

import asyncio
from collections.abc import Awaitable
from math import inf
from typing import TypeVar

T = TypeVar("T")


class DeadlineExceeded(Exception):
    """Work was interrupted because its time was over."""


class Deadlines:
    """Interrupts work that is late. Belongs to one event loop."""

    def __init__(self) -> None:
        self._due: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._looks_at = inf

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """What the work gives. Raises Late; cancelling the task that waits for it cancels it, too."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None  # noqa: S101 -- a coroutine runs in one
        cancelled = task.cancelling()
        due = self._due[task] = loop.time() + seconds
        if due < self._looks_at:
            self._look(loop, due)
        try:
            return await work
        except asyncio.CancelledError:
            if task in self._late and task.cancelling() == cancelled + 1:
                raise DeadlineExceeded from None
            raise
        finally:
            if self._due.pop(task, None) is None:
                self._late.discard(task)
                task.uncancel()

    def _look(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._looks_at = at
        self._timer = loop.call_at(at, self._interrupt, loop)

    def _interrupt(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task in [task for task, due in self._due.items() if due <= now]:
            del self._due[task]
            self._late.add(task)
            task.cancel()
        self._timer, self._looks_at = None, inf
        if self._due:
            self._look(loop, min(self._due.values()))
