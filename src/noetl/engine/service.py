"""The executions that this process owns: what happens to one, and what that means for others."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.engine.commit_log import CommitLog
from noetl.engine.effects import rows_as_effects
from noetl.engine.execution import ExecutionOrigin, ExecutionResources, LiveExecution, TaskLogWriter
from noetl.engine.execution_loader import STATE_MEMORY, ExecutionLoader
from noetl.engine.execution_timers import ExecutionTimers
from noetl.engine.history.lookup import decode_rows, request_event_of
from noetl.engine.history.read import read_state
from noetl.engine.history.repair import ReopenedRuns, fold_with_repair, retried_runs
from noetl.engine.listener import EngineListener, EventHandler
from noetl.engine.registry import ExecutionRegistry
from noetl.engine.timers import Timers
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.event import Event
from noetl.kernel.derived_rows import all_rows
from noetl.kernel.net.commands import LeaseLost, Request, Resume
from noetl.kernel.state.execution_state import STATE_FORMAT, ExecutionState, new_state
from noetl.kernel.state.replay import dump_state
from noetl.model.errors import NoetlError
from noetl.model.outcome import ErrorInfo
from noetl.ports.catalog import AuditEntry
from noetl.ports.results import ResultStore
from noetl.ports.shared_rows import SharedRows
from noetl.ports.store import (
    NO_EFFECTS,
    Effects,
    ExecutionRecord,
    ExecutionUnknown,
    ReadyRow,
    Snapshot,
    Store,
    StoreError,
    StoreUnusable,
)
from noetl.stores.ownership import Owners, Ownership
from noetl.stores.results.memory_backend import MemoryResults
from noetl.system import SYSTEM, System

SNAPSHOT_EVERY = 10_000
"""Events after which a state is kept, so that opening the execution again folds no more than that."""


class AlreadyRunning(NoetlError):
    """Another process runs this execution."""

    def __init__(self, execution_id: str, process: int | None) -> None:
        where = f"process {process}" if process else "another process"
        super().__init__(f"{execution_id} is running in {where}")


NeedsCheck: TypeAlias = Callable[[Playbook, str], Awaitable[ErrorInfo | None]]
"""Why a playbook, read in this folder, cannot begin: a credential or a module that it uses cannot be had.

