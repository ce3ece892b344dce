from bench.measurement import Measurement
from bench.workloads.engine import DURABLE, best_of, chain


def run() -> Measurement:
    took = best_of(chain(3, "{kind: noop}"), runs=500)
    return Measurement("500 playbooks of 3 no-op steps at once", took, "ms", n=500, durability=DURABLE)
