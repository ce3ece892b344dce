"""The partitions of `event`: a week each, by the time that an execution's id begins with.

An id of version 7 has the milliseconds since 1970 in its first 12 hexadecimal digits. Compared as texts, ids
are in the order of their times, so the beginning of the first id of a week is where its partition begins.
"""

from bisect import bisect_right
from collections.abc import Iterable

from noetl.stores.postgres.database_connections import Connection

WEEK_MS = 7 * 86_400_000
WEEKS_AHEAD = 4
"""So many weeks are made before they come: for so long nobody need be able to make one."""
LOCK_SECONDS = 5
"""How long others may hold what is to be changed: while it is waited for, everybody else waits, too."""
_WEEKS = range((0x1 << 44) // WEEK_MS + 1)
"""Those whose ids begin with `0`; they end in the year 2527."""
_NAME = "event_week_"
_LOCK = "SELECT pg_advisory_xact_lock(hashtext('noetl store'), hashtext(current_schema()))"
# From the catalog itself: what `to_regclass` says may be as old as the transaction, and another process may
# have made it while this one waited for the lock.
_PARTITIONS = """
SELECT partition.relname, inhdetachpending
FROM pg_inherits
JOIN pg_class AS partition ON partition.oid = inhrelid
JOIN pg_class AS event ON event.oid = inhparent
JOIN pg_namespace ON event.relnamespace = pg_namespace.oid
WHERE nspname = current_schema() AND event.relname = 'event' AND partition.relname LIKE 'event\\_week\\_%'
"""
_IN_USE = """
SELECT EXISTS (SELECT FROM event WHERE execution_id >= $1 AND execution_id < $2)
  OR EXISTS (SELECT FROM execution WHERE id >= $1 AND id < $2)
"""


def week_bound(week: int) -> str:
    """The text at which the ids of a week begin, which was so many weeks after 1970."""
    digits = f"{week * WEEK_MS:012x}"
    return "0" if not week else f"{digits[:8]}-{digits[8:]}" if week < len(_WEEKS) else "1"


def week_of_id(execution_id: str) -> int | None:
    """The week that an id belongs to; None if its partition is always there."""
    if not "0" <= execution_id < "1":
        return None
    return bisect_right(_WEEKS, execution_id, key=week_bound) - 1


def weeks_to_come(now: int) -> list[int]:
    """The weeks whose partitions should be there at a time in microseconds since 1970."""
    week = now // 1000 // WEEK_MS
    return list(range(week, week + WEEKS_AHEAD + 1))


class EventPartitions:
    """Makes and counts partitions on one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def weeks(self) -> set[int]:
        """Those that are there."""
        return {week for week, is_going in (await self._partitions()).items() if not is_going}

    async def _partitions(self) -> dict[int, bool]:
        """Weeks, and whether their partition was being detached when somebody was interrupted."""
        rows = await self._connection.fetch(_PARTITIONS)
        return {int(row["relname"].removeprefix(_NAME)): row["inhdetachpending"] for row in rows}

    async def make(self, weeks: Iterable[int]) -> list[int]:
        """Makes those of these weeks that are not there.

        Made first and attached then: others read and write `event` meanwhile.
        """
        wanted = {*weeks}
        if wanted <= await self.weeks():
            return []
        async with self._connection.transaction():
            await self._connection.execute(f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'")
            await self._connection.execute(_LOCK)
            partitions = await self._partitions()
            missing = sorted(week for week in wanted if partitions.get(week, True))
            for week in missing:
                if week in partitions:
                    await self._connection.execute(
                        f"ALTER TABLE event DETACH PARTITION {_NAME}{week} FINALIZE"
                    )
                # It may be there: an interrupted `drop_unused` left it.
                await self._connection.execute(
                    f"CREATE TABLE IF NOT EXISTS {_NAME}{week}"
                    " (LIKE event INCLUDING DEFAULTS INCLUDING CONSTRAINTS)"
                )
                await self._attach(week)
        return missing

    async def make_for(self, execution_ids: Iterable[str]) -> list[int]:
        """The same for these executions, whose ids a foreign clock may have made."""
        return await self.make(week for name in execution_ids if (week := week_of_id(name)) is not None)

    async def drop_unused(self, now: int) -> int:
        """Drops the partitions of past weeks in which nothing is left; how many went.

        Detached first, concurrently: others read and write `event` meanwhile. What somebody wrote there until
        it was detached comes back.
        """
        count = 0
        newest = now // 1000 // WEEK_MS - 1
        for week, is_going in sorted((await self._partitions()).items()):
            if week >= newest or not (is_going or await self._is_unused(week)):
                continue
            how = "FINALIZE" if is_going else "CONCURRENTLY"
            await self._connection.execute(f"ALTER TABLE event DETACH PARTITION {_NAME}{week} {how}")
            if await self._connection.fetchval(f"SELECT EXISTS (SELECT FROM {_NAME}{week})"):  # noqa: S608 - a number
                await self._attach(week)
            else:
                await self._connection.execute(f"DROP TABLE {_NAME}{week}")
                count += 1
        return count

    async def _is_unused(self, week: int) -> bool:
        return not await self._connection.fetchval(_IN_USE, week_bound(week), week_bound(week + 1))

    async def _attach(self, week: int) -> None:
        await self._connection.execute(
            f"ALTER TABLE event ATTACH PARTITION {_NAME}{week}"
            f" FOR VALUES FROM ('{week_bound(week)}') TO ('{week_bound(week + 1)}')"
        )
