"""Runs the benchmarks, prints tables and writes `bench/results.json`."""

import argparse
import json
import os
import platform
import signal
import sys
from pathlib import Path

from bench.append import measure_append
from bench.compare import OURS, Comparison, compare, notes, table
from bench.duckdb_tool import measure_duckdb_tool
from bench.large_store import measure_large_store
from bench.load import measure_load, measure_parse
from bench.measurement import Measurement
from bench.peers import PEERS
from bench.postgres_copy import measure_postgres_copy
from bench.python_tool import measure_python_tool

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.run", description=__doc__)
    parser.add_argument(
        "--peers", action="store_true", help="measure other engines too, installed on first use"
    )
    parser.add_argument("--workloads", action="store_true", help="measure the workloads alone")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are ended on the way out
    measurements = [] if options.workloads else _measure_parts()
    comparison = compare(PEERS if options.peers else (), HERE / ".peers")
    sides = [OURS, *(peer.NAME for peer in PEERS if peer.NAME in comparison.versions)]
    if comparison.best:
        print(*table(comparison, sides), "", *notes(comparison), sep="\n")
    _write(measurements, comparison)


def _measure_parts() -> list[Measurement]:
    measurements = [
        *measure_load(),
        *measure_parse(),
        *measure_append(),
        *measure_python_tool(),
        *measure_postgres_copy(),
        *measure_duckdb_tool(),
        *measure_large_store(),
    ]
    width = max(len(measurement.name) for measurement in measurements)
    for measurement in measurements:
        goal = f"(goal: {measurement.goal})" if measurement.goal else ""
        print(
            f"{measurement.name:<{width}}  {measurement.value:>10,.3f} {measurement.unit:<12} {goal}".rstrip()
        )
    return measurements


def _write(measurements: list[Measurement], comparison: Comparison) -> None:
    everything = {
        "python": platform.python_version(),
        "machine": {"cores": os.cpu_count(), "system": platform.system(), "processor": platform.machine()},
        "rows": [measurement._asdict() for measurement in measurements],
        "workloads": {
            workload: {side: measurement._asdict() for side, measurement in cells.items()}
            for workload, cells in sorted(comparison.best.items())
        },
        "versions": comparison.versions,
        "not measured": comparison.reasons,
    }
    (HERE / "results.json").write_text(json.dumps(everything, indent=2, ensure_ascii=False) + "\n", "utf-8")


if __name__ == "__main__":
    main()
