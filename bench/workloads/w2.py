from bench.measurement import Measurement
from bench.workloads.engine import DURABLE, best_of, loop


def run() -> Measurement:
    return Measurement(
        "a parallel loop of 1,000 no-ops", best_of(loop(1_000)), "ms", n=1_000, durability=DURABLE
    )
