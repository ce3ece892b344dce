"""What can be asked of the engine: start, resume, retry and fork executions, and wait for their ends."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from noetl.dsl.document.kinds import Kinds
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import PlaybookDocument, Playbooks, refused_document
from noetl.engine.catalog.preflight import Preflight
from noetl.engine.children import Children
from noetl.engine.execution import ExecutionOrigin, LiveExecution, TaskLogWriter
from noetl.engine.execution_loader import STATE_MEMORY
from noetl.engine.history.fork import fork_command, read_rows_until, write_fork
from noetl.engine.inbox import RemoteCommand
from noetl.engine.inbox_reader import InboxReader
from noetl.engine.listener import EngineListener
from noetl.engine.registry import EndWaiters
from noetl.engine.retry import redrive_execution, reopen_execution
from noetl.engine.scheduler import SLOTS, Scheduler, Worker
from noetl.engine.service import NeedsCheck, Service, Watch
from noetl.engine.start_key import holder_of_start_key
from noetl.engine.timers import Timers
from noetl.events.bodies import EventBody
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Request
from noetl.kernel.net.execution_request import decide_request
from noetl.kernel.references.resolve import resolve_references
from noetl.kernel.state.execution_state import ExecutionState, new_state
from noetl.model.outcome import ErrorInfo
from noetl.ports.catalog import AuditEntry
from noetl.ports.results import ResultStore
from noetl.ports.shared_rows import SharedRows
from noetl.ports.store import ExecutionUnknown, Store, StoreClosed, StoreError
from noetl.stores.ownership import Owners
from noetl.stores.results.named_results import store_names
from noetl.stores.results.result_reader import read_result
from noetl.system import SYSTEM, System

LARGEST_TABLE = 64 << 20
"""Bytes of a table that is given as rows to whoever asks for a result."""

MakeWorker: TypeAlias = Callable[[Timers, asyncio.Event, Callable[[BaseException], None]], Worker]
"""A worker that has its times from these timers, and sets the event when there is something to do for it.

