"""The engine of a server: executions are kept and decided here, and run by workers elsewhere."""

from collections.abc import AsyncIterator, Set
from types import TracebackType

from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.engine import Engine
from noetl.engine.execution import LiveExecution, TaskLogWriter
from noetl.engine.execution_loader import STATE_MEMORY
from noetl.engine.history.lookup import PAGE, list_children
from noetl.engine.listener import EngineListener
from noetl.engine.service import AlreadyRunning, Service, Watch
from noetl.kernel.state.run_state import RunState, Shard
from noetl.loader import installed_kinds
from noetl.ports.ledger import Ledger
from noetl.ports.results import ResultStore
from noetl.ports.shared_rows import SharedRows
from noetl.ports.store import Effects, ExecutionQuery, Store, StoreError
from noetl.server.plane.sessions import TTL
from noetl.server.plane.worker_plane import WorkerPlane
from noetl.server.row_pumps import OutboxPump, TimerPump
from noetl.server.shared_work import SharedWork
from noetl.settings import installed_release
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.sealed_values import SealedValues, forget_sealed_values
from noetl.stores.ownership import SERVER, Owners, Ownership
from noetl.system import SYSTEM, System


class ServerEngine(Engine):
    """An engine whose runs are claimed over `plane`. An async context manager.

    Executions that have not ended go on at its start as they were left: leases live on for one ttl, what is
    paused stays so. One that `adopts` goes on with what processes without a server left, too; where their
    locks are not to be seen, as on another machine, it must not. With `shared` there may be other servers on
    its store. `memory` is how many bytes their states may take, roughly.
    """

    def __init__(
        self,
        store: Store,
        *,
        playbooks: Playbooks | None = None,
        owners: Owners | None = None,
        watch: Watch | None = None,
        logs: TaskLogWriter | None = None,
        results: ResultStore | None = None,
        credentials: EncryptedCredentials | None = None,
        ttl: float = TTL,
        memory: int = STATE_MEMORY,
        adopts: bool = True,
        shared: SharedRows | None = None,
        system: System = SYSTEM,
    ) -> None:
        playbooks = playbooks or Playbooks()
        super().__init__(
            store,
            playbooks,
            installed_kinds().with_allowed(playbooks.allow_kinds),
            lambda *_: _NoWorker(),
            owners=owners,
            slots=0,
            watch=watch,
            logs=logs,
            results=results,
            serves=True,
            shared=shared,
            memory=memory,
            system=system,
        )
        self.server_id = system.new_session_id()
        """Of this process, among the servers of a store."""
        sealed = SealedValues(store, credentials) if credentials is not None else None
        self.plane = WorkerPlane(
            self._service,
            release=installed_release(),
            ttl=ttl,
            logs=logs,
            credentials=credentials,
            system=system,
            sealed=sealed,
            server=self.server_id,
        )
        self._service.subscribe(self.plane)
        self._expiry = _SealedValueExpiry(self._service, sealed) if sealed is not None else None
        if self._expiry is not None:
            self._service.subscribe(self._expiry)
        self._owners = owners
        self._adopts = adopts
        self._ownership: Ownership | None = None
        self._timer_pump = TimerPump(self._service, system.now)
        self._outbox_pump = OutboxPump(self._service, self._children.deliver)
        self._service.on_rows = self._on_rows
        self._shared_work = (
            SharedWork(
                self._service,
                self.plane,
                shared,
                timers=self._timer_pump,
                outbox=self._outbox_pump,
                inbox=self._inbox,
                system=system,
            )
            if shared is not None
            else None
        )

    async def __aenter__(self) -> "ServerEngine":
        """Raises AlreadyRunning if there is another server on this home, and StoreError."""
        if self._owners is not None and (ownership := self._owners.acquire(SERVER)) is None:
            raise AlreadyRunning("a server of this home", self._owners.owner(SERVER))
        self._ownership = ownership if self._owners is not None else None
        self.open()
        if self._expiry is not None:
            await self._expiry.sweep()
        await self._take_up_rows()
        if self._adopts:
            await self._take_up_unserved()
        self.plane.end_own_sessions()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.plane.close()
        self._timer_pump.close()
        self._service.commit_log.give_up()
        try:
            await self.flush()
        finally:
            await self.stop()
            await self.close()
            if self._ownership is not None:
                self._ownership.release()

    def _on_rows(self, effects: Effects) -> None:
        if due := [time for time in effects.timers.values() if time is not None]:
            self._timer_pump.arm(min(due))
        if effects.outbox:
            self._outbox_pump.ring()

    async def _look(self, changed: Set[str] | None) -> None:
        if self._shared_work is not None:
            await self._shared_work.look(changed)
        else:
            await super()._look(changed)

    async def _take_up_rows(self) -> None:
        """Goes on where the last server ended: nothing is folded before something happens to it."""
        if self._shared_work is None:
            await self._restore_rows()
        else:  # other servers may have them, and it takes what they leave
            await self._shared_work.start()
        await self._timer_pump.start()
        self._outbox_pump.ring()

    async def _restore_rows(self) -> None:
        """What workers have, and what waits for one."""
        store = self._service.store
        for lease in await store.leases():
            self.plane.restore_lease(lease)
        last, more = 0, True
        while more:
            rows = await store.ready(after=last, limit=PAGE)
            for row in rows:
                self._service.announce_offer(row)
            more = len(rows) == PAGE
            last = rows[-1].id if rows else last

    async def _take_up_unserved(self) -> None:
        """What processes without a server, or older ones, left: folded once, parents before children."""
        for execution_id in reversed([name async for name in self._unserved()]):
            if execution_id not in self._service.registry:
                try:
                    live = await self._service.open(execution_id)
                except AlreadyRunning:
                    continue
                await self._service.resume(live)

    async def _unserved(self) -> AsyncIterator[str]:
        cursor, more = "", True
        while more:
            query = ExecutionQuery(status=("running", "paused"), unserved=True, cursor=cursor, limit=PAGE)
            page = await self._service.store.executions(query)
            for record in page.executions:
                yield record.execution_id
            cursor, more = page.next, bool(page.next)


