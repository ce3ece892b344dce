"""What a server costs with many executions: its start with those that live, its memory after those it served.

Figures are of real server processes; only the executions that a start finds are written by a server's own
engine, without HTTP.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.server_process import admin_token, started_server
from noetl import AsyncClient
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.ports.http_api import StartExecution
from noetl.server.server_engine import ServerEngine
from noetl.stores import open_store
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: scale, path: bench/scale}\n"
WAITING = HEAD + "workflow:\n- step: start\n  tool: {kind: noop}\n"
"""Lives as long as there is no worker."""
ENDING = HEAD + "workflow:\n- step: start\n  next: {arcs: [{step: end}]}\n- step: end\n"
"""Ends by itself: no step has a task."""
BATCH = 500
FEW = 1_000
STARTS = 3
START_GOAL, READY_SECONDS = 2.0, 5.0
"""A start with many executions may take so many times that with none, and so long."""
MEMORY_GOAL = 1.2
LOADED_GOAL = 20
"""Kilobytes of one execution."""


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def write_living(folder: Path, count: int) -> None:
    """Executions that wait for a worker, as a server leaves them."""
    home = Home(folder)
    home.make()
    store = open_store(f"sqlite:///{home.store}")
    source = PlaybookSource(WAITING, "scale.yaml", str(folder / "scale.yaml"))
    async with ServerEngine(store, owners=Owners(home.owners)) as engine:
        for number in range(count):
            begun = await engine.begin(source)
            engine.forget_end(begun.execution_id)
            if number % BATCH == 0:
                await engine.flush()
        await engine.flush()
    await store.close()


async def serve_many(url: str, token: str, text: str, count: int) -> None:
    async with AsyncClient(url, token) as client:
        for start in range(0, count, BATCH):
            requests = [StartExecution(playbook=text) for _ in range(min(BATCH, count - start))]
            await client.start_many(requests)


def measure_start(folder: Path, live: int) -> float:
    """Seconds, the median of several starts of one server on the same store."""
    asyncio.run(write_living(folder, live))
    return statistics.median(_start_seconds(folder) for _ in range(STARTS))


def _start_seconds(folder: Path) -> float:
    with started_server(folder, folder / "server.log") as server:
        return server.seconds


def measure_memory(folder: Path, text: str, first: int, last: int) -> tuple[int, int]:
    """The server's memory after the first and after the last of so many executions."""
    folder.mkdir()
    with started_server(folder, folder / "server.log") as server:
        asyncio.run(serve_many(server.url, admin_token(folder), text, first))
        before = resident_bytes(server.process.pid)
        asyncio.run(serve_many(server.url, admin_token(folder), text, last - first))
        return before, resident_bytes(server.process.pid)


def main(arguments: Sequence[str] | None = None) -> int:
    """1 if a goal is missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.server_scale", description=__doc__)
    parser.add_argument("--live", type=int, default=10_000)
    parser.add_argument("--served", type=int, default=100_000)
    parser.add_argument("--loaded", type=int, default=2_000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        none, many = measure_start(folder / "none", 0), measure_start(folder / "many", options.live)
        print(f"ready with no execution: {none:.2f} s", flush=True)
        ready = many <= min(none * START_GOAL, READY_SECONDS)
        text = f"ready with {options.live:,} that live: {many:.2f} s, {many / none:.2f}x"
        met = [_judge(text, f"{START_GOAL:g}x, {READY_SECONDS:g} s", ready)]
        before, after = measure_memory(folder / "loaded", WAITING, 200, 200 + options.loaded)
        size = (after - before) / options.loaded / 1_000
        text = f"memory of one that is loaded: {size:.1f} KB"
        met.append(_judge(text, f"{LOADED_GOAL:g} KB", size <= LOADED_GOAL))
        few, most = measure_memory(folder / "served", ENDING, FEW, options.served)
        sizes = f"{few >> 20} MiB after {FEW:,}, {most >> 20} MiB after {options.served:,}"
        text = f"memory: {sizes}: {most / few:.2f}x"
        met.append(_judge(text, f"{MEMORY_GOAL:g}x", most / few <= MEMORY_GOAL))
    return 0 if all(met) else 1


def _judge(text: str, goal: str, met: bool) -> bool:  # noqa: FBT001 - it is the verdict
    print(f"{text} (at most {goal}: {'met' if met else 'missed'})", flush=True)
    return met


if __name__ == "__main__":
    sys.exit(main())
