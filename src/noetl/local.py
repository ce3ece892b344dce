"""Server and worker in one process: what runs a playbook here."""

import asyncio
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from noetl.credentials.providers import Providers
from noetl.credentials.resolver import CredentialResolver
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.catalog.preflight import CannotRun, Preflight
from noetl.engine.clock import now
from noetl.engine.commit_log import CommitLog
from noetl.engine.execution import WORKER, ExecutionOrigin, LiveExecution, TaskLogWriter
from noetl.engine.history.fork import fork_command, read_rows_until, write_fork
from noetl.engine.inbox import RemoteCommand
from noetl.engine.service import AlreadyRunning, Service
from noetl.events.event import Event
from noetl.kernel import ExecutionState, Refused, resolve_references
from noetl.kernel.net.commands import Claim, Request, Retry
from noetl.loader import installed_kinds
from noetl.ports.credentials import CredentialStore
from noetl.ports.results import ResultStore
from noetl.ports.store import ExecutionUnknown, Store
from noetl.stores.ownership import Owners
from noetl.stores.results import read_result, store_names
from noetl.tools.host.worker_tools import Tools
from noetl.worker.keychain.keychains import Keychains
from noetl.worker.runner import Runner

__all__ = ["AlreadyRunning", "CannotRun", "Local", "PlaybookSource"]

SLOTS = 32
TURN = 0.005
"""Seconds of work after which the event loop gets its turn."""
LARGEST_TABLE = 64 << 20
"""Bytes of a table that is given as rows to whoever asks for a result."""
LINGER = 0.025
"""Seconds that what is decided waits for more, while tasks are in flight and nobody waits for it."""
FLUSH_AT = 2_048
"""Events that wait before a turn ends with a commit though nobody waits for it and more could be done."""


