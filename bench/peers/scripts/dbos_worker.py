"""Measures DBOS: steps in a workflow, both plain functions, in this process.

The database is SQLite in WAL mode, which DBOS keeps when the file has it: a step is one fsync, and several
in the rollback journal that DBOS makes by itself. One connection, because SQLite has one writer: W3 was
faster than with DBOS's own pool, W1 and W2 showed no clear difference.
W1b is W1: a step's result is committed before the workflow goes on. W2 needs coroutines for ten in flight.
"""

import asyncio
import os
import sqlite3
import sys
from pathlib import Path

from dbos import DBOS
from dbos._dbos import _get_dbos_instance
from sqlalchemy import text

from bench.peers.scripts import workload_report
from bench.peers.scripts.workload_report import fib, report, report_latency, time_await, time_call


@DBOS.step()
def nothing() -> None:
    pass


@DBOS.step()
async def nothing_async() -> None:
    pass


@DBOS.step()
def compute(n: int) -> int:
    return fib(n)


@DBOS.workflow()
def chain(steps: int) -> None:
    for _ in range(steps):
        nothing()


@DBOS.workflow()
async def loop(steps: int) -> None:
    gate = asyncio.Semaphore(workload_report.FLIGHT)

    async def run_step() -> None:
        async with gate:
            await nothing_async()

    await asyncio.gather(*[run_step() for _ in range(steps)])


@DBOS.workflow()
def tasks(steps: int) -> int:
    return sum(compute(10) for _ in range(steps))


def many(runs: int) -> None:
    for handle in [DBOS.start_workflow(chain, workload_report.RUN_STEPS) for _ in range(runs)]:
        handle.get_result()


async def measure_loop() -> float:
    await loop(workload_report.WARM)
    return await time_await(loop(workload_report.LOOP))


def durability() -> str:
    with _get_dbos_instance()._sys_db.engine.connect() as connection:
        journal = connection.execute(text("PRAGMA journal_mode")).scalar_one()
        level = connection.execute(text("PRAGMA synchronous")).scalar_one()
    return f"SQLite, journal {journal}, synchronous {('OFF', 'NORMAL', 'FULL', 'EXTRA')[level]}, each step"


def measure(workload: str) -> None:
    for _ in range(workload_report.WARM):
        chain(1)
    match workload:
        case "w1" | "w1b":
            report(
                workload, time_call(lambda: chain(workload_report.CHAIN)), workload_report.CHAIN, durability()
            )
        case "w2":
            report(workload, asyncio.run(measure_loop()), workload_report.LOOP, durability())
        case "w3":
            report(
                workload, time_call(lambda: many(workload_report.RUNS)), workload_report.RUNS, durability()
            )
        case "w4":
            latencies = [time_call(lambda: chain(1)) for _ in range(workload_report.LATENCIES)]
            report_latency(workload, latencies, durability())
        case "w5":
            report(
                workload, time_call(lambda: tasks(workload_report.FIBS)), workload_report.FIBS, durability()
            )


def main(workload: str) -> None:
    path = Path(os.environ["DATA"]) / f"{workload}.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    pool = {"pool_size": 1, "max_overflow": 0}
    url = f"sqlite:///{path}"
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "db_engine_kwargs": pool})
    DBOS.launch()
    measure(workload)
    DBOS.destroy()


if __name__ == "__main__":
    main(sys.argv[1])