class _NoWorker:
    """The place of a worker in this process: the plane gives runs away instead."""

    claimed = 0
    busy = False
    in_flight = 0

    def take(self, ledger: Ledger, run: RunState, shard: Shard | None = None) -> None:  # noqa: ARG002 - the port's names
        raise AssertionError("a server runs nothing itself")

    def recheck(self, execution_id: str, run: str) -> None:
        """The plane hears of it."""

    def recheck_all(self, execution_id: str) -> None:
        """Likewise."""

    def drive(self, until: float) -> None:
        """Nothing is to be done."""

    def hold(self) -> None:
        """Nothing has begun."""

    def give_back(self) -> None:
        """Nothing is held."""

    async def kill(self) -> None:
        """Nothing is in flight."""

    def forget(self, execution_id: str) -> None:
        """Nothing is kept."""


class _SealedValueExpiry(EngineListener):
    """Forgets what tasks marked secret when nothing can read it again.

    That is when the execution and all above it have completed or were cancelled. One that failed may be
    retried: its values go when it is deleted.
    """

    def __init__(self, service: Service, sealed: SealedValues) -> None:
        self._service = service
        self._sealed = sealed

    def over(self, live: LiveExecution) -> None:
        if not self._sealed.kept_some:
            return  # most servers never seal anything, and each family would be read for nothing
        if live.origin.parent is None or live.origin.parent.execution_id not in self._service.registry:
            self._service.spawn(self._forget_family(live.execution_id))

    async def sweep(self) -> None:
        """Forgets what a crash left. Raises StoreError."""
        for execution_id in await self._sealed.executions():
            await self._forget(execution_id)

    async def _forget_family(self, execution_id: str) -> None:
        try:
            if await self._forget(execution_id):
                for child in await list_children(self._service.store, execution_id):
                    await self._forget_family(child.execution_id)
        except StoreError:
            return  # the next start of a server does it

    async def _forget(self, execution_id: str) -> bool:
        store = self._service.store
        ancestor: str = execution_id
        while ancestor and (record := await store.execution(ancestor)) is not None:
            if record.status not in ("completed", "cancelled"):
                return False
            ancestor = record.parent
        await forget_sealed_values(store, execution_id)
        return True
