"""The rows that several servers share. See `noetl.ports.shared_rows`."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias, TypeVar

from noetl.ports.shared_rows import HOLD_SECONDS, DeadSession, SessionOpening, SessionRow
from noetl.ports.store import InboxMessage, LeaseRow, OutboxMessage, ReadyRow, Timer
from noetl.stores.postgres.job_statements import PostgresJobs
from noetl.stores.postgres.reader import PostgresReader, ready_row
from noetl.stores.postgres.writer import PostgresWriter

T = TypeVar("T")
_HOLD = timedelta(seconds=HOLD_SECONDS)
ReadRows: TypeAlias = Callable[[Callable[[PostgresReader], Awaitable[Any]]], Awaitable[Any]]


class PostgresSharedRows:
    """`read` asks a connection that only reads. Nothing that is done here is worth a ring."""

    def __init__(self, writer: PostgresWriter, read: ReadRows) -> None:
        self._writer = writer
        self._read = read

    async def take_timers(self, *, until: int, limit: int = 1_000) -> list[Timer]:
        rows = await self._take("take_timers", until=until, limit=limit)
        return sorted(Timer(*row) for row in rows)

    async def take_outbox(self, *, limit: int = 1_000) -> list[OutboxMessage]:
        return sorted(OutboxMessage(*row) for row in await self._take("take_outbox", limit=limit))

    async def take_inbox(self, *, limit: int = 1_000) -> list[InboxMessage]:
        return sorted(InboxMessage(*row) for row in await self._take("take_inbox", limit=limit))

    async def take_ready(self, pool: str, kinds: Collection[str], *, limit: int) -> list[ReadyRow]:
        rows = await self._take("take_ready", pool=pool, kinds=[*kinds], limit=limit)
        return sorted(map(ready_row, rows), key=lambda row: (-row.run.priority, row.id))

    async def open_session(self, row: SessionRow) -> SessionOpening:
        return await self._job(lambda jobs: _open_session(jobs, row))

    async def beat_sessions(self, server: str, sessions: Sequence[str]) -> set[str]:
        rows = await self._job(lambda jobs: jobs.run("beat_sessions", server=server, sessions=[*sessions]))
        return {row["id"] for row in rows}

    async def end_session(self, server: str, session: str) -> None:
        await self._job(lambda jobs: jobs.run("end_session", server=server, session=session))

    async def spare_sessions(self) -> None:
        await self._job(lambda jobs: jobs.run("spare_sessions"))

    async def take_dead_sessions(self, ttl: float, *, limit: int = 100) -> list[DeadSession]:
        async def take(jobs: PostgresJobs) -> list[Any]:
            await jobs.run("find_sessions", ttl=timedelta(seconds=ttl))
            return await jobs.run("take_dead_sessions", hold=_HOLD, limit=limit)

        return [DeadSession(*row) for row in await self._job(take)]

    async def forget_session(self, session: str) -> None:
        await self._job(lambda jobs: jobs.run("forget_session", session=session))

    async def leases_of(self, sessions: Sequence[str]) -> list[LeaseRow]:
        rows: list[LeaseRow] = await self._read(lambda reader: reader.leases_of(sessions))
        return rows

    async def versions(self, execution_ids: Sequence[str]) -> Mapping[str, int]:
        versions: dict[str, int] = await self._read(lambda reader: reader.versions(execution_ids))
        return versions

    async def take_turn(self, name: str, server: str, seconds: float) -> bool:
        hold = timedelta(seconds=seconds)
        return bool(await self._job(lambda jobs: jobs.run("take_turn", name=name, server=server, hold=hold)))

    async def end_turn(self, name: str, server: str) -> None:
        await self._job(lambda jobs: jobs.run("end_turn", name=name, server=server))

    async def _take(self, statement: str, **values: Any) -> list[Any]:
        return await self._job(lambda jobs: jobs.run(statement, hold=_HOLD, **values))

    async def _job(self, job: Callable[[PostgresJobs], Awaitable[T]]) -> T:
        return await self._writer.run_job(job, rings=False)


async def _open_session(jobs: PostgresJobs, row: SessionRow) -> SessionOpening:
    for known in await jobs.run("lock_session", session=row.session):
        if known["taken"]:
            return "ended"
        if known["token"] not in ("", row.token):
            return "forbidden"
        if row.connection and known["connection"] >= row.connection:
            return "outdated"
    await jobs.run("put_session", **{**row._asdict(), "ttl": timedelta(seconds=row.ttl)})
    return "opened"
