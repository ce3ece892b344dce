"""A table of 1 GB through a playbook, and the most memory that each process of it takes.

    python -m bench.large_table

DuckDB makes the table and stores it, another DuckDB task aggregates it, and Python code sums it up. The
playbook runs in a process of its own; every process of it must stay under 400 MB.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 400
PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: large_table, path: bench/large_table }
workload: { rows: 14000000 }
workflow:
  - step: start
    tool:
      - name: table
        kind: duckdb
        query: |
          SELECT range AS id, range % 1000 AS kind, hash(range) AS a, hash(range + 1) AS b,
            hash(range + 2) AS c, hash(range + 3)::double AS d, hash(range + 4) AS e, hash(range + 5) AS f,
            'item ' || range AS name
          FROM range($rows)
        params: { rows: "{{ workload.rows }}" }
      - name: again
        kind: duckdb
        query: SELECT count(*) AS n, count(DISTINCT kind) AS kinds, max(name) AS last FROM "table"
      - name: sum
        kind: python
        args: { table: "{{ table.rows }}", again: "{{ again.rows[0] }}" }
        spec: { tables: arrow }
        code: |
          result = {"rows": table.num_rows, "bytes": table.nbytes, **again}
"""


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "large_table.yaml"
        path.write_text(PLAYBOOK, "utf-8")
        command = [sys.executable, "-m", "noetl", "run", path.name, "--output", "json"]
        begin = time.monotonic()
        with subprocess.Popen(command, cwd=name, stdout=subprocess.DEVNULL) as process:
            peaks = _peaks(process)
        stored = sum(file.stat().st_size for file in Path(name).rglob("*") if file.is_file())
    print(f"{stored / 1e6:,.0f} MB stored in {time.monotonic() - begin:.1f} s")
    for who, peak in peaks.items():
        print(f"{who:<40} {peak:>8.1f} MB at most (goal: under {LIMIT})")
    return 0 if process.returncode == 0 and max(peaks.values()) < LIMIT else 1


def _peaks(process: "subprocess.Popen[bytes]") -> dict[str, float]:
    """The most resident memory in MB that was seen of the process and of those that it started."""
    found: dict[str, float] = {}
    while process.poll() is None:
        for pid in [process.pid, *_children(process.pid)]:
            if (held := _resident(pid)) is not None:
                who = "the run" if pid == process.pid else f"its child {pid}"
                found[who] = max(found.get(who, 0.0), held)
        time.sleep(0.02)
    return found


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    except OSError:
        return []


def _resident(pid: int) -> float | None:
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    except (OSError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    sys.exit(main())
