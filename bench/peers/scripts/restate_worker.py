"""Measures Restate through its HTTP ingress: a run is one request that waits for its result.

The twins with a `b` are the same as those without: every `run` is in the log before the handler goes on.
Loops run batches of ten, which was faster than keeping ten in flight. Runs at once are requests at once.
"""

import asyncio
import os
import sys

import aiohttp
import uvloop

from bench.protocol import Recorder, WrongCount, print_report, read_arguments
from bench.workload_table import FIB_RESULT

DURABILITY = os.environ["DURABILITY"] + ", each step"


class Client:
    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._url, self._session = os.environ["INGRESS"], session

    async def run(self, handler: str, steps: int) -> object:
        async with self._session.post(f"{self._url}/Workloads/{handler}", json=steps) as answer:
            if answer.status != 200:
                raise RuntimeError(f"{handler}: {answer.status} {await answer.text()}")
            return await answer.json(content_type=None)

    async def measure(self, recorder: Recorder) -> None:
        workload = recorder.workload
        for _ in recorder.shots():
            for _ in range(workload.laps):
                with recorder.lap():
                    runs = [self.run(workload.shape, workload.steps) for _ in range(workload.runs)]
                    results = await asyncio.gather(*runs)
                recorder.check(int(str(await self.run("count", 0))))
                if workload.shape == "tasks" and results != [FIB_RESULT * workload.steps]:
                    raise WrongCount(f"the results are {results}")


async def main() -> None:
    workload, plan = read_arguments(sys.argv[1:])
    recorder = Recorder(workload, plan, DURABILITY, waits=True)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        await Client(session).measure(recorder)
    print_report(recorder.report())


if __name__ == "__main__":
    uvloop.run(main())
