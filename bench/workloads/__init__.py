"""Our side of the workloads: `w1.py` and so on, each with `def run() -> Measurement`."""

TITLES = {
    "w1": "a chain of 100 no-op steps",
    "w1b": "the same, each step durable before the next",
    "w2": "a loop of 1,000 no-ops, 10 in flight",
    "w3": "500 runs of 3 no-op steps at once",
    "w4": "latency of a one-step run, warm",
    "w5": "40 python tasks in a row, fib(10)",
}
"""What peers are measured on too. Every figure is a time: less is better."""
