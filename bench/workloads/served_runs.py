"""The workloads through a server and a worker that run as processes: this one only asks, and waits for ends.

A run is one request that starts it and waits for its end, as that of Restate is.
`bench.noetl_server_side` starts it.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.protocol import Recorder, print_report, read_arguments
from bench.server_process import admin_token
from bench.workload_table import NEW, RUN, Workload
from bench.workloads.documents import document_of
from bench.workloads.engine import DISK, WAITS, count_tasks
from noetl import AsyncClient
from noetl.ports.http_api import StartExecution
from noetl.ports.store import Store
from noetl.stores import open_store
from noetl.stores.home_folder import Home
from noetl.stores.sqlite.store import SqliteStore

URL, HOME, STORE = "BENCH_SERVER", "BENCH_HOME", "BENCH_STORE"
LOOP_PROMISE = f"{DISK}; no-op iterations do not wait for the disk, steps do"


class ServedRuns:
    """What is measured of one workload."""

    def __init__(self, client: AsyncClient, store: Store, recorder: Recorder) -> None:
        self._client = client
        self._store = store
        self._recorder = recorder
        self._workload = recorder.workload

    async def measure(self) -> None:
        """As `measure_runs` does in one process: a document that is new, and again when it is known."""
        workload = self._workload
        for shot in self._recorder.shots():
            for lap in range(workload.laps):
                source = document_of(workload, edition=1 + shot * workload.laps + lap)
                path = f"bench/e{1 + shot * workload.laps + lap}"
                for figure in (NEW, RUN) if NEW in workload.figures else (RUN,):
                    began = time.perf_counter()
                    with self._recorder.lap(figure):
                        if figure == NEW or NEW not in workload.figures:
                            await self._client.register(source.text)
                        ids = await asyncio.gather(*(self._run(path) for _ in range(workload.runs)))
                    took = time.perf_counter() - began
                    self._recorder.check(await count_tasks(self._store, ids, workload))
                    if workload.ours_only:
                        await self._remark(ids, took)

    async def _run(self, path: str) -> str:
        """The id of one that has ended well. Raises RuntimeError."""
        ended = await self._client.run(StartExecution(path=path))
        if ended.status != "completed":
            raise RuntimeError(f"a run is {ended.status}: {ended.error}")
        return ended.execution_id

    async def _remark(self, ids: Sequence[str], took: float) -> None:
        record = await self._store.execution(ids[0])
        self._recorder.remark(f"{(record.version if record else 0) / took:,.0f} events/s")


def promise_of(workload: Workload) -> tuple[str, bool]:
    """What is said of the disk, and whether each step waits for it."""
    if workload.waits or workload.shape not in ("loop", "long loop"):
        return WAITS, True  # whoever claims a step gets it when all before it is on the disk
    return LOOP_PROMISE, False


async def main(arguments: Sequence[str]) -> None:
    workload, plan = read_arguments(arguments)
    durability, waits = promise_of(workload)
    url = os.environ.get(STORE, "")
    durability = durability.replace(DISK, "PostgreSQL, each commit with fsync") if url else durability
    recorder = Recorder(workload, plan, durability, waits=waits)
    home = Path(os.environ[HOME])
    store = open_store(url) if url else SqliteStore.at(Home(home).store)
    try:
        async with AsyncClient(os.environ[URL], admin_token(home)) as client:
            await ServedRuns(client, store, recorder).measure()
    finally:
        await store.close()
    print_report(recorder.report())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
