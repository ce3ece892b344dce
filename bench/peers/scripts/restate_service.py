"""Restate's side: one handler for each shape, steps are `ctx.run_typed` within it.

Steps are coroutines, because plain functions would go to a thread each. They count themselves.
"""

import os

import restate
from restate import Context, Service

from bench.resumption import TRACE, StepTrace
from bench.workload_table import FIB, FLIGHT, fib

workloads = Service("Workloads")
executed = 0
trace = StepTrace.of_environment() if TRACE in os.environ else None


async def nothing() -> None:
    global executed  # noqa: PLW0603 - one process, one count
    executed += 1
    if trace is not None:
        trace.step()


async def compute(n: int) -> int:
    await nothing()
    return fib(n)


@workloads.handler()
async def chain(ctx: Context, steps: int) -> None:
    for _ in range(steps):
        await ctx.run_typed("nothing", nothing)


@workloads.handler()
async def loop(ctx: Context, steps: int) -> None:
    for begin in range(0, steps, FLIGHT):
        await restate.gather(*[ctx.run_typed("nothing", nothing) for _ in range(min(FLIGHT, steps - begin))])


@workloads.handler()
async def tasks(ctx: Context, steps: int) -> int:
    return sum([await ctx.run_typed("fib", compute, n=FIB) for _ in range(steps)])


@workloads.handler()
async def count(_: Context, __: int) -> int:
    """How many steps were executed since it was asked the last time."""
    global executed
    counted, executed = executed, 0
    return counted


app = restate.app(services=[workloads])
