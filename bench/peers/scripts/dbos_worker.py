"""Measures DBOS: steps in a workflow, both plain functions, in this process.

The database is SQLite in WAL mode, which DBOS keeps when the file has it: a step is one fsync, and several
in the rollback journal that DBOS makes by itself. One connection, because SQLite has one writer: W3 was
faster than with DBOS's own pool, W1 and W2 showed no clear difference.
On PostgreSQL it has the pool that DBOS makes by itself.
The twins with a `b` are the same as those without: a step's result is committed before the workflow goes on.
Loops need coroutines for ten in flight.
"""

import asyncio
import json
import os
import sqlite3
import sys
import time
from pathlib import Path

from dbos import DBOS, SetWorkflowID
from dbos._dbos import _get_dbos_instance
from sqlalchemy import text

from bench.protocol import Recorder, WrongCount, print_report, read_arguments
from bench.resumption import STEPS, TRACE, StepTrace
from bench.workload_table import FIB, FIB_RESULT, FLIGHT, Workload, fib

executed = 0
trace = StepTrace.of_environment() if TRACE in os.environ else None


def count_step() -> None:
    global executed  # noqa: PLW0603 - one process, one count
    executed += 1
    if trace is not None:
        trace.step()


@DBOS.step()
def nothing() -> None:
    count_step()


@DBOS.step()
async def nothing_async() -> None:
    count_step()


@DBOS.step()
def compute(n: int) -> int:
    count_step()
    return fib(n)


@DBOS.workflow()
def chain(steps: int) -> None:
    for _ in range(steps):
        nothing()


@DBOS.workflow()
async def loop(steps: int) -> None:
    gate = asyncio.Semaphore(FLIGHT)

    async def run_step() -> None:
        async with gate:
            await nothing_async()

    await asyncio.gather(*[run_step() for _ in range(steps)])


@DBOS.workflow()
def tasks(steps: int) -> int:
    return sum(compute(FIB) for _ in range(steps))


def run_lap(workload: Workload) -> None:
    if workload.shape == "tasks":
        if (result := tasks(workload.steps)) != FIB_RESULT * workload.steps:
            raise WrongCount(f"the result is {result}")
    elif workload.runs == 1:
        chain(workload.steps)
    else:
        for handle in [DBOS.start_workflow(chain, workload.steps) for _ in range(workload.runs)]:
            handle.get_result()


def take_count() -> int:
    global executed
    counted, executed = executed, 0
    return counted


def measure(recorder: Recorder) -> None:
    for _ in recorder.shots():
        for _ in range(recorder.workload.laps):
            with recorder.lap():
                run_lap(recorder.workload)
            recorder.check(take_count())


async def measure_loop(recorder: Recorder) -> None:
    for _ in recorder.shots():
        with recorder.lap():
            await loop(recorder.workload.steps)
        recorder.check(take_count())


def durability() -> str:
    if os.environ.get("DATABASE"):
        return "PostgreSQL, each step committed with fsync"
    with _get_dbos_instance()._sys_db.engine.connect() as connection:
        journal = connection.execute(text("PRAGMA journal_mode")).scalar_one()
        level = connection.execute(text("PRAGMA synchronous")).scalar_one()
    return f"SQLite, journal {journal}, synchronous {('OFF', 'NORMAL', 'FULL', 'EXTRA')[level]}, each step"


def launch() -> None:
    if url := os.environ.get("DATABASE"):
        DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR"})
        DBOS.launch()
        return
    path = Path(os.environ["DATA"]) / "dbos.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    pool = {"pool_size": 1, "max_overflow": 0}
    url = f"sqlite:///{path}"
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "db_engine_kwargs": pool})
    DBOS.launch()


def main(command: str, arguments: list[str]) -> None:
    launch()
    if command == "begin":
        with SetWorkflowID("bench"):
            chain(int(os.environ[STEPS]))
    elif command == "resume":
        # `launch` has taken up what was pending; the result is asked for often, for the time of the end.
        DBOS.retrieve_workflow("bench").get_result(polling_interval_sec=0.005)
        print(json.dumps(time.monotonic()))
    else:
        workload, plan = read_arguments(arguments)
        recorder = Recorder(workload, plan, durability(), waits=True)
        if workload.shape == "loop":
            asyncio.run(measure_loop(recorder))
        else:
            measure(recorder)
        print_report(recorder.report())
    DBOS.destroy()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
