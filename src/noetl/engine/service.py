"""The executions that this process owns: what happens to one, and what that means for others."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

import msgspec
import uuid_utils

from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks
from noetl.engine.children import Children
from noetl.engine.commit_log import CommitLog
from noetl.engine.execution import ExecutionOrigin, LiveExecution, TaskLogWriter
from noetl.engine.history.lookup import decode_rows, request_event_of
from noetl.engine.history.read import read_state
from noetl.engine.inbox import decode_command
from noetl.engine.registry import ExecutionRegistry
from noetl.engine.timers import Timers
from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.events.identifiers import run_id
from noetl.kernel import ExecutionState, Refused, dump_state, new_state
from noetl.kernel.net.commands import LeaseLost, Request, Resume, TimerFired
from noetl.kernel.state.execution_state import STATE_FORMAT
from noetl.model import NoetlError
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
from noetl.stores.ownership import Owners
from noetl.stores.results import MemoryResults

SNAPSHOT_EVERY = 10_000
"""Events after which a state is kept, so that opening the execution again folds no more than that."""


class AlreadyRunning(NoetlError):
    """Another process runs this execution."""

    def __init__(self, execution_id: str, process: int | None) -> None:
        where = f"process {process}" if process else "another process"
        super().__init__(f"{execution_id} is running in {where}")


CredentialCheck: TypeAlias = Callable[[Playbook, str], Awaitable[ErrorInfo | None]]


class Dispatcher(Protocol):
    """Who runs the runs. All of it is told before the events are durable."""

    def decided(self, live: LiveExecution) -> None:
        """Something waits to be written."""
        ...

    def ready(self, live: LiveExecution) -> None:
        """A run may be claimed."""
        ...

    def changed(self, live: LiveExecution, run: str) -> None:
        """A run was resumed, or ended by the server."""
        ...

    def halted(self, live: LiveExecution) -> None:
        """The execution pauses, or stops."""
        ...

    def over(self, live: LiveExecution) -> None:
        """The execution has ended, and that is durable."""
        ...


class Service:
    """Opens executions, and hears of everything that happens to them.

    `watch` gets the events of an execution when they are durable. `preflight` says why a playbook cannot
    begin: a credential that it uses cannot be had.
    """

    def __init__(
        self,
        store: Store,
        playbooks: Playbooks,
        owners: Owners | None,
        dispatcher: Dispatcher,
        *,
        watch: Callable[[str, Sequence[Event], ExecutionState], None] | None = None,
        logs: TaskLogWriter | None = None,
        results: ResultStore | None = None,
        preflight: CredentialCheck | None = None,
    ) -> None:
        self.logs = logs
        self.preflight = preflight
        self.results = results or MemoryResults()
        self.store = store
        self.playbooks = playbooks
        self.registry = ExecutionRegistry()
        self.timers = Timers()
        self.commit_log = CommitLog(store, self.results, self._wrote)
        self._owners = owners
        self._dispatcher = dispatcher
        self._watch = watch
        self.children = Children(self)
        self._side_work: set[asyncio.Task[None]] = set()
        self._answered: set[int] = set()

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
        ownership = self._owners.acquire(execution_id) if self._owners is not None else None
        if self._owners is not None and ownership is None:
            raise AlreadyRunning(execution_id, self._owners.owner(execution_id))
        self.commit_log.add_document(document)
        live = LiveExecution(new_state(document.plan, execution_id), origin, self, ownership)
        live.start_key = key
        self.registry.add(live)
        live.submit(request)
        return live

    async def holder_of_start_key(self, live: LiveExecution) -> str:
        """The execution that was begun with its key before, if there is one: then this one is dropped.

        Raises Refused if that is one of another playbook.
        """
        await self.commit_log.flush()
        first = self.commit_log.taken_keys.get(live.execution_id, "")
        if first:
            self.drop(live)
            record = await self.store.execution(first)
            if record is not None and record.path != live.state.plan.playbook.metadata.path:
                key = live.start_key
                raise Refused(f"the idempotency key `{key}` is that of {first}, which runs `{record.path}`")
        return first

    async def open(self, execution_id: str) -> LiveExecution:
        """An execution from the store, owned from here on. Nothing happens to it before `go_on`.

        Raises ExecutionUnknown, AlreadyRunning, StoreError.
        """
        if (known := self.registry.get(execution_id)) is not None:
            return known
        record = await self.store.execution(execution_id)
        if record is None:
            raise ExecutionUnknown(f"there is no execution {execution_id}")
        ownership = self._owners.acquire(execution_id) if self._owners is not None else None
        if self._owners is not None and ownership is None:
            raise AlreadyRunning(execution_id, self._owners.owner(execution_id))
        try:
            origin = await self.origin_of(record)
            document = await self.playbooks.read_stored(self.store, record.playbook)
            state = await read_state(self.store, document.plan, execution_id)
        except BaseException:
            if ownership is not None:
                ownership.release()
            raise
        return LiveExecution(state, origin, self, ownership)

    async def resume(self, live: LiveExecution) -> None:
        """Takes up an opened execution where it stands: timers, children, runs that are ready."""
        self.registry.add(live)
        self.void_leases(live)
        if live.paused:
            live.submit(Resume())
        self._arm(live)
        await self.children.resume_children(live)
        await self.read_inbox([live.execution_id])
        self._dispatcher.ready(live)

    def void_leases(self, live: LiveExecution) -> None:
        """Its last owner is gone: what that one had claimed is free again."""
        for run in list(live.state.claimed_runs()):
            live.submit(LeaseLost(run.id, run.fence))

    def runs_elsewhere(self, execution_id: str) -> bool:
        """Whether another process owns it."""
        if self._owners is None or execution_id in self.registry:
            return False
        return self._owners.owner(execution_id) is not None

    async def origin_of(self, record: ExecutionRecord) -> ExecutionOrigin:
        """What the first event says, and a fork's own document."""
        rows = await self.store.read(record.execution_id, limit=1)
        body = request_event_of(decode_rows(record.execution_id, rows))
        depth, parent = 0, body.parent.execution_id if body.parent is not None else ""
        while parent and depth < 1_000:
            depth += 1
            above = await self.store.execution(parent)
            parent = above.parent if above is not None else ""
        # A fork may run another document, which was read somewhere else.
        file = body.file
        if record.playbook != body.hash:
            file = (await self.playbooks.read_stored(self.store, record.playbook)).source.file
        return ExecutionOrigin(file=file, parent=body.parent, depth=depth, trace_id=body.trace_id)

    def drop(self, live: LiveExecution) -> None:
        """Forgets an execution that was never written."""
        self.registry.remove(live)
        live.pending.clear()
        self.commit_log.discard(live)
        live.release()

    async def read_inbox(self, execution_ids: Sequence[str]) -> None:
        """Does what others asked of these executions."""
        for letter in await self.store.inbox(execution_ids):
            if letter.id in self._answered:
                continue  # it lies there until the answer is written
            live = self.registry.get(letter.execution_id)
            order = decode_command(letter.body)
            try:
                done = live.submit(order) if live is not None and order is not None else []
            except Refused:
                done = []
            if live is not None and done:
                live.answers.append(letter.id)
                self._answered.add(letter.id)
            else:
                await self.store.take([letter])

    def wake(self, live: LiveExecution) -> None:
        """Something of it can be written now."""
        self._dispatcher.decided(live)

    def hurry(self) -> None:
        self.commit_log.urgent = True

    async def read_blob(self, live: LiveExecution, key: str) -> bytes:
        return await self.commit_log.read_blob(live, key)

    async def playbook_of(self, playbook_hash: str) -> tuple[Playbook, Path]:
        try:
            document = await self.playbooks.read_stored(self.store, playbook_hash)
        except PlaybookInvalid as error:
            raise StoreUnusable(f"the playbook that declares it is not valid: {error}") from None
        return document.playbook, ExecutionOrigin(file=document.source.file).folder

    async def close(self) -> None:
        self.timers.close()
        if self._side_work:
            await asyncio.wait(self._side_work)
        await self.commit_log.close()
        for live in self.registry:
            self.registry.remove(live)
            live.release()

    def _arm(self, live: LiveExecution) -> None:
        """All timers of a state that was folded."""
        state = live.state
        self._timer(live, state.deadline, "")
        for name, token in state.tokens.items():
            self._timer(live, token.deadline, name)
        for run in state.runs.values():
            self._timer(live, run.deadline, run.id)
            for frame in run.frames.values():
                if frame.suspension is not None:
                    self._timer(live, frame.suspension.until, run.id, frame.index)

    def _timer(self, live: LiveExecution, due: int | None, target: str, iteration: int = 0) -> None:
        if due is not None:
            self.timers.at(due, lambda: self._fire(live, TimerFired(target, iteration)))

    def _fire(self, live: LiveExecution, fired: TimerFired) -> None:
        if live.execution_id in self.registry and not live.state.over:
            live.submit(fired)

    def noticed(self, live: LiveExecution, events: list[Event]) -> None:
        self.commit_log.add(live, len(events))
        self._dispatcher.decided(live)
        for event in events:
            if type(event.body) in _TELLING:
                self._notice(live, event)
        if live.state.ready:
            self._dispatcher.ready(live)

    def _wrote(self, live: LiveExecution, events: Sequence[Event]) -> None:
        if self._watch is not None:
            self._watch(live.execution_id, events, live.state)
        if live.state.version - live.snapshot_at >= SNAPSHOT_EVERY and not live.state.over:
            self._keep_snapshot(live)
        if live.state.over and live.durable == live.state.version:
            self.registry.remove(live)
            live.release()
            self._dispatcher.over(live)

    def _keep_snapshot(self, live: LiveExecution) -> None:
        version = live.snapshot_at = live.state.version
        snapshot = Snapshot(version, STATE_FORMAT, msgspec.json.encode(dump_state(live.state)))
        live.after_commit(lambda: self.spawn(self._put_snapshot(live.execution_id, snapshot)))

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        """Does something that waits, beside everything else."""
        task = asyncio.get_running_loop().create_task(work)
        self._side_work.add(task)
        task.add_done_callback(self._side_work.discard)

    async def _put_snapshot(self, execution_id: str, snapshot: Snapshot) -> None:
        try:
            await self.store.put_snapshot(execution_id, snapshot)
        except StoreError:
            return  # it only saves folding; whatever is wrong will stop the next commit

    def _notice(self, live: LiveExecution, event: Event) -> None:
        """What an event means beyond the state: times to wake at, children, runs that changed."""
        match event.body:
            case of.TaskStarted() as body:
                self.children.on_task_started(live, body)
            case of.StepScheduled(deadline=deadline):
                if deadline is not None:
                    self._timer(live, deadline, run_id(event.seq))
            case of.TokenParked(deadline=deadline, token=token):
                self._timer(live, deadline, token)
            case of.WorkflowStarted(deadline=deadline):
                self._timer(live, deadline, "")
            case of.RunSuspended() as body:
                self._timer(live, body.until, body.run, body.iteration)
                if body.child:
                    self.children.start_awaited(live, body.run, body.iteration)
            case of.RunResumed(run=run, reason=reason, iteration=iteration):
                self._dispatcher.changed(live, run)
                if reason == "timeout":
                    self.children.cancel_abandoned(live, run, iteration)
            case of.StepFailed(source="server", run=run):
                self._dispatcher.changed(live, run)
                self.children.cancel_abandoned(live, run)
            case of.CancelRequested() as body:
                self._dispatcher.halted(live)
                self.children.cancel_all(live, by=body.by, reason=body.reason)
            case of.ExecutionPaused():
                self._dispatcher.halted(live)
            case of.ExecutionRetried():
                self._arm(live)
            case of.PlaybookProcessed():
                self.hurry()  # whoever asked for it waits for its end
                self.children.notify_parent(live)
            case _:
                pass


_TELLING: frozenset[type] = frozenset(
    {
        of.CancelRequested,
        of.ExecutionPaused,
        of.ExecutionRetried,
        of.PlaybookProcessed,
        of.RunResumed,
        of.RunSuspended,
        of.StepFailed,
        of.StepScheduled,
        of.TaskStarted,
        of.TokenParked,
        of.WorkflowStarted,
    }
)
