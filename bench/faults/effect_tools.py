"""What the steps do, for `--tools`: each leaves a line outside of the engine, with its idempotency key.

A line is one write to the end of a file, which no kill can tear.
"""

import asyncio
import os
import time

import noetl
from noetl.ports.tool import Call

EFFECTS, WORKER = "BENCH_EFFECTS", "BENCH_WORKER"
"""Variables: the file, and the name of the process that the line is left by."""


@noetl.tool("bench_effect")
async def bench_effect(call: Call, tag: str, seconds: float) -> None:
    """Takes so many seconds, and has its effect in the middle of them."""
    began = time.monotonic()
    await asyncio.sleep(seconds / 2)
    leave_effect(began, tag, call.idempotency_key)
    await asyncio.sleep(seconds / 2)


def leave_effect(began: float, tag: str, key: str) -> None:
    line = f"{began} {time.monotonic()} {os.environ[WORKER]} {tag} {key}\n"
    file = os.open(os.environ[EFFECTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode("ascii"))
    finally:
        os.close(file)