class Local:
    """Runs executions, their children too, until they are over or it is told to stop.

    An async context manager. `watch` gets the events of an execution when they are durable, together with
    its state, which may be ahead of them.
    """

    def __init__(
        self,
        store: Store,
        *,
        owners: Owners | None = None,
        slots: int = SLOTS,
        catalogs: Iterable[Path] = (),
        allow_kinds: Sequence[str] = (),
        watch: Callable[[str, Sequence[Event], ExecutionState], None] | None = None,
        logs: TaskLogWriter | None = None,
        results: ResultStore | None = None,
        tools: Tools | None = None,
        credentials: CredentialStore | None = None,
    ) -> None:
        self._resolver = CredentialResolver(Providers(credentials))
        self._keychains = Keychains(self._resolver)
        self.playbooks = Playbooks(catalogs, allow_kinds)
        self._tools = tools or Tools(installed_kinds().with_allowed(allow_kinds))
        self._service = Service(
            store,
            self.playbooks,
            owners,
            self,
            watch=watch,
            logs=logs,
            results=results,
            preflight=self._keychains.preflight,
        )
        self._fitness = Preflight(self.playbooks, self._tools.kinds, store_names(self._service.results))
        self._bell = asyncio.Event()
        self._runner = Runner(
            self._tools,
            now=now,
            wake=self._bell.set,
            at=self._service.timers.at,
            broken=self._stop,
            keychains=self._keychains,
        )
        self._slots = slots
        self._ready: OrderedDict[str, LiveExecution] = OrderedDict()
        self._ends: dict[str, asyncio.Future[ExecutionState]] = {}
        self._last: dict[str, ExecutionState] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._writing: asyncio.Task[None] | None = None
        self._lingering: asyncio.TimerHandle | None = None
        self._stopped: asyncio.Future[None] | None = None

    async def __aenter__(self) -> "Local":
        loop = asyncio.get_running_loop()
        self._stopped = loop.create_future()
        self._tasks = [loop.create_task(self._work()), loop.create_task(self._listen())]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.kill()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._stopped is not None and self._stopped.done():
            self._stopped.exception()  # whoever leaves before waiting for an end met it where it began
        await self._resolver.close()
        await self._tools.close()
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
        """A new execution; its id. With a key that was used before, the id of the execution that has it.

        Raises PlaybookInvalid, CannotRun, StoreError; Refused if the key is that of another playbook.
        """
        document = self.playbooks.read(source)
        self._fitness.check(document)
        # Without a file, relative paths start in the working directory, also when it is resumed elsewhere.
        file = source.file or os.path.join(os.getcwd(), source.name)
        request = Request(
            version=document.playbook.metadata.version or "",
            workload=dict(workload or {}),
            ctx=dict(ctx or {}),
            labels=dict(labels or {}),
            idempotency_key=idempotency_key,
            requested_by=by,
            timeout=timeout,
            file=file,
            error=await self._keychains.preflight(document.playbook, os.path.dirname(file)),
        )
        live = self._service.begin(document, request, ExecutionOrigin(file=file), key=idempotency_key)
        self._expect(live.execution_id)
        if idempotency_key and (first := await self._service.holder_of_start_key(live)):
            return await self.resume(first)
        return live.execution_id

    async def resume(self, execution_id: str) -> str:
        """Goes on with an execution that nobody runs. Raises ExecutionUnknown, AlreadyRunning, StoreError."""
        if execution_id in self._service.registry:
            self._expect(execution_id)
            return execution_id
        return await self._take_up(await self._service.open(execution_id))

    async def retry(self, execution_id: str, *, by: str = "") -> str:
        """Goes on with a failed execution at what failed. Raises Refused, and as `resume`."""
        if execution_id in self._service.registry:
            raise Refused("only a failed execution can be retried, this one is running")
        live = await self._service.open(execution_id)
        try:
            live.submit(Retry(by))
        except Refused:
            live.release()
            raise
        return await self._take_up(live)

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
        assert record is not None  # noqa: S101 -- it has rows
        document = (
            await self.playbooks.read_stored(store, record.playbook)
            if source is None
            else self.playbooks.read(source)
        )
        self._fitness.check(document)
        command = fork_command(
            execution_id, rows[-1].seq, document, ctx=ctx or {}, workload=workload or {}, by=by
        )
        forked = await write_fork(store, self._service.results, rows, document, command)
        return await self._take_up(await self._service.open(forked)) if run else forked

    async def _take_up(self, live: LiveExecution) -> str:
        self._expect(live.execution_id)
        if live.state.over:
            live.release()
            await self._service.children.resume_children(live)
            self.over(live)
        else:
            await self._service.resume(live)
        return live.execution_id

    async def wait_for_end(self, execution_id: str) -> ExecutionState:
        """The state at the end of an execution and of all that it started; or as far as it got."""
        end = self._ends[execution_id]
        if end.done():
            return end.result()
        assert self._stopped is not None  # noqa: S101 -- only within the context
        both: list[asyncio.Future[Any]] = [end, self._stopped]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if not end.done():
            self._stopped.result()
            return self._last.get(execution_id) or self._live(execution_id).state
        return end.result()

    async def resolve(self, value: Any) -> Any:
        """A value of a state as users gave it, stored parts in their place. Raises ResultError.

        Tables of more than `LARGEST_TABLE` bytes and objects stay references.
        """
        return await resolve_references(
            value, partial(read_result, self._service.results), largest_table=LARGEST_TABLE
        )

    async def submit(self, execution_id: str, order: RemoteCommand) -> None:
        """Asks something of an execution that runs here; it is recorded then. Raises Refused, StoreError."""
        live = self._live(execution_id)
        assert self._stopped is not None  # noqa: S101 -- only within the context
        if live.submit(order):
            written: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            live.when_durable(lambda: None if written.done() else written.set_result(None))
            await asyncio.wait([written, self._stopped], return_when=asyncio.FIRST_COMPLETED)
            if not written.done():
                self._stopped.result()

    async def flush(self) -> None:
        """Returns when everything decided so far is durable. Raises StoreError."""
        await self._service.commit_log.flush()

    def interrupt(self) -> None:
        """Begins nothing new; `finished` returns when the attempts in flight are recorded."""
        self._stopping = True
        self._bell.set()

    async def kill(self) -> None:
        """Ends everything at once. What is not recorded is lost, and can be done again."""
        await self._runner.kill()
        self._stop(None)

    def decided(self, _: LiveExecution) -> None:
        self._bell.set()

    def _live(self, execution_id: str) -> LiveExecution:
        live = self._service.registry.get(execution_id)
        if live is None:
            raise ExecutionUnknown(f"{execution_id} does not run here")
        return live

    def ready(self, live: LiveExecution) -> None:
        if live.start_key and not live.durable:
            # Another execution may have its key: nothing begins before that is known.
            live.when_durable(lambda: self.ready(live))
            return
        self._ready[live.execution_id] = live
        self._bell.set()

    def changed(self, live: LiveExecution, run: str) -> None:
        self._runner.look(live.execution_id, run)

    def halted(self, live: LiveExecution) -> None:
        self._runner.look_at_all(live.execution_id)

    def over(self, live: LiveExecution) -> None:
        self._keychains.forget(live.execution_id)
        self._tools.forget(live.execution_id)
        if live.execution_id in self._ends:
            self._last[live.execution_id] = live.state
        end, last = self._ends.get(live.root), self._last.get(live.root)
        if end is None or end.done() or last is None:
            return
        if not self._service.registry.has_family(live.root):
            end.set_result(last)

    def _expect(self, execution_id: str) -> None:
        if (end := self._ends.get(execution_id)) is not None and not end.done():
            return  # somebody waits for it already
        self._ends[execution_id] = asyncio.get_running_loop().create_future()
        self._last.pop(execution_id, None)

    def _claim(self) -> bool:
        """A free slot takes a run, one of each execution in turn; False if there is no slot or no run."""
        while self._ready and self._runner.seats < self._slots and not self._stopping:
            execution_id, live = self._ready.popitem(last=False)
            state = live.state
            if not state.ready or state.paused or state.stopping or state.over:
                continue
            run = state.ready.first
            live.submit(Claim(run, WORKER))
            self._runner.take(live, state.runs[run])
            if state.ready:
                self._ready[execution_id] = live
            return True
        return False

    async def _write_beside(self, journal: CommitLog) -> None:
        """Writes what has gathered while more is done; waits if the last time is not over yet."""
        if self._writing is not None:
            await self._writing
        self._writing = asyncio.get_running_loop().create_task(journal.flush())
        self._writing.add_done_callback(lambda _: self._bell.set())
        await asyncio.sleep(0)

    def _write_soon(self, journal: CommitLog) -> None:
        """Has what is decided written after a moment, unless it is written before."""
        if self._lingering is None:

            def hurry() -> None:
                self._lingering = None
                journal.urgent = True
                self._bell.set()

            self._lingering = asyncio.get_running_loop().call_later(LINGER, hurry)

    async def _write(self, journal: CommitLog) -> None:
        if self._lingering is not None:
            self._lingering.cancel()
            self._lingering = None
        if self._writing is not None:
            writing, self._writing = self._writing, None
            await writing
        await journal.flush()

    def _take_turn(self) -> None:
        """Claims and works until there is nothing to do, or others must have their turn.

        A run is claimed when its turn comes: so what is pure is claimed, done and recorded in one append.
        """
        until = time.monotonic() + TURN
        while self._claim() or self._runner.busy:
            self._runner.drive(until)
            if time.monotonic() > until:
                return

    async def _work(self) -> None:
        journal = self._service.commit_log
        try:
            while True:
                self._bell.clear()
                if self._stopping:
                    self._runner.hold()
                self._take_turn()
                if journal.urgent or not (self._runner.busy or self._runner.in_flight):
                    await self._write(journal)
                elif journal.pending_events >= FLUSH_AT:
                    await self._write_beside(journal)
                if self._stopping and not self._runner.in_flight and not journal.dirty:
                    self._stop(None)
                    return
                if self._bell.is_set() or self._runner.busy:
                    await asyncio.sleep(0)
                else:
                    if journal.dirty:
                        self._write_soon(journal)
                    await self._bell.wait()
        except Exception as error:  # noqa: BLE001 -- whoever waits for an execution gets it
            await self._runner.kill()
            self._stop(error)

    async def _listen(self) -> None:
        """What other processes ask."""
        async for _ in self._service.store.changes():
            if self._service.registry:
                await self._service.read_inbox([live.execution_id for live in self._service.registry])

    def _stop(self, error: BaseException | None) -> None:
        if self._stopped is None or self._stopped.done():
            return
        if error is None:
            self._stopped.set_result(None)
        else:
            self._stopped.set_exception(error)
