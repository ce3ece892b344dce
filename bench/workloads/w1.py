from bench.measurement import Row
from bench.workloads.engine import DURABLE, best_of, chain


def run() -> Row:
    took = best_of(chain(100, "{kind: noop}"))
    return Row(
        "a chain of 100 no-op steps", took, "ms", n=100, durability=f"{DURABLE}; pure steps do not wait"
    )
