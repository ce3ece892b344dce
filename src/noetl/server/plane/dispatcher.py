"""Who gets which run: pools and kinds, fairness between executions, and the command that hands a run over."""

from collections import OrderedDict
from collections.abc import Iterable

import msgspec
from msgspec import Raw

from noetl.engine.execution import LiveExecution
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Claim
from noetl.kernel.plan import StepPlan
from noetl.kernel.state.replay import dump_run
from noetl.kernel.state.run_state import RunState
from noetl.ports.control import RunCommand
from noetl.server.plane.sessions import Lease, Sessions, WorkerSession
from noetl.tools.host.worker_tools import ENGINE_KINDS

MOST_CHAINED = 64
"""Runs of one execution that a worker gets in a row, before others have their turn."""
DEFAULT_POOL = "default"
INLINE_WORKLOAD = 16_384
"""Bytes of a workload that goes with each command; a larger one is fetched once."""


class Dispatcher:
    """Gives ready runs to sessions with credit, one of each execution in turn.

    A claim is decided at once and goes into the append that is open; its command is sent when that is
    durable: a fence is a number of an event, and after a crash another worker could get the same one.
    """

    def __init__(self, sessions: Sessions, leases: dict[tuple[str, str], Lease]) -> None:
        self._sessions = sessions
        self._leases = leases
        self._ready: OrderedDict[str, LiveExecution] = OrderedDict()
        self._workloads: dict[str, Raw] = {}
        self._held = False

    def add(self, live: LiveExecution) -> None:
        """It may have a run that is ready."""
        self._ready[live.execution_id] = live
        if not self._held:
            self.dispatch()

    def forget(self, execution_id: str) -> None:
        self._ready.pop(execution_id, None)
        self._workloads.pop(execution_id, None)

    def hold(self) -> None:
        """Gives nothing to anybody until `dispatch`: whoever reports is served first."""
        self._held = True

    def chain(self, ended: Lease) -> None:
        """Goes on with the same execution where a run of it has ended, as long as that is fair."""
        session, live = ended.session, ended.live
        if ended.chained < MOST_CHAINED and session.credit > 0 and _is_open(live):
            run = _first_for(session, live)
            if run is not None:
                self._claim(live, run, session, ended.chained + 1)

    def dispatch(self) -> None:
        """Gives away what can be given."""
        self._held = True  # a claim may be announced, and nothing else is to be given meanwhile
        try:
            moved = True
            while moved:
                moved = False
                for execution_id, live in list(self._ready.items()):
                    if not _is_open(live):
                        self._ready.pop(execution_id, None)
                        continue
                    free = [session for session in self._sessions if session.credit > 0]
                    if not free:
                        return
                    moved = self._give_one(live, free) or moved
        finally:
            self._held = False

    def _give_one(self, live: LiveExecution, free: Iterable[WorkerSession]) -> bool:
        # The emptiest first, so that work spreads.
        for session in sorted(free, key=lambda session: -session.credit):
            run = _first_for(session, live)
            if run is not None and self._claim(live, run, session):
                if live.execution_id in self._ready:
                    self._ready.move_to_end(live.execution_id)
                return True
        return False

    def _claim(self, live: LiveExecution, run: RunState, session: WorkerSession, chained: int = 0) -> bool:
        try:
            live.submit(Claim(run.id, session.worker, session.id))
        except Refused:  # it was stopped or paused by what came before
            return False
        self.lease(session, live, run, chained)
        command = RunCommand(
            execution=live.execution_id,
            fence=run.fence,
            playbook=live.playbook.hash,
            run=Raw(msgspec.json.encode(dump_run(run))),
            workload=self._workload(live),
            trace=live.trace_id,
        )
        outgoing = session.outgoing
        live.when_durable(lambda: outgoing.add_command(command))
        return True

    def lease(self, session: WorkerSession, live: LiveExecution, run: RunState, chained: int = 0) -> None:
        """Notes whose a claimed run is."""
        key = live.execution_id, run.id
        self._leases[key] = session.leases[key] = Lease(session, live, run.id, run.fence, chained)

    def _workload(self, live: LiveExecution) -> Raw:
        execution_id = live.execution_id
        if execution_id not in self._workloads:
            data = msgspec.json.encode(live.state.inputs.workload)
            self._workloads[execution_id] = Raw(data if len(data) <= INLINE_WORKLOAD else b"null")
        return self._workloads[execution_id]


def _is_open(live: LiveExecution) -> bool:
    state = live.state
    return bool(state.ready) and not (state.paused or state.stopping or state.over)


def _first_for(session: WorkerSession, live: LiveExecution) -> RunState | None:
    """The run that has been ready longest of those that the worker can run."""
    for name in live.state.ready:
        run = live.state.runs[name]
        if _pool_of(live, run.step) in session.pools and _kinds_of(run.step) <= session.kinds:
            return run
    return None


def _pool_of(live: LiveExecution, plan: StepPlan) -> str:
    pool = plan.step.spec.get("pool") or live.playbook.executor.spec.get("pool")
    return str(pool or DEFAULT_POOL)


def _kinds_of(plan: StepPlan) -> frozenset[str]:
    return frozenset(task.kind for task in plan.step.tasks) - ENGINE_KINDS
