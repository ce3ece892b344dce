"""What a server does because others are on the same store: hears what they wrote, does what they left."""

from collections.abc import Set

from noetl.engine.inbox_reader import InboxReader
from noetl.engine.service import Service
from noetl.ports.shared_rows import DeadSession, SharedRows
from noetl.process_log import LogEvent, log_event
from noetl.server.plane.sessions import OWN_SESSION, STANDSTILL, LostSession
from noetl.server.plane.worker_plane import WorkerPlane
from noetl.server.row_pumps import OutboxPump, ReadyPump, TimerPump
from noetl.system import System

LOOK_SECONDS = 0.9
"""How often it looks at everything; the store rings each second at least."""
LOOKED_AT = 1_000
"""Executions in memory of which it is seen at a time whether others have written to them."""


class SharedWork:
    """Looks whenever another server may have written.

    All that is done is taken before, or judged by its version: others may do the same at the same time.
    """

    def __init__(
        self,
        service: Service,
        plane: WorkerPlane,
        rows: SharedRows,
        *,
        timers: TimerPump,
        outbox: OutboxPump,
        inbox: InboxReader,
        system: System,
    ) -> None:
        self._service = service
        self._plane = plane
        self._rows = rows
        self._timers = timers
        self._outbox = outbox
        self._inbox = inbox
        self._ready = ReadyPump(service, plane, rows)
        self._system = system
        self._looked = system.monotonic()
        self._started = False
        self._unknown: set[tuple[str, int]] = set()
        """Leases of workers that are connected here and were not known here at the last look."""

    async def start(self) -> None:
        """Before it looks for the first time. Raises StoreError."""
        await self._rows.spare_sessions()
        self._started = True

    async def look(self, changed: Set[str] | None) -> None:
        """Raises StoreError."""
        if not self._started:
            return
        self._ready.ring()
        await self._hear(changed)
        now = self._system.monotonic()
        late = now - self._looked
        if late < LOOK_SECONDS:
            return
        self._looked = now
        self._timers.look()
        self._outbox.ring()
        await self._inbox.read(None)
        await self._void_unknown()
        # Who stood still has not read yet what workers said meanwhile.
        ttl = self._plane.sessions.ttl
        if late < LOOK_SECONDS + ttl * STANDSTILL:
            for dead in await self._rows.take_dead_sessions(ttl):
                await self._end(dead)

    async def _hear(self, changed: Set[str] | None) -> None:
        """What is in memory of executions that others have written to is read again, or goes."""
        registry, leased = self._service.registry, self._plane.leased_executions
        if changed is None:
            known = {live.execution_id for live in registry.oldest(LOOKED_AT)}
            names = leased | known
        else:
            names = {name for name in changed if name in registry or name in leased}
        if not names:
            return
        versions = await self._rows.versions([*names])
        for name in names:
            live = registry.get(name)
            if name in leased:
                if versions.get(name, 0) > self._plane.version_of(name):
                    await self._plane.refresh(name)
            elif live is not None and versions.get(name, 0) > live.durable:
                self._service.drop_outdated(live)

    async def _void_unknown(self) -> None:
        """A server that its worker had left may have claimed something for it: it never heard of that.

        At the second look: what is claimed here is written before it is noted, or the other way round.
        """
        sessions = {session.id: session for session in self._plane.sessions}
        if not sessions:
            return
        rows = [
            row
            for row in await self._rows.leases_of([*sessions])
            if (row.execution_id, row.run.fence) not in sessions[row.run.session].leases
        ]
        again = [row for row in rows if (row.execution_id, row.run.fence) in self._unknown]
        self._unknown = {(row.execution_id, row.run.fence) for row in rows}
        await self._plane.void_unknown(again)

    async def _end(self, dead: DeadSession) -> None:
        leases = await self._rows.leases_of([dead.session])
        runs = await self._plane.lose(dead.session, leases)
        await self._rows.forget_session(dead.session)
        # What cannot be ended, as its history is damaged, comes again: that is said once, if at all.
        if dead.session.startswith(OWN_SESSION) or (leases and not runs):
            return
        event = LogEvent.WORKER_LOST if runs else LogEvent.WORKER_LEFT
        log_event(event, worker=dead.worker or None, session=dead.session, runs=runs)
        if runs:
            self._plane.sessions.on_worker_lost(LostSession(dead.worker, self._system.now(), runs))
