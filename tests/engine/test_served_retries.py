"""A server retries what failed in an execution while other branches of it run."""

from pathlib import Path
from typing import Any

import pytest

from noetl.events.bodies import ExecutionRetried, RunSuspended, StepFailed, TaskStarted
from noetl.kernel.errors import Refused
from noetl.model.outcome import ErrorInfo
from noetl.ports.control import RunCommand
from tests.engine.hand_worker import HandServer, HandWorker, hand_server
from tests.engine.test_served_executions import (
    NOTHING,
    check_rows,
    play,
    suspend_for_child,
)
from tests.plane.raw_worker import lease_of

BRANCHES = """\
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: work}, {step: long}]}
- step: work
  tool: {kind: noop}
  next: {arcs: [{step: after}]}
- step: after
  tool: {kind: noop}
- step: long
  tool: {kind: noop}
"""
STEP = "- step: start\n  tool: {kind: noop}\n"
CALLS = BRANCHES.replace("work\n  tool: {kind: noop}", "work\n  tool: {kind: playbook, path: child}")
TIMED = STEP.replace("start\n", "start\n  spec: {timeout: 100}\n")
BROKE = ErrorInfo(kind="connection", message="it broke")


async def fail(worker: HandWorker, command: RunCommand) -> None:
    lease = lease_of(command)
    assert await worker.report(lease, 0, StepFailed(run=lease.run, error=BROKE), done=True) == "durable"


async def retry(server: HandServer, execution_id: str) -> ExecutionRetried:
    """What is recorded of it."""
    await server.engine.retry(execution_id, by="me")
    await server.engine.when_recorded(execution_id)
    bodies = [event.body for event in await server.events(execution_id)]
    (retried,) = [body for body in bodies if isinstance(body, ExecutionRetried)]
    return retried


@pytest.mark.parametrize("memory", [1 << 20, NOTHING])
def test_what_failed_runs_again_and_what_came_of_it_is_taken_from_its_worker(
    tmp_path: Path, memory: int
) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=memory) as server:
            worker = HandWorker(server)
            await worker.register(slots=2)
            execution_id = await server.start(BRANCHES)
            work, long = await worker.command(), await worker.command()
            await fail(worker, work)
            after = await worker.command()
            retried = await retry(server, execution_id)
            (lost,) = (await worker.news()).items
            assert (lost.run, lost.fence) == (lease_of(after).run, after.fence)
            assert (retried.steps, retried.ends, retried.by) == (("work",), (lost.run,), "me")
            await check_rows(server, execution_id)
            again = await worker.command()
            assert lease_of(again).run == lease_of(work).run
            await worker.end(again)
            await worker.end(await worker.command())
            await worker.end(long)
            record = await server.store.execution(execution_id)
            assert record is not None
            assert record.status == "completed"

    play(test)


def test_a_retry_finds_what_a_restarted_server_has_not_read(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            session = await worker.register(slots=2)
            execution_id = await server.start(BRANCHES)
            work, long = await worker.command(), await worker.command()
            await fail(worker, work)
            after = await worker.command()
        async with hand_server(tmp_path) as server:
            await retry(server, execution_id)
            worker = HandWorker(server)
            await worker.register(session, [lease_of(long), lease_of(after)], slots=2)
            assert lease_of(await worker.command()).run == lease_of(work).run
            assert await worker.end(long) == "durable", "its owner goes on with it"
            await check_rows(server, execution_id)

    play(test)


def test_nothing_is_retried_where_nothing_has_failed(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            execution_id = await server.start(BRANCHES)
            with pytest.raises(Refused, match="nothing has failed"):
                await server.engine.retry(execution_id)

    play(test)


def test_a_task_whose_child_failed_goes_on_with_that_child(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            await server.register_playbook("child", STEP, at=1)
            worker = HandWorker(server)
            await worker.register(slots=2)
            execution_id = await server.start(CALLS)
            work, _long = await worker.command(), await worker.command()
            await suspend_for_child(server, worker, work)
            child_run = await worker.command()
            await fail(worker, child_run)
            await fail(worker, await worker.command())
            await worker.command()  # of what came of the failure
            retried = await retry(server, execution_id)
            assert retried.children == (child_run.execution,)
            run = lease_of(again := await worker.command()).run
            started = TaskStarted(run=run, task="task_0", attempt=2, at=1)
            waits = RunSuspended(run=run, reason="child", child=child_run.execution)
            assert await worker.report(lease_of(again), 0, started, waits, done=True) == "durable"
            continued = await worker.command()
            assert continued.execution == child_run.execution
            assert lease_of(continued).run == lease_of(child_run).run

    play(test)


def test_a_retried_execution_has_its_time_again_also_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            execution_id = await server.start(TIMED, timeout=2)
            first = await server.wait_for(execution_id, "PlaybookProcessed")
            await retry(server, execution_id)
            (retried,) = [event for event in await server.events(execution_id) if event.seq == first.seq + 1]
            timers = (await server.store.rows_of(execution_id)).timers
            assert timers == {"": retried.ts + 2_000_000, "r5": retried.ts + 100_000_000}
            await check_rows(server, execution_id)
        async with hand_server(tmp_path) as server:
            again: Any = await server.wait_for(execution_id, "PlaybookProcessed", 2)
            assert again.body.error.kind == "timeout"
            assert again.ts >= retried.ts + 2_000_000

    play(test)
