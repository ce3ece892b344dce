"""What is to happen at a time that events name: one heap, one handle of the loop for the earliest."""

import asyncio
import heapq
from collections.abc import Callable
from itertools import count
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]


class Timers:
    """Calls actions when their time has come. There is no taking back: an action finds out if it is late."""

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._heap: list[tuple[int, int, Action]] = []
        self._numbers = count()
        self._handle: asyncio.TimerHandle | None = None

    def at(self, due: int, action: Action) -> None:
        """`due` is in microseconds since 1970; a time that is over means soon."""
        heapq.heappush(self._heap, (due, next(self._numbers), action))
        if self._heap[0][2] is action:
            self._arm()

    def close(self) -> None:
        self._heap.clear()
        if self._handle is not None:
            self._handle.cancel()

    def _arm(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        wait = max(self._heap[0][0] - self._now(), 0) / 1e6
        # A day at most, so that a clock that is set meanwhile is noticed.
        self._handle = asyncio.get_running_loop().call_later(min(wait, 86_400.0), self._fire)

    def _fire(self) -> None:
        self._handle = None
        while self._heap and self._heap[0][0] <= self._now():
            heapq.heappop(self._heap)[2]()
        if self._heap and self._handle is None:
            self._arm()
