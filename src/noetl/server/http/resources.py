"""What the endpoints of a server share."""

import asyncio
from collections import OrderedDict
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct, field

from noetl.dsl.document.playbook import Playbook, Step
from noetl.engine.catalog.catalog_playbooks import CatalogPlaybooks
from noetl.engine.engine import Engine
from noetl.engine.history.history_views import HistoryViews
from noetl.engine.history.wait_reader import WaitReader
from noetl.engine.remote_control import RemoteControl
from noetl.engine.task_log import TaskLog
from noetl.graph.net import net_of
from noetl.ports.catalog import AccessStore, AuditEntry
from noetl.ports.page_api import NetAnswer
from noetl.ports.results import ResultStore
from noetl.ports.store import Store, StoreError
from noetl.server.engine_observer import EngineObserver
from noetl.server.http.browser_sessions import BrowserSessions
from noetl.server.http.event_bell import EventBell
from noetl.server.plane.sessions import Sessions
from noetl.server.plane.worker_plane import WorkerPlane
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.home_folder import Home

_MOST_WAITING = 10_000
"""Entries of the audit that are kept for a store that cannot be written."""


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
            try:
                if entries:
                    await self._store.put_audit(entries)
            except StoreError:
                # For who waits behind this one, and for when there is room again.
                self._waiting = [*entries, *self._waiting][-_MOST_WAITING:]
                raise


MOST_STEPS = 20_000
"""Of all pictures that are kept: one takes about a kilobyte for each step."""


_Key: TypeAlias = tuple[str, tuple[int, ...]]


class NetCache:
    """Pictures of playbooks, made off the loop. Two who ask for the same at once wait for the same one."""

    def __init__(self) -> None:
        self._nets: OrderedDict[_Key, asyncio.Task[NetAnswer]] = OrderedDict()
        self._sizes: dict[_Key, int] = {}

    async def net(self, playbook: Playbook) -> NetAnswer:
        """In a thread: a layout takes a second for a thousand steps, and others are answered meanwhile."""
        key = _key_of(playbook)
        task = self._nets.get(key)
        if task is None:
            task = self._nets[key] = asyncio.create_task(asyncio.to_thread(net_of, playbook))
            self._sizes[key] = len(playbook.workflow)
            self._make_room(key)
        self._nets.move_to_end(key)
        try:
            return await asyncio.shield(task)  # who asked may go; others may have come
        except Exception:
            self._nets.pop(key, None)
            self._sizes.pop(key, None)
            raise

    def _make_room(self, newest: _Key) -> None:
        while sum(self._sizes.values()) > MOST_STEPS and next(iter(self._nets)) != newest:
            oldest, _ = self._nets.popitem(last=False)
            del self._sizes[oldest]


def _key_of(playbook: Playbook) -> _Key:
    """What is said in the same words may stand in other lines, and a net tells lines."""
    lines = (line for step in playbook.workflow for line in (step.position.line, *_task_lines(step)))
    return playbook.hash, tuple(lines)


def _task_lines(step: Step) -> list[int]:
    return [task.position.line for task in step.tasks]


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
    wait_reader: WaitReader
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
