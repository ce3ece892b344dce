"""The rows that an execution must have in the store, told by its events: slow and obvious.

It shares nothing with what writes them. Asked of the state is only whether a run that nobody owns waits, and
whether a loop still has its owner.
"""

from typing import NamedTuple

from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.events.identifiers import run_id
from noetl.kernel.state.execution_state import ExecutionState
from noetl.ports.store import Effects

_RunEnd = of.StepDone | of.StepFailed | of.LoopDone | of.StepCompletedByHand | of.StepSkipped


class ExpectedLease(NamedTuple):
    """Who owns a run, or the shard of it that begins with iteration `shard`; without shards that is -1."""

    run: str
    shard: int
    session: str
    fence: int

    @property
    def key(self) -> str:
        return self.run if self.shard < 0 else f"{self.run}/{self.shard}"


class _Limit(NamedTuple):
    """A time limit: when it began to count, and when it is over."""

    since: int
    deadline: int

    def renewed(self, now: int) -> "_Limit":
        return _Limit(now, now + self.deadline - self.since)


class RowModel:
    """What the events of one execution so far mean for its rows."""

    def __init__(self) -> None:
        self.leases: dict[int, ExpectedLease] = {}
        """By fence."""
        self._limit: _Limit | None = None
        self._run_limits: dict[str, _Limit] = {}
        self._waiting_tokens: dict[str, int] = {}
        self._waits: dict[tuple[str, int], int] = {}
        """When iterations go on that wait for a time, or give up waiting."""
        self._open: dict[str, str] = {}
        """Runs that have not ended, and their steps."""
        self._ended: dict[str, tuple[str, bool]] = {}
        """The others: their steps, and whether they failed."""
        self._reopened: set[str] = set()
        self._shard_sizes: dict[str, int] = {}
        self._stopping = self._paused = self._over = False
        self._ended_at = 0

    def lease_of(self, run: str, iteration: int) -> ExpectedLease | None:
        """Who owns this iteration."""
        for lease in self.leases.values():
            shard_size = self._shard_sizes.get(run, 0)
            if lease.run == run and (lease.shard < 0 or lease.shard == iteration - iteration % shard_size):
                return lease
        return None

    def add(self, event: Event, state: ExecutionState) -> None:
        """`state` is that after the event."""
        match event.body:
            case of.TokenClaimed() as body:
                self.leases[event.seq] = ExpectedLease(body.run, body.shard, body.session, event.seq)
            case of.LeaseExpired() as body:
                self.leases.pop(body.fence, None)
            case of.LoopStarted() as body if body.shard_size:
                self._shard_sizes[body.run] = body.shard_size
                self._release(body.run)
            case of.RunSuspended() as body:
                if body.until is not None:
                    self._waits[body.run, body.iteration] = body.until
                self._release_waiting(body, state)
            case of.RunResumed() as body if body.reason != "resume":
                self._waits.pop((body.run, body.iteration), None)
            case of.LoopIterationCompleted() as body:
                self._release_unowned(body.run, state)
            case _:
                self._add_token(event)
                self._add_end(event)

    def _add_token(self, event: Event) -> None:
        match event.body:
            case of.TokenParked(token=token, mode=mode, deadline=deadline):
                self._waiting_tokens.pop(token, None)
                if mode == "wait" and deadline is not None:
                    self._waiting_tokens[token] = deadline
            case of.TokenAdmitted(token=token) | of.TokenDiscarded(token=token):
                self._waiting_tokens.pop(token, None)
            case of.StepScheduled() as body:
                for token in body.tokens:
                    self._waiting_tokens.pop(token, None)
                self._open[run_id(event.seq)] = body.step
                if body.deadline is not None:
                    self._run_limits[run_id(event.seq)] = _Limit(event.ts, body.deadline)
            case _:
                pass

    def _add_end(self, event: Event) -> None:
        match event.body:
            case of.WorkflowStarted(deadline=int() as deadline):
                self._limit = _Limit(event.ts, deadline)
            case (
                of.StepDone()
                | of.StepFailed()
                | of.LoopDone()
                | of.StepCompletedByHand()
                | of.StepSkipped() as body
            ):
                self._end_run(body)
            case of.CancelRequested():
                self._stopping = True
            case of.ExecutionPaused():
                self._paused = True
            case of.ExecutionResumed():
                self._paused = False
            case of.PlaybookProcessed():
                self._over, self._ended_at = True, event.ts
            case of.ExecutionRetried(runs=runs):
                self._reopen(runs, event.ts)
            case _:
                pass

    def _end_run(self, body: _RunEnd) -> None:
        self._release(body.run)
        self._ended[body.run] = self._open.pop(body.run), isinstance(body, of.StepFailed)
        self._waits = {key: due for key, due in self._waits.items() if key[0] != body.run}

    def _reopen(self, runs: tuple[str, ...], now: int) -> None:
        """What failed has all of its time again; what waits was not counted while all stood still."""
        if self._over:
            self._limit = self._limit and self._limit.renewed(now)
        if self._stopping:
            late = now - self._ended_at
            self._waiting_tokens = {token: due + late for token, due in self._waiting_tokens.items()}
        self._over = self._stopping = False
        for run in runs:
            step, failed = self._ended.pop(run)
            if failed:  # else only its arcs are followed anew
                self._open[run] = step
                self._reopened.add(run)
            if failed and run in self._run_limits:
                self._run_limits[run] = self._run_limits[run].renewed(now)

    def _release(self, run: str) -> None:
        self.leases = {fence: lease for fence, lease in self.leases.items() if lease.run != run}

    def _release_waiting(self, body: of.RunSuspended, state: ExecutionState) -> None:
        if state.runs[body.run].loop is None or body.reason == "pause":
            self._release(body.run)
        elif body.run in self._shard_sizes and (lease := self.lease_of(body.run, body.iteration)):
            del self.leases[lease.fence]
        else:
            self._release_unowned(body.run, state)

    def _release_unowned(self, run: str, state: ExecutionState) -> None:
        owned = {part.fence for part in state.runs[run].owned_parts()}
        self.leases = {
            fence: lease for fence, lease in self.leases.items() if lease.run != run or fence in owned
        }

    def problems(self, rows: Effects, state: ExecutionState) -> list[str]:
        """How the rows in the store differ from those that must be there."""
        leases = (
            {} if self._over else {lease.key: (lease.session, lease.fence) for lease in self.leases.values()}
        )
        pairs: list[tuple[str, object, object]] = [
            ("timers", dict(rows.timers), self._timers()),
            ("leases", {key: (row.session, row.fence) for key, row in rows.leases.items() if row}, leases),
            ("ready runs", {key: row.kinds for key, row in rows.ready.items() if row}, self._ready(state)),
        ]
        return [
            f"the {name} in the store are {stored}, and should be {expected}"
            for name, stored, expected in pairs
            if stored != expected
        ]

    def _timers(self) -> dict[str, int]:
        """Nothing that is stopped or over wakes by time."""
        if self._over or self._stopping:
            return {}
        timers = {f"{run}/{iteration}": due for (run, iteration), due in self._waits.items()}
        timers |= {run: limit.deadline for run, limit in self._run_limits.items() if run in self._open}
        if self._limit is not None:
            timers[""] = self._limit.deadline
        return timers | self._waiting_tokens

    def _ready(self, state: ExecutionState) -> dict[str, tuple[str, ...]]:
        if self._over or self._stopping or self._paused:
            return {}
        ready: dict[str, tuple[str, ...]] = {}
        owned = {lease.key for lease in self.leases.values()}
        for name, step in self._open.items():
            run = state.runs[name]
            if run.step.routes_only and name not in self._reopened:
                continue  # the server does it, but for one that failed and is retried
            kinds = tuple(sorted({task.kind for task in state.plan.playbook.steps[step].tasks}))
            keys = [f"{name}/{start}" for start, shard in run.shards.items() if shard.phase == "ready"]
            keys = keys if name in self._shard_sizes else [name] * (run.phase == "ready")
            ready |= dict.fromkeys([key for key in keys if key not in owned], kinds)
        return ready
