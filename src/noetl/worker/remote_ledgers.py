"""The executions of which a worker has, or lately had, runs: their documents, workloads and ledgers."""

from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

import msgspec

from noetl.dsl.document.playbook import Playbook
from noetl.kernel.plan import Plan
from noetl.kernel.state.replay import load_run
from noetl.kernel.state.run_state import ExecutionInputs
from noetl.loader import examine
from noetl.ports.control import (
    FetchedPlaybook,
    FetchedValue,
    FetchPlaybook,
    FetchWorkload,
    RunCommand,
    RunNews,
)
from noetl.ports.results import ResultStore
from noetl.ports.store import StoreUnusable
from noetl.worker.plane_requests import FetchRefused, ServerAccess, ServerUnavailable
from noetl.worker.remote import RemoteLedger, RemoteRun, Uplink

IDLE_EXECUTIONS = 256
"""Executions of which something is kept though no run of theirs is here."""
KNOWN_PLAYBOOKS = 256


class RemoteExecutions:
    """Ledgers by execution, the one used last at the end. `forget` hears of those that are dropped."""

    def __init__(
        self,
        uplink: Uplink,
        access: ServerAccess,
        results: ResultStore,
        *,
        directory: Path,
        allow_kinds: tuple[str, ...],
        forget: Callable[[str], None],
    ) -> None:
        self._uplink = uplink
        self._access = access
        self._results = results
        self._directory = directory
        self._allow_kinds = allow_kinds
        self._forget = forget
        self._ledgers: OrderedDict[str, RemoteLedger] = OrderedDict()
        self._plans: OrderedDict[str, Plan] = OrderedDict()

    async def accept(self, command: RunCommand) -> RemoteRun | None:
        """The run of a command, which is ours from here; None if it was before: it may be said twice.

        Raises FetchRefused, ServerUnavailable.
        """
        plan = await self._plan(command.playbook)
        ledger = self._ledgers.get(command.execution) or await self._ledger(command, plan)
        self._ledgers.move_to_end(command.execution)
        run = load_run(plan, ledger.inputs, msgspec.json.decode(command.run))
        before = ledger.runs.get(run.id)
        if before is not None and before.fence == command.fence:
            return None
        if before is not None:
            ledger.lose(before)
        accepted = ledger.take(run)
        await self._drop_idle()
        return accepted

    def receive(self, news: RunNews) -> None:
        if (ledger := self._ledgers.get(news.execution)) is not None:
            ledger.receive(news)

    def open_runs(self) -> list[RemoteRun]:
        return [run for ledger in self._ledgers.values() for run in ledger.runs.values() if run.open]

    async def close(self) -> None:
        while self._ledgers:
            await self._ledgers.popitem()[1].close()

    async def _ledger(self, command: RunCommand, plan: Plan) -> RemoteLedger:
        workload = msgspec.json.decode(command.workload)
        if workload is None:
            answer = await self._access.fetch(FetchWorkload(execution=command.execution))
            workload = answer.value if isinstance(answer, FetchedValue) else {}
        ledger = self._ledgers[command.execution] = RemoteLedger(
            self._uplink,
            plan,
            ExecutionInputs(command.execution, workload, command.trace),
            trace_id=command.trace,
            folder=self._directory,
            results=self._results,
            find_playbook=self._playbook_of,
        )
        return ledger

    async def _drop_idle(self) -> None:
        """What is kept is bounded: nobody says here when an execution is over."""
        if len(self._ledgers) > IDLE_EXECUTIONS:
            idle = next((name for name, ledger in self._ledgers.items() if not ledger.runs), None)
            if idle is not None:
                self._forget(idle)
                await self._ledgers.pop(idle).close()

    async def _plan(self, playbook_hash: str) -> Plan:
        """Raises FetchRefused, ServerUnavailable."""
        if (known := self._plans.get(playbook_hash)) is not None:
            self._plans.move_to_end(playbook_hash)
            return known
        answer = await self._access.fetch(FetchPlaybook(hash=playbook_hash))
        if not isinstance(answer, FetchedPlaybook):
            raise FetchRefused("the server answers with something else than a playbook")
        compiled = examine(answer.text, answer.name, dialect=answer.dialect, allow_kinds=self._allow_kinds)
        if compiled.playbook is None or compiled.playbook.hash != playbook_hash:
            raise FetchRefused(f"this release reads `{answer.name}` otherwise than that of the server")
        plan = self._plans[playbook_hash] = Plan(compiled.playbook)
        if len(self._plans) > KNOWN_PLAYBOOKS:
            self._plans.popitem(last=False)
        return plan

    async def _playbook_of(self, playbook_hash: str) -> tuple[Playbook, Path]:
        try:
            plan = await self._plan(playbook_hash)
        except (FetchRefused, ServerUnavailable) as error:
            raise StoreUnusable(str(error)) from None
        return plan.playbook, self._directory
