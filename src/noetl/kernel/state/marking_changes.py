"""What each event does to the marking: how many tokens and runs more or fewer a step has where."""

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias, get_args

from noetl.events.bodies import (
    CancelRequested,
    EventBody,
    ExecutionForked,
    ExecutionRetried,
    IterationsRedriven,
    StepScheduled,
    TokenEnqueued,
)
from noetl.events.event import Event
from noetl.events.identifiers import run_id, token_id
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.fold import evolve

MarkingPlace: TypeAlias = Literal[
    "enqueued",
    "parked",
    "waiting",
    "joined",
    "ready",
    "claimed",
    "suspended",
    "ended",
    "done",
    "failed",
    "cancelled",
    "skipped",
]
MARKING_PLACES: tuple[MarkingPlace, ...] = get_args(MarkingPlace)
"""What is counted of a step.

Tokens: enqueued, parked, waiting, joined. Open runs by phase: ready, claimed, suspended, ended (unrouted).
All runs that have ended, also those that are routed: done, failed, cancelled, skipped.
"""
_STAGE_NUMBERS = {name: number for number, name in enumerate(MARKING_PLACES)}
_READY, _ENDED = _STAGE_NUMBERS["ready"], _STAGE_NUMBERS["ended"]
_DONE = _STAGE_NUMBERS["done"]

_FAR_REACHING = (CancelRequested, ExecutionRetried, IterationsRedriven, ExecutionForked)
"""What may move tokens and runs that the event does not name."""


class MarkingChange(NamedTuple):
    """So many more at a stage of a step, or fewer."""

    step: int
    stage: int
    by: int


class MarkingTracker:
    """Folds events into a state, and says after each what has changed in its marking.

    It looks only at what an event names, because to count everything anew takes as long as there are tokens
    and runs. `count_marking` is the slow path that the sum of all changes must equal.
    """

    def __init__(self, state: ExecutionState) -> None:
        """Of a state to which nothing has happened."""
        self.state = state
        self._places: dict[str, tuple[int, int]] = {}
        """Of each token and open run: the number of its step, and its stage."""
        self._counts = [[0] * len(MARKING_PLACES) for _ in state.plan.by_number]

    def fold(self, event: Event) -> list[MarkingChange]:
        """Raises WrongSequence, as `evolve`."""
        body, state = event.body, self.state
        evolve(state, event)
        if isinstance(body, _FAR_REACHING):
            moved: Iterable[str] = {*self._places, *state.tokens, *state.runs}
            steps = set(range(len(self._counts)))
        else:
            moved = _named(event, body)
            # Most events tell of work within a run that stays where it is: then nothing can have changed.
            if all(self._places.get(name) == self._position(name) for name in moved):
                return []
            steps = set()
        before: dict[int, list[int]] = {}
        for name in moved:
            self._move(name, before)
        for number in steps:
            before.setdefault(number, self._counts[number].copy())
        return [change for number in sorted(before) for change in self._settle(number, before[number])]

    def _move(self, name: str, before: dict[int, list[int]]) -> None:
        """Counts a token or run where it is now, and no longer where it was."""
        was, now = self._places.get(name), self._position(name)
        for position, by in ((was, -1), (now, 1)):
            if position is not None:
                step, stage = position
                if step not in before:
                    before[step] = self._counts[step].copy()
                self._counts[step][stage] += by
        if now is not None:
            self._places[name] = now
        elif was is not None:
            del self._places[name]

    def _position(self, name: str) -> tuple[int, int] | None:
        if (token := self.state.tokens.get(name)) is not None:
            return token.step, _STAGE_NUMBERS[token.stage]
        run = self.state.runs.get(name)
        return (run.step.number, _STAGE_NUMBERS[run.phase]) if run is not None else None

    def _settle(self, number: int, before: list[int]) -> list[MarkingChange]:
        """What is different at a step, once its runs that have ended are counted, too."""
        counts = self._counts[number]
        counts[_DONE:] = ended_runs(self.state, number, sum(counts[_READY:_ENDED]))
        if counts == before:
            return []
        return [
            MarkingChange(number, stage, count - earlier)
            for stage, (count, earlier) in enumerate(zip(counts, before, strict=True))
            if count != earlier
        ]


def ended_runs(state: ExecutionState, number: int, under_way: int) -> list[int]:
    """How many runs of a step are done, failed, cancelled and skipped, where so many are under way."""
    summary = state.summaries.get(state.plan.by_number[number].name)
    if summary is None:
        return [0, 0, 0, 0]
    otherwise = [summary.failed, summary.cancelled, summary.skipped]
    return [summary.runs - under_way - sum(otherwise), *otherwise]


def count_marking(state: ExecutionState) -> list[list[int]]:
    """By the number of the step, how many are at each of the places."""
    counts = [[0] * len(MARKING_PLACES) for _ in state.plan.by_number]
    for token in state.tokens.values():
        counts[token.step][_STAGE_NUMBERS[token.stage]] += 1
    for run in state.runs.values():
        counts[run.step.number][_STAGE_NUMBERS[run.phase]] += 1
    for number, places in enumerate(counts):
        places[_DONE:] = ended_runs(state, number, sum(places[_READY:_ENDED]))
    return counts


def _named(event: Event, body: EventBody) -> list[str]:
    """The tokens and runs that an event makes or names."""
    names = []
    if isinstance(body, TokenEnqueued):
        names = [token_id(event.seq)]
    elif isinstance(body, StepScheduled):
        names = [run_id(event.seq), *body.tokens]
    if token := getattr(body, "token", ""):
        names.append(token)
    if run := getattr(body, "run", ""):
        names.append(run)
    return names
