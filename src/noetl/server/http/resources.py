"""What the endpoints of a server share."""

import asyncio
from pathlib import Path

from msgspec import Struct, field

from noetl.engine.catalog.catalog_playbooks import CatalogPlaybooks
from noetl.engine.engine import Engine
from noetl.engine.history.history_views import HistoryViews
from noetl.engine.remote_control import RemoteControl
from noetl.engine.task_log import TaskLog
from noetl.ports.catalog import AccessStore, AuditEntry
from noetl.ports.results import ResultStore
from noetl.ports.store import Store
from noetl.server.engine_observer import EngineObserver
from noetl.server.http.browser_sessions import BrowserSessions
from noetl.server.http.event_bell import EventBell
from noetl.server.http.net_cache import NetCache
from noetl.server.plane.sessions import Sessions
from noetl.server.plane.worker_plane import WorkerPlane
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.home_folder import Home


class AuditLog:
    """Writes what was changed, before it is answered. Those who wait at the same time share one write."""

    def __init__(self, store: AccessStore) -> None:
        self._store = store
        self._waiting: list[AuditEntry] = []
        self._turn = asyncio.Lock()

    async def write(self, entry: AuditEntry) -> None:
        """Durable on return. Raises StoreError."""
        self._waiting.append(entry)
        async with self._turn:
            # Whoever came first has written it already.
            entries, self._waiting = self._waiting, []
            if entries:
                await self._store.put_audit(entries)


class ServerLimits(Struct, frozen=True):
    """Beyond these, new executions are put off: those that run come first."""

    live_executions: int = 100_000
    queued_bytes: int = 64 << 20
    free_bytes: int = 32 << 20
    """With less than this on the disk of its home, a server is not ready: it may soon record nothing."""


class ServerResources(Struct, frozen=True, kw_only=True):
    """What the endpoints of a server work with."""

    engine: Engine
    store: Store
    playbooks: CatalogPlaybooks
    results: ResultStore
    views: HistoryViews
    logs: TaskLog
    credentials: EncryptedCredentials
    control: RemoteControl
    bell: EventBell
    observer: EngineObserver
    plane: WorkerPlane
    audit_log: AuditLog
    browser_sessions: BrowserSessions
    home: Home
    started_at: int
    """In microseconds since 1970."""
    limits: ServerLimits = ServerLimits()
    nets: NetCache = field(default_factory=NetCache)

    @property
    def sessions(self) -> Sessions:
        """Of its workers."""
        return self.plane.sessions

    @property
    def directory(self) -> Path:
        """Where relative paths of playbooks start."""
        return Path(self.playbooks.directory)
