"""The walk through a history: every event is decided again on the state before it."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from noetl.events.bodies import (
    CancelRequested,
    EventBody,
    ExecutionForked,
    ExecutionRetried,
    IterationsRedriven,
    LoopDone,
    LoopIterationCompleted,
    PlaybookExecutionRequested,
    RunResumed,
    RunSuspended,
    StepFailed,
    TaskStarted,
    TokenClaimed,
)
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.errors import NotOwner, Refused, WrongSequence
from noetl.kernel.net.commands import TimerFired
from noetl.kernel.net.decider import MAX_EVENTS_AT_ONCE, decide, decide_next, end_oversized, oversize
from noetl.kernel.net.execution_request import DECIDER
from noetl.kernel.net.operations import REPORTABLE
from noetl.kernel.net.routing import seal_run_end
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.plan import Plan
from noetl.kernel.references.externalize import externalize
from noetl.kernel.references.loop_chunks import add_manifest, force_chunk
from noetl.kernel.references.resolve import Unfetched
from noetl.kernel.state.execution_state import ExecutionState, PendingEffects, new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.run_fold import RUN_FOLDS, RunEnd, iteration_of
from noetl.kernel.state.run_state import RunState
from noetl.kernel.state.shards import require_loop
from noetl.kernel.verify.difference import (
    BodyGap,
    Difference,
    bodies_differ,
    body_gaps,
    difference_in_gap,
    difference_of_event,
    explained_by_clock,
    first_difference,
    same_body,
)
from noetl.kernel.verify.inferred_commands import (
    TAKEN_AS_RECORDED,
    derive_report,
    frame_of_event,
    infer_commands,
    rests_on_secrets,
)

CLOCKS_DIFFER = 300 * SECOND
"""How far the clock of a worker may be from that of the server."""


class Verifier:
    """One walk. `pending` is what is left of the decision that is being recorded."""

    def __init__(
        self,
        plan: Plan,
        execution_id: str,
        events: Sequence[Event],
        read: Callable[[str], Any] | None = None,
    ) -> None:
        self.events = events
        self._read = read
        self._fetched: dict[str, Any] = {}
        self.forks = [event.body for event in events if isinstance(event.body, ExecutionForked)]
        self.owners = deque([*(fork.source for fork in self.forks), execution_id])
        self.state: ExecutionState = new_state(plan, self.owners.popleft())
        self.pending: deque[EventBody] = deque()
        self.in_append = 0
        self.reporting: tuple[int, int] | None = None
        """The fence under which something is reported, and when."""
        self.claimed_at: dict[int, int] = {}
        """By fence."""
        self.decider = DECIDER
        self.foreign = 0
        """The number of events that came about with another playbook: they are folded and not judged."""
        self.verdicts = 0
        self.unjudged = 0
        self.unread = 0

    def differences(self) -> Iterator[Difference]:
        """Whoever takes the first has to stop: the state is then of no use."""
        for position, event in enumerate(self.events):
            if event.seq != self.state.version + 1:
                expected = self.state.version + 1
                yield difference_in_gap(
                    self.state, event, BodyGap(("seq",), event.seq, expected), "a history has no gaps"
                )
            if position == 0:
                yield from self._judge_playbook(event)
            if position >= self.foreign:
                yield from self._judge_event(event, position)
            try:
                evolve(self.state, event)
            # Not WrongSequence alone: events of another playbook are folded without being judged, and may
            # name steps or tasks that this one does not have.
            except (WrongSequence, LookupError, AttributeError, TypeError, ValueError) as fault:
                yield difference_of_event(self.state, event, f"it cannot follow: {fault}")
            self._note_event(event)
        yield from self._judge_end()

    def _judge_playbook(self, event: Event) -> Iterator[Difference]:
        """Which playbook, and which rules."""
        body, playbook = event.body, self.state.plan.playbook
        if not isinstance(body, PlaybookExecutionRequested):
            return
        self.decider = body.decider
        last, running = self._follow_documents(body.hash)
        why = "it asks for another playbook"
        if running != playbook.hash:
            yield difference_in_gap(self.state, last, BodyGap(("hash",), running, playbook.hash), why)
        elif not self.foreign and body.path != playbook.metadata.path:
            gap = BodyGap(("path",), body.path, playbook.metadata.path)
            yield difference_in_gap(self.state, event, gap, why)

    def _follow_documents(self, running: str) -> tuple[Event, str]:
        """Which document it runs in the end, and the event that says so; counts the events before that."""
        last = self.events[0]
        for event in self.events:
            match event.body:
                # A fork is a copy of what was before; a retry is decided with the document that it brings.
                case ExecutionForked(hash=brought):
                    foreign, brought = event.seq, brought or self.state.plan.playbook.hash
                case ExecutionRetried(hash=brought) | IterationsRedriven(hash=brought) if brought:
                    foreign = event.seq - 1
                case _:
                    continue
            if brought != running:
                last, running, self.foreign = event, brought, foreign
        return last, running

    def _note_event(self, event: Event) -> None:
        match event.body:
            case ExecutionForked():
                self.state.inputs.execution_id = self.owners.popleft()
            case TokenClaimed():
                self.claimed_at[event.seq] = event.ts

    def _judge_event(self, event: Event, position: int) -> Iterator[Difference]:
        """Whether the event is what follows, what a worker reports, or what somebody asked for."""
        self.in_append += 1
        if not self.pending and not self._same_report(event):
            self.pending.extend(decide_next(self.state, event.ts))
            if self.pending and self._append_was_cut(event):
                self.pending.clear()
        if self.pending:
            self.reporting = None
            yield from self._judge_decision(event, self.pending.popleft())
            return
        run = self._owned_run(event.body)
        self.in_append = self.in_append if self._same_report(event) else 1
        self.reporting = (_fence_of(run, event.body), event.ts) if run is not None else None
        yield from self._judge_report(event, run) if run is not None else self._judge_command(event, position)

    def _same_report(self, event: Event) -> bool:
        """A report is recorded as a whole before anything follows from it."""
        run = self._owned_run(event.body)
        return run is not None and self.reporting == (_fence_of(run, event.body), event.ts)

    def _append_was_cut(self, event: Event) -> bool:
        """Very long appends are cut, and somebody may come between: this event is not what follows."""
        if self.in_append <= MAX_EVENTS_AT_ONCE or same_body(
            event.body, self._seal(self.pending[0], event.ts)
        ):
            return False
        return self._owned_run(event.body) is not None or any(infer_commands(self.state, (event,)))

    def _owned_run(self, body: EventBody) -> RunState | None:
        """The run that a worker speaks of."""
        if type(body) not in REPORTABLE:
            return None
        run = self.state.runs.get(getattr(body, "run", ""))
        return run if run is not None and _fence_of(run, body) else None

    def _seal(self, body: EventBody, now: int) -> EventBody:
        if isinstance(body, LoopDone):
            body, _ = add_manifest(self.state.runs[body.run], body, PendingEffects())
        if isinstance(body, RunEnd):
            return seal_run_end(self.state, self.state.runs[body.run], body, now)
        return body

    def _judge_decision(self, event: Event, body: EventBody) -> Iterator[Difference]:
        """The server decided this by itself."""
        if isinstance(body, TAKEN_AS_RECORDED) and type(body) is type(event.body):
            return  # somebody asked for it, with what stands before it
        self.verdicts += 1
        decided = self._seal(body, event.ts)
        if same_body(event.body, decided):
            return
        if isinstance(event.body, CancelRequested) and (
            size := oversize(self.state.plan, decided, self.state.execution_id)
        ):
            decided = end_oversized(self.state, decided, size)
            self.pending.clear()
        difference = first_difference(
            self.state, event, decided, "the server decides otherwise on this state"
        )
        if difference is not None:
            yield difference
        self._count_unjudged()

    def _count_unjudged(self) -> None:
        self.verdicts -= 1
        self.unjudged += 1

    def _judge_command(self, event: Event, position: int) -> Iterator[Difference]:
        """Somebody asked for it, or a time had come."""
        body = event.body
        why = "nothing on this state leads to it"
        for command in infer_commands(self.state, self.events[position : position + 3]):
            try:
                bodies = decide(self.state, command, event.ts)
            except (Refused, NotOwner) as refusal:
                why = str(refusal)
                continue
            if not bodies:
                continue
            first = self._seal(bodies[0], event.ts)
            taken_as_recorded = isinstance(first, TAKEN_AS_RECORDED) or (
                isinstance(first, RunResumed) and first.reason == "child"
            )
            if type(first) is not type(body) or not (taken_as_recorded or same_body(body, first)):
                difference = first_difference(
                    self.state, event, first, "it is decided otherwise on this state"
                )
                if difference is not None:
                    yield difference
            self.verdicts += not taken_as_recorded
            self.pending.extend(bodies[1:])
            return
        yield difference_of_event(self.state, event, why)

    def _judge_report(self, event: Event, run: RunState) -> Iterator[Difference]:
        """A worker said it, by its own clock."""
        body = event.body
        if isinstance(body, RunSuspended) and body.reason == "pause" and not self.state.paused:
            self.pending.append(RunResumed(run=run.id, reason="resume"))  # it came too late
        if isinstance(body, StepFailed):
            if self.state.stopping and body.error.kind == "cancelled" and not body.task:
                self.verdicts += 1
                return
            if body.source == "server" and body.error.kind == "limit" and not body.task:
                self.unjudged += 1  # what fitted into no event is not known any more
                return
            timed_out = decide(self.state, TimerFired(run.id), event.ts)
            if timed_out and same_body(body, self._seal(timed_out[0], event.ts)):
                self.verdicts += 1
                return
        before = self.unread
        decided = self._derive_recorded(event, run, event.ts)
        self.verdicts += 1
        if self.unread > before:
            self._count_unjudged()
            return
        if same_body(body, decided):
            return
        difference = self._difference_by_any_clock(event, run, decided)
        if difference is not None and not rests_on_secrets(run, body, event.ts, self._fetched):
            yield difference
        if difference is not None or not bodies_differ(body, decided):
            self._count_unjudged()

    def _derive_recorded(self, event: Event, run: RunState, now: int) -> EventBody | None:
        while True:
            try:
                decided = derive_report(run, event.body, now, self._fetched)
            except Unfetched as needed:
                if self._fetch(needed.keys):
                    continue
                # It rests on what is stored outside of the log, and cannot be had.
                self.unread += 1
                return event.body
            if decided is None:
                return None
            decided = self._externalize(self._seal(decided, event.ts))
            return _with_chunk_of(event.body, run, decided)

    def _fetch(self, keys: Sequence[str]) -> bool:
        """Has stored values at hand; False if there is one that cannot be read."""
        if self._read is None:
            return False
        self._fetched = {key: self._fetched[key] for key in keys if key in self._fetched}
        try:
            self._fetched |= {key: self._read(key) for key in keys if key not in self._fetched}
        except LookupError:
            return False
        return True

    def _externalize(self, body: EventBody) -> EventBody:
        """As it would be recorded: with references in place of large values."""
        run = self.state.runs.get(getattr(body, "run", ""))
        return externalize(self.state.plan, run.step if run else None, body, self.state.execution_id)[0]

    def _difference_by_any_clock(
        self, event: Event, run: RunState, decided: EventBody | None
    ) -> Difference | None:
        """The first difference that the worker's clock does not explain."""
        body, why = event.body, "the run leads to something else"
        early = self._derive_recorded(event, run, self._earliest_clock(event, run))
        late = self._derive_recorded(event, run, event.ts + CLOCKS_DIFFER)
        if same_body(body, early) or same_body(body, late):
            return None
        comparable = [
            body_then
            for body_then in (early, decided, late)
            if body_then is not None and type(body_then) is type(body)
        ]
        if not comparable:
            return difference_of_event(self.state, event, why, decided)
        spread = list(body_gaps(comparable[0], comparable[-1]))
        for gap in body_gaps(body, comparable[len(comparable) // 2]):
            if not explained_by_clock(gap, spread):
                return difference_in_gap(self.state, event, gap, why)
        return None

    def _earliest_clock(self, event: Event, run: RunState) -> int:
        """The earliest time that the clock of the owner may have shown."""
        time = self.claimed_at[_fence_of(run, event.body)] - CLOCKS_DIFFER
        frame = frame_of_event(run, event.body)
        if isinstance(event.body, TaskStarted) and frame is not None and frame.retry_at is not None:
            # Also after `event.ts`: the clock by which it waited may be fast.
            return max(time, min(frame.retry_at, event.ts + CLOCKS_DIFFER))
        return time

    def _judge_end(self) -> Iterator[Difference]:
        """What must still be there after the last event: appends are recorded as a whole."""
        if not self.events:
            return
        last = self.events[-1]
        if not self.pending and (self.in_append >= MAX_EVENTS_AT_ONCE or self.foreign >= len(self.events)):
            return
        self.pending.extend(decide_next(self.state, last.ts) if not self.pending else ())
        if self.pending:
            name = kind_of_body(self.pending[0]).name
            yield Difference(
                seq=last.seq + 1, event="", decided=name, why="the history ends where something must follow"
            )


def _fence_of(run: RunState, body: EventBody) -> int:
    """What is owned where an event happened; 0 if that is nothing. Of the end of all shards, any of them."""
    if run.phase != "claimed" or not run.sharded:
        return run.fence
    if type(body) in RUN_FOLDS:
        shard = run.shards.get(iteration_of(body) - iteration_of(body) % require_loop(run).shard_size)
        return shard.fence if shard is not None else 0
    return next(iter(run.leased_shards))


def _with_chunk_of(recorded: EventBody, run: RunState, decided: EventBody) -> EventBody:
    """What is decided, with a chunk of results where one is recorded: when to store is free to choose."""
    if not isinstance(recorded, LoopIterationCompleted) or not isinstance(decided, LoopIterationCompleted):
        return decided
    return force_chunk(run, decided)[0] if recorded.chunk is not None else decided
