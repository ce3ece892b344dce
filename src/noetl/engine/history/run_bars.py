"""The runs of an execution in time: bars with their waits, attempts, iterations and children."""

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from noetl.engine.history.read import RecordedHistory
from noetl.events.bodies import (
    CancelRequested,
    ExecutionForked,
    ExecutionRetried,
    IterationsRedriven,
    LoopIterationCompleted,
    LoopIterationStarted,
    RunResumed,
    RunSuspended,
    StepScheduled,
    TaskProcessed,
    TaskStarted,
    TokenClaimed,
)
from noetl.events.event import Event
from noetl.events.identifiers import run_id
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.run_state import RunState
from noetl.ports.execution_views import (
    ChildBar,
    HeatStrip,
    LoopBar,
    RunBar,
    RunPage,
    RunStatus,
    WaitReason,
    WaitSpan,
)
from noetl.ports.store import ExecutionRecord

HEAT_BUCKETS = 60
SHORTEST_IDLE = 1_000_000
"""Microseconds for which nothing happened before that is worth a mark."""
PARTS_KEPT = 100
"""Waits and children of one run."""


class RunClock:
    """What is noted of a run on the way through its history."""

    def __init__(self, event: Event, run: RunState) -> None:
        self.run = run
        self.seq = event.seq
        self.begin = event.ts
        self.claimed: int | None = None
        self.attempts = self.failed_attempts = self.begun_iterations = 0
        self.waits: list[WaitSpan] = []
        self.waits_since: tuple[int, WaitReason] | None = None
        self.working = False
        self.iteration_ends: list[tuple[int, bool]] = []
        self.children: dict[str, ChildBar] = {}

    def note(self, event: Event) -> None:
        """An event that names this run."""
        match event.body:
            case TokenClaimed():
                self.claimed = self.claimed or event.ts
            case TaskStarted(redelivery=0):
                self.attempts += 1
            case TaskProcessed() as body:
                self.failed_attempts += body.outcome.status == "error"
            case LoopIterationStarted():
                self.begun_iterations += 1
            case LoopIterationCompleted() as body:
                self.iteration_ends.append((event.ts, body.status == "error"))
            case RunSuspended(reason="child") as body:
                self._note_child(event, body)
            case RunResumed(reason="child") as body:
                self._note_child_end(event, body)

    def _note_child(self, event: Event, body: RunSuspended) -> None:
        frame = self.run.frames.get(body.iteration)
        if frame is not None and len(self.children) < PARTS_KEPT:
            self.children[body.child] = ChildBar(
                execution_id=body.child,
                path="",
                status="running",
                task=self.run.task(frame).label,
                iteration=body.iteration,
                begin=event.ts,
                end=None,
            )

    def _note_child_end(self, event: Event, body: RunResumed) -> None:
        for child in self.children.values():
            if child.iteration == body.iteration and child.end is None:
                self.children[child.execution_id] = replace(child, end=event.ts)

    def follow_phase(self, event: Event) -> None:
        """Whatever the event was about: how the run stands after it."""
        phase = self.run.phase
        if phase in ("ready", "suspended"):
            if self.waits_since is None:
                self.waits_since = event.ts, _wait_reason(event, self.run)
            elif phase == "ready" and self.waits_since[1] != "ready":
                self._end_wait(event.ts)
                self.waits_since = event.ts, "ready"
        elif self.waits_since is not None:
            self._end_wait(event.ts)
        self.working = phase == "claimed"

    def _end_wait(self, ts: int) -> None:
        assert self.waits_since is not None  # noqa: S101 - its callers have looked
        begin, reason = self.waits_since
        self.waits_since = None
        if ts > begin and len(self.waits) < PARTS_KEPT:
            self.waits.append(WaitSpan(begin=begin, end=ts, reason=reason))

    def bar(self, now: int) -> RunBar:
        run = self.run
        ended = run.phase == "ended"
        waits = self.waits
        if self.waits_since is not None and len(waits) < PARTS_KEPT:
            begin, reason = self.waits_since
            waits = [*waits, WaitSpan(begin=begin, end=None, reason=reason)]
        return RunBar(
            run=run.id,
            step=run.step.name,
            line=run.step.step.position.line,
            seq=self.seq,
            begin=self.begin,
            claimed=self.claimed,
            end=run.ended_at if ended else None,
            ended_seq=run.ended_seq if ended else None,
            status=_run_status(run),
            attempts=self.attempts,
            failed_attempts=self.failed_attempts,
            worked=run.worked + (max(now - run.since, 0) if run.since else 0),
            waits=waits,
            loop=self._loop_bar(),
            children=list(self.children.values()),
            error={"kind": run.error.kind, "message": run.error.message} if run.error and ended else None,
        )

    def _loop_bar(self) -> LoopBar | None:
        loop = self.run.loop
        if loop is None:
            return None
        return LoopBar(
            total=loop.total,
            begun=self.begun_iterations,
            succeeded=loop.succeeded,
            failed=loop.failed,
            open=len(self.run.frames) if self.run.phase != "ended" else 0,
            heat=_heat(self.iteration_ends),
        )