A server has none: it asks its workers before it gives them the first run.
"""
Watch: TypeAlias = Callable[[str, Sequence[Event], ExecutionState], None]
"""Gets the events of an execution when they are durable, with its state, which may be ahead of them."""


class Service:
    """Opens executions, and tells its listeners of everything that happens to them.

    One that `serves` has all executions of its store that nobody else runs, and keeps their rows there: an
    execution need not be in memory before something happens to it. Whoever claimed runs may outlive it, so
    what is resumed is taken up as it was left, and a pause stays. Else the last owner is gone, and to resume
    is to go on. With `shared` there may be other servers: what is in memory may be behind the store then,
    which is seen when it is written, or asked for by `load`.
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
        check_needs: NeedsCheck | None = None,
        serves: bool = False,
        shared: SharedRows | None = None,
        memory: int = STATE_MEMORY,
        system: System = SYSTEM,
    ) -> None:
        self.check_needs = check_needs
        self.serves = serves
        self.shared = shared
        self.results = results or MemoryResults()
        self.store = store
        self.playbooks = playbooks
        self.registry = ExecutionRegistry()
        self.timers = Timers(system.now)
        self._new_execution_id = system.new_execution_id
        self.commit_log = CommitLog(
            store,
            self.results,
            self._on_durable,
            self._on_commit,
            system.monotonic,
            decide_again=self._decide_again if serves else None,
        )
        self._resources = ExecutionResources(
            self.results,
            self.commit_log.read_blob,
            self._read_playbook,
            self._on_decided,
            self.commit_log.hurry,
            system.now,
            logs,
        )
        self._owners = owners
        if owners is not None:
            owners.keep_open()
        self._watch = watch
        self._listeners: list[EngineListener] = []
        self._on_pending: list[Callable[[LiveExecution], None]] = []
        self._on_ready: list[Callable[[LiveExecution], None]] = []
        self._on_committed: list[Callable[[int, float], None]] = []
        self._handlers: dict[type[EventBody], tuple[EventHandler, ...]] = {}
        # Whoever asked for an execution waits for its end.
        self._add_handlers({of.PlaybookProcessed: lambda *_: self.commit_log.hurry()})
        self._side_work: set[asyncio.Task[None]] = set()
        self.loader = self._make_loader(memory) if serves else None
        if not serves:  # a server has its times in the store
            self.subscribe(ExecutionTimers(self.registry, self.timers))
        self.on_rows: Callable[[Effects], None] = lambda _: None
        """Hears of timers and messages that are durable, where this one serves."""
        self.on_resumed: Callable[[str], Awaitable[None]] = _leave_alone
        """Is awaited for an execution that goes on here, after all listeners have heard of it."""

    def subscribe(self, listener: EngineListener) -> None:
        """It hears of everything from here on, after those that came before it."""
        self._listeners.append(listener)
        # Only who does something is called: both are said of every decision, and most listeners do not care.
        if type(listener).pending is not EngineListener.pending:
            self._on_pending.append(listener.pending)
        if type(listener).ready is not EngineListener.ready:
            self._on_ready.append(listener.ready)
        if type(listener).committed is not EngineListener.committed:
            self._on_committed.append(listener.committed)
        self._add_handlers(listener.handlers())

    def begin(
        self,
        document: PlaybookDocument,
        request: Request,
        origin: ExecutionOrigin,
        execution_id: str = "",
        *,
        key: str = "",
        audit: Iterable[AuditEntry] = (),
    ) -> LiveExecution:
        """A new execution, its first events decided; `audit` is written with them."""
        execution_id = execution_id or self._new_execution_id()
        ownership = None if self.serves else self._claim_ownership(execution_id)
        self.commit_log.add_document(document)
        live = LiveExecution(execution_id, self._resources, ownership)
        live.load(new_state(document.plan, execution_id), origin)
        live.start_key = key
        live.audit = tuple(audit)
        if self.loader is not None:
            live.rows = {}
            self.loader.add(live)
        self.registry.add(live)
        live.submit(request)
        return live

    async def open(
        self,
        execution_id: str,
        repaired: PlaybookDocument | None = None,
        reopened: ReopenedRuns = retried_runs,
    ) -> LiveExecution:
        """An execution from the store, owned from here on. Nothing happens to it before `resume`.

        With a repaired document it is as if it had run that from the beginning; `reopened` are the runs that
        go on with it.

        Raises ExecutionUnknown, AlreadyRunning, StoreError; CannotRepair if the document does not fit.
        """
        if (live := self.registry.get(execution_id)) is not None:
            return live
        record = await self.store.execution(execution_id)
        if record is None:
            raise ExecutionUnknown(f"there is no execution {execution_id}")
        ownership = self._claim_stored(record)
        try:
            live = LiveExecution(execution_id, self._resources, ownership)
            await self._fold(live, record, repaired, reopened)
        except BaseException:
            if ownership is not None:
                ownership.release()
            raise
        return live

    async def _fold(
        self,
        live: LiveExecution,
        record: ExecutionRecord,
        repaired: PlaybookDocument | None = None,
        reopened: ReopenedRuns = retried_runs,
    ) -> None:
        """Brings a stored execution into memory; its rows are then there if it is served, else they are not.

        Raises StoreError; CannotRepair.
        """
        origin = await self._origin_of(record)
        document = await self.playbooks.read_stored(self.store, record.playbook)
        state = await read_state(self.store, document.plan, record.execution_id)
        if repaired is not None:
            state = await fold_with_repair(self.store, state, repaired, reopened)
            origin = replace(origin, file=repaired.source.file or origin.file)
            self.commit_log.add_document(repaired)
        if self.serves:
            if not record.served:
                rows = rows_as_effects(state)
                await self.store.put_rows(record.execution_id, state.version, rows)
                self.on_rows(rows)
            live.load(state, origin, len(msgspec.json.encode(dump_state(state))))
            live.rows = all_rows(state)
        else:
            if record.served:
                await self.store.put_rows(record.execution_id, state.version, Effects(served=False))
            live.load(state, origin)

    async def load(self, execution_id: str) -> LiveExecution | None:
        """A living execution, in memory; None if there is none here. Where this one serves, it is folded.

        What other servers have written to it until now is in its state. It stays in memory until the loop
        turns, or as long as it is pinned. Raises StoreError.
        """
        live = self.registry.get(execution_id)
        if self.loader is None or (live is not None and self.shared is None):
            return live
        if live is not None:
            with self.pinned(execution_id):
                await self.refresh(live)
        return await self.loader.load(execution_id)

    async def refresh(self, live: LiveExecution) -> None:
        """Reads it again if another server has written to it. Raises StoreError."""
        if self.shared is not None:
            await self.commit_log.refresh(live, partial(self._is_outdated, live, self.shared))

    def drop_outdated(self, live: LiveExecution) -> None:
        """Another server has written to it, and nobody here waits for it."""
        if self.loader is not None:
            self.loader.drop_outdated(live)

    @staticmethod
    async def _is_outdated(live: LiveExecution, shared: SharedRows) -> bool:
        versions = await shared.versions([live.execution_id])
        return live.loaded and versions.get(live.execution_id, 0) > live.durable

    def pinned(self, execution_id: str) -> AbstractContextManager[None]:
        """What is in memory of it stays there meanwhile."""
        return self.loader.pinned([execution_id]) if self.loader is not None else nullcontext()

    def _make_loader(self, memory: int) -> ExecutionLoader:
        return ExecutionLoader(
            self.registry,
            self._make,
            self._bring_back,
            commit_log=self.commit_log,
            listeners=self._listeners,
            memory=memory,
        )

    def _make(self, execution_id: str) -> LiveExecution:
        return LiveExecution(execution_id, self._resources)

    async def _bring_back(self, live: LiveExecution) -> bool:
        """Folds a living execution again; False if there is none here. Raises StoreError."""
        record = await self.store.execution(live.execution_id)
        if record is None or record.ended_at or (not record.served and self.runs_elsewhere(record)):
            return False
        await self._fold(live, record)
        return True

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
        if self.loader is not None:
            self.loader.add(live)
            live.release()  # from here on its rows say whose it is
        self.registry.add(live)
        if not self.serves:
            self.void_leases(live)
            if live.paused:
                live.submit(Resume())
        for listener in self._listeners:
            await listener.resumed(live)
        await self.on_resumed(live.execution_id)
        for on_ready in self._on_ready:
            on_ready(live)

    def void_leases(self, live: LiveExecution) -> None:
        """Its last owner is gone: what that one had claimed is free again."""
        for run in list(live.state.claimed_runs()):
            for owned in run.owned_parts():
                live.submit(LeaseLost(run.id, owned.fence))

    def runs_elsewhere(self, record: ExecutionRecord) -> bool:
        """Whether another process owns it."""
        if self._owners is None or record.execution_id in self.registry:
            return False
        served = record.lives_on_server and not self.serves
        return self._owners.owner(record.execution_id, served=served) is not None

    def require_unowned(self, record: ExecutionRecord) -> None:
        """Raises AlreadyRunning if another process owns it."""
        if self.runs_elsewhere(record):
            raise AlreadyRunning(record.execution_id, self._owner_of(record))

    def _owner_of(self, record: ExecutionRecord) -> int | None:
        owners = self._owners
        return owners.owner(record.execution_id, served=record.lives_on_server) if owners else None

    def announce_offer(self, row: ReadyRow) -> None:
        """A run that was ready when the last server ended."""
        for listener in self._listeners:
            listener.offered(row.execution_id, row.key, row.run)

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

    def _claim_stored(self, record: ExecutionRecord) -> Ownership | None:
        """Raises AlreadyRunning."""
        if self.serves and record.lives_on_server:
            return None
        if not self.serves and record.lives_on_server and self.runs_elsewhere(record):
            raise AlreadyRunning(record.execution_id, self._owner_of(record))
        return self._claim_ownership(record.execution_id)

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

    def drop(self, live: LiveExecution) -> None:
        """Forgets an execution that was never written."""
        self.registry.remove(live)
        live.pending.clear()
        self.commit_log.discard(live)
        live.release()
        for listener in self._listeners:
            listener.dropped(live)

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

    def _on_commit(self, events: int, seconds: float) -> None:
        for on_committed in self._on_committed:
            on_committed(events, seconds)

    def _on_durable(self, live: LiveExecution, events: Sequence[Event], effects: Effects) -> None:
        if self._watch is not None:
            self._watch(live.execution_id, events, live.state)
        if effects is not NO_EFFECTS and (effects.timers or effects.outbox):
            self.on_rows(effects)
        state = live.state
        if not state.over:
            if state.version - live.snapshot_at >= SNAPSHOT_EVERY:
                self._keep_snapshot(live)
        elif live.durable == state.version:
            self.registry.remove(live)
            live.release()
            for listener in self._listeners:
                listener.over(live)
        if self.loader is not None:
            self.loader.touch(live)  # last: it may go

    async def _decide_again(self, live: LiveExecution) -> None:
        if self.loader is not None:
            await self.loader.decide_again(live)

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


async def _leave_alone(_execution_id: str) -> None:
    """Nobody asks anything of what this process resumes."""
