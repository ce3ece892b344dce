from bench.measurement import Measurement
from bench.workloads.engine import DURABLE, chain, time_runs, with_engine
from noetl.local import Local


def run() -> Measurement:
    async def work(local: Local) -> list[float]:
        source = chain(1, "{kind: noop}")
        for _ in range(20):
            await time_runs(local, source)
        return sorted([(await time_runs(local, source))[0] for _ in range(200)])

    times = with_engine(work)
    middle, late = times[len(times) // 2] * 1e3, times[len(times) * 95 // 100] * 1e3
    return Measurement(
        "a one-step run in a warm process", middle, "ms", n=len(times), p95=late, durability=DURABLE
    )
