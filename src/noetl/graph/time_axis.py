"""From times to places on a line, where long stretches in which nothing happens are folded."""

from bisect import bisect_right
from collections.abc import Sequence

_FOLDED_SHARE = 1 / 40
"""Of the line, what a folded stretch takes."""
_LONG_SHARE = 1 / 10
"""Of the time, from where on a stretch is folded."""


class TimeAxis:
    """A line from 0 to 1. `folds` are the stretches that are folded, as begin and end on it."""

    def __init__(self, begin: int, end: int, idle: Sequence[tuple[int, int]] = ()) -> None:
        total = max(end - begin, 1)
        folded = [span for span in idle if span[1] - span[0] > total * _LONG_SHARE]
        busy = total - sum(until - since for since, until in folded)
        unit = (1 - len(folded) * _FOLDED_SHARE) / busy if busy > 0 else 0.0
        self._times = [begin]
        self._positions = [0.0]
        self.folds: list[tuple[float, float, int]] = []
        for since, until in folded:
            self._add(since, self._positions[-1] + (since - self._times[-1]) * unit)
            start = self._positions[-1]
            self._add(until, start + (_FOLDED_SHARE if busy > 0 else 1 / len(folded)))
            self.folds.append((start, self._positions[-1], until - since))
        self._add(max(end, begin + 1), 1.0)

    def _add(self, ts: int, position: float) -> None:
        self._times.append(ts)
        self._positions.append(position)

    def position(self, ts: int) -> float:
        """Times before and behind the line are at its ends."""
        number = bisect_right(self._times, ts) - 1
        if number < 0:
            return 0.0
        if number + 1 >= len(self._times):
            return 1.0
        since, until = self._times[number], self._times[number + 1]
        start, stop = self._positions[number], self._positions[number + 1]
        return start + (stop - start) * (ts - since) / max(until - since, 1)
