"""Restate's side: one handler for each shape, steps are `ctx.run_typed` within it.

Steps are coroutines, because plain functions would go to a thread each.
"""

import restate
from restate import Context, Service

from bench.peers.scripts.workload_report import FLIGHT, fib

workloads = Service("Workloads")


async def nothing() -> None:
    pass


async def compute(n: int) -> int:
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
    return sum([await ctx.run_typed("fib", compute, n=10) for _ in range(steps)])


app = restate.app(services=[workloads])
