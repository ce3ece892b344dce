"""Measures Restate through its HTTP ingress: a run is one request that waits for its result.

W1b is W1: every `run` is in the log before the handler goes on. W2 runs batches of ten, which was faster
than keeping ten in flight. W3 is 500 requests at once.
"""

import asyncio
import os
import sys

import aiohttp
import uvloop

from bench.peers.scripts import workload_report
from bench.peers.scripts.workload_report import report, report_latency, time_await

DURABILITY = os.environ["DURABILITY"] + ", each step"


class Client:
    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url, self.session = url, session

    async def run(self, handler: str, steps: int) -> object:
        async with self.session.post(f"{self.url}/Workloads/{handler}", json=steps) as answer:
            if answer.status != 200:
                raise RuntimeError(f"{handler}: {answer.status} {await answer.text()}")
            return await answer.json(content_type=None)

    async def measure(self, workload: str) -> None:
        for _ in range(workload_report.WARM):
            await self.run("chain", 1)
        match workload:
            case "w1" | "w1b":
                seconds = await time_await(self.run("chain", workload_report.CHAIN))
                report(workload, seconds, workload_report.CHAIN, DURABILITY)
            case "w2":
                seconds = await time_await(self.run("loop", workload_report.LOOP))
                report(workload, seconds, workload_report.LOOP, DURABILITY)
            case "w3":
                runs = [self.run("chain", workload_report.RUN_STEPS) for _ in range(workload_report.RUNS)]
                report(workload, await time_await(asyncio.gather(*runs)), workload_report.RUNS, DURABILITY)
            case "w4":
                latencies = [await time_await(self.run("chain", 1)) for _ in range(workload_report.LATENCIES)]
                report_latency(workload, latencies, DURABILITY)
            case "w5":
                seconds = await time_await(self.run("tasks", workload_report.FIBS))
                report(workload, seconds, workload_report.FIBS, DURABILITY)


async def main(url: str, workload: str) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await Client(url, session).measure(workload)


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
