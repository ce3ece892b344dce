"""The engine of a server: executions are kept and decided here, and run by workers elsewhere."""

from collections.abc import AsyncIterator
from types import TracebackType

from noetl.dsl.document.playbook import Playbook
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.engine import Engine
from noetl.engine.execution import TaskLogWriter
from noetl.engine.service import AlreadyRunning, Watch
from noetl.kernel.state.run_state import RunState
from noetl.loader import installed_kinds
from noetl.model.outcome import ErrorInfo
from noetl.ports.credentials import CredentialStore
from noetl.ports.ledger import Ledger
from noetl.ports.results import ResultStore
from noetl.ports.store import ExecutionQuery, Store
from noetl.server.plane.sessions import TTL
from noetl.server.plane.worker_plane import WorkerPlane
from noetl.settings import installed_release
from noetl.stores.ownership import Owners


class ServerEngine(Engine):
    """An engine whose runs are claimed over `plane`. An async context manager.

    Executions that have not ended are taken up at its start as they were left: leases live on for one ttl,
    what is paused stays so.
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
        credentials: CredentialStore | None = None,
        ttl: float = TTL,
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
            check_credentials=_leave_to_workers,
            keeps_leases=True,
        )
        self.plane = WorkerPlane(
            self._service, release=installed_release(), ttl=ttl, logs=logs, credentials=credentials
        )
        self._service.subscribe(self.plane)

    async def __aenter__(self) -> "ServerEngine":
        self.open()
        await self._take_up_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.plane.close()
        await self.flush()
        await self.stop()
        await self.close()

    async def _take_up_all(self) -> None:
        """All that have not ended, parents before their children. Those of other processes are left alone."""
        for execution_id in reversed([name async for name in self._living()]):
            if execution_id not in self._service.registry:
                try:
                    live = await self._service.open(execution_id)
                except AlreadyRunning:
                    continue
                await self._service.resume(live)

    async def _living(self) -> AsyncIterator[str]:
        cursor, more = "", True
        while more:
            query = ExecutionQuery(status=("running", "paused"), cursor=cursor, limit=1_000)
            page = await self._service.store.executions(query)
            for record in page.executions:
                yield record.execution_id
            cursor, more = page.next, bool(page.next)


async def _leave_to_workers(_playbook: Playbook, _folder: str) -> ErrorInfo | None:
    """Credentials are resolved where they are used: what a worker cannot have fails the task that needs it.

    The server may know none of what its workers know.
    """
    return None


class _NoWorker:
    """The place of a worker in this process: the plane gives runs away instead."""

    claimed = 0
    busy = False
    in_flight = 0

    def take(self, ledger: Ledger, run: RunState) -> None:  # noqa: ARG002 - the port's names
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
