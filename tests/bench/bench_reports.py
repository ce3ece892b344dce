"""Reports and results with times that tests choose."""

from bench.protocol import Plan, Report
from bench.results import Results
from bench.workload_table import RUN

PLAN = Plan(rounds=2, warm_ups=1, shots=2)


def report_of(workload: str, *milliseconds: float, figure: str = RUN, waits: bool = True) -> Report:
    """One lap for each shot."""
    seconds = {figure: [[value / 1e3] for value in milliseconds]}
    return Report(workload, seconds, waits=waits, durability="fsync, each step" if waits else "none")


def results_of(reports: dict[str, dict[str, list[Report | None]]], **fields: object) -> Results:
    sides = list(dict.fromkeys(side for cells in reports.values() for side in cells))
    results = Results(PLAN, sides=sides, durable=[side for side in sides if side != "loose"], reports=reports)
    for name, value in fields.items():
        setattr(results, name, value)
    return results
