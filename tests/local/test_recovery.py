"""What happens around crashes, beyond the points where one can happen: interrupts, refusals, late children."""

import asyncio
from pathlib import Path

import pytest

from noetl.local import Local
from noetl.server.forking import CannotFork
from tests.local.engine import Bench, source


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def until(bench: Bench, name: str) -> None:
    while all(type(event.body).__name__ != name for _, event in bench.seen):
        await asyncio.sleep(0)


TWO = """
workflow:
- step: start
  tool: [{kind: python, code: "result = 1"}, {kind: python, code: "result = 2"}]
"""


def test_an_interrupt_records_what_is_in_flight_and_begins_nothing_new(bench: Bench) -> None:
    async def work(local: Local) -> str:
        execution_id = await local.start(source(TWO))
        await until(bench, "TaskStarted")
        local.interrupt()
        assert (await local.finished(execution_id)).status == "running"
        return execution_id

    execution_id = bench.with_local(work)
    names = bench.names(execution_id)
    assert (names.count("TaskStarted"), names.count("TaskProcessed")) == (1, 1)
    assert bench.resume(execution_id).result == 2
    assert bench.names(execution_id).count("TaskStarted") == 2


def test_what_is_over_cannot_be_forked_at_its_end(bench: Bench) -> None:
    state = bench.run(TWO)

    async def fork(local: Local) -> None:
        await local.fork(state.execution_id, at=state.version)

    with pytest.raises(CannotFork, match="was completed by event"):
        bench.with_local(fork)


