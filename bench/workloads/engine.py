"""Our side of the workloads: one process, one store on disk, everything durable as by default."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from noetl.api import dedicate_process
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners
from noetl.stores.results.file_backend import FileResults
from noetl.stores.sqlite.store import SqliteStore

T = TypeVar("T")

DURABLE = "SQLite WAL with synchronous=FULL"
HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: bench, path: bench}\nworkflow:\n"


def chain(length: int, tool: str) -> PlaybookSource:
    """Steps that follow one another."""
    steps = [
        f"- step: s{number}\n  tool: {tool}\n"
        + (f"  next: {{arcs: [{{step: s{number + 1}}}]}}\n" if number < length - 1 else "")
        for number in range(length)
    ]
    return PlaybookSource(HEAD + "".join(steps), "chain.yaml")


def loop(count: int) -> PlaybookSource:
    """A parallel loop of no-ops, 10 in flight."""
    items = f'"{{{{ range({count}) | list }}}}"'
    spec = "spec: {mode: parallel, max_in_flight: 10}"
    text = f"- step: loop\n  loop: {{in: {items}, iterator: item, {spec}}}\n  tool: {{kind: noop}}\n"
    return PlaybookSource(HEAD + text, "loop.yaml")


Watch: TypeAlias = Callable[[str, Sequence[Event], ExecutionState], None]


def with_engine(work: Callable[[Local], Awaitable[T]], watch: Watch | None = None) -> T:
    """What `work` gives, on an engine in a folder of its own. `watch` gets events when they are durable."""

    async def run_work() -> T:
        with tempfile.TemporaryDirectory() as folder:
            home = Home(Path(folder))
            store = SqliteStore.at(home.store)
            results = FileResults(home.results)
            try:
                owners = Owners(home.owners)
                async with Local(store, owners=owners, results=results, watch=watch) as local:
                    return await work(local)
            finally:
                await store.close()

    dedicate_process()  # as the command line does
    return asyncio.run(run_work())


async def time_runs(local: Local, source: PlaybookSource, runs: int = 1) -> tuple[float, ExecutionState]:
    """Seconds from asking for the runs to the end of the last."""
    began = time.perf_counter()
    ids = [await local.start(source) for _ in range(runs)]
    states = [await local.wait_for_end(execution_id) for execution_id in ids]
    took = time.perf_counter() - began
    failed = [state.error for state in states if state.status != "completed"]
    if failed:
        raise RuntimeError(f"{len(failed)} runs failed: {failed[0]}")
    return took, states[-1]


def best_of(source: PlaybookSource, times: int = 3, runs: int = 1) -> float:
    """Milliseconds of the best time, after one to warm up."""

    async def work(local: Local) -> float:
        await time_runs(local, source, runs)
        return min([(await time_runs(local, source, runs))[0] for _ in range(times)])

    return with_engine(work) * 1e3
