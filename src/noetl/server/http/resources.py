"""What the endpoints of a server share."""

import asyncio
from collections import OrderedDict
from contextlib import suppress
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
from noetl.process_log import LogEvent, log_event
from noetl.server.engine_observer import EngineObserver
from noetl.server.feed_publisher import FeedPublisher
from noetl.server.http.browser_sessions import BrowserSessions
from noetl.server.http.credential_usage import CredentialUsageReader
from noetl.server.http.event_bell import EventBell
from noetl.server.lost_workers import LostWorkers
from noetl.server.plane.sessions import Sessions
from noetl.server.plane.worker_plane import WorkerPlane
from noetl.server.read_store import ReadStore
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.home_folder import Home

_MOST_WAITING = 10_000
"""Entries of the audit that are kept for a store that cannot be written."""
_AUDIT_WAIT = 1.0
"""Seconds until such a store is tried again."""


class AuditLog:
    """Writes what was changed, before it is answered. Those who wait at the same time share one write.

    What the store does not take is tried again until it does, whether or not anybody asks for more, and once
    more by `close`.
    """

    def __init__(self, store: AccessStore) -> None:
        self._store = store
        self._waiting: list[AuditEntry] = []
        self._turn = asyncio.Lock()
        self._retrying: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    async def write(self, entry: AuditEntry) -> None:
        """Durable on return. Raises StoreError."""
        self._waiting.append(entry)
        try:
            await self._write_waiting()
        except StoreError:
            if self._retrying is None:
                self._retrying = asyncio.create_task(self._retry())
            raise

    async def close(self) -> None:
        """Says what could not be written to the end."""
        self._closing.set()
        if self._retrying is not None:
            await self._retrying
        try:
            await self._write_waiting()
        except StoreError as error:
            log_event(LogEvent.AUDIT_LOST, entries=len(self._waiting), error=error)

    async def _retry(self) -> None:
        while self._waiting and not self._closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), _AUDIT_WAIT)
            with suppress(StoreError):
                await self._write_waiting()
        self._retrying = None

    async def _write_waiting(self) -> None:
        async with self._turn:
            # Whoever came first has written it already.
            entries, self._waiting = self._waiting, []
            try:
                if entries:
                    await self._store.put_audit(entries)
            except StoreError as error:
                # For who waits behind this one, and for when there is room again.
                waiting = [*entries, *self._waiting]
                self._waiting = waiting[-_MOST_WAITING:]
                if len(waiting) > _MOST_WAITING:
                    log_event(LogEvent.AUDIT_LOST, entries=len(waiting) - _MOST_WAITING, error=error)
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
        finally:
            if task.done() and (task.cancelled() or task.exception() is not None):
                self._nets.pop(key, None)
                self._sizes.pop(key, None)

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
    lost_workers: LostWorkers
    browser_sessions: BrowserSessions
    wait_reader: WaitReader
    home: Home
    store_url: str
    """As it may be shown."""
    started_at: int
    """In microseconds since 1970."""
    feed: FeedPublisher | None = None
    read_store: ReadStore | None = None
    limits: ServerLimits = ServerLimits()
    nets: NetCache = field(default_factory=NetCache)
    credential_usage: CredentialUsageReader = field(default_factory=CredentialUsageReader)

    @property
    def searched_store(self) -> Store:
        """What lists and searches are asked of: it may be a little behind."""
        return self.read_store.store if self.read_store is not None else self.store

    @property
    def sessions(self) -> Sessions:
        """Of its workers."""
        return self.plane.sessions

    @property
    def directory(self) -> Path:
        """Where relative paths of playbooks start."""
        return Path(self.playbooks.directory)
