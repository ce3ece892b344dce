"""Measures the workloads of this checkout and of another one in turns, and prints the medians of both.

    .venv/bin/python -m bench.against ../other          # another checkout with its own .venv
    .venv/bin/python -m bench.against ../other w1 w2 --rounds 9

Every workload is a process of its own. Which checkout comes first changes from round to round: neither has
the better minutes of the machine.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

from bench.compare import SECONDS, our_workloads
from bench.measurement import Measurement

HERE = Path(__file__).parents[1]
ROUNDS = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.against", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("workloads", nargs="*", default=our_workloads(), help="all of them if none is named")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    python = options.other.absolute() / ".venv" / "bin" / "python"
    if not python.exists():
        sys.exit(f"{options.other} has no .venv: run its scripts/noetl once")
    print(f"{'':<5}{'other':>12}{'this':>12}{'ratio':>8}   lowest and highest ratio of a round")
    for workload in options.workloads:
        print(line(workload, options.other.absolute(), python, options.rounds), flush=True)


def line(workload: str, other: Path, python: Path, rounds: int) -> str:
    """The medians of a workload and what this checkout's is to the other's: below 1 is faster."""
    sides = {"other": (other, str(python)), "this": (HERE, sys.executable)}
    values: dict[str, list[float]] = {side: [] for side in sides}
    unit = ""
    for number in range(rounds):
        for side in sorted(sides, reverse=bool(number % 2)):
            measurement = measure(workload, *sides[side])
            values[side].append(measurement.value)
            unit = measurement.unit
    medians = {side: statistics.median(measured) for side, measured in values.items()}
    ratios = [this / that for this, that in zip(values["this"], values["other"], strict=True)]
    return (
        f"{workload:<5}{medians['other']:>9.2f} {unit:<2}{medians['this']:>9.2f} {unit:<2}"
        f"{medians['this'] / medians['other']:>8.3f}   {min(ratios):.3f} … {max(ratios):.3f}"
    )


def measure(workload: str, folder: Path, python: str) -> Measurement:
    """One process of one checkout."""
    command = [python, "-m", "bench.workloads", workload]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)
    if done.returncode:
        sys.exit(f"{workload} in {folder}: {done.stderr.strip()}")
    return Measurement(**json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    main()
