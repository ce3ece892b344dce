"""Runs the benchmarks, prints a table and writes `bench/results.json`."""

import json
import platform
from pathlib import Path

from bench.append import measure_append
from bench.large_store import measure_large_store
from bench.load import measure_load, measure_parse
from bench.python_tool import measure_python_tool

HERE = Path(__file__).parent


def main() -> None:
    rows = [
        *measure_load(),
        *measure_parse(),
        *measure_append(),
        *measure_python_tool(),
        *measure_large_store(),
    ]
    width = max(len(row.name) for row in rows)
    for row in rows:
        goal = f"(goal: {row.goal})" if row.goal else ""
        print(f"{row.name:<{width}}  {row.value:>10,.3f} {row.unit:<12} {goal}".rstrip())
    found = {
        "python": platform.python_version(),
        "rows": [row._asdict() for row in rows],
    }
    (HERE / "results.json").write_text(json.dumps(found, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
