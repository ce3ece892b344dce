"""A replica of a server's database, which answers lists, searches and histories in its place."""

from noetl.engine.history.lookup import may_have_given
from noetl.model.store_url import without_password
from noetl.model.timestamp import now_micros
from noetl.ports.store import ExecutionQuery, Store, StoreError, StoreUnusable
from noetl.stores import open_store_to_read

COMPARED = 100
"""Executions that are looked for in both, the newest."""


class ReadStore:
    """The replica, and how far it is behind. An async context manager.

    What it cannot answer is an error that names it, and no reason to burden the primary instead.
    """

    def __init__(self, url: str, primary: Store) -> None:
        self.label = without_password(url)
        self.store = open_store_to_read(url)
        self._primary = primary

    async def __aenter__(self) -> "ReadStore":
        """Raises StoreUnusable unless it is a replica of the primary that can be asked."""
        try:
            await self._refuse_another_store()
        except StoreError as error:
            await self.store.close()
            raise StoreUnusable(f"`read_store`: {error}", error.hint) from None
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()

    async def lag(self) -> float:
        """For how many seconds the oldest event waits that is not there yet. Raises StoreError."""
        there = await self.store.feed_end()
        missing = await self._primary.feed(after=there, limit=1)
        return max(0.0, (now_micros() - missing[0].row.ts) / 1e6) if missing else 0.0

    async def _refuse_another_store(self) -> None:
        newest = (await self.store.executions(ExecutionQuery(limit=COMPARED))).executions
        ids = [record.execution_id for record in newest]
        if ids and not (await self._knows_any(ids) and await self._is_at_its_place()):
            raise StoreUnusable(
                f"{self.label} is no replica of the server's store",
                "name a standby of the same database, which PostgreSQL keeps (streaming replication)",
            )

    async def _knows_any(self, ids: list[str]) -> bool:
        """Whether the primary has one of them; some may have been deleted there, and not yet here."""
        for execution_id in ids:
            if await self._primary.execution(execution_id) is not None:
                return True
        return False

    async def _is_at_its_place(self) -> bool:
        """Whether the primary's feed may have the newest event at the same place; that of a copy has not."""
        end = await self.store.feed_end()
        for entry in await self.store.feed(after=max(0, end - 1), limit=1):
            event_id = f"{entry.execution_id}/{entry.row.seq}"
            ahead = entry.pos > await self._primary.feed_end()
            return not ahead and await may_have_given(self._primary, entry.pos, event_id)
        return True
