"""W10: `begin FOLDER` runs a chain that waits in its middle, `resume FOLDER` goes on with it.

python -m bench.workloads.killed_run begin FOLDER
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import noetl
from bench.resumption import StepTrace
from bench.workloads.documents import HEAD, chain
from bench.workloads.engine import open_engine
from noetl.api import dedicate_process
from noetl.engine.catalog.playbook_record import PlaybookSource

_TRACE = StepTrace.of_environment()


@noetl.tool("bench_traced")
async def bench_traced() -> None:
    """A write that leaves a line."""
    _TRACE.step()


def source_of(steps: int) -> PlaybookSource:
    return PlaybookSource(HEAD.format(edition=0) + chain(steps, "{kind: bench_traced}"), "w10.yaml")


async def main(command: str, folder: Path, steps: int) -> None:
    async with open_engine(folder) as engine:
        if command == "begin":
            await engine.run(source_of(steps))
            return
        (record,) = (await engine.store.executions()).executions
        await engine.local.resume(record.execution_id)
        state = await engine.local.wait_for_end(record.execution_id)
        ended = time.monotonic()
    if state.status != "completed":
        sys.exit(f"the run is {state.status}: {state.error}")
    print(json.dumps(ended))


if __name__ == "__main__":
    dedicate_process()
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
