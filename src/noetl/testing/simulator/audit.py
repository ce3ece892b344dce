"""What must hold, seen from outside: the stored history alone, folded anew."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from noetl.events.bodies import (
    EventBody,
    ExecutionRetried,
    LeaseExpired,
    LoopDone,
    LoopIterationCompleted,
    RunResumed,
    RunSuspended,
    SignalReceived,
    StepDone,
    StepFailed,
    TaskProcessed,
    TaskStarted,
    TokenClaimed,
)
from noetl.events.event import Event
from noetl.kernel.net.commands import Command, LeaseLost, Report, Retry
from noetl.kernel.pipeline.interpreter import MOST_LOSSES
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import ExecutionState, new_state, waiting_steps
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.invariants import sequence_gaps, violations
from noetl.kernel.state.replay import dump_state, load_state, replay
from noetl.kernel.state.run_state import RunState
from noetl.testing.simulator.archive import Archive, call_inline, event_of_row
from noetl.testing.simulator.simulated_tools import SimulatedAttempt, SimulatedEffect, simulated_attempt_of


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

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.mirrors: dict[str, ExecutionState] = {}
        """What the stored rows of each execution amount to, folded as they come."""
        self.owners: dict[tuple[str, str], int] = {}
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
        self._last_times: dict[str, int] = {}

    def check_commit(self, state: ExecutionState, command: Command | None) -> None:
        """An append was written because of `command`; `state` is what the writer believes it amounts to."""
        execution = state.execution_id
        if isinstance(command, Report):
            self._check_report(execution, command)
        mirror = self.mirrors.get(execution)
        if mirror is None:
            mirror = self.mirrors[execution] = new_state(state.plan, execution)
        rows = call_inline(self.archive.store.read(execution, after=mirror.version))
        if not rows or not rows[-1].last:
            raise AuditFailure(f"an append to {execution} is not there, or not whole")
        for row in rows:
            event = event_of_row(row)
            if event.ts < self._last_times.get(execution, 0):
                raise AuditFailure(f"event {event.seq} of {execution} is older than the one before it")
            self._last_times[execution] = event.ts
            self._check_event(execution, event, command)
            run = mirror.runs.get(getattr(event.body, "run", ""))
            evolve(mirror, event)
            self._release_owner(execution, mirror, event.body)
            _check_cut_short(mirror, event.body, run)
        self._require_none(
            [*violations(mirror), *_stray_listeners(mirror)], f"after event {mirror.version} of {execution}"
        )
        self._require_equal(mirror, state, "the writer and the store disagree")

        if isinstance(command, Retry) and any(token.after_failure for token in mirror.tokens.values()):
            raise AuditFailure("a token is left of the failure that is retried")

    def check_loaded_state(self, state: ExecutionState) -> None:
        """A state came from a snapshot and the events after it."""
        self._require_equal(
            self.mirrors[state.execution_id], state, "a snapshot and its tail are not the history"
        )

    def check_refusal(self, state: ExecutionState) -> None:
        """A command was refused, so nothing may have changed."""
        mirror = self.mirrors.get(state.execution_id)
        if mirror is not None and mirror.version == state.version:
            self._require_equal(mirror, state, "a refused command left something behind")

    def _check_report(self, execution: str, report: Report) -> None:
        """A report was accepted: it must have been the owner's."""
        owner = self.owners.get((execution, report.run), 0)
        if owner != report.fence:
            raise AuditFailure(
                f"{report.run} took a report under fence {report.fence}; its owner has {owner}"
            )

    def check_worker_state(self, working: RunState, state: ExecutionState) -> None:
        """A worker has no secrets: where all is reported, it knows of its run what the server knows."""
        run = state.runs.get(working.id)
        if run is None or not run.fence or (run.fence, run.reported) != (working.fence, working.reported):
            return
        if run != working and run.suspended == working.suspended:
            raise AuditFailure(f"worker and server disagree about {run.id}: {working!r} is not {run!r}")

    def check_effect(self, execution: str, call: RunTask) -> None:
        """A tool is about to run: it must be on record that it starts."""
        attempt = simulated_attempt_of(execution, call.started)
        if (attempt, call.started.redelivery) not in self.started:
            raise AuditFailure(f"{attempt} runs before that is durable")

    def _check_event(self, execution: str, event: Event, command: Command | None) -> None:
        match event.body:
            case TaskStarted() as body:
                self._check_start(simulated_attempt_of(execution, body), body)
                if self.mirrors[execution].runs[body.run].frames[body.iteration].lost_workers >= MOST_LOSSES:
                    raise AuditFailure(f"{body.run}/{body.iteration} goes on after {MOST_LOSSES} losses")
            case TaskProcessed() as body:
                self._check_outcome(execution, body)
            case TokenClaimed() as body:
                if self.owners.get((execution, body.run)):
                    raise AuditFailure(f"{body.run} was claimed while it had an owner")
                self.owners[execution, body.run] = event.seq
            case LeaseExpired() as body:
                if isinstance(command, LeaseLost) and command.fence != body.fence:
                    raise AuditFailure(f"{body.run} was taken from fence {body.fence}, not {command.fence}")
                self.owners[execution, body.run] = 0
            case StepDone() | StepFailed() | LoopDone() as body:
                self.owners[execution, body.run] = 0
                if isinstance(body, StepFailed) and body.error.kind == "worker_lost":
                    self.lost_workers += 1
                if isinstance(body, StepFailed) and body.error.kind == "admission":
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

    def _release_owner(self, execution: str, mirror: ExecutionState, body: EventBody) -> None:
        """After a pause, and where all that is left waits, nobody owns the run."""
        if (
            isinstance(body, RunSuspended | LoopIterationCompleted)
            and mirror.runs[body.run].phase != "claimed"
        ):
            self.owners[execution, body.run] = 0

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
        self.processed[attempt] = body

    def check_end(
        self, effects: list[SimulatedEffect], servers: Sequence[Mapping[str, ExecutionState]]
    ) -> None:
        """The end of the simulation: everything again, from the beginning."""
        for execution, mirror in self.mirrors.items():
            if not mirror.over:
                raise AuditFailure(f"{execution} is {mirror.status} and nothing will happen any more")
            events = self.histories[execution] = self.archive.events(execution)
            self._require_none(list(sequence_gaps(events)), execution)
            replayed = replay(mirror.plan, execution, events)
            self._require_equal(replayed, mirror, "two replays differ")
            for states in servers:
                if execution in states:
                    state = self.archive.catch_up(states[execution])
                    self._require_equal(replayed, state, "a server remembers something else")
            self._check_snapshot(mirror.plan, execution, events, len(events) // 3)
            self._check_snapshot(mirror.plan, execution, events, len(events) * 2 // 3)
        timers, messages = call_inline(self.archive.store.timers()), call_inline(self.archive.store.outbox())
        if timers or messages:
            raise AuditFailure("all executions are over, and a timer or message is left")
        self._check_effects(effects)

    def _check_snapshot(self, plan: Plan, execution: str, events: list[Event], at: int) -> None:
        """A snapshot anywhere is as good as what was before it, now and for the events that come."""
        folded = replay(plan, execution, events[:at])
        loaded = load_state(plan, json.loads(json.dumps(dump_state(folded))))
        self._require_equal(folded, loaded, f"a snapshot at {at} is not the state")
        for event in events[at : at + 20]:
            evolve(folded, event)
            evolve(loaded, event)
            self._require_equal(folded, loaded, f"a snapshot at {at} and its tail are not the history")

    def _check_effects(self, effects: list[SimulatedEffect]) -> None:
        """No attempt had an effect twice, but as another delivery with the same key; keys are not shared."""
        seen: set[tuple[SimulatedAttempt, int]] = set()
        keys: dict[SimulatedAttempt, str] = {}
        visits: dict[str, tuple[Any, ...]] = {}
        for attempt, redelivery, key in effects:
            if (attempt, redelivery) in seen:
                raise AuditFailure(f"{attempt} ran twice as delivery {redelivery}")
            seen.add((attempt, redelivery))
            if keys.setdefault(attempt, key) != key:
                raise AuditFailure(f"{attempt} ran again under another key")
            if visits.setdefault(key, attempt[:5]) != attempt[:5]:
                raise AuditFailure(f"{attempt} has the key of {visits[key]}")
        for attempt, key in keys.items():
            next_attempt = attempt._replace(attempt=attempt.attempt + 1)
            processed = self.processed.get(attempt)
            if processed is None or processed.do != "retry" or next_attempt not in keys:
                continue
            # After an error the same work is tried again; after a success the next poll is work of its own.
            if (keys[next_attempt] == key) != (processed.outcome.status == "error"):
                raise AuditFailure(
                    f"{next_attempt} has the wrong key: the outcome before was {processed.outcome.status}"
                )

    def check_joins(self, execution: str) -> None:
        """Where there is no cycle, a step that waits for all or any runs once at most, also after a retry.

        A token that it turns away has a run of its own. What a join of any ran for before a retry may have
        been the failure that is retried.
        """
        state = self.mirrors[execution]
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


def comparable_end(state: ExecutionState) -> dict[str, Any]:
    """What must be the same however things went: without ids, times, and the order of failures."""
    ctx = {key: value for key, value in state.ctx.values.items() if key != "signals"}
    return {
        "status": state.status,
        "result": state.result,
        "ctx": ctx,
        "steps": {name: (summary.status, summary.runs) for name, summary in sorted(state.summaries.items())},
        "failures": sorted((failure.error.kind, failure.error.details["step"]) for failure in state.failures),
        "discarded": sorted((token["step"], token["reason"]) for token in state.discarded),
        "waiting": waiting_steps(state),
    }
