"""W7: a loop of 100,000 iterations, and what memory it takes on its way."""

import resource
import sys
import time
from collections.abc import Sequence

from bench.protocol import Recorder
from bench.workload_table import Workload
from bench.workloads.documents import document_of
from bench.workloads.engine import BenchEngine, with_engine
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState


def measure_long_loop(recorder: Recorder, workload: Workload) -> None:
    """The note says events a second and memory, of the last shot."""
    middle_peaks: list[int] = []

    def watch(_: str, events: Sequence[Event], __: ExecutionState) -> None:
        if not middle_peaks and events[-1].seq > 2 * workload.steps:  # four events for each iteration
            middle_peaks.append(_peak())

    async def work(engine: BenchEngine) -> None:
        for _ in recorder.shots():
            began = time.perf_counter()
            with recorder.lap():
                ids = await engine.run(document_of(workload))
            took = time.perf_counter() - began
            recorder.check(await engine.count_tasks(ids, workload))
            record = await engine.store.execution(ids[0])
            events = record.version if record else 0
            grown = f"{_peak() - middle_peaks[0]:+,} MB since the middle of the first loop"
            recorder.remark(f"{events / took:,.0f} events/s; peak {_peak():,} MB, {grown}")

    with_engine(work, watch)


def _peak() -> int:
    """Most memory so far, in MB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak >> (20 if sys.platform == "darwin" else 10)
