from bench.measurement import Measurement
from bench.workloads.engine import DURABLE, best_of, chain

FIB = "fib = lambda n: n if n < 2 else fib(n - 1) + fib(n - 2)\\nresult = fib(10)"


def run() -> Measurement:
    took = best_of(chain(40, f'{{kind: python, code: "{FIB}"}}'))
    note = "each task in a child process that can be killed"
    return Measurement("40 python tasks, fib(10)", took, "ms", n=40, durability=DURABLE, note=note)
