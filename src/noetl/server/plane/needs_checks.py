"""Whether credentials and modules of an execution can be had where its runs will be: asked before the first.

A server sees nothing of what its workers see: their environment, files, Vault, packages. So it asks one
worker of each pool that runs steps which use credentials, or name modules. Until the answers are there the
execution waits, and runs of it are ready.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import TypeAlias

from noetl.credentials.resolver import checked_credentials, stored_names
from noetl.dsl.document.playbook import Playbook, Step
from noetl.engine.execution import LiveExecution, once_durable
from noetl.engine.service import Service
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel
from noetl.kernel.plan import pool_of_step
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.outcome import ErrorInfo
from noetl.ports.control import CheckNeeds, NeedsChecked
from noetl.ports.store import StoreError
from noetl.server.plane.sessions import Sessions, WorkerSession
from noetl.tools.python.lib_modules import names_modules

GOOD_FOR = 60.0
"""Seconds for which an answer counts that all can be had. That something is missing is asked anew: whoever
brings it does not want to wait."""
MAX_CACHED = 1_000
"""Playbooks of which it is known in which pools they need something; and answers."""

_CheckKey: TypeAlias = tuple[str, str]
"""The hash of a playbook, and a pool. Its workload is not in it: entries that read it are not asked about."""


class _Question:
    """Asked of `session`, or of nobody as long as no worker serves the pool; `waiting` are executions.

    Nobody is asked before the playbook is stored: they fetch it.
    """

    __slots__ = ("playbook", "session", "stored", "waiting")

    def __init__(self, playbook: Playbook) -> None:
        self.playbook = playbook
        self.session: WorkerSession | None = None
        self.stored = False
        self.waiting: set[str] = set()


class NeedsChecks:
    """`passed` is called when something may begin that waited."""

    def __init__(
        self,
        service: Service,
        sessions: Sessions,
        passed: Callable[[], None],
        monotonic: Callable[[], float],
    ) -> None:
        self._service = service
        self._sessions = sessions
        self._passed = passed
        self._clock = monotonic
        self._pools: OrderedDict[str, tuple[str, ...]] = OrderedDict()
        self._questions: dict[_CheckKey, _Question] = {}
        self._good_until: OrderedDict[_CheckKey, float] = OrderedDict()
        self._admitted: set[str] = set()

    def admits(self, live: LiveExecution) -> bool:
        """Whether its runs may be given away. If not, it is asked what must be known for that."""
        pools = self._pools_of(live.playbook)
        if not pools or live.execution_id in self._admitted:
            return True
        if not has_begun(live.state):
            now = self._clock()
            keys = [(live.playbook.hash, pool) for pool in pools]
            unknown = [key for key in keys if self._good_until.get(key, now) <= now]
            for key in unknown:
                self._wait(live, key)
            if unknown:
                return False
        self._admitted.add(live.execution_id)
        return True

    def forget(self, execution_id: str) -> None:
        """It is not in memory any more."""
        self._admitted.discard(execution_id)

    def over(self, execution_id: str) -> None:
        """It has ended: what only it waited for, and nobody was asked yet, need not be known."""
        self.forget(execution_id)
        for key, question in list(self._questions.items()):
            question.waiting.discard(execution_id)
            if not question.waiting and question.session is None:
                del self._questions[key]

    def unserved_pools(self, execution_id: str = "") -> list[str]:
        """The pools that it waits for, or any does, since none of their workers is there to be asked."""
        return [
            pool
            for (_, pool), question in self._questions.items()
            if question.session is None and (not execution_id or execution_id in question.waiting)
        ]

    def connected(self, session: WorkerSession) -> None:
        """It has not seen what was sent over its last connection, and may be who was missing."""
        for key, question in self._questions.items():
            if question.session is session:
                session.outgoing.put(CheckNeeds(playbook=key[0], pool=key[1]))
            elif question.session is None:
                self._ask(key, question)

    def lost(self, session: WorkerSession) -> None:
        """Others are asked what it was asked."""
        for key, question in self._questions.items():
            if question.session is session:
                question.session = None
                self._ask(key, question)

    def lets_read(self, session: WorkerSession, playbook_hash: str) -> bool:
        """Whether the session was asked about this playbook, and has not answered yet."""
        return any(
            question.session is session and question.playbook.hash == playbook_hash
            for question in self._questions.values()
        )

    def lets_look_up(self, session: WorkerSession, name: str) -> bool:
        """Whether it was asked about steps that use this credential of the server's store."""
        return any(
            question.session is session
            and name in stored_names(question.playbook, _steps_of_pool(question.playbook, pool))
            for (_, pool), question in self._questions.items()
        )

    def answered(self, session: WorkerSession, message: NeedsChecked) -> None:
        """What nobody asked, or another was asked meanwhile, counts for nothing."""
        key = message.playbook, message.pool
        question = self._questions.get(key)
        if question is None or question.session is not session:
            return
        del self._questions[key]
        if message.error is not None:
            self._service.spawn(self._end(question.waiting, message.error))
            return
        self._good_until.pop(key, None)
        self._good_until[key] = self._clock() + GOOD_FOR
        if len(self._good_until) > MAX_CACHED:
            self._good_until.popitem(last=False)
        self._passed()

    def _wait(self, live: LiveExecution, key: _CheckKey) -> None:
        question = self._questions.setdefault(key, _Question(live.playbook))
        if live.execution_id in question.waiting:
            return

        def ask() -> None:
            question.stored = True
            if question.session is None:
                self._ask(key, question)

        question.waiting.add(live.execution_id)
        once_durable(live, ask)

    def _ask(self, key: _CheckKey, question: _Question) -> None:
        if not question.stored or self._questions.get(key) is not question:
            return
        playbook_hash, pool = key
        able = [
            session
            for session in self._sessions
            if pool in session.pools and session.slots and not session.away
        ]
        if able:
            question.session = max(able, key=lambda session: session.credit)
            question.session.outgoing.put(CheckNeeds(playbook=playbook_hash, pool=pool))

    async def _end(self, execution_ids: set[str], error: ErrorInfo) -> None:
        for execution_id in sorted(execution_ids):
            try:
                live = await self._service.load(execution_id)
                if live is not None and not has_begun(live.state):
                    live.submit(Cancel(reason=error.kind, error=error))
            except (Refused, StoreError):
                continue  # it is over; or cannot be read, and is asked about when it can

    def _pools_of(self, playbook: Playbook) -> tuple[str, ...]:
        """The pools with a worker of which it must be proven that all is there."""
        if (pools := self._pools.get(playbook.hash)) is None:
            steps = [
                step
                for step in playbook.workflow
                if names_modules([step]) or checked_credentials(playbook, [step])
            ]
            pools = tuple(dict.fromkeys(pool_of_step(playbook, step) for step in steps))
            self._pools[playbook.hash] = pools
            if len(self._pools) > MAX_CACHED:
                self._pools.popitem(last=False)
        return pools


def _steps_of_pool(playbook: Playbook, pool: str) -> list[Step]:
    return [step for step in playbook.workflow if pool_of_step(playbook, step) == pool]


def has_begun(state: ExecutionState) -> bool:
    """Whether a worker has had a run of it."""
    runs = [run for run in state.runs.values() if not run.step.routes_only]
    if any(run.frames or run.loop is not None for run in runs):
        return True
    by_name = state.plan.by_name
    scheduled = sum(
        summary.runs for name, summary in state.summaries.items() if not by_name[name].routes_only
    )
    return scheduled > len(runs)
