"""An engine for a workload: one process, one store on disk, durable as by default."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from bench.workload_table import FIB_RESULT, Workload
from bench.workloads import write_tool  # noqa: F401 - declares the tool of the steps that write
from noetl.api import dedicate_process
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.service import Watch
from noetl.events.bodies import TaskProcessed
from noetl.events.codec import decode
from noetl.events.event_kind import EVENT_KINDS
from noetl.loader import installed_kinds
from noetl.local import Local
from noetl.ports.store import Row, Store
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners
from noetl.stores.results.file_backend import FileResults
from noetl.stores.sqlite.store import SqliteStore
from noetl.system import SYSTEM, System
from noetl.tools.host.worker_tools import Tools

T = TypeVar("T")

DISK = "SQLite WAL, synchronous=FULL"
WAITS = f"{DISK}; a step begins when all before it is on the disk"
DOES_NOT_WAIT = (
    f"{DISK}; pure and contained steps do not wait for the disk, they are recorded together after 25 ms at"
    " the latest; the end of the run is on the disk when it is told"
)
_PROCESSED = next(kind.number for kind in EVENT_KINDS if kind.body is TaskProcessed)


def durability_of(workload: Workload) -> str:
    return WAITS if workload.waits else DOES_NOT_WAIT


class BenchEngine(NamedTuple):
    local: Local
    store: SqliteStore

    async def run(self, source: PlaybookSource, runs: int = 1) -> list[str]:
        """The ids of executions that have ended well, started at once. Raises RuntimeError."""
        ids = [await self.local.start(source) for _ in range(runs)]
        states = [await self.local.wait_for_end(execution_id) for execution_id in ids]
        failed = [state.error for state in states if state.status != "completed"]
        if failed:
            raise RuntimeError(f"{len(failed)} runs failed: {failed[0]}")
        return ids

    async def count_tasks(self, ids: Sequence[str], workload: Workload) -> int:
        return await count_tasks(self.store, ids, workload)


async def count_tasks(store: Store, ids: Sequence[str], workload: Workload) -> int:
    """How many tasks their histories say have ended well, with the result that they should have."""
    expected = FIB_RESULT if workload.shape == "tasks" else None
    count = 0
    for execution_id in ids:
        async for row in _rows(store, execution_id):  # not all at once: memory is measured, too
            count += _is_good(row, expected)
    return count


async def _rows(store: Store, execution_id: str) -> AsyncIterator[Row]:
    after = 0
    while rows := await store.read(execution_id, after=after):
        for row in rows:
            yield row
        after = rows[-1].seq


def _is_good(row: Row, expected: object) -> bool:
    if row.kind != _PROCESSED:
        return False
    body = decode(row.kind, row.body, row.version)
    assert isinstance(body, TaskProcessed)  # noqa: S101 - its number says so
    return body.outcome.status == "ok" and (expected is None or body.outcome.result == expected)


@asynccontextmanager
async def open_engine(
    folder: Path, watch: Watch | None = None, system: System = SYSTEM
) -> AsyncIterator[BenchEngine]:
    """`watch` gets events when they are durable."""
    home = Home(folder)
    store = SqliteStore.at(home.store)
    try:
        owners, results = Owners(home.owners), FileResults(home.results)
        tools = Tools(installed_kinds(), system)
        async with Local(
            store, owners=owners, results=results, watch=watch, tools=tools, system=system
        ) as local:
            yield BenchEngine(local, store)
    finally:
        await store.close()


def with_engine(
    work: Callable[[BenchEngine], Awaitable[T]], watch: Watch | None = None, system: System = SYSTEM
) -> T:
    """What `work` gives, on an engine in a folder of its own."""

    async def run_work() -> T:
        with tempfile.TemporaryDirectory() as folder:
            async with open_engine(Path(folder), watch, system) as engine:
                return await work(engine)

    dedicate_process()  # as the command line does
    return asyncio.run(run_work())
