"""Sessions of workers that any of several servers may have: as rows that all of them see."""

import asyncio
from collections.abc import Sequence

from noetl.ports.control import Register
from noetl.ports.shared_rows import SessionRow, SharedRows
from noetl.ports.store import LeaseRow, StoreError
from noetl.server.plane.sessions import Sessions, WorkerSession

OWN_TTL = 6.0
"""Seconds for which the worker in a server outlives its last heartbeat: it ends with its server, and has no
way to another one."""


class SharedSessions:
    """What is said of a session is in its row before it is answered: another server counts by that."""

    def __init__(self, rows: SharedRows, sessions: Sessions, server: str) -> None:
        self._rows = rows
        self._sessions = sessions
        self._server = server
        self._beats: dict[str, asyncio.Future[bool]] = {}
        self._beating: asyncio.Task[None] | None = None

    async def open(self, message: Register, token: str, prefix: str) -> WorkerSession | None:
        """Its session, which is connected here from now on: another one if that has ended.

        None if it is that of another token, or has registered elsewhere since. Raises StoreError.
        """
        session_id = message.session or self._sessions.new_id(prefix)
        ttl = min(self._sessions.ttl, OWN_TTL) if prefix else self._sessions.ttl
        row = SessionRow(session_id, self._server, message.connection, token, message.worker, ttl)
        opening = await self._rows.open_session(row)
        if opening == "ended":
            if (over := self._sessions.get(session_id)) is not None:
                self._sessions.forget(over)
            row = row._replace(session=self._sessions.new_id(prefix))
            opening = await self._rows.open_session(row)
        return self._sessions.open(row.session, ttl=ttl) if opening == "opened" else None

    async def leases_of(self, sessions: Sequence[str]) -> list[LeaseRow]:
        return await self._rows.leases_of(sessions)

    async def beat(self, session: WorkerSession) -> bool:
        """Whether it lives on, and is connected here. Raises StoreError."""
        beat = self._beats.get(session.id)
        if beat is None:
            beat = self._beats[session.id] = asyncio.get_running_loop().create_future()
            if self._beating is None or self._beating.done():
                self._beating = asyncio.create_task(self._write_beats())
        return await asyncio.shield(beat)

    async def _write_beats(self) -> None:
        """All that came while the last ones were written go together."""
        while self._beats:
            beats, self._beats = self._beats, {}
            try:
                alive = await self._rows.beat_sessions(self._server, [*beats])
            except StoreError as error:
                for beat in beats.values():
                    beat.set_exception(error)
                    beat.exception()  # who asked may be gone
            else:
                for session_id, beat in beats.items():
                    beat.set_result(session_id in alive)

    async def end(self, session: WorkerSession) -> None:
        """Its worker has left, or is not to be trusted: what it has goes on elsewhere."""
        try:
            await self._rows.end_session(self._server, session.id)
        except StoreError:
            return  # it will be over when it has not beaten for its ttl
