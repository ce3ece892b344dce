"""Engine and worker in one process: what runs a playbook here."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from noetl.credentials.providers import Providers
from noetl.credentials.resolver import CredentialResolver
from noetl.dsl.document.playbook import Playbook
from noetl.engine.catalog.playbooks import Playbooks
from noetl.engine.engine import Engine
from noetl.engine.scheduler import SLOTS
from noetl.engine.service import Watch
from noetl.engine.task_log import TaskLog
from noetl.engine.timers import Timers
from noetl.loader import installed_kinds
from noetl.model.outcome import ErrorInfo
from noetl.ports.credentials import CredentialStore
from noetl.ports.results import ResultStore
from noetl.ports.store import Store
from noetl.stores.ownership import Owners
from noetl.system import SYSTEM, System
from noetl.tools.host.worker_tools import Tools
from noetl.tools.python.lib_modules import find_module_error
from noetl.worker.keychain.keychains import Keychains
from noetl.worker.runner import Runner


class Local(Engine):
    """An engine with a worker of its own. An async context manager."""

    def __init__(
        self,
        store: Store,
        *,
        playbooks: Playbooks | None = None,
        owners: Owners | None = None,
        slots: int = SLOTS,
        watch: Watch | None = None,
        logs: TaskLog | None = None,
        results: ResultStore | None = None,
        tools: Tools | None = None,
        credentials: CredentialStore | None = None,
        system: System = SYSTEM,
    ) -> None:
        playbooks = playbooks or Playbooks()
        self._resolver = CredentialResolver(Providers(credentials))
        self._keychains = Keychains(self._resolver)
        self._tools = tools or Tools(installed_kinds().with_allowed(playbooks.allow_kinds))
        self.logs = logs
        super().__init__(
            store,
            playbooks,
            self._tools.kinds,
            self._make_worker,
            owners=owners,
            slots=slots,
            watch=watch,
            logs=logs,
            results=results,
            check_needs=self._check_needs,
            system=system,
        )

    def _make_worker(
        self, timers: Timers, wake: asyncio.Event, broken: Callable[[BaseException], None]
    ) -> Runner:
        return Runner(self._tools, wake=wake.set, at=timers.at, broken=broken, keychains=self._keychains)

    async def _check_needs(self, playbook: Playbook, folder: str) -> ErrorInfo | None:
        error = await find_module_error(playbook.workflow, folder)
        return error or await self._keychains.preflight(playbook, folder)

    async def __aenter__(self) -> "Local":
        self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
        await self._resolver.close()
        await self._tools.close()
        await self.close()
