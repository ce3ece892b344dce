"""What a server's engine does, for its operator: lines in the log, and numbers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from noetl.dsl.document.playbook import Playbook
from noetl.engine.execution import LiveExecution
from noetl.engine.listener import EngineListener, EventHandler
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.identifiers import run_id
from noetl.kernel.derived_rows import ready_run
from noetl.model.run_rows import SERVER_POOL, ReadyRun
from noetl.process_log import LogEvent, log_event
from noetl.server.measures import Measures, PoolQueue
from noetl.server.plane.sessions import WorkerSession
from noetl.system import SYSTEM, System
from noetl.tools.host.worker_tools import ENGINE_KINDS

SLOW_COMMIT = 1.0
"""Seconds above which a commit is worth a line."""
STUCK_AFTER = 60.0
"""Seconds after which a run that no worker can take counts as stuck."""


class WaitingRun(NamedTuple):
    """A run that is ready, and since when, by the monotonic clock."""

    needs: ReadyRun
    since: float


class EngineObserver(EngineListener):
    """Counts what happens, and says what an operator wants to know. Nothing is done for each event.

    The engine must have `system`: that is how the time of a decision is measured.
    """

    def __init__(self, system: System = SYSTEM) -> None:
        self.measures = Measures()
        self._clock = system
        self._decision_began: float | None = None
        self.system = system._replace(now=self._begin_decision)
        self._waiting: dict[str, dict[str, WaitingRun]] = {}
        self._steps: dict[str, dict[str, str]] = {}

    def handlers(self) -> Mapping[type[EventBody], EventHandler]:
        run_changes = (of.TokenClaimed, of.RunResumed, of.StepFailed, of.StepCompletedByHand, of.StepSkipped)
        all_changes = (of.ExecutionPaused, of.ExecutionResumed, of.CancelRequested, of.ExecutionRetried)
        return {
            **dict.fromkeys(run_changes, lambda live, body, _: self._look_at(live, body.run)),
            **dict.fromkeys(all_changes, lambda live, *_: self._look_at_all(live)),
            of.PlaybookExecutionRequested: lambda live, *_: self._on_started(live),
            of.StepScheduled: self._on_scheduled,
            of.NextEvaluated: lambda live, body, _: self._forget_run(live, body.run),
            of.TaskProcessed: self._on_task_processed,
            of.LeaseExpired: self._on_lease_expired,
        }

    def pending(self, live: LiveExecution) -> None:  # noqa: ARG002 - whose it is makes no difference
        # Said first of all when something was decided; and when nothing was, which counts for nothing.
        if self._decision_began is not None:
            self.measures.decide.observe(self._clock.monotonic() - self._decision_began)
            self._decision_began = None

    def committed(self, events: int, seconds: float) -> None:
        self.measures.events += events
        self.measures.commit.observe(seconds)
        self.measures.last_commit = self._clock.now()
        if seconds > SLOW_COMMIT:
            log_event(LogEvent.SLOW_COMMIT, seconds=round(seconds, 3), events=events)

    async def resumed(self, live: LiveExecution) -> None:
        self._look_at_all(live)

    def offered(self, execution_id: str, run: str, ready: ReadyRun) -> None:
        self._waiting.setdefault(execution_id, {})[run] = WaitingRun(ready, self._clock.monotonic())

    def reloaded(self, live: LiveExecution) -> None:
        if live.loaded:
            self._look_at_all(live)
        else:
            self.dropped(live)

    def outdated(self, live: LiveExecution) -> None:
        self.dropped(live)

    def dropped(self, live: LiveExecution) -> None:
        self._waiting.pop(live.execution_id, None)
        self._steps.pop(live.execution_id, None)

    def over(self, live: LiveExecution) -> None:
        self._waiting.pop(live.execution_id, None)
        self._steps.pop(live.execution_id, None)
        state = live.state
        self.measures.ended[state.status] += 1
        if state.status == "failed":
            error = state.error
            log_event(
                LogEvent.EXECUTION_FAILED,
                execution_id=live.execution_id,
                playbook=live.playbook.metadata.path,
                kind=error.kind if error is not None else None,
                step=error.details.get("step") if error is not None else None,
                error=error.message if error is not None else None,
            )

    def queues(self) -> list[PoolQueue]:
        """The runs that wait, by pool."""
        now = self._clock.monotonic()
        ages: dict[str, list[float]] = {}
        for runs in self._waiting.values():
            for run in runs.values():
                ages.setdefault(run.needs.pool, []).append(now - run.since)
        return [PoolQueue(pool, len(waits), max(waits)) for pool, waits in sorted(ages.items())]

    def waiting_runs(self) -> list[tuple[str, str, WaitingRun, float]]:
        """Execution, run, what it needs, and for how many seconds it has waited; the longest first."""
        now = self._clock.monotonic()
        waiting = [
            (execution_id, name, run, now - run.since)
            for execution_id, runs in self._waiting.items()
            for name, run in runs.items()
        ]
        return sorted(waiting, key=lambda entry: -entry[3])

    def problem_of_pool(self, pool: str, workers: Sequence[WorkerSession]) -> str | None:
        """Why a run that waits in a pool is taken by none of its workers; None if none waits for that."""
        for runs in self._waiting.values():
            for run in runs.values():
                if run.needs.pool == pool and (problem := problem_of_run(run.needs, workers)):
                    return problem
        return None

    def stuck_executions(self, sessions: Iterable[WorkerSession]) -> list[str]:
        """Those with a run that has been ready for a while, and that none of these workers can take."""
        before = self._clock.monotonic() - STUCK_AFTER
        offers = [(session.pools, session.kinds) for session in sessions]
        return [
            execution_id
            for execution_id, runs in self._waiting.items()
            if any(run.since <= before and not _is_served(run.needs, offers) for run in runs.values())
        ]

    def _begin_decision(self) -> int:
        """The time, which every decision asks for when it begins. Others ask, too: the last one counts."""
        self._decision_began = self._clock.monotonic()
        return self._clock.now()

    def _on_started(self, live: LiveExecution) -> None:
        if (
            live.start_key
        ):  # another one may have its key: then it never began, and a counter does not go back
            live.after_commit(self._count_started)
        else:
            self._count_started()

    def _count_started(self) -> None:
        self.measures.started += 1

    def _on_scheduled(self, live: LiveExecution, body: of.StepScheduled, seq: int) -> None:
        self._steps.setdefault(live.execution_id, {})[run_id(seq)] = body.step
        self._look_at(live, run_id(seq))

    def _forget_run(self, live: LiveExecution, run: str) -> None:
        if (steps := self._steps.get(live.execution_id)) is not None:
            steps.pop(run, None)

    def _on_task_processed(self, live: LiveExecution, body: of.TaskProcessed, _: int) -> None:
        # The state is ahead of its events: a run that has ended may not be in it any more.
        step = self._steps.get(live.execution_id, {}).get(body.run)
        if step is None and (run := live.state.runs.get(body.run)) is not None:
            step = run.step.name
        kind = _task_kind(live.playbook, step or "", body.task)
        duration = body.outcome.meta.get("duration_ms")
        if isinstance(duration, int | float):
            self.measures.tasks[kind, body.outcome.status].observe(duration / 1e3)
        if body.do == "retry":
            self.measures.retries[kind] += 1

    def _on_lease_expired(self, live: LiveExecution, body: of.LeaseExpired, _: int) -> None:
        self.measures.leases_expired[body.reason] += 1
        if body.reason == "expired":
            log_event(LogEvent.LEASE_EXPIRED, execution_id=live.execution_id, run=body.run)
        self._look_at(live, body.run)

    def _look_at_all(self, live: LiveExecution) -> None:
        self._waiting.pop(live.execution_id, None)
        for run in live.state.ready:
            self._look_at(live, run)

    def _look_at(self, live: LiveExecution, name: str) -> None:
        """Notes whether a run waits for a worker, as it is now."""
        state = live.state
        waiting = self._waiting.get(live.execution_id)
        if name in state.ready and not (state.paused or state.stopping):
            if waiting is None:
                waiting = self._waiting[live.execution_id] = {}
            if name not in waiting:
                waiting[name] = WaitingRun(ready_run(state, state.runs[name]), self._clock.monotonic())
        elif waiting is not None and waiting.pop(name, None) is not None and not waiting:
            del self._waiting[live.execution_id]


def problem_of_run(needs: ReadyRun, workers: Iterable[WorkerSession]) -> str:
    """Why none of these workers can take a run; nothing if one can."""
    pool, kinds = needs.pool, frozenset(needs.kinds) - ENGINE_KINDS
    members = [session for session in workers if pool in session.pools]
    if any(kinds <= session.kinds for session in members):
        return ""
    if pool == SERVER_POOL:
        return "`executor.kind: local` needs a server that was started with --allow-local"
    if not members:
        return f"no worker serves the pool `{pool}`"
    return f"no worker of the pool `{pool}` knows {_listed(kinds, members)}"


def _listed(kinds: frozenset[str], workers: Sequence[WorkerSession]) -> str:
    """The kinds that are missing everywhere; all of them where they are only missing together."""
    known = frozenset[str]().union(*(worker.kinds for worker in workers))
    return " and ".join(f"`{kind}`" for kind in sorted(kinds - known or kinds))


def _task_kind(playbook: Playbook, step: str, label: str) -> str:
    tasks = playbook.steps[step].tasks if step in playbook.steps else ()
    return next((task.kind for task in tasks if task.label == label), "unknown")


def _is_served(needs: ReadyRun, offers: Iterable[tuple[frozenset[str], frozenset[str]]]) -> bool:
    kinds = frozenset(needs.kinds) - ENGINE_KINDS
    return any(needs.pool in pools and kinds <= offered for pools, offered in offers)
