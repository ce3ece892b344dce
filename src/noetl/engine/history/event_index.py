"""The events of an execution as columns, with what each does to the marking."""

from bisect import bisect_right
from itertools import pairwise

from noetl.engine.history.read import RecordedHistory
from noetl.events.bodies import EventBody, StepScheduled, TokenEnqueued
from noetl.events.event import Event
from noetl.events.event_kind import EVENT_KINDS, kind_of_body
from noetl.events.identifiers import run_id, token_id
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.marking_changes import MARKING_PLACES, MarkingTracker
from noetl.ports.execution_views import HistoryIndex

EVENT_NAMES = [kind.name for kind in EVENT_KINDS]
_NAME_NUMBERS = {kind.body: number for number, kind in enumerate(EVENT_KINDS)}
_NEVER_AN_ERROR = frozenset(
    kind.body for kind in EVENT_KINDS if isinstance(kind.status, str) and kind.status != "error"
)


class EventIndexer:
    """Goes through a history once. To go on where it stands, ask for what comes after `last`."""

    def __init__(self, history: RecordedHistory) -> None:
        self.hash = history.plan.playbook.hash
        self._tracker = MarkingTracker(new_state(history.plan, history.record.execution_id))
        self._runs: dict[str, tuple[int, int]] = {}
        """Of each run, its position among all and the number of its step."""
        self._tokens: dict[str, int] = {}
        """Of each token, the number of its step."""
        self._last_ts = 0

    @property
    def last(self) -> int:
        """The number of the last event that it has seen."""
        return self._tracker.state.version

    def index(self, history: RecordedHistory, after: int) -> HistoryIndex:
        """The events above `after`, which it has not seen yet. Raises WrongSequence."""
        for event in history.events[self.last : after]:
            self._tracker.fold(event)
            self._step_and_run(event)
            self._last_ts = event.ts
        cuts = history.cuts[bisect_right(history.cuts, after) :]
        known_runs = len(self._runs)
        events = history.events[after:]
        base = history.events[0].ts
        times: list[int] = []
        marking: list[list[int]] = []
        locations: list[tuple[int, int]] = []
        last_ts = base if after == 0 else self._last_ts
        for event in events:
            times.append(event.ts - last_ts)
            last_ts = event.ts
            marking.append([number for change in self._tracker.fold(event) for number in change])
            locations.append(self._step_and_run(event))
        self._last_ts = last_ts
        state = self._tracker.state
        return HistoryIndex(
            execution_id=state.execution_id,
            status=state.status,
            hash=self.hash,
            after=after,
            last=state.version,
            base=base,
            names=EVENT_NAMES,
            steps=[plan.name for plan in history.plan.by_number],
            places=list(MARKING_PLACES),
            runs=list(self._runs)[known_runs:],
            time=times,
            name=[_NAME_NUMBERS[type(event.body)] for event in events],
            step=[step for step, _ in locations],
            run=[run for _, run in locations],
            marking=marking,
            errors=[event.seq for event in events if _tells_error(event.body)],
            cuts=[seq - before for before, seq in pairwise([after, *cuts])],
        )

    def _step_and_run(self, event: Event) -> tuple[int, int]:
        """The numbers of the step and the run that an event is about; -1 for none."""
        body = event.body
        if isinstance(body, TokenEnqueued):
            step = self._tokens[token_id(event.seq)] = self._tracker.state.plan.by_name[body.step].number
            return step, -1
        if isinstance(body, StepScheduled):
            position, step = len(self._runs), self._tracker.state.plan.by_name[body.step].number
            self._runs[run_id(event.seq)] = position, step
            return step, position
        if run := getattr(body, "run", ""):
            position, step = self._runs[run]
            return step, position
        return self._tokens.get(getattr(body, "token", ""), -1), -1


def _tells_error(body: EventBody) -> bool:
    return type(body) not in _NEVER_AN_ERROR and kind_of_body(body).status_of(body) == "error"
