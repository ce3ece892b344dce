"""What must hold, seen from outside: the stored history alone, folded anew."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from noetl.events.bodies import (
    EventBody,
    ExecutionRetried,
    LeaseExpired,
    LoopDone,
    PlaybookExecutionRequested,
    RunResumed,
    SignalReceived,
    StepDone,
    StepFailed,
    TaskProcessed,
    TaskStarted,
    TokenClaimed,
)
from noetl.events.codec import decode
from noetl.events.event import Event
from noetl.kernel.pipeline.interpreter import MOST_LOSSES
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import STATE_FORMAT, ExecutionState, new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.invariants import sequence_gaps, violations
from noetl.kernel.state.replay import dump_state, load_state, replay, run_at_worker
from noetl.kernel.state.run_state import RunState, Shard
from noetl.kernel.verify.verification import verify
from noetl.ports.store import Append, Row, Store
from noetl.testing.simulator.row_model import RowModel
from noetl.testing.simulator.simulated_store import call_inline
from noetl.testing.simulator.simulated_tools import (
    SimulatedAttempt,
    SimulatedEffect,
    effect_problems,
    simulated_attempt_of,
)

if TYPE_CHECKING:
    from noetl.testing.simulator.simulated_world import SimulatedPlaybooks, SimulatedWorld
    from noetl.worker.remote import RemoteRun


SLOTS = 2
"""Runs that each worker takes at a time."""
PAGE = 1_000
"""Events that are read at a time."""
MOST_REDELIVERIES = 20
"""More than there are faults for: somebody gives it back and takes it again."""


class AuditFailure(Exception):
    """Something is wrong with the engine."""


def state_differences(first: ExecutionState, second: ExecutionState) -> list[str]:
    """The fields in which two states differ."""
    return [
        f"{name}: {getattr(first, name)!r} is not {getattr(second, name)!r}"
        for name in first.__struct_fields__
        if getattr(first, name) != getattr(second, name)
    ]


class Audit:
    """Folds what is in the store as soon as it is there, and compares."""

    def __init__(self, store: Store, playbooks: "SimulatedPlaybooks", world: "SimulatedWorld") -> None:
        self._store = store
        self._playbooks = playbooks
        self._world = world
        self.mirrors: dict[str, ExecutionState] = {}
        """What the stored rows of each execution amount to, folded as they come; the first is the root."""
        self.changed = False
        """Something was written since this was last looked at."""
        self.rows: dict[str, RowModel] = {}
        self.started: set[tuple[SimulatedAttempt, int]] = set()
        self.processed: dict[SimulatedAttempt, TaskProcessed] = {}
        self.signals: Counter[str] = Counter()
        """Those that came and that no wait has taken."""
        self.turned_away: Counter[tuple[str, str]] = Counter()
        """Runs that failed because their step did not admit their token, by execution and step."""
        self.retried: set[str] = set()
        self.histories: dict[str, list[Event]] = {}
        """All events of each execution, when everything is over."""
        self.lost_workers = 0
        """Tasks that were given up because workers were lost: they make an end depend on luck."""
        self._parents: dict[str, str] = {}
        self._started_children: dict[str, list[str]] = {}
        """Those that outcomes name which were just recorded."""
        self._last_times: dict[str, int] = {}
        self._expired: set[tuple[str, str, int]] = set()
        """Fences of leases that ran out."""

    def check_commit(self, appends: Sequence[Append]) -> None:
        """These were given to the store, and it has answered."""
        for append in appends:
            self._check_append(append.execution_id)
            self.changed = True
        # After all of them: in one commit a run of one execution ends, and its slot gets one of another.
        self._check_slots()
        for name in {append.execution_id: None for append in appends if append.execution_id in self.mirrors}:
            self._check_rows(name)
            self._check_children(name)

    def _check_append(self, execution: str) -> None:
        mirror = self.mirrors.get(execution)
        events = self._read(execution, mirror.version if mirror is not None else 0)
        if mirror is None:
            if not events:
                return  # its start key was taken
            request = events[0].body
            assert isinstance(request, PlaybookExecutionRequested)
            plan = self._playbooks.by_hash[request.hash].plan
            mirror = self.mirrors[execution] = new_state(plan, execution)
            self.rows[execution] = RowModel()
            if request.parent is not None:
                self._parents[execution] = request.parent.execution_id
        if not events:
            raise AuditFailure(f"an append to {execution} is not there")
        for event in events:
            if event.ts < self._last_times.get(execution, 0):
                raise AuditFailure(f"event {event.seq} of {execution} is older than the one before it")
            self._last_times[execution] = event.ts
            self._world.note(execution[-4:], f"{event.seq} {event.body}")
            self._check_event(execution, event)
            run = mirror.runs.get(getattr(event.body, "run", ""))
            evolve(mirror, event)
            self.rows[execution].add(event, mirror)
            _check_cut_short(mirror, event.body, run)
        self._require_none(
            [*violations(mirror), *_stray_listeners(mirror)], f"after event {mirror.version} of {execution}"
        )
        if any(isinstance(event.body, ExecutionRetried) for event in events) and any(
            token.after_failure for token in mirror.tokens.values()
        ):
            raise AuditFailure("a token is left of the failure that is retried")
        self._check_workers(mirror)

    def _read(self, execution: str, after: int) -> list[Event]:
        """What was appended since, whose last append must be whole."""
        stored: list[Row] = []
        while len(stored) % PAGE == 0:
            rows = call_inline(self._store.read(execution, after=after, limit=PAGE))
            if not rows:
                break
            stored += rows
            after = rows[-1].seq
        if stored and not stored[-1].last:
            raise AuditFailure(f"an append to {execution} has no end")
        return [Event(row.seq, row.ts, decode(row.kind, row.body, row.version)) for row in stored]

    def _check_rows(self, execution: str) -> None:
        rows = call_inline(self._store.rows_of(execution))
        self._require_none(self.rows[execution].problems(rows, self.mirrors[execution]), execution)

    def _check_children(self, execution: str) -> None:
        """Whoever waits for a child will hear of its end, and every child that was started is there."""
        state = self.mirrors[execution]
        for run in state.runs.values():
            for frame in run.frames.values():
                if frame.suspension is not None and frame.suspension.child:
                    self._check_awaited(execution, frame.suspension.child)
        for child in self._started_children.pop(execution, ()):
            if child not in self.mirrors:
                raise AuditFailure(f"{execution} has started {child}, which does not exist")
        if state.over and (parent := self._parents.get(execution)) is not None:
            self._check_children(parent)

    def _check_awaited(self, execution: str, child: str) -> None:
        if child not in self.mirrors:
            raise AuditFailure(f"{execution} waits for {child}, which does not exist")
        if self.mirrors[child].over and "end" not in call_inline(self._store.rows_of(child)).outbox:
            raise AuditFailure(f"{execution} waits for {child}, which is over, and nobody will say so")

    def check_durable(self, execution: str, _events: Sequence[Event], state: ExecutionState) -> None:
        """The server has an answer to a commit; `state` is what it believes, and may be ahead."""
        mirror = self.mirrors[execution]
        if state.version == mirror.version:
            self._require_equal(mirror, state, "the server and the store disagree")

    def _check_workers(self, mirror: ExecutionState) -> None:
        """Workers have no secrets: where all is reported, one knows of its run what the server knows."""
        for worker in self._world.workers:
            for remote in worker.open_runs():
                run = mirror.runs.get(remote.run.id)
                if remote.ledger.execution_id == mirror.execution_id and run is not None:
                    _check_worker_state(remote, run)

    def check_effect(self, effect: SimulatedEffect) -> None:
        """A tool is about to run: it must be on record that it starts."""
        if (effect.attempt, effect.redelivery) not in self.started:
            raise AuditFailure(f"{effect.attempt} runs before that is durable")
        execution, run = effect.attempt[:2]
        if (execution, run, effect.fence) in self._expired and not self._world.woke_up(execution, run):
            raise AuditFailure(f"{effect.attempt} begins though somebody else may have it")

    def check_takeover(self, worker: str, died_at: float) -> None:
        """A worker died one ttl and a little ago: nothing may be its any more, if the server was there."""
        if self._world.server_troubled_at >= died_at or not self._world.server.process.alive:
            return
        for name, rows in self.rows.items():
            for lease in rows.leases.values():
                if self._worker_of(lease.session) == worker:
                    raise AuditFailure(f"{name}/{lease.key} is still that of {worker}, which is dead")

    def _worker_of(self, session: str) -> str:
        return self._world.sessions.get(session, "")

    def _check_slots(self) -> None:
        # What a parent decided is written after the child it goes on with: it may have let go of its run.
        leases = (
            lease
            for name, rows in self.rows.items()
            if not self._world.server.holds_back(name)
            for lease in rows.leases.values()
        )
        for session, count in Counter(lease.session for lease in leases).items():
            if count > SLOTS:
                raise AuditFailure(f"session {session} has {count} runs")

    def _check_loss(self, execution: str, body: LeaseExpired) -> None:
        """Only who was stopped, or not heard, loses a lease."""
        world = self._world
        if body.reason != "expired":
            return
        worker = self._worker_of(self.rows[execution].leases[body.fence].session)
        self._expired.add((execution, body.run, body.fence))
        # Of a session without a worker nobody has heard: its welcome was lost.
        if worker and worker not in world.troubled:
            raise AuditFailure(f"{execution}/{body.run} was taken from {worker}, which was well")

    def _check_event(self, execution: str, event: Event) -> None:
        match event.body:
            case TaskStarted() as body:
                self._check_start(simulated_attempt_of(execution, body), body)
                if self.mirrors[execution].runs[body.run].frames[body.iteration].lost_workers >= MOST_LOSSES:
                    raise AuditFailure(f"{body.run}/{body.iteration} goes on after {MOST_LOSSES} losses")
                if body.redelivery > MOST_REDELIVERIES:
                    raise AuditFailure(f"{body.run}/{body.iteration} has begun {body.redelivery} times again")
            case TaskProcessed() as body:
                self._check_outcome(execution, body)
            case TokenClaimed() as body:
                if self.rows[execution].lease_of(body.run, body.shard) is not None:
                    raise AuditFailure(f"{body.run} was claimed while it had an owner")
            case LeaseExpired() as body:
                self._check_loss(execution, body)
            case StepFailed() as body:
                if body.error.kind == "worker_lost":
                    self.lost_workers += 1
                if body.error.kind == "admission":
                    step = self.mirrors[execution].runs[body.run].step.name
                    self.turned_away[execution, step] += 1
            case ExecutionRetried():
                self.retried.add(execution)
            case SignalReceived():
                self.signals[execution] += 1
            case RunResumed(reason="signal"):
                self.signals[execution] -= 1
                if self.signals[execution] < 0:
                    raise AuditFailure("one signal woke two waits")
            case _:
                pass

    def _check_start(self, attempt: SimulatedAttempt, body: TaskStarted) -> None:
        if attempt in self.processed:
            raise AuditFailure(f"{attempt} starts again though its outcome is recorded")
        if (attempt, body.redelivery) in self.started:
            raise AuditFailure(f"{attempt} starts twice as delivery {body.redelivery}")
        if body.redelivery and (attempt, body.redelivery - 1) not in self.started:
            raise AuditFailure(f"{attempt} starts as delivery {body.redelivery}, which is one too many")
        self.started.add((attempt, body.redelivery))

    def _check_outcome(self, execution: str, body: TaskProcessed) -> None:
        attempt = SimulatedAttempt(execution, body.run, body.iteration, body.task, body.visit, body.attempt)
        if attempt in self.processed:
            raise AuditFailure(f"{attempt} has two outcomes")
        if (attempt, 0) not in self.started:
            raise AuditFailure(f"{attempt} has an outcome and never began")
        if body.outcome.error is not None and body.outcome.error.kind == "worker_lost":
            self.lost_workers += 1
            if (attempt, MOST_LOSSES - 1) not in self.started:
                raise AuditFailure(f"{attempt} was given up too early")
        elif (number := body.outcome.meta.get("effect")) is not None:
            self._check_origin(execution, body, self._world.tools.effects[number])
        elif (child := body.outcome.helpers.get("playbook")) is not None:
            self._started_children.setdefault(execution, []).append(child["execution_id"])
        self.processed[attempt] = body

    def _check_origin(self, execution: str, body: TaskProcessed, effect: SimulatedEffect) -> None:
        """An outcome is recorded of the effect that the owner of the run had, and of none before."""
        lease = self.rows[execution].lease_of(body.run, body.iteration)
        if lease is None or effect.fence != lease.fence:
            raise AuditFailure(
                f"{body.run} took an outcome under fence {effect.fence}; it is owned by {lease}"
            )

    def check_end(self, effects: list[SimulatedEffect]) -> None:
        """The end of the simulation: everything again, from the beginning."""
        for execution, mirror in self.mirrors.items():
            if not mirror.over:
                raise AuditFailure(f"{execution} is {mirror.status} and nothing will happen any more")
            events = self.histories[execution] = self._read(execution, 0)
            self._require_none(list(sequence_gaps(events)), execution)
            replayed = replay(mirror.plan, execution, events)
            self._require_equal(replayed, mirror, "two replays differ")
            self._check_snapshot(mirror.plan, execution, events, len(events) // 3)
            self._check_snapshot(mirror.plan, execution, events, len(events) * 2 // 3)
            self._check_kept_snapshot(mirror)
            differences = verify(mirror.plan, execution, events).differences
            if differences:
                raise AuditFailure(f"{execution} does not verify: {differences[0]}")
        timers, messages = call_inline(self._store.timers()), call_inline(self._store.outbox())
        if timers or messages:
            raise AuditFailure("all executions are over, and a timer or message is left")
        self._require_none(list(effect_problems(effects, self.processed)), "effects")

    def _check_kept_snapshot(self, mirror: ExecutionState) -> None:
        """What the server kept, with the events after it, is the history."""
        name = mirror.execution_id
        snapshot = call_inline(self._store.snapshot(name, state_format=STATE_FORMAT))
        if snapshot is not None:
            state = load_state(mirror.plan, json.loads(snapshot.body))
            for event in self.histories[name][snapshot.seq :]:
                evolve(state, event)
            self._require_equal(mirror, state, "a snapshot and its tail are not the history")

    def _check_snapshot(self, plan: Plan, execution: str, events: list[Event], at: int) -> None:
        """A snapshot anywhere is as good as what was before it, now and for the events that come."""
        folded = replay(plan, execution, events[:at])
        loaded = load_state(plan, json.loads(json.dumps(dump_state(folded))))
        self._require_equal(folded, loaded, f"a snapshot at {at} is not the state")
        for event in events[at : at + 20]:
            evolve(folded, event)
            evolve(loaded, event)
            self._require_equal(folded, loaded, f"a snapshot at {at} and its tail are not the history")

    def check_joins(self) -> None:
        """Where there is no cycle, a step that waits for all or any runs once at most, also after a retry.

        A token that it turns away has a run of its own. What a join of any ran for before a retry may have
        been the failure that is retried. Where a count leaves a remainder, all that is behind it waits until
        nothing moves any more, and then goes by who came first, not by what leads where.
        """
        execution, state = next(iter(self.mirrors.items()))
        if any(token["reason"] == "remainder" for token in state.discarded):
            return
        for step in state.plan.playbook.workflow:
            once = ("all",) if execution in self.retried else ("all", "any")
            waits = step.join is not None and step.join.mode in once
            if not waits or step.name not in state.summaries:
                continue
            if state.summaries[step.name].runs - self.turned_away[execution, step.name] > 1:
                raise AuditFailure(f"the join of `{step.name}` let go more than once")

    def _require_none(self, problems: list[str], where: str) -> None:
        if problems:
            raise AuditFailure(f"{where}: {'; '.join(problems)}")

    def _require_equal(self, first: ExecutionState, second: ExecutionState, problem: str) -> None:
        if first != second:
            raise AuditFailure(
                f"{problem} ({first.execution_id}): {'; '.join(state_differences(first, second))}"
            )


def _check_worker_state(remote: "RemoteRun", run: RunState) -> None:
    working, owned = remote.run, run.owned_under(remote.fence)
    if owned is None or (owned.fence, owned.reported) != (remote.owned.fence, remote.owned.reported):
        return
    if isinstance(owned, Shard):
        frames = {index: run.frames[index] for index in owned.open}
        if (owned, frames) != (remote.owned, working.frames):
            raise AuditFailure(
                f"worker and server disagree about {run.id}/{owned.start}: {working!r} is not {run!r}"
            )
        return
    run, working = run_at_worker(run), run_at_worker(working)
    if run.suspended == working.suspended and (run.frames, run.loop) != (working.frames, working.loop):
        raise AuditFailure(f"worker and server disagree about {run.id}: {working!r} is not {run!r}")


def _check_cut_short(state: ExecutionState, body: EventBody, run: RunState | None) -> None:
    """What ends because of a limit can be retried, unless what it came of is."""
    if not state.cut_short or run is None or not isinstance(body, StepDone | StepFailed | LoopDone):
        return
    if not (run.final or run.after_failure or run.id in state.failed_runs):
        raise AuditFailure(f"{run.id} was cut short and cannot be retried")


def _stray_listeners(state: ExecutionState) -> Iterator[str]:
    """Whoever is on the list of a signal waits for it."""
    for signal, listeners in state.listeners.items():
        for listener in listeners:
            name, _, iteration = listener.partition("/")
            run = state.runs.get(name)
            frame = run.frames.get(int(iteration)) if run is not None else None
            if frame is None or frame.suspension is None or frame.suspension.signal != signal:
                yield f"{listener} does not wait for {signal}"
