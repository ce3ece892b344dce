from bench.measurement import Measurement
from bench.workloads.engine import DURABLE, best_of, chain


def run() -> Measurement:
    took = best_of(chain(100, "{kind: noop}"))
    return Measurement(
        "a chain of 100 no-op steps", took, "ms", n=100, durability=f"{DURABLE}; pure steps do not wait"
    )
