"""All that a run of the benchmarks measured, as `bench/results.json` keeps it."""

from pathlib import Path

import msgspec

from bench.measurement import Measurement
from bench.protocol import Plan, Report


class Results(msgspec.Struct):
    """`reports[workload][side]` has an entry for each round, None where nothing was measured in it.

    `sync_calls` are those of one lap of the figure `run`, on average. `reasons` say why something is missing,
    by side, or side and workload. `database` is what all sides keep their state in, if it is one.
    """

    plan: Plan
    machine: dict[str, str] = {}
    sides: list[str] = []
    durable: list[str] = []
    database: str = ""
    versions: dict[str, dict[str, str]] = {}
    parts: list[Measurement] = []
    reports: dict[str, dict[str, list[Report | None]]] = {}
    sync_calls: dict[str, dict[str, dict[str, float]]] = {}
    reasons: dict[str, str] = {}

    def rounds(self, workload: str, side: str) -> list[Report | None]:
        return self.reports.get(workload, {}).get(side, [])

    def reports_of(self, workload: str, side: str) -> list[Report]:
        return [report for report in self.rounds(workload, side) if report is not None]

    def write(self, path: Path) -> None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(self), indent=1) + b"\n")


def read_results(path: Path) -> Results:
    return msgspec.json.decode(path.read_bytes(), type=Results)
