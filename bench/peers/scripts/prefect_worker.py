"""Measures Prefect: tasks in a flow, both coroutines, in this process; a run is a call of the flow.

W1 is Prefect's own default: a task's state goes to the server as an event that is recorded behind the
flow's back. W1b persists results, so that each is in a file before the next task begins.
W3 is one run after the other, scaled from 20: the best of one in flight was better than the best of four
or ten, and a hundred did not end in two minutes.
"""

import asyncio
import sys

from prefect import flow, task

from bench.peers.scripts import workload_report
from bench.peers.scripts.workload_report import fib, report, report_latency, time_await

RUNS = 20
LATENCIES = 50
EVENTS = "SQLite, journal wal, synchronous NORMAL, task states recorded in the background"
RESULTS = "results in files before the next step, no fsync; states as in w1"


@task
async def nothing() -> None:
    pass


@task(persist_result=True)
async def nothing_kept() -> None:
    pass


@task
async def compute(n: int) -> int:
    return fib(n)


@flow
async def chain(steps: int) -> None:
    for _ in range(steps):
        await nothing()


@flow
async def chain_kept(steps: int) -> None:
    for _ in range(steps):
        await nothing_kept()


@flow
async def loop(steps: int) -> None:
    gate = asyncio.Semaphore(workload_report.FLIGHT)

    async def run_step() -> None:
        async with gate:
            await nothing()

    await asyncio.gather(*[run_step() for _ in range(steps)])


@flow
async def tasks(steps: int) -> int:
    return sum([await compute(10) for _ in range(steps)])


async def many(runs: int) -> None:
    for _ in range(runs):
        await chain(workload_report.RUN_STEPS)


async def main(workload: str) -> None:
    for _ in range(3):
        await chain(1)
    match workload:
        case "w1":
            report(workload, await time_await(chain(workload_report.CHAIN)), workload_report.CHAIN, EVENTS)
        case "w1b":
            await chain_kept(1)
            report(
                workload, await time_await(chain_kept(workload_report.CHAIN)), workload_report.CHAIN, RESULTS
            )
        case "w2":
            report(workload, await time_await(loop(workload_report.LOOP)), workload_report.LOOP, EVENTS)
        case "w3":
            seconds = await time_await(many(RUNS))
            report(workload, seconds, RUNS, EVENTS, of=workload_report.RUNS, how="one after the other")
        case "w4":
            report_latency(workload, [await time_await(chain(1)) for _ in range(LATENCIES)], EVENTS)
        case "w5":
            report(workload, await time_await(tasks(workload_report.FIBS)), workload_report.FIBS, EVENTS)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
