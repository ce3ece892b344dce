"""Counts the instructions that a repeated run of a workload takes, and whose they are. Needs valgrind.

    .venv/bin/python -m bench.instructions w2b
    .venv/bin/python -m bench.instructions w3b --laps 2 --runs 200

Unlike times they are the same on a busy machine. What the system does, the disk above all, is not in them.
"""

import argparse
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

from bench.workload_table import WORKLOADS, Workload
from bench.workloads.documents import document_of
from bench.workloads.engine import BenchEngine, with_engine
from noetl.system import SYSTEM

SHAPES = ("chain", "loop")
WARM_UPS = 3
TICK = 40e-6
"""Seconds by which the engine's clock goes on with each look at it: about what lies between two looks.

Beside valgrind the true clock is fifty times as fast as the work: a turn of the scheduler would be over
after a step or two, and each would have a commit of its own.
"""
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
    names = [name for name, workload in WORKLOADS.items() if workload.shape in SHAPES]
    parser.add_argument("workload", choices=names)
    parser.add_argument("--laps", type=int, default=3, help="runs to count, after those to warm up")
    parser.add_argument("--runs", type=int, default=0, help="how many at once, if not as many as measured")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.inside:
        run_laps(options.workload, options.laps, options.runs)
        return
    steps = _workload(options.workload, options.runs).steps_of_lap * options.laps
    counts = count_instructions(options.workload, options.laps, options.runs)
    print(f"{options.workload}: {sum(counts.values()) / steps:,.0f} instructions a step")
    for library, count in counts.most_common():
        print(f"{count / steps:>12,.0f}  {count / sum(counts.values()):>6.1%}  {library}")


def _workload(name: str, runs: int) -> Workload:
    workload = WORKLOADS[name]
    return replace(workload, runs=runs) if runs else workload


def count_instructions(name: str, laps: int, runs: int) -> Counter[str]:
    """Those of all laps together, by the library that they stand in."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "callgrind.out"
        inside = ["-m", "bench.instructions", name, "--laps", str(laps), "--runs", str(runs), "--inside"]
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={output}"]
        # One order of sets and dictionaries, so that two counts differ by little.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        try:
            done = subprocess.run(
                [*valgrind, sys.executable, *inside],
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
        _instrument("on")
        for _ in range(laps):
            await engine.run(source, workload.runs)
        _instrument("off")

    with_engine(work, system=SYSTEM._replace(monotonic=lambda: next(ticks) * TICK))


def _instrument(state: str) -> None:
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], check=True, capture_output=True)


if __name__ == "__main__":
    main()
