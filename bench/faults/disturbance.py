"""Executions that are started and end while the processes that run them are disturbed."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.faults.fault_plan import plan_faults
from bench.faults.faulty_plane import FaultyPlane
from bench.faults.laws import Hit
from bench.server_process import admin_token
from noetl import AsyncClient
from noetl.client.server_requests import ServerError, ServerUnreachable
from noetl.ports.http_api import StartExecution

PLAYBOOK = Path(__file__).with_name("ten_steps.yaml")
PATIENCE = 90.0
"""Seconds without an effect after the last fault: what has not ended then is lost.

A lease may have to run out first, and on a busy machine all takes long.
"""
LONGEST_STEP = 0.06
LONGEST_WAIT = 10.0
_RETRY_SECONDS = 0.1


@dataclass(frozen=True)
class Disturbance:
    """What is done. `gap` is the average of the seconds between two faults, `ttl` those of a lease."""

    executions: int
    faults: int
    workers: int
    slots: int
    ttl: int
    gap: float
    seed: int


class DisturbanceEnd(NamedTuple):
    """What was seen from outside; `problems` are what nobody should have seen."""

    hits: list[Hit]
    effects: str
    problems: list[str]


async def disturb(disturbance: Disturbance, folder: Path) -> DisturbanceEnd:
    """Raises StartFailed."""
    plane = FaultyPlane(folder, disturbance.workers, disturbance.slots, disturbance.ttl)
    problems: list[str] = []
    async with plane, AsyncClient(plane.url, admin_token(plane.home)) as client:
        await client.register(PLAYBOOK.read_text("utf-8"))
        faults = asyncio.create_task(_inject(plane, disturbance))
        ids = await _start_all(client, disturbance, faults)
        await faults
        ends = asyncio.create_task(_wait_for_ends(client, ids))
        if not await _ends_while_effects_come(ends, plane.effects):
            problems.append(f"nothing happened for {PATIENCE:g} s, and not all had ended")
    problems += [f"{name} ended with {code}" for name, code in plane.exit_codes.items() if code]
    return DisturbanceEnd(plane.hits, plane.effects.read_text("ascii"), problems)


async def _inject(plane: FaultyPlane, disturbance: Disturbance) -> None:
    plan = plan_faults(
        disturbance.seed, disturbance.faults, disturbance.workers, disturbance.ttl, disturbance.gap
    )
    async with asyncio.TaskGroup() as hits:
        for fault in plan:
            await asyncio.sleep(fault.gap)
            hits.create_task(plane.hit(fault, await plane.choose(fault)))


async def _start_all(
    client: AsyncClient, disturbance: Disturbance, faults: "asyncio.Task[None]"
) -> list[str]:
    """Their ids. They are spread over the time of the faults; the rest comes at once."""
    chance = random.Random(disturbance.seed)  # noqa: S311 - no secret
    pause = disturbance.faults * disturbance.gap / disturbance.executions
    starts: list[asyncio.Task[str]] = []
    async with asyncio.TaskGroup() as group:
        for number in range(disturbance.executions):
            starts.append(group.create_task(_start(client, number, chance.uniform(0, LONGEST_STEP))))
            await asyncio.wait([faults], timeout=chance.expovariate(1 / pause))
    return [start.result() for start in starts]


async def _start(client: AsyncClient, number: int, seconds: float) -> str:
    """Asked until it is answered, with the same key: it must begin once."""
    request = StartExecution(
        path="bench/ten_steps",
        workload={"number": number, "seconds": round(seconds, 4)},
        idempotency_key=f"number {number}",
    )
    while True:
        try:
            return (await client.start(request)).execution_id
        except (ServerUnreachable, ServerError) as error:
            if isinstance(error, ServerError) and error.problem.status != 503:
                raise
            await asyncio.sleep(_RETRY_SECONDS)


async def _ends_while_effects_come(ends: "asyncio.Task[None]", effects: Path) -> bool:
    """False if they do not; it is cancelled then."""
    size = -1
    while not ends.done() and effects.stat().st_size > size:
        size = effects.stat().st_size
        await asyncio.wait([ends], timeout=PATIENCE)
    if ends.done():
        await ends
        return True
    ends.cancel()
    return False


async def _wait_for_ends(client: AsyncClient, ids: list[str]) -> None:
    for execution_id in ids:
        ended = False
        while not ended:
            with suppress(ServerUnreachable):  # it was killed, or has much to do
                ended = (await client.show(execution_id, wait=LONGEST_WAIT)).status != "running"