The last one hears of what should never be raised: nobody could go on with the run.
"""


class BegunExecution(NamedTuple):
    """An execution that was asked for; `new` unless it was started with the same key before."""

    execution_id: str
    new: bool


class Engine:
    """Runs executions, their children too, until they are over or it is told to stop.

    Between `open` and `close`, in one event loop. `watch` gets the events of an execution when they are
    durable, together with its state, which may be ahead of them.
    """

    def __init__(
        self,
        store: Store,
        playbooks: Playbooks,
        kinds: Kinds,
        make_worker: MakeWorker,
        *,
        owners: Owners | None = None,
        slots: int = SLOTS,
        watch: Watch | None = None,
        logs: TaskLogWriter | None = None,
        results: ResultStore | None = None,
        check_needs: NeedsCheck | None = None,
        serves: bool = False,
        shared: SharedRows | None = None,
        memory: int = STATE_MEMORY,
        system: System = SYSTEM,
    ) -> None:
        self.playbooks = playbooks
        self._service = service = Service(
            store,
            playbooks,
            owners,
            watch=watch,
            logs=logs,
            results=results,
            check_needs=check_needs,
            serves=serves,
            shared=shared,
            memory=memory,
            system=system,
        )
        wake = asyncio.Event()
        worker = make_worker(service.timers, wake, self._on_broken)
        self._scheduler = Scheduler(service.commit_log, worker, wake, system.monotonic, slots=slots)
        self._ends = EndWaiters(service.registry)
        # In this order: a run is looked at again before its children are cancelled, and an end is told last.
        self._children = Children(service)
        for listener in (self._scheduler, self._children, self._ends):
            service.subscribe(listener)
        self._inbox = InboxReader(service)
        service.on_resumed = lambda execution_id: self._inbox.read([execution_id])
        self._preflight = Preflight(playbooks, kinds, store_names(service.results), serves=serves)
        self._tasks: list[asyncio.Task[None]] = []
        self._recordings: set[asyncio.Future[bool]] = set()
        """Of who waits for something to be durable: true when it is, false if it never will be."""

    def subscribe(self, listener: EngineListener) -> None:
        """It hears of everything from here on, after those that came before it."""
        self._service.subscribe(listener)

    def open(self) -> None:
        """Begins to work. Within the event loop that everything else is called in."""
        loop = asyncio.get_running_loop()
        stopped = self._scheduler.stopped = loop.create_future()
        # One for all who wait: to take back a callback each would look through those of all others.
        stopped.add_done_callback(lambda _: self._give_up_recordings())
        self._tasks = [loop.create_task(self._scheduler.run()), loop.create_task(self._hear_others())]

    async def stop(self) -> None:
        """Ends everything at once; what is in flight is not recorded."""
        await self._scheduler.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._scheduler.stopped.exception()  # whoever leaves before waiting for an end met it where it began

    async def close(self) -> None:
        """Lets go of all executions, after `stop`."""
        await self._service.close()

    async def start(
        self,
        source: PlaybookSource,
        *,
        workload: Mapping[str, Any] | None = None,
        ctx: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str = "",
        timeout: float | None = None,
        by: str = "",
    ) -> str:
        """A new execution; its id. With a key that was used before, that one goes on, and its id is given.

        Raises as `begin`.
        """
        begun = await self.begin(
            source,
            workload=workload,
            ctx=ctx,
            labels=labels,
            idempotency_key=idempotency_key,
            timeout=timeout,
            by=by,
        )
        return begun.execution_id if begun.new else await self.resume(begun.execution_id)

    async def begin(
        self,
        source: PlaybookSource,
        *,
        workload: Mapping[str, Any] | None = None,
        ctx: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str = "",
        timeout: float | None = None,
        priority: int = 0,
        by: str = "",
        audit: Iterable[AuditEntry] = (),
    ) -> "BegunExecution":
        """A new execution, or the one that was started with the same key, which is left alone.

        `audit` is written with the first events of a new one, and not at all without.
        It need not be durable yet: `when_recorded` waits for that. Raises PlaybookInvalid, CannotRun,
        StoreError; KeyConflict if the key is that of another playbook, or was used with another document,
        workload, ctx, labels or priority.
        """
        document = self.playbooks.read(source)
        self._preflight.check(document)
        # Without a file, relative paths start in the working directory, also when it is resumed elsewhere.
        file = source.file or os.path.join(os.getcwd(), source.name)
        check = self._service.check_needs
        request = Request(
            version=document.playbook.metadata.version or "",
            workload=dict(workload or {}),
            ctx=dict(ctx or {}),
            labels=dict(labels or {}),
            idempotency_key=idempotency_key,
            requested_by=by,
            timeout=timeout,
            priority=priority,
            file=file,
            error=await check(document.playbook, os.path.dirname(file)) if check is not None else None,
        )
        origin = ExecutionOrigin(file=file)
        live = self._service.begin(document, request, origin, key=idempotency_key, audit=audit)
        self._ends.expect(live.execution_id)
        if idempotency_key and (holder := await holder_of_start_key(self._service, live, request)):
            self._ends.forget(live.execution_id)
            return BegunExecution(holder, new=False)
        return BegunExecution(live.execution_id, new=True)

    async def rehearse(
        self,
        source: PlaybookSource,
        *,
        workload: Mapping[str, Any],
        ctx: Mapping[str, Any],
        timeout: float | None,
        now: int,
    ) -> list[EventBody]:
        """The first events that `begin` would record; nothing is. Raises PlaybookInvalid, CannotRun."""
        document = self.playbooks.read(source)
        self._preflight.check(document)
        check = self._service.check_needs
        folder = os.path.dirname(source.file or os.path.join(os.getcwd(), source.name))
        error = await check(document.playbook, folder) if check is not None else None
        request = Request(workload=dict(workload), ctx=dict(ctx), timeout=timeout, error=error)
        return decide_request(new_state(document.plan, ""), request, now)

    async def refuse(
        self,
        path: str,
        error: ErrorInfo,
        *,
        workload: Mapping[str, Any] | None = None,
        ctx: Mapping[str, Any] | None = None,
        labels: Mapping[str, str] | None = None,
        priority: int = 0,
        by: str = "",
    ) -> str:
        """Records a request that cannot begin, and why; the id that it has then. Raises StoreError."""
        request = Request(
            workload=dict(workload or {}),
            ctx=dict(ctx or {}),
            labels=dict(labels or {}),
            requested_by=by,
            priority=priority,
            error=error,
        )
        live = self._service.begin(refused_document(self.playbooks, path), request, ExecutionOrigin())
        await self.when_recorded(live.execution_id)
        return live.execution_id

    async def when_recorded(self, execution_id: str) -> None:
        """Returns when all that was decided so far of an execution is durable. Raises StoreError."""
        live = self._service.registry.get(execution_id)
        if live is not None and live.durable < live.state.version:
            await self._record(live)

    @property
    def write_failure(self) -> StoreError | None:
        """Why nothing can be written at the moment: what is decided waits, and is written when it can be."""
        return self._service.commit_log.failure

    async def take_up(self, execution_id: str) -> bool:
        """Whether it runs here; if it does, `submit` may be called before anything else is awaited."""
        return await self._service.load(execution_id) is not None

    def is_running(self, execution_id: str) -> bool:
        """Whether it runs here, and nobody else writes to it."""
        return self._service.shared is None and execution_id in self._service.registry

    def running_elsewhere(self, execution_ids: Set[str]) -> Set[str]:
        """Those of these executions that others may write to."""
        return (
            self._service.registry.without(execution_ids) if self._service.shared is None else execution_ids
        )

    @property
    def live_executions(self) -> int:
        """How many run here."""
        return len(self._service.registry)

    def live_state(self, execution_id: str) -> ExecutionState | None:
        """The state of one that is in memory here; not to be changed."""
        live = self._service.registry.get(execution_id)
        return live.state if live is not None else None

    def forget_end(self, execution_id: str) -> None:
        """Nobody will ask for its end here: nothing is kept for that."""
        self._ends.forget(execution_id)

    async def wait_until_stopped(self) -> None:
        """Returns when no more is done, after `interrupt` or `kill`. Raises what ended it otherwise."""
        await asyncio.shield(self._scheduler.stopped)

    async def resume(self, execution_id: str) -> str:
        """Goes on with an execution that nobody runs. Raises ExecutionUnknown, AlreadyRunning, StoreError."""
        if await self._service.load(execution_id) is not None:
            self._ends.expect(execution_id)
            return execution_id
        return await self._resume(await self._service.open(execution_id))

    async def retry(self, execution_id: str, *, source: PlaybookSource | None = None, by: str = "") -> str:
        """Goes on with an execution at what failed, with a repaired document if there is one.

        Raises Refused, PlaybookInvalid, CannotRun, and as `resume`.
        """
        repaired = self._read_repaired(source)
        return await self._go_on(
            await reopen_execution(self._service, execution_id, by=by, repaired=repaired)
        )

    async def redrive(
        self, execution_id: str, *, step: str = "", source: PlaybookSource | None = None, by: str = ""
    ) -> str:
        """Runs the failed iterations of ended loops again, with a repaired document if there is one.

        Raises Refused, PlaybookInvalid, CannotRun, and as `resume`.
        """
        repaired = self._read_repaired(source)
        return await self._go_on(
            await redrive_execution(self._service, execution_id, step=step, by=by, repaired=repaired)
        )

    async def _go_on(self, live: LiveExecution) -> str:
        """With one that was reopened; nothing is to be done for one that was running."""
        if self._service.registry.get(live.execution_id) is not live:
            return await self._resume(live)
        self._ends.expect(live.execution_id)
        return live.execution_id

    def _read_repaired(self, source: PlaybookSource | None) -> PlaybookDocument | None:
        if source is None:
            return None
        repaired = self.playbooks.read(source)
        self._preflight.check(repaired)
        return repaired

    async def reopen(self, execution_id: str, command: RemoteCommand) -> None:
        """Asks something of an execution that failed, and goes on with it; it is recorded then.

        Raises Refused, and as `resume`.
        """
        service = self._service
        live = await service.open(execution_id)
        service.registry.add(live)
        try:
            live.submit(command)
        except BaseException:
            service.registry.remove(live)
            live.release()
            raise
        self._ends.expect(execution_id)
        if not live.state.over:  # else it is let go of when that is written
            await service.resume(live)
        await self.when_recorded(execution_id)

    async def fork(
        self,
        execution_id: str,
        *,
        at: int,
        source: PlaybookSource | None = None,
        workload: Mapping[str, Any] | None = None,
        ctx: Mapping[str, Any] | None = None,
        by: str = "",
        run: bool = True,
    ) -> str:
        """A new execution with the history of another one up to event `at`; its id.

        Without `run` it is only recorded.

        Raises CannotFork, ExecutionUnknown, PlaybookInvalid, CannotRun, StoreError.
        """
        store = self._service.store
        rows = await read_rows_until(store, execution_id, at)
        record = await store.execution(execution_id)
        assert record is not None  # noqa: S101 - it has rows
        document = (
            await self.playbooks.read_stored(store, record.playbook)
            if source is None
            else self.playbooks.read(source)
        )
        self._preflight.check(document)
        command = fork_command(execution_id, rows, document, ctx=ctx or {}, workload=workload or {}, by=by)
        forked = await write_fork(store, self._service.results, rows, document, command)
        return await self._resume(await self._service.open(forked)) if run else forked

    async def wait_for_end(self, execution_id: str) -> ExecutionState:
        """The state at the end of an execution and of all that it started; or as far as it got."""
        end, stopped = self._ends.end_of(execution_id), self._scheduler.stopped
        if not (end.done() or stopped.done()):
            await _first_done(end, stopped)
        if not end.done():
            stopped.result()
            return self._ends.last_state(execution_id) or self._live(execution_id).state
        return end.result()

    async def resolve(self, value: Any) -> Any:
        """A value of a state as users gave it, stored parts in their place. Raises ResultError.

        Tables of more than `LARGEST_TABLE` bytes and objects stay references.
        """
        read = partial(read_result, self._service.results)
        return await resolve_references(value, read, largest_table=LARGEST_TABLE)

    async def submit(self, execution_id: str, command: RemoteCommand) -> None:
        """Asks something of an execution that runs here; it is recorded then. Raises Refused, StoreError."""
        live = self._live(execution_id)
        refusals: list[Refused] = []
        if live.submit(command, refusals):
            await self._record(live)
        if refusals:
            raise refusals[0]

    async def flush(self) -> None:
        """Returns when everything decided so far is durable. Raises StoreError."""
        await self._service.commit_log.flush()

    def interrupt(self) -> None:
        """Begins nothing new; `wait_for_end` returns when the attempts in flight are recorded."""
        self._scheduler.interrupt()

    async def kill(self) -> None:
        """Ends everything at once. What is not recorded is lost, and can be done again."""
        await self._scheduler.kill()

    async def _record(self, live: LiveExecution) -> None:
        """Returns when what was decided of it is durable. Raises StoreError, and what ended the engine."""
        recorded: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        live.when_durable(lambda: None if recorded.done() else recorded.set_result(True))
        self._recordings.add(recorded)
        if self._scheduler.stopped.done():
            self._give_up_recordings()
        try:
            if await recorded:
                return
        finally:
            self._recordings.discard(recorded)
        self._scheduler.stopped.result()
        raise StoreClosed("the engine was stopped before it was written")

    def _give_up_recordings(self) -> None:
        for recorded in self._recordings:
            if not recorded.done():
                recorded.set_result(False)

    def _on_broken(self, error: BaseException) -> None:
        self._scheduler.stop(error)

    def _live(self, execution_id: str) -> LiveExecution:
        live = self._service.registry.get(execution_id)
        if live is None:
            raise ExecutionUnknown(f"{execution_id} does not run here")
        return live

    async def _resume(self, live: LiveExecution) -> str:
        self._ends.expect(live.execution_id)
        await self._service.resume(live)
        return live.execution_id

    async def _hear_others(self) -> None:
        """Does what other processes ask, as soon as they have written it."""
        async for changed in self._service.store.changes():
            with suppress(StoreError):  # it is looked at again
                await self._look(changed)

    async def _look(self, changed: Set[str] | None) -> None:  # noqa: ARG002 - an inbox is not an execution
        """Others may have written to the store: to these executions, or any. Raises StoreError."""
        registry = self._service.registry
        if self._service.serves:
            await self._inbox.read(None)
        elif registry:
            await self._inbox.read([live.execution_id for live in registry])


# `asyncio.wait` with FIRST_COMPLETED, without the sets that it makes of what is done: every short execution
# waits so.
async def _first_done(*futures: asyncio.Future[Any]) -> None:
    """Returns when one of the futures is done."""
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def wake(_: asyncio.Future[Any]) -> None:
        if not waiter.done():
            waiter.set_result(None)

    for future in futures:
        future.add_done_callback(wake)
    try:
        await waiter
    finally:
        for future in futures:
            future.remove_done_callback(wake)
