"""What a `python` task costs: 40 of them one after the other, each `fib(10)`."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.measurement import Measurement
from noetl.model.outcome import Outcome
from noetl.ports.tool import Call
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.python.tool import PythonTool

TASKS = 40
RUNS = 3
FIB = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def main(n):
    return fib(n)
"""


def fib_call(isolation: str) -> Call:
    return Call(
        execution_id="bench",
        task="fib",
        kind="python",
        inputs={"code": FIB},
        args={"n": 10},
        spec={"isolation": isolation},
        prev=None,
        attempt=1,
        idempotency_key="",
        timeout=60.0,
        folder=Path(),
        log=print,
        objects=ResultStoreObjects(MemoryResults(), "bench"),
    )


def measure_python_tool() -> Iterator[Measurement]:
    first, warm = min(asyncio.run(_warm("pool")) for _ in range(RUNS))
    yield Measurement("python: first task, with the start of its process", first * 1e3, "ms")
    yield Measurement("python: a task, pool", warm * 1e3, "ms", "under 0.5")
    yield Measurement(
        "python: a task, fork", min(asyncio.run(_warm("fork"))[1] for _ in range(RUNS)) * 1e3, "ms"
    )
    yield Measurement(
        "python: a task, inline", min(asyncio.run(_warm("inline"))[1] for _ in range(RUNS)) * 1e3, "ms"
    )
    yield Measurement(
        "python: a task, new process each", min(asyncio.run(_cold()) for _ in range(RUNS)) * 1e3, "ms"
    )
    yield Measurement("python: start of a bare interpreter", min(_bare() for _ in range(RUNS)) * 1e3, "ms")


async def _warm(isolation: str) -> tuple[float, float]:
    """Seconds of the first task, and of one of the next 40."""
    tool = PythonTool()
    try:
        begin = time.perf_counter()
        _check(await tool.run(fib_call(isolation)))
        ready = time.perf_counter()
        for _ in range(TASKS):
            _check(await tool.run(fib_call(isolation)))
        return ready - begin, (time.perf_counter() - ready) / TASKS
    finally:
        await tool.close()


async def _cold() -> float:
    tool = PythonTool(uses=1)
    try:
        begin = time.perf_counter()
        for _ in range(TASKS):
            _check(await tool.run(fib_call("pool")))
        return (time.perf_counter() - begin) / TASKS
    finally:
        await tool.close()


def _bare() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    return time.perf_counter() - begin


def _check(outcome: Outcome) -> None:
    if outcome.result != 55:
        raise RuntimeError(f"a task failed: {outcome.error}")
