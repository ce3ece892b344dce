"""What those who look at an execution have in common: it is read once, and folded on."""

import asyncio
from pathlib import Path

import noetl
from noetl.engine.history.history_views import HistoryViews
from noetl.engine.history.read import RecordedHistory
from noetl.kernel.state.execution_state import ExecutionState
from noetl.ports.store import Row
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.sqlite.store import SqliteStore

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: looked-at, path: tests/looked-at}
workflow:
- step: start
  tool: {kind: noop, args: {}}
"""


class CountedReads(SqliteStore):
    """A store that knows how often events were read."""

    reads = 0

    async def read(self, execution_id: str, *, after: int = 0, limit: int = 1_000) -> list[Row]:
        self.reads += 1
        return await super().read(execution_id, after=after, limit=limit)


def _version(history: RecordedHistory, state: ExecutionState) -> tuple[int, int]:
    return len(history.events), state.version


def test_what_is_asked_at_once_is_read_once(tmp_path: Path) -> None:
    execution_id = noetl.run(PLAYBOOK, store=f"sqlite:///{tmp_path}/store.db").execution_id

    async def look() -> None:
        store = CountedReads.to_read(tmp_path / "store.db")
        assert isinstance(store, CountedReads)
        views = HistoryViews(store, MemoryResults())
        try:
            assert await views.ask_watched(execution_id, _version) is None
            assert store.reads == 0, "nobody looks at it: nothing is kept of it"
            index, page, seen, other = await asyncio.gather(
                views.index(execution_id),
                views.runs(execution_id),
                views.ask_watched(execution_id, _version),
                views.runs(execution_id),
            )
            assert (page, seen) == (other, (index.last, index.last))
            assert await views.ask_watched(execution_id, _version) == seen
            assert store.reads == 1
        finally:
            await store.close()

    asyncio.run(look())
