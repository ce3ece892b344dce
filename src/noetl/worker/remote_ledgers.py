"""The executions of which a worker has, or lately had, runs: their documents, workloads and ledgers."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from noetl.dsl.document.playbook import Playbook
from noetl.kernel.plan import Plan
from noetl.kernel.state.replay import load_run
from noetl.kernel.state.run_state import ExecutionInputs
from noetl.loader import examine
from noetl.model.json import Json
from noetl.model.reference import StoredReference
from noetl.ports.control import (
    ArtifactRequest,
    FetchedPlaybook,
    FetchedValue,
    FetchPlaybook,
    FetchWorkload,
    RunCommand,
    RunNews,
)
from noetl.ports.results import ExecutionObjects, ObjectDraft, ResultError, ResultMissing
from noetl.ports.store import StoreUnusable
from noetl.worker.remote import RemoteLedger, RemoteRun, Uplink
from noetl.worker.server_link import FetchRefused, ServerLink, ServerUnavailable, fetch

IDLE_EXECUTIONS = 256
"""Executions of which something is kept though no run of theirs is here."""
KNOWN_PLAYBOOKS = 256


class RemoteExecutions:
    """Ledgers by execution, the one used last at the end. `forget` hears of those that are dropped."""

    def __init__(
        self,
        uplink: Uplink,
        link: ServerLink,
        *,
        directory: Path,
        allow_kinds: tuple[str, ...],
        forget: Callable[[str], None],
    ) -> None:
        self._uplink = uplink
        self._link = link
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
        if command.fence in ledger.runs:
            return None
        run = load_run(plan, ledger.inputs, msgspec.json.decode(command.run))
        shard = run.shards[command.shard] if command.shard >= 0 else None
        for held in [held for held in ledger.runs.values() if held.run.id == run.id]:
            if held.shard is None or command.shard in (-1, held.shard.start):
                if held.fence > command.fence:
                    return None  # said a second time, late: it was claimed once more since
                ledger.lose(held)
        accepted = ledger.take(run, shard)
        await self._drop_idle()
        return accepted

    def receive(self, news: RunNews) -> None:
        if (ledger := self._ledgers.get(news.execution)) is not None:
            ledger.receive(news)

    async def playbook(self, playbook_hash: str) -> Playbook:
        """Raises FetchRefused, ServerUnavailable."""
        return (await self._plan(playbook_hash)).playbook

    def open_runs(self) -> list[RemoteRun]:
        return [run for ledger in self._ledgers.values() for run in ledger.runs.values() if run.open]

    async def close(self) -> None:
        while self._ledgers:
            await self._ledgers.popitem()[1].close()

    async def _ledger(self, command: RunCommand, plan: Plan) -> RemoteLedger:
        workload = msgspec.json.decode(command.workload)
        if workload is None:
            answer = await fetch(self._link, FetchWorkload(execution=command.execution))
            workload = answer.value if isinstance(answer, FetchedValue) else {}
        ledger = self._ledgers[command.execution] = RemoteLedger(
            self._uplink,
            plan,
            ExecutionInputs(command.execution, workload, command.trace),
            trace_id=command.trace,
            folder=self._directory,
            results=self._link.results,
            find_playbook=self._playbook_of,
            name_objects=self._objects_with_names,
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
        answer = await fetch(self._link, FetchPlaybook(hash=playbook_hash))
        if not isinstance(answer, FetchedPlaybook):
            raise FetchRefused("the server answers with something else than a playbook")
        compiled = examine(answer.text, answer.name, dialect=answer.dialect, allow_kinds=self._allow_kinds)
        if compiled.playbook is None or compiled.playbook.hash != playbook_hash:
            raise FetchRefused(f"this release reads `{answer.name}` otherwise than that of the server")
        plan = self._plans[playbook_hash] = Plan(compiled.playbook)
        if len(self._plans) > KNOWN_PLAYBOOKS:
            self._plans.popitem(last=False)
        return plan

    def _objects_with_names(
        self, objects: ExecutionObjects, execution_id: str, run: str, task: str
    ) -> ExecutionObjects:
        return _ServerObjects(objects, self._link, execution_id, run, task)

    async def _playbook_of(self, playbook_hash: str) -> tuple[Playbook, Path]:
        try:
            plan = await self._plan(playbook_hash)
        except (FetchRefused, ServerUnavailable) as error:
            raise StoreUnusable(str(error)) from None
        return plan.playbook, self._directory


class _ServerObjects:
    """The stored objects of an execution for one of its `artifact` tasks. See `noetl.ports.results`.

    What has a name is done by the server, in its own store: no byte of it comes this way.
    """

    def __init__(
        self, objects: ExecutionObjects, link: ServerLink, execution_id: str, run: str, task: str
    ) -> None:
        self._objects = objects
        self._link = link
        self._execution_id = execution_id
        self._run = run
        self._task = task

    @asynccontextmanager
    async def draft(self) -> AsyncIterator[ObjectDraft]:
        async with self._objects.draft() as draft:
            yield draft

    @asynccontextmanager
    async def local(self, reference: Mapping[str, Any]) -> AsyncIterator[Path]:
        async with self._objects.local(reference) as path:
            yield path

    async def publish(self, name: str, reference: StoredReference, store: str = "") -> dict[str, Json]:
        entry: dict[str, Json] = await self._ask("publish", name, store, dict(reference))
        return entry

    async def published(self, name: str, store: str = "") -> StoredReference | None:
        reference = await self._ask("published", name, store)
        return StoredReference(reference) if reference is not None else None

    async def artifacts(self, prefix: str = "", store: str = "") -> list[dict[str, Json]]:
        entries: list[dict[str, Json]] = await self._ask("list", prefix, store)
        return entries

    async def withdraw(self, name: str, store: str = "") -> bool:
        return bool(await self._ask("withdraw", name, store))

    async def _ask(self, action: Any, name: str, store: str, reference: dict[str, Any] | None = None) -> Any:
        """Raises ResultError, and ValueError for a name that is none."""
        request = ArtifactRequest(
            execution=self._execution_id,
            run=self._run,
            task=self._task,
            action=action,
            name=name,
            store=store,
            reference=reference,
        )
        try:
            answer = await fetch(self._link, request)
        except ServerUnavailable as error:
            raise ResultError(str(error)) from None
        except FetchRefused as error:
            if error.code == "invalid":
                raise ValueError(str(error)) from None
            raise (
                ResultMissing(str(error)) if error.code == "not_found" else ResultError(str(error))
            ) from None
        return answer.value if isinstance(answer, FetchedValue) else None
