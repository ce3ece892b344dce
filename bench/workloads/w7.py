import resource
import sys
from collections.abc import Sequence

from bench.measurement import Measurement
from bench.workloads.engine import DURABLE, loop, time_runs, with_engine
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.local import Local

COUNT = 100_000


def run() -> Measurement:
    peaks: list[int] = []

    def watch(_: str, events: Sequence[Event], __: ExecutionState) -> None:
        if not peaks and events[-1].seq > 2 * COUNT:  # four events for each iteration
            peaks.append(_peak())

    async def work(local: Local) -> tuple[float, int]:
        await time_runs(local, loop(1_000))
        took, state = await time_runs(local, loop(COUNT))
        return took, state.version

    took, events = with_engine(work, watch)
    grown = f"{_peak() - peaks[0]:+,} MB from iteration {COUNT // 2:,} to the end"
    note = f"{events / took:,.0f} events/s; peak {_peak():,} MB, {grown}"
    return Measurement(
        "a loop of 100,000 iterations", took * 1e3, "ms", n=COUNT, durability=DURABLE, note=note
    )


def _peak() -> int:
    """Most memory so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> (20 if sys.platform == "darwin" else 10)
