"""Measures Prefect: tasks in a flow, both coroutines, in this process; a run is a call of the flow.

Without a `b` it is Prefect's own default: a task's state goes to the server as an event that is recorded
behind the flow's back. The twins with a `b` persist results, so that each is in a file before the next task
begins. Runs at once are one run after the other, scaled from a few: one in flight was better than four or
ten, and a hundred did not end in two minutes.
"""

import asyncio
import os
import sys
from dataclasses import replace

from prefect import flow, task

from bench.protocol import Recorder, WrongCount, print_report, read_arguments
from bench.workload_table import FIB, FIB_RESULT, FLIGHT, Workload, fib

STEPS = 60
"""How many steps of runs at once are measured, at least two runs."""
STORE = (
    "PostgreSQL" if "PREFECT_API_DATABASE_CONNECTION_URL" in os.environ else "SQLite WAL, synchronous NORMAL"
)
EVENTS = f"{STORE}, task states recorded in the background"
RESULTS = "results in files before the next step, no fsync; states recorded in the background"

executed = 0


def count_step() -> None:
    global executed  # noqa: PLW0603 - one process, one count
    executed += 1


@task
async def nothing() -> None:
    count_step()


@task(persist_result=True)
async def nothing_persisted() -> None:
    count_step()


@task
async def compute(n: int) -> int:
    count_step()
    return fib(n)


@task(persist_result=True)
async def compute_persisted(n: int) -> int:
    count_step()
    return fib(n)


@flow
async def chain(steps: int, *, persisted: bool) -> None:
    for _ in range(steps):
        await (nothing_persisted() if persisted else nothing())


@flow
async def loop(steps: int, *, persisted: bool) -> None:
    gate = asyncio.Semaphore(FLIGHT)

    async def run_step() -> None:
        async with gate:
            await (nothing_persisted() if persisted else nothing())

    await asyncio.gather(*[run_step() for _ in range(steps)])


@flow
async def tasks(steps: int, *, persisted: bool) -> int:
    return sum([await (compute_persisted(FIB) if persisted else compute(FIB)) for _ in range(steps)])


async def run_lap(workload: Workload) -> None:
    if workload.shape == "tasks":
        if (result := await tasks(workload.steps, persisted=workload.waits)) != FIB_RESULT * workload.steps:
            raise WrongCount(f"the result is {result}")
    elif workload.shape == "loop":
        await loop(workload.steps, persisted=workload.waits)
    else:
        for _ in range(workload.runs):
            await chain(workload.steps, persisted=workload.waits)


def take_count() -> int:
    global executed
    counted, executed = executed, 0
    return counted


async def main() -> None:
    workload, plan = read_arguments(sys.argv[1:])
    recorder = Recorder(workload, plan, RESULTS if workload.waits else EVENTS, waits=False)
    runs = min(workload.runs, max(2, STEPS // workload.steps))
    recorder.scale(replace(workload, runs=runs), "one after the other")
    for _ in recorder.shots():
        for _ in range(workload.laps):
            with recorder.lap():
                await run_lap(recorder.workload)
            recorder.check(take_count())
    print_report(recorder.report())


if __name__ == "__main__":
    asyncio.run(main())
