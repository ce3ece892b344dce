"""The executions that this process owns: what happens to one, and what that means for others."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
import uuid_utils
from msgspec.structs import replace

from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.engine.commit_log import CommitLog
from noetl.engine.execution import ExecutionOrigin, ExecutionResources, LiveExecution, TaskLogWriter
from noetl.engine.history.lookup import decode_rows, request_event_of
from noetl.engine.history.read import read_state
from noetl.engine.history.repair import fold_with_repair
from noetl.engine.inbox import decode_command
from noetl.engine.listener import EngineListener, EventHandler
from noetl.engine.registry import ExecutionRegistry
from noetl.engine.timers import Timers
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.event import Event
from noetl.events.identifiers import run_id
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import LeaseLost, Request, Resume, TimerFired
from noetl.kernel.references.resolve import resolve_references
from noetl.kernel.state.execution_state import STATE_FORMAT, ExecutionState, new_state
from noetl.kernel.state.replay import dump_state
from noetl.model.errors import NoetlError, ResultError
from noetl.model.outcome import ErrorInfo
from noetl.ports.results import ResultStore
from noetl.ports.store import (
    ExecutionRecord,
    ExecutionUnknown,
    Snapshot,
    Store,
    StoreError,
    StoreUnusable,
)
from noetl.stores.ownership import Owners, Ownership
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_reader import read_result

SNAPSHOT_EVERY = 10_000
"""Events after which a state is kept, so that opening the execution again folds no more than that."""


class AlreadyRunning(NoetlError):
    """Another process runs this execution."""

    def __init__(self, execution_id: str, process: int | None) -> None:
        where = f"process {process}" if process else "another process"
        super().__init__(f"{execution_id} is running in {where}")


class KeyConflict(Refused):
    """The idempotency key is that of another request; `holder` is the execution that it started."""

    def __init__(self, message: str, holder: str) -> None:
        super().__init__(message)
        self.holder = holder


CredentialCheck: TypeAlias = Callable[[Playbook, str], Awaitable[ErrorInfo | None]]
"""Why a playbook, read in this folder, cannot begin: a credential that it uses cannot be had."""
Watch: TypeAlias = Callable[[str, Sequence[Event], ExecutionState], None]
"""Gets the events of an execution when they are durable, with its state, which may be ahead of them."""


class Service:
    """Opens executions, and tells its listeners of everything that happens to them.

    With `keeps_leases` whoever claimed runs may outlive this process: what is resumed is taken up as it was
    left, and a pause stays. Else the last owner is gone, and to resume is to go on.
    """

    def __init__(
        self,
        store: Store,
        playbooks: Playbooks,
        owners: Owners | None,
        *,
        watch: Watch | None = None,
        logs: TaskLogWriter | None = None,
        results: ResultStore | None = None,
        check_credentials: CredentialCheck | None = None,
        keeps_leases: bool = False,
    ) -> None:
        self.check_credentials = check_credentials
        self._keeps_leases = keeps_leases
        self.results = results or MemoryResults()
        self.store = store
        self.playbooks = playbooks
        self.registry = ExecutionRegistry()
        self.timers = Timers()
        self.commit_log = CommitLog(store, self.results, self._on_durable)
        self._resources = ExecutionResources(
            self.results,
            self.commit_log.read_blob,
            self._read_playbook,
            self._on_decided,
            self.commit_log.hurry,
            logs,
        )
        self._owners = owners
        if owners is not None:
            owners.keep_open()
        self._watch = watch
        self._listeners: list[EngineListener] = []
        self._on_pending: list[Callable[[LiveExecution], None]] = []
        self._on_ready: list[Callable[[LiveExecution], None]] = []
        self._handlers: dict[type[EventBody], tuple[EventHandler, ...]] = {}
        self._add_handlers(self._own_handlers())
        self._side_work: set[asyncio.Task[None]] = set()
        self._answered: set[int] = set()

    def subscribe(self, listener: EngineListener) -> None:
        """It hears of everything from here on, after those that came before it."""
        self._listeners.append(listener)
        # Only who does something is called: both are said of every decision, and most listeners do not care.
        if type(listener).pending is not EngineListener.pending:
            self._on_pending.append(listener.pending)
        if type(listener).ready is not EngineListener.ready:
            self._on_ready.append(listener.ready)
        self._add_handlers(listener.handlers())

    def begin(
        self,
        document: PlaybookDocument,
        request: Request,
        origin: ExecutionOrigin,
        execution_id: str = "",
        key: str = "",
    ) -> LiveExecution:
        """A new execution, its first events decided."""
        execution_id = execution_id or str(uuid_utils.uuid7())
        ownership = self._claim_ownership(execution_id)
        self.commit_log.add_document(document)
        live = LiveExecution(new_state(document.plan, execution_id), origin, self._resources, ownership)
        live.start_key = key
        self.registry.add(live)
        live.submit(request)
        return live

    async def holder_of_start_key(self, live: LiveExecution, request: Request) -> str:
        """The execution that was begun with its key before, if there is one: then this one is dropped.

        Raises KeyConflict if that is one of another playbook, or was asked for with other values.
        """
        await self.commit_log.flush()
        holder = self.commit_log.taken_keys.pop(live.execution_id, "")
        if holder:
            self._drop(live)
            begun = f"the idempotency key `{live.start_key}` is that of {holder}, which"
            earlier = request_event_of(decode_rows(holder, await self.store.read(holder, limit=1)))
            playbook = live.state.plan.playbook
            if earlier.path != playbook.metadata.path:
                raise KeyConflict(f"{begun} runs `{earlier.path}`", holder)
            differences = [] if earlier.hash == playbook.hash else ["document"]
            differences += [
                name
                for name in ("workload", "ctx", "labels")
                if not await self._is_same_value(getattr(earlier, name), getattr(request, name))
            ]
            if differences:
                raise KeyConflict(f"{begun} was started with another {', '.join(differences)}", holder)
        return holder

    async def _is_same_value(self, stored: object, value: object) -> bool:
        try:
            stored = await resolve_references(stored, partial(read_result, self.results))
        except ResultError:  # it is no longer kept: nobody can say that it was another
            return True
        # As bytes: to Python, 1 and True are equal.
        return msgspec.json.encode(stored, order="deterministic") == msgspec.json.encode(
            value, order="deterministic"
        )

    async def open(self, execution_id: str, repaired: PlaybookDocument | None = None) -> LiveExecution:
        """An execution from the store, owned from here on. Nothing happens to it before `resume`.

        With a repaired document it is as if it had run that from the beginning.

        Raises ExecutionUnknown, AlreadyRunning, StoreError; CannotRepair if the document does not fit.
        """
        if (live := self.registry.get(execution_id)) is not None:
            return live
        record = await self.store.execution(execution_id)
        if record is None:
            raise ExecutionUnknown(f"there is no execution {execution_id}")
        ownership = self._claim_ownership(execution_id)
        try:
            origin = await self._origin_of(record)
            document = await self.playbooks.read_stored(self.store, record.playbook)
            state = await read_state(self.store, document.plan, execution_id)
            if repaired is not None:
                state = await fold_with_repair(self.store, state, repaired)
                origin = replace(origin, file=repaired.source.file or origin.file)
                self.commit_log.add_document(repaired)
        except BaseException:
            if ownership is not None:
                ownership.release()
            raise
        return LiveExecution(state, origin, self._resources, ownership)

    async def resume(self, live: LiveExecution) -> None:
        """Takes up an opened execution where it stands: timers, children, runs that are ready.

        One that is over may have children that are not.
        """
        if live.state.over:
            live.release()
            for listener in self._listeners:
                await listener.resumed(live)
            for listener in self._listeners:
                listener.over(live)
            return
        self.registry.add(live)
        if not self._keeps_leases:
            self.void_leases(live)
            if live.paused:
                live.submit(Resume())
        self._arm_all(live)
        for listener in self._listeners:
            await listener.resumed(live)
        await self.read_inbox([live.execution_id])
        for on_ready in self._on_ready:
            on_ready(live)

    def void_leases(self, live: LiveExecution) -> None:
        """Its last owner is gone: what that one had claimed is free again."""
        for run in list(live.state.claimed_runs()):
            live.submit(LeaseLost(run.id, run.fence))

    def runs_elsewhere(self, execution_id: str) -> bool:
        """Whether another process owns it."""
        if self._owners is None or execution_id in self.registry:
            return False
        return self._owners.owner(execution_id) is not None

    def require_unowned(self, execution_id: str) -> None:
        """Raises AlreadyRunning if another process owns it."""
        if self.runs_elsewhere(execution_id):
            raise AlreadyRunning(execution_id, self._owners.owner(execution_id) if self._owners else None)

    async def read_inbox(self, execution_ids: Sequence[str]) -> None:
        """Does what other processes asked of these executions."""
        for message in await self.store.inbox(execution_ids):
            if message.id in self._answered:
                continue  # it lies there until the answer is written
            live = self.registry.get(message.execution_id)
            command = decode_command(message.body)
            try:
                events = live.submit(command) if live is not None and command is not None else []
            except Refused:
                events = []
            if live is not None and events:
                live.answers.append(message.id)
                self._answered.add(message.id)
            else:
                await self.store.take([message])

    def wake(self, live: LiveExecution) -> None:
        """Something of it can be written now."""
        for on_pending in self._on_pending:
            on_pending(live)

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Does something that waits, beside everything else."""
        task = asyncio.get_running_loop().create_task(work)
        self._side_work.add(task)
        task.add_done_callback(self._side_work.discard)

    async def close(self) -> None:
        self.timers.close()
        if self._side_work:
            await asyncio.wait(self._side_work)
        await self.commit_log.close()
        for live in self.registry:
            self.registry.remove(live)
            live.release()
        if self._owners is not None:
            self._owners.close()

    def _claim_ownership(self, execution_id: str) -> Ownership | None:
        """Raises AlreadyRunning."""
        if self._owners is None:
            return None
        ownership = self._owners.acquire(execution_id)
        if ownership is None:
            raise AlreadyRunning(execution_id, self._owners.owner(execution_id))
        return ownership

    async def _origin_of(self, record: ExecutionRecord) -> ExecutionOrigin:
        """What the first event says; a fork is nobody's child, and may have a document of its own."""
        rows = await self.store.read(record.execution_id, limit=1)
        body = request_event_of(decode_rows(record.execution_id, rows))
        depth, parent = 0, record.parent
        while parent and depth < 1_000:
            depth += 1
            above = await self.store.execution(parent)
            parent = above.parent if above is not None else ""
        # A fork or a retry may run another document, which was read somewhere else.
        file = body.file
        if record.playbook != body.hash:
            file = (await self.playbooks.read_stored(self.store, record.playbook)).source.file or file
        return ExecutionOrigin(
            file=file, parent=body.parent if record.parent else None, depth=depth, trace_id=body.trace_id
        )

    async def _read_playbook(self, playbook_hash: str) -> tuple[Playbook, Path]:
        try:
            document = await self.playbooks.read_stored(self.store, playbook_hash)
        except PlaybookInvalid as error:
            raise StoreUnusable(f"the playbook that declares it is not valid: {error}") from None
        return document.playbook, ExecutionOrigin(file=document.source.file).folder

    def _drop(self, live: LiveExecution) -> None:
        """Forgets an execution that was never written."""
        self.registry.remove(live)
        live.pending.clear()
        self.commit_log.discard(live)
        live.release()

    def _add_handlers(self, handlers: Mapping[type[EventBody], EventHandler]) -> None:
        for body_type, handler in handlers.items():
            self._handlers[body_type] = (*self._handlers.get(body_type, ()), handler)

    def _on_decided(self, live: LiveExecution, events: list[Event]) -> None:
        self.commit_log.add(live, len(events))
        for on_pending in self._on_pending:
            on_pending(live)
        handlers = self._handlers
        for event in events:
            kind = type(event.body)
            # Most events mean nothing beyond the state: they cost one look into a dictionary, without a call.
            if kind in handlers:
                for handler in handlers[kind]:
                    handler(live, event.body, event.seq)
        if live.state.ready:
            for on_ready in self._on_ready:
                on_ready(live)

    def _on_durable(self, live: LiveExecution, events: Sequence[Event]) -> None:
        if self._watch is not None:
            self._watch(live.execution_id, events, live.state)
        if live.state.version - live.snapshot_at >= SNAPSHOT_EVERY and not live.state.over:
            self._keep_snapshot(live)
        if live.state.over and live.durable == live.state.version:
            self.registry.remove(live)
            live.release()
            for listener in self._listeners:
                listener.over(live)

    def _keep_snapshot(self, live: LiveExecution) -> None:
        version = live.snapshot_at = live.state.version
        snapshot = Snapshot(version, STATE_FORMAT, msgspec.json.encode(dump_state(live.state)))
        # The state may be ahead of the store: a snapshot of events that a crash takes back would be wrong.
        live.after_commit(lambda: self.spawn(self._put_snapshot(live.execution_id, snapshot)))

    async def _put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        try:
            await self.store.put_snapshot(execution_id, snapshot)
        except StoreError:
            return  # it only saves folding; whatever is wrong will stop the next commit

    def _own_handlers(self) -> Mapping[type[EventBody], EventHandler]:
        """Times to wake at, and who waits for what is written."""
        return {
            of.WorkflowStarted: lambda live, body, _: self._arm(live, body.deadline, ""),
            of.StepScheduled: lambda live, body, seq: self._arm(live, body.deadline, run_id(seq)),
            of.TokenParked: lambda live, body, _: self._arm(live, body.deadline, body.token),
            of.RunSuspended: lambda live, body, _: self._arm(live, body.until, body.run, body.iteration),
            of.ExecutionRetried: lambda live, *_: self._arm_all(live),
            of.PlaybookProcessed: lambda *_: (
                self.commit_log.hurry()
            ),  # whoever asked for it waits for its end
        }

    def _arm_all(self, live: LiveExecution) -> None:
        """All timers of a state that was folded."""
        state = live.state
        self._arm(live, state.deadline, "")
        for name, token in state.tokens.items():
            self._arm(live, token.deadline, name)
        for run in state.runs.values():
            self._arm(live, run.deadline, run.id)
            for frame in run.frames.values():
                if frame.suspension is not None:
                    self._arm(live, frame.suspension.until, run.id, frame.index)

    def _arm(self, live: LiveExecution, due: int | None, target: str, iteration: int = 0) -> None:
        if due is not None:
            self.timers.at(due, lambda: self._fire(live, TimerFired(target, iteration)))

    def _fire(self, live: LiveExecution, fired: TimerFired) -> None:
        if live.execution_id in self.registry and not live.state.over:
            live.submit(fired)
