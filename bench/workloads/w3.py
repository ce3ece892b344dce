from bench.measurement import Row
from bench.workloads.engine import DURABLE, best_of, chain


def run() -> Row:
    took = best_of(chain(3, "{kind: noop}"), runs=500)
    return Row("500 playbooks of 3 no-op steps at once", took, "ms", n=500, durability=DURABLE)
