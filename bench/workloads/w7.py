import resource
import sys

from bench.row import Row
from bench.workloads.engine import DURABLE, loop, timed, with_engine
from noetl.local import Local


def run() -> Row:
    async def work(local: Local) -> tuple[float, int, list[int]]:
        await timed(local, loop(1_000))
        peaks = []
        took, events = 0.0, 0
        for count in (50_000, 100_000):
            took, state = await timed(local, loop(count))
            events = state.version
            peaks.append(_peak())
        return took, events, peaks

    took, events, (half, whole) = with_engine(work)
    grown = f"{whole - half:+,} MB from 50,000 to 100,000 iterations"
    note = f"{events / took:,.0f} events/s; peak {whole:,} MB, {grown}"
    return Row("a loop of 100,000 iterations", took * 1e3, "ms", n=100_000, durability=DURABLE, note=note)


def _peak() -> int:
    """Most memory so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> (20 if sys.platform == "darwin" else 10)
