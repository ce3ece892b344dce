"""Who gets which run: pools, kinds, priority, turns of executions, and the command that hands a run over."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw

from noetl.engine.execution import LiveExecution
from noetl.kernel.derived_rows import ready_run
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import claim_of
from noetl.kernel.state.replay import encode_for_worker
from noetl.kernel.state.run_state import ClaimedPart, claimable_part
from noetl.model.run_rows import ReadyRun
from noetl.ports.control import RunCommand
from noetl.server.plane.ready_queue import Needs, ReadyQueue
from noetl.server.plane.sessions import Lease, Leases, Sessions, WorkerSession
from noetl.tools.host.worker_tools import ENGINE_KINDS

MOST_CHAINED = 64
"""Runs of one execution that a worker gets in a row, before others have their turn."""
INLINE_WORKLOAD = 16_384
"""Bytes of a workload that goes with each command; a larger one is fetched once."""


class Dispatcher:
    """Gives ready runs to sessions with credit: of the highest priority first, one of each execution in turn.

    A claim is decided at once and goes into the append that is open; its command is sent when that is
    durable: a fence is a number of an event, and after a crash another worker could get the same one. What is
    not in memory is brought there by `load` when somebody may have it, and no more of it than they may have.
    Nothing is given away of what `admits` says no to; whoever does calls `dispatch` when that changes.
    """

    def __init__(
        self,
        sessions: Sessions,
        leases: Leases,
        load: Callable[[str], None],
        admits: Callable[[LiveExecution], bool],
    ) -> None:
        self._sessions = sessions
        self._leases = leases
        self._load = load
        self._admits = admits
        self._ready = ReadyQueue()
        self._offers: dict[str, list[ReadyRun]] = {}
        """What is ready of executions that are not in memory."""
        self._loading: dict[str, WorkerSession] = {}
        self._workloads: dict[str, Raw] = {}
        self._held = False
        self._noted: dict[str, LiveExecution] = {}
        """What was added meanwhile. Most of it is given away before it has to wait for a turn."""

    def add(self, live: LiveExecution) -> None:
        """It may have a run that is ready."""
        self._noted[live.execution_id] = live
        self._offers.pop(live.execution_id, None)
        if not self._held:
            self.dispatch()

    def offer(self, live: LiveExecution, run: ReadyRun) -> None:
        """A run of an execution that is not in memory is ready."""
        offers = self._offers.setdefault(live.execution_id, [])
        offers.append(run)
        self._ready.add(live, offers)

    def evicted(self, live: LiveExecution, runs: Iterable[ReadyRun]) -> None:
        """Its state is not in memory any more: what is ready is known without it."""
        self._workloads.pop(live.execution_id, None)
        if offers := list(runs):
            self._ready.add(live, offers)
            self._offers[live.execution_id] = offers
        else:
            self._ready.remove(live.execution_id)

    def loaded(self, execution_id: str) -> None:
        """It was asked for, and is in memory now, or cannot be: others may be asked for."""
        self._loading.pop(execution_id, None)
        live = self._ready.get(execution_id)
        if live is not None and not live.loaded:
            self.forget(execution_id)
        self.dispatch()

    def forget(self, execution_id: str) -> None:
        self._offers.pop(execution_id, None)
        self._noted.pop(execution_id, None)
        self._ready.remove(execution_id)
        self._workloads.pop(execution_id, None)

    def hold(self) -> None:
        """Gives nothing to anybody until `dispatch`: whoever reports is served first."""
        self._held = True

    def chain(self, ended: Lease) -> None:
        """Goes on with the same execution where a run of it has ended, as long as that is fair.

        Where something of a higher priority waits, `dispatch` finds out who may have it.
        """
        session, live = ended.session, ended.live
        if ended.chained >= MOST_CHAINED or session.credit <= 0 or not _is_open(live):
            return
        if not self._has_above(live.state.priority):
            part = _first_for(session, live)
            if part is not None:
                self._claim(live, part, session, ended.chained + 1)

    def _has_above(self, priority: int) -> bool:
        """Whether something of a higher priority may wait."""
        noted = (live for live in self._noted.values() if live.loaded)
        return self._ready.has_above(priority) or any(live.state.priority > priority for live in noted)

    def dispatch(self) -> None:
        """Gives away what can be given."""
        self._held = True  # a claim may be announced, and nothing else is to be given meanwhile
        try:
            while self._give_round():
                pass
        finally:
            self._held = False

    def _queue_noted(self) -> None:
        noted, self._noted = self._noted, {}
        for live in noted.values():
            if live.loaded and _is_open(live):
                state = live.state
                self._ready.add(live, [ready_run(state, state.runs[name]) for name in state.ready])

    def _give_round(self) -> bool:
        """One run of each execution of the highest priority that somebody can have; whether there is more."""
        self._queue_noted()
        for level in self._ready.levels(lambda needs: bool(self._takers(needs))):
            moved = False
            for waiting in level:
                live, takers = waiting.live, self._takers(waiting.needs)
                if not live.loaded:
                    self._bring_back(live, takers)
                elif not _is_open(live):
                    self._ready.remove(live.execution_id)
                elif self._admits(live):
                    moved = self._give_one(live, takers) or moved
            if moved:
                return True
        return False

    def _takers(self, needs: Needs) -> list[WorkerSession]:
        """Who could have one of these, and has more credit than is being read for it."""
        return [
            session
            for session in self._sessions
            if session.credit > self._loading_for(session) and any(_may_have(session, run) for run in needs)
        ]

    def _loading_for(self, session: WorkerSession) -> int:
        return list(self._loading.values()).count(session) if self._loading else 0

    def _bring_back(self, live: LiveExecution, takers: Iterable[WorkerSession]) -> None:
        """Has an execution read that has a run for one of these; it is given away when it is in memory."""
        if live.execution_id in self._loading:
            return
        for session in takers:
            if any(_may_have(session, run) for run in self._offers.get(live.execution_id, ())):
                self._loading[live.execution_id] = session
                self._load(live.execution_id)
                return

    def _give_one(self, live: LiveExecution, takers: Iterable[WorkerSession]) -> bool:
        # The emptiest first, so that work spreads.
        for session in sorted(takers, key=lambda session: -session.credit):
            part = _first_for(session, live)
            if part is not None and self._claim(live, part, session):
                self._ready.end_turn(live.execution_id)
                return True
        return False

    def _claim(
        self, live: LiveExecution, part: ClaimedPart, session: WorkerSession, chained: int = 0
    ) -> bool:
        try:
            live.submit(claim_of(part, session.worker, session.id))
        except Refused:  # it was stopped or paused by what came before
            return False
        lease = self.lease(session, live, part, chained)
        command = RunCommand(
            execution=live.execution_id,
            fence=lease.fence,
            playbook=live.playbook.hash,
            run=Raw(encode_for_worker(*part)),
            shard=lease.shard,
            workload=self._workload(live),
            trace=live.trace_id,
        )
        outgoing = session.outgoing

        def send() -> None:
            # Unless somebody else had written to the execution, and the run was never claimed.
            # It may have been noted anew meanwhile, as that of an execution which is taken up.
            noted = self._leases.get(live.execution_id, lease.run, lease.fence)
            if noted is not None and noted.session is lease.session:
                outgoing.add_command(command)

        live.when_durable(send)
        return True

    def lease(
        self, session: WorkerSession, live: LiveExecution, part: ClaimedPart, chained: int = 0
    ) -> Lease:
        """Notes whose a claimed run or shard is."""
        run, shard = part
        start = -1 if shard is None else shard.start
        lease = Lease(session, live, run.id, (shard or run).fence, start, chained)
        self._leases.add(lease)
        return lease

    def restore(self, session: WorkerSession, live: LiveExecution, key: str, fence: int) -> None:
        """The same for a claim from before a restart; `key` is that of its row."""
        run, _, shard = key.partition("/")
        self._leases.add(Lease(session, live, run, fence, int(shard or -1)))

    def _workload(self, live: LiveExecution) -> Raw:
        execution_id = live.execution_id
        if execution_id not in self._workloads:
            data = msgspec.json.encode(workload_for_workers(live))
            self._workloads[execution_id] = Raw(data if len(data) <= INLINE_WORKLOAD else b"null")
        return self._workloads[execution_id]


def workload_for_workers(live: LiveExecution) -> dict[str, Any]:
    """What pipelines of its playbook read of the workload."""
    keys, workload = live.state.plan.worker_workload, live.state.inputs.workload
    return workload if keys is None else {key: workload[key] for key in workload if key in keys}


def _may_have(session: WorkerSession, run: ReadyRun) -> bool:
    return run.pool in session.pools and session.kinds >= {*run.kinds} - ENGINE_KINDS


def _is_open(live: LiveExecution) -> bool:
    state = live.state
    return bool(state.ready) and not (state.paused or state.stopping or state.over)


def _first_for(session: WorkerSession, live: LiveExecution) -> ClaimedPart | None:
    """What has been ready longest of what the worker can run."""
    for name in live.state.ready:
        run = live.state.runs[name]
        if _may_have(session, ready_run(live.state, run)):
            return claimable_part(run)
    return None
