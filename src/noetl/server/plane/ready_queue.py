"""The executions that wait for somebody to take a run of theirs, found by who could."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from itertools import count, takewhile
from operator import attrgetter
from typing import TypeAlias

from noetl.engine.execution import LiveExecution
from noetl.model.run_rows import ReadyRun

Needs: TypeAlias = frozenset[ReadyRun]
"""What workers must have for the runs of an execution, all of one priority."""


class WaitingExecution:
    """One that has something to give away. Of two, the one with the lower `turn` is asked first."""

    __slots__ = ("live", "needs", "priority", "turn")

    def __init__(self, live: LiveExecution, needs: Needs, priority: int, turn: int) -> None:
        self.live = live
        self.needs = needs
        self.priority = priority
        self.turn = turn


class ReadyQueue:
    """By priority, and those of the same take turns.

    Those that need the same are kept together: however many wait for workers that are busy or not there, it
    costs one look to leave them all out.
    """

    def __init__(self) -> None:
        self._levels: dict[int, dict[Needs, OrderedDict[str, WaitingExecution]]] = {}
        self._waiting: dict[str, WaitingExecution] = {}
        self._turns = count()

    def add(self, live: LiveExecution, runs: Iterable[ReadyRun]) -> None:
        """These are ready of it, one at least. It keeps its turn if it waits for the same already."""
        needs = frozenset(runs)
        waiting = self._waiting.get(live.execution_id)
        if waiting is None or waiting.needs != needs:
            self.remove(live.execution_id)
            priority = next(iter(needs)).priority
            waiting = WaitingExecution(live, needs, priority, next(self._turns))
            self._waiting[live.execution_id] = waiting
            level = self._levels.setdefault(priority, {})
            level.setdefault(needs, OrderedDict())[live.execution_id] = waiting

    def get(self, execution_id: str) -> LiveExecution | None:
        waiting = self._waiting.get(execution_id)
        return waiting.live if waiting is not None else None

    def remove(self, execution_id: str) -> None:
        """A second time does nothing."""
        if (waiting := self._waiting.pop(execution_id, None)) is not None:
            level = self._levels[waiting.priority]
            del level[waiting.needs][execution_id]
            if not level[waiting.needs]:
                del level[waiting.needs]
            if not level:
                del self._levels[waiting.priority]

    def end_turn(self, execution_id: str) -> None:
        """It is asked after all others of its priority from here on."""
        if (waiting := self._waiting.get(execution_id)) is not None:
            waiting.turn = next(self._turns)
            self._levels[waiting.priority][waiting.needs].move_to_end(execution_id)

    def has_above(self, priority: int) -> bool:
        """Whether something of a higher priority is here."""
        return any(level > priority for level in self._levels)

    def levels(self, has_taker: Callable[[Needs], bool]) -> Iterator[Iterator[WaitingExecution]]:
        """Those that somebody can take something of, of the highest priority first.

        Each level as it is when it is reached, whatever is added or removed meanwhile; but no more of those
        that need what nobody has any more.
        """
        for priority in sorted(self._levels, reverse=True):
            groups = [
                takewhile(lambda waiting: has_taker(waiting.needs), list(group.values()))
                for needs, group in self._levels.get(priority, {}).items()
                if has_taker(needs)
            ]
            yield merge(*groups, key=attrgetter("turn"))