class RunTimeline:
    """The runs that had begun by an event, in order, and when nothing of the execution was worked on."""

    def __init__(self, history: RecordedHistory, at: int) -> None:
        """At event `at`. Raises WrongSequence."""
        self.hash = history.plan.playbook.hash
        self.state = new_state(history.plan, history.record.execution_id)
        self.clocks: dict[str, RunClock] = {}
        self._open: dict[str, RunClock] = {}
        self._idle: list[tuple[int, int]] = []
        self._idle_since = history.events[0].ts
        self._begin = self._idle_since
        self._working = 0
        self.advance(history, at)

    def advance(self, history: RecordedHistory, at: int) -> None:
        """Goes on to event `at`, which is not before the one where it stands. Raises WrongSequence."""
        for event in history.events[self.state.version : at]:
            evolve(self.state, event)
            self._follow(event)

    def page(self, offset: int, limit: int, children: Sequence[ExecutionRecord] = ()) -> RunPage:
        """The runs from that at `offset` on. `children` are those of the execution, to say how they are."""
        state, clocks = self.state, list(self.clocks.values())
        records = {record.execution_id: record for record in children}
        following = offset + limit
        return RunPage(
            execution_id=state.execution_id,
            at=state.version,
            begin=self._begin,
            end=state.ended_at if state.over else None,
            now=state.last_ts,
            idle=self.idle,
            runs=[_with_records(clock.bar(state.last_ts), records) for clock in clocks[offset:following]],
            next_cursor=str(following) if following < len(clocks) else None,
        )

    @property
    def idle(self) -> list[tuple[int, int]]:
        spans = self._idle
        if not self._working and not self.state.over:
            spans = [*spans, (self._idle_since, self.state.last_ts)]
        return [(begin, end) for begin, end in spans if end - begin >= SHORTEST_IDLE]

    def _follow(self, event: Event) -> None:
        was_working = self._working
        for clock in self._concerned(event):
            self._working -= clock.working
            clock.follow_phase(event)
            self._working += clock.working
            if clock.run.phase == "ended":
                self._open.pop(clock.run.id, None)
        if self._working and not was_working:
            self._idle.append((self._idle_since, event.ts))
        elif was_working and not self._working:
            self._idle_since = event.ts

    def _concerned(self, event: Event) -> Sequence[RunClock]:
        """The runs whose phase may be another one after this event."""
        body, state = event.body, self.state
        if isinstance(body, StepScheduled):
            name = run_id(event.seq)
            clock = self.clocks[name] = self._open[name] = RunClock(event, state.runs[name])
            return (clock,)
        if name := getattr(body, "run", ""):
            clock = self.clocks[name]
            clock.note(event)
            return (clock,)
        if isinstance(body, CancelRequested | ExecutionForked | ExecutionRetried | IterationsRedriven):
            self._open |= {name: self.clocks[name] for name in state.runs}
            return list(self._open.values())
        return ()


def run_page(
    history: RecordedHistory, at: int, offset: int, limit: int, children: Sequence[ExecutionRecord] = ()
) -> RunPage:
    """The runs as they were after event `at`."""
    return RunTimeline(history, at).page(offset, limit, children)


def _with_records(bar: RunBar, records: Mapping[str, ExecutionRecord]) -> RunBar:
    if not bar.children:
        return bar
    return replace(
        bar, children=[_with_record(child, records.get(child.execution_id)) for child in bar.children]
    )


def _with_record(child: ChildBar, record: ExecutionRecord | None) -> ChildBar:
    return replace(child, path=record.path, status=record.status) if record is not None else child


def _wait_reason(event: Event, run: RunState) -> WaitReason:
    if run.phase == "suspended" and isinstance(event.body, RunSuspended):
        return event.body.reason
    return "ready"


def _run_status(run: RunState) -> RunStatus:
    match run.phase:
        case "ready":
            return "ready"
        case "claimed":
            return "running"
        case "suspended":
            return "waiting"
    if run.error is not None:
        return "cancelled" if run.error.kind == "cancelled" else "failed"
    return "skipped" if run.skipped else "completed"


def _heat(ends: Sequence[tuple[int, bool]]) -> HeatStrip | None:
    if not ends:
        return None
    begin, last = ends[0][0], ends[-1][0]
    bucket = max((last - begin) // HEAT_BUCKETS + 1, 1)
    buckets = (last - begin) // bucket + 1
    succeeded, failed = [0] * buckets, [0] * buckets
    for ts, is_failure in ends:
        (failed if is_failure else succeeded)[(ts - begin) // bucket] += 1
    return HeatStrip(begin=begin, bucket=bucket, succeeded=succeeded, failed=failed)
