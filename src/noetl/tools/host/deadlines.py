"""Bounds on how long work may take, with one timer for all of it: most is done long before.

What `asyncio.timeout` does, but that sets and cancels a timer of the loop for every task. A test holds
the two equal.
"""

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
        self._next_look = inf

    async def within(self, seconds: float, work: Awaitable[T]) -> T:
        """What the work gives. Raises DeadlineExceeded. Cancelling the task that waits cancels it, too."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None  # noqa: S101 - a coroutine runs in one
        cancelled = task.cancelling()
        due = self._due[task] = loop.time() + seconds
        # The timer is not moved when work ends: it looks once in vain, and then at the next that is due.
        if due < self._next_look:
            self._look(loop, due)
        try:
            return await work
        except asyncio.CancelledError:
            # Ours alone. If somebody else cancelled the task meanwhile, that must not be lost.
            if task in self._late and task.cancelling() == cancelled + 1:
                raise DeadlineExceeded from None
            raise
        finally:
            # It was interrupted, even if the work took no notice: the task must not stay a cancelled one.
            if self._due.pop(task, None) is None:
                self._late.discard(task)
                task.uncancel()

    def _look(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next_look = at
        self._timer = loop.call_at(at, self._interrupt, loop)

    def _interrupt(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        for task in [task for task, due in self._due.items() if due <= now]:
            del self._due[task]
            self._late.add(task)
            task.cancel()
        self._timer, self._next_look = None, inf
        if self._due:
            self._look(loop, min(self._due.values()))
