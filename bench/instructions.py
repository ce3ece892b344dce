"""Counts the instructions that a repeated run of a workload takes, and whose they are. Needs valgrind.

    .venv/bin/python -m bench.instructions w2b
    .venv/bin/python -m bench.instructions w3b --laps 2 --runs 200
    .venv/bin/python -m bench.instructions w1 --server

Unlike times they are the same on a busy machine. What the system does, the disk above all, is not in them.
"""

import argparse
import asyncio
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from bench.server_process import (
    admin_token,
    end_process,
    launch_server,
    start_worker,
    wait_for_url,
    wait_for_words,
)
from bench.workload_table import WORKLOADS, Workload
from bench.workloads.documents import document_of
from bench.workloads.engine import BenchEngine, with_engine
from noetl import AsyncClient
from noetl.ports.http_api import StartExecution
from noetl.system import SYSTEM

SHAPES = ("chain", "loop")
SERVED_SHAPES = ("tasks",)
"""Those that are counted with a server only: alone, the child processes of a worker are in the way."""
WARM_UPS = 3
TICK = 40e-6
"""Seconds by which the engine's clock goes on with each look at it: about what lies between two looks.

Beside valgrind the true clock is fifty times as fast as the work: a turn of the scheduler would be over
after a step or two, and each would have a commit of its own.
"""
VALGRIND = ("valgrind", "--tool=callgrind", "--instr-atstart=no")
LIBRARIES = {
    "libpython": "interpreter",
    "python": "interpreter",
    "apsw": "SQLite",
    "msgspec": "JSON and structs",
    "_asyncio": "asyncio",
    "libc.so": "C library",
}
_OBJECT = re.compile(r"c?ob=\((\d+)\)(?: (.*))?")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.instructions", description=(__doc__ or "").splitlines()[0]
    )
    names = [name for name, workload in WORKLOADS.items() if workload.shape in (*SHAPES, *SERVED_SHAPES)]
    parser.add_argument("workload", choices=names)
    parser.add_argument("--laps", type=int, default=3, help="runs to count, after those to warm up")
    parser.add_argument("--runs", type=int, default=0, help="how many at once, if not as many as measured")
    parser.add_argument("--server", action="store_true", help="those of a server and of its worker")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        run_laps(options.workload, options.laps, options.runs)
        return
    workload = _workload(options.workload, options.runs)
    if options.server:
        for process, counts in count_served_instructions(workload, options.laps).items():
            print_counts(f"{workload.name}, {process}", counts, workload, options.laps)
        return
    if workload.shape not in SHAPES:
        parser.error(f"{workload.name} is counted with --server only")
    counts = count_instructions(options.workload, options.laps, options.runs)
    print_counts(workload.name, counts, workload, options.laps)


def print_counts(title: str, counts: Counter[str], workload: Workload, laps: int) -> None:
    total, runs, steps = sum(counts.values()), workload.runs * laps, workload.steps_of_lap * laps
    print(f"{title}: {total / steps:,.0f} instructions a step, {total / runs:,.0f} a run")
    for library, count in counts.most_common():
        print(f"{count / steps:>12,.0f}  {count / total:>6.1%}  {library}")


def _workload(name: str, runs: int) -> Workload:
    workload = WORKLOADS[name]
    return replace(workload, runs=runs) if runs else workload


def count_instructions(name: str, laps: int, runs: int) -> Counter[str]:
    """Those of all laps together, by the library that they stand in."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "callgrind.out"
        inside = ["-m", "bench.instructions", name, "--laps", str(laps), "--runs", str(runs), "--inside"]
        # One order of sets and dictionaries, so that two counts differ by little.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        try:
            done = subprocess.run(
                [*VALGRIND, f"--callgrind-out-file={output}", sys.executable, *inside],
                capture_output=True,
                text=True,
                check=False,
                env=environment,
            )
        except FileNotFoundError:
            sys.exit("valgrind is not installed")
        if done.returncode:
            sys.exit(done.stderr)
        with output.open() as lines:
            return count_by_library(lines)


def count_served_instructions(workload: Workload, laps: int) -> dict[str, Counter[str]]:
    """Those of a server and of its worker, each in a process of its own; what they start is not in them."""

    async def run_laps_of(client: AsyncClient, count: int) -> None:
        for _ in range(count):
            path = StartExecution(path="bench/e1")
            await asyncio.gather(*(client.run(path) for _ in range(workload.runs)))

    async def work(url: str, home: Path, processes: Sequence[int]) -> None:
        async with AsyncClient(url, admin_token(home)) as client:
            await client.register(document_of(workload, edition=1).text)
            await run_laps_of(client, WARM_UPS)
            for process in processes:
                _instrument("on", process)
            await run_laps_of(client, laps)
            for process in processes:
                _instrument("off", process)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home, log = folder / "home", folder / "log"
        outputs = {process: folder / f"{process}.out" for process in ("server", "worker")}
        wraps = {process: [*VALGRIND, f"--callgrind-out-file={file}"] for process, file in outputs.items()}
        # Without heartbeats: how many there are says only how long the counting takes.
        environment = {**os.environ, "PYTHONHASHSEED": "0", "NOETL_LEASE_TTL": "3600"}
        server = launch_server(home, log, environment=environment, wrap=wraps["server"])
        worker = None
        try:
            url = wait_for_url(server, log)
            worker = start_worker(url, home, log, environment=environment, wrap=wraps["worker"])
            wait_for_words(log, b"registered with", worker)
            asyncio.run(work(url, home, [server.pid, worker.pid]))
        finally:
            for process in (worker, server):
                if process is not None:
                    end_process(process, 120)
        counts = {}
        for process_name, output in outputs.items():
            with output.open() as lines:
                counts[process_name] = count_by_library(lines)
        return counts


def count_by_library(lines: Iterable[str]) -> Counter[str]:
    """The instructions in what callgrind wrote, without those of the functions that a line calls."""
    counts: Counter[str] = Counter()
    names: dict[str, str] = {}
    current, is_call = "", False
    for line in lines:
        if match := _OBJECT.match(line):
            names.setdefault(match[1], match[2] or "")
            if line.startswith("ob="):
                current = match[1]
        elif line.startswith("calls="):
            is_call = True  # the next line has what the called function took
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            if not is_call:
                counts[_library(names.get(current, ""))] += int(line.split()[1])
            is_call = False
    return counts


def _library(path: str) -> str:
    parts = path.split("/")[-2:]
    return next(
        (name for key, name in LIBRARIES.items() if any(part.startswith(key) for part in parts)), "other"
    )


def run_laps(name: str, laps: int, runs: int) -> None:
    """What is counted: one document again and again in one process."""
    workload = _workload(name, runs)
    ticks = itertools.count()

    async def work(engine: BenchEngine) -> None:
        source = document_of(workload)
        for _ in range(WARM_UPS):
            await engine.run(source, workload.runs)
        _instrument("on", os.getpid())
        for _ in range(laps):
            await engine.run(source, workload.runs)
        _instrument("off", os.getpid())

    with_engine(work, system=SYSTEM._replace(monotonic=lambda: next(ticks) * TICK))


def _instrument(state: str, process: int) -> None:
    subprocess.run(["callgrind_control", "-i", state, str(process)], check=True, capture_output=True)


if __name__ == "__main__":
    main()
