"""Time that passes only when something happens, and the one queue of all that will happen."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import TypeAlias

Action: TypeAlias = Callable[[], None]

SECOND = 1_000_000


class VirtualClock:
    """`now` is in microseconds. What is due at the same moment happens in the order it was asked for."""

    def __init__(self) -> None:
        self.now = 1_700_000_000 * SECOND
        self._order = count()
        self._queue: list[tuple[int, int, Action]] = []

    def at(self, moment: int, action: Action) -> None:
        heappush(self._queue, (max(moment, self.now), next(self._order), action))

    def later(self, seconds: float, action: Action) -> None:
        self.at(self.now + round(seconds * SECOND), action)

    def step(self) -> bool:
        """The next thing happens. False if there is none."""
        if not self._queue:
            return False
        self.now, _, action = heappop(self._queue)
        action()
        return True
