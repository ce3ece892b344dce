"""How every peer's worker times a workload and reports it."""

import json
import statistics
import time
from collections.abc import Awaitable, Callable

CHAIN, LOOP, FLIGHT, RUNS, RUN_STEPS, FIBS = 100, 1_000, 10, 500, 3, 40
WARM, LATENCIES = 20, 200


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def report(workload: str, seconds: float, n: int, durability: str, *, of: int = 0, how: str = "") -> None:
    """Prints a time; one of `n` things where the workload has `of` is scaled up, and says so."""
    note = ", ".join(part for part in (f"{n} of {of} measured, scaled" if of > n else "", how) if part)
    scaled = seconds * (of or n) / n
    line = {"workload": workload, "seconds": scaled, "n": n, "durability": durability, "note": note}
    print(json.dumps(line))


def report_latency(workload: str, seconds: list[float], durability: str) -> None:
    cuts = statistics.quantiles(seconds, n=20)
    line = {"workload": workload, "p50_ms": statistics.median(seconds) * 1e3, "p95_ms": cuts[18] * 1e3}
    print(json.dumps({**line, "n": len(seconds), "durability": durability, "note": ""}))


def time_call(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


async def time_await(work: Awaitable[object]) -> float:
    begin = time.perf_counter()
    await work
    return time.perf_counter() - begin
