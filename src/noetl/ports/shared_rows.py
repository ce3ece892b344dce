"""What several servers on one store say to each other: rows that one of them takes, and sessions of workers.

There is no leader. Whoever finds something to be done takes it, so that others leave it alone for
`HOLD_SECONDS`, and what it led to is written on the version of its execution. If that server is gone the row
is found again. Times are those of the store, so no clock of a server matters.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from noetl.ports.store import InboxMessage, LeaseRow, OutboxMessage, ReadyRow, Timer

HOLD_SECONDS: Final = 5.0
"""After which what was taken may be taken by others."""

SessionOpening: TypeAlias = Literal["opened", "ended", "outdated", "forbidden"]
"""`ended`: its leases are over, or about to be. `outdated`: it has registered since. `forbidden`: it is that
of another token."""


class SessionRow(NamedTuple):
    """A worker process as all servers know it. `connection` counts how often it has registered."""

    session: str
    server: str
    connection: int = 0
    token: str = ""
    worker: str = ""
    ttl: float = 10.0


class DeadSession(NamedTuple):
    session: str
    worker: str


class SharedRows(Protocol):
    """Each method raises StoreError."""

    async def take_timers(self, *, until: int, limit: int = 1_000) -> list[Timer]:
        """Timers due at or before `until` that nobody else has taken."""
        ...

    async def take_outbox(self, *, limit: int = 1_000) -> list[OutboxMessage]: ...

    async def take_inbox(self, *, limit: int = 1_000) -> list[InboxMessage]: ...

    async def take_ready(self, pool: str, kinds: Collection[str], *, limit: int) -> list[ReadyRow]:
        """Runs of a pool that need no other kinds, of the highest priority first, then the oldest."""
        ...

    async def open_session(self, row: SessionRow) -> SessionOpening:
        """The session is connected to this server from here on, and lives for its ttl."""
        ...

    async def beat_sessions(self, server: str, sessions: Sequence[str]) -> set[str]:
        """Those of them that live on: not who is over, or is connected to another server."""
        ...

    async def end_session(self, server: str, session: str) -> None:
        """It does not live any more, unless it is connected to another server."""
        ...

    async def spare_sessions(self) -> None:
        """Those that nobody has heard, and nobody has taken, live for one more ttl: there was no server."""
        ...

    async def take_dead_sessions(self, ttl: float, *, limit: int = 100) -> list[DeadSession]:
        """Those that have not beaten for their ttl, and whose leases are to be ended: they beat no more.

        A session that has leases and is not known lives for `ttl` from here.
        """
        ...

    async def forget_session(self, session: str) -> None:
        """One that was taken, unless it still has leases."""
        ...

    async def leases_of(self, sessions: Sequence[str]) -> list[LeaseRow]: ...

    async def versions(self, execution_ids: Sequence[str]) -> Mapping[str, int]:
        """Of those that there are."""
        ...

    async def take_turn(self, name: str, server: str, seconds: float) -> bool:
        """Whether this server is the one that does this, for so long; it may ask again before."""
        ...

    async def end_turn(self, name: str, server: str) -> None: ...
