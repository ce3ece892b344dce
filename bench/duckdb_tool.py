"""What a `duckdb` task costs over DuckDB itself: an aggregation of 10 million rows from a Parquet file."""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

from bench.measurement import Measurement
from noetl.ports.tool import Call
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.duckdb.tool import DuckdbTool

ROWS = 10_000_000
ROUNDS = 7
ORDERS = """
    SELECT hash(range) % 50000 AS customer, (hash(range) % 100000) / 100 AS amount,
      DATE '2026-01-01' + (range % 365)::int AS day
    FROM range($rows)
"""
QUERY = """
    SELECT customer, count(*) AS orders, sum(amount) AS amount, max(day) AS last
    FROM 'orders.parquet'
    GROUP BY customer
    ORDER BY amount DESC
    LIMIT 100
"""


def measure_duckdb_tool() -> Iterator[Measurement]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write(folder / "orders.parquet")
        alone, ours = asyncio.run(_both(folder))
    yield Measurement("duckdb: 10 million rows of Parquet aggregated, DuckDB alone", alone, "s")
    yield Measurement("duckdb: the same in a task", ours, "s")
    yield Measurement("duckdb: task to DuckDB alone", ours / alone, "times", "at most 1.1")


def _write(path: Path) -> None:
    with duckdb.connect() as connection:
        orders = connection.sql(ORDERS, params={"rows": ROWS})
        orders.write_parquet(str(path))


async def _both(folder: Path) -> tuple[float, float]:
    """The best seconds of each. They take turns, so that both see the same machine."""
    tool = DuckdbTool()
    query = QUERY.replace("orders.parquet", str(folder / "orders.parquet"))
    alone, ours = [], []
    try:
        with duckdb.connect() as connection:
            for _ in range(ROUNDS):
                begin = time.perf_counter()
                rows = connection.execute(query).fetchall()
                alone.append(time.perf_counter() - begin)
                begin = time.perf_counter()
                outcome = await tool.run(_call(folder))
                ours.append(time.perf_counter() - begin)
                _check(outcome.result, rows)
    finally:
        await tool.close()
    return min(alone), min(ours)


def _call(folder: Path) -> Call:
    return Call(
        execution_id="bench",
        task="orders",
        kind="duckdb",
        inputs={"query": QUERY},
        args={},
        spec={},
        prev=None,
        attempt=1,
        idempotency_key="",
        timeout=120.0,
        folder=folder,
        log=print,
        objects=ResultStoreObjects(FileResults(folder / "results"), "bench"),
    )


def _check(result: Any, rows: list[Any]) -> None:
    if [row["customer"] for row in result["rows"]] != [row[0] for row in rows]:
        raise RuntimeError("the task gave other rows than DuckDB")


if __name__ == "__main__":
    for row in measure_duckdb_tool():
        print(f"{row.name:<60} {row.value:>10.3f} {row.unit}")
