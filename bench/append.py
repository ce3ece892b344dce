"""How fast events are appended to the embedded store, durably.

Events have 200 bytes. 64 executions append over and over, committed together by the writer's thread,
beside a loop that has nothing else to do and beside one that computes all the time. One execution alone,
committed in the loop's own thread, shows the latency. Each measurement is a process of its own on a new file.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measurement import Measurement
from noetl.ports.store import Append, Committed
from noetl.ports.store import Row as Event
from noetl.stores.sqlite.store import SqliteStore

SECONDS = 1.0
RUNS = 3
SLICE = 0.005
"""How long the busy loop computes before it lets others run."""
SWITCH_INTERVAL = 0.0005
"""What our own entry points set."""
BODY = b'{"run":"r12","task":"fetch","outcome":' + b"1" * 161 + b"}"


def measure_append() -> Iterator[Measurement]:
    for name, loop, executions, events, goal in (
        ("one event at a time", "alone", 1, 1, ""),
        ("ten events at a time", "alone", 1, 10, ""),
        ("64 times ten events", "idle", 64, 10, "90,000"),
        ("64 times a hundred events", "idle", 64, 100, ""),
        ("64 times a hundred events, busy loop", "busy", 64, 100, "32,000"),
        ("64 times a hundred events, busy loop, short switches", "short", 64, 100, ""),
    ):
        yield Measurement(f"append: {name}", _best(loop, executions, events), "events/s", goal)


def _best(loop: str, executions: int, events: int) -> float:
    return max(_run(loop, executions, events) for _ in range(RUNS))


def _run(loop: str, executions: int, events: int) -> float:
    command = [sys.executable, "-m", "bench.append", loop, str(executions), str(events)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    rate: float = json.loads(done.stdout)
    return rate


async def _append(store: SqliteStore, execution_id: str, events: int, until: float) -> int:
    version = 0
    while time.perf_counter() < until:
        numbers = range(version + 1, version + events + 1)
        rows = [Event(seq, 1_700_000_000_000_000, 13, 1, BODY, seq == numbers[-1]) for seq in numbers]
        append = Append(execution_id=execution_id, expected_version=version, rows=rows)
        if await store.commit([append]) != [Committed(numbers[-1])]:
            raise RuntimeError(f"{execution_id} was refused")
        version = numbers[-1]
    return version


async def _compute(until: float) -> None:
    while time.perf_counter() < until:
        pause = time.perf_counter() + SLICE
        while time.perf_counter() < pause:
            sum(range(100))
        await asyncio.sleep(0)


async def _rate(folder: Path, loop: str, executions: int, events: int) -> float:
    store = SqliteStore.at(folder / "store.db", inline="commits" if loop == "alone" else "nothing")
    started = time.perf_counter()
    until = started + SECONDS
    work = [_append(store, f"execution-{number}", events, until) for number in range(executions)]
    busy = [_compute(until)] if loop in ("busy", "short") else []
    gathered = asyncio.gather(*work)
    await asyncio.gather(gathered, *busy)
    rate = sum(await gathered) / (time.perf_counter() - started)
    await store.close()
    return rate


def main(loop: str, executions: str, events: str) -> None:
    if loop == "short":
        sys.setswitchinterval(SWITCH_INTERVAL)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(asyncio.run(_rate(Path(folder), loop, int(executions), int(events)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
