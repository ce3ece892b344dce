import noetl
from bench.measurement import Measurement
from bench.workloads.engine import DURABLE, best_of, chain


@noetl.tool("bench_write")
async def bench_write() -> None:
    """Does nothing, and counts as a write: everything before it is durable when it begins."""


def run() -> Measurement:
    took = best_of(chain(100, "{kind: bench_write}"))
    return Measurement("the same, a durable barrier in each step", took, "ms", n=100, durability=DURABLE)
