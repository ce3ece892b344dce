"""What is more urgent goes to workers first, and those of the same priority take turns."""

from collections import Counter
from pathlib import Path

import pytest

from noetl.engine.history.read import read_history
from noetl.kernel.verify.verification import verify
from tests.engine.hand_worker import HandServer, HandWorker, hand_server
from tests.engine.test_served_executions import CHAIN, NOTHING, check_rows, play, start_family

STEP = "- step: start\n  tool: {kind: noop}\n"
ELSEWHERE = "- step: start\n  spec: {pool: nobody}\n  tool: {kind: noop}\n"
FAN = """\
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}
- step: a
  tool: {kind: noop}
- step: b
  tool: {kind: noop}
- step: c
  tool: {kind: noop}
"""


async def next_execution(worker: HandWorker) -> str:
    """Ends what the worker gets next; the execution that it is of."""
    command = await worker.command()
    assert await worker.end(command) == "durable"
    return command.execution


async def start_three(server: HandServer) -> list[str]:
    """Three executions, the most urgent first; they were started in another order."""
    low = await server.start(STEP, priority=-1)
    normal = await server.start(STEP)
    return [await server.start(STEP, priority=100), normal, low]


@pytest.mark.parametrize("memory", [1 << 20, NOTHING])
def test_a_higher_priority_goes_first_whatever_came_first(tmp_path: Path, memory: int) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=memory) as server:
            expected = await start_three(server)
            worker = HandWorker(server)
            await worker.register()
            assert [await next_execution(worker) for _ in expected] == expected

    play(test)


def test_the_order_is_the_same_after_a_restart(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            expected = await start_three(server)
            record = await server.store.execution(expected[0])
            assert record is not None
            assert record.priority == 100
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            assert [await next_execution(worker) for _ in expected] == expected

    play(test)


def test_a_worker_does_not_go_on_with_an_execution_while_a_more_urgent_one_waits(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            chain = await server.start(CHAIN)
            first = await worker.command()
            less_urgent = await server.start(STEP, priority=-5)
            urgent = await server.start(STEP, priority=5)
            await worker.end(first)
            assert [await next_execution(worker) for _ in range(3)] == [urgent, chain, less_urgent]

    play(test)


def test_a_worker_goes_on_with_an_execution_while_one_of_the_same_priority_waits(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            chain, other = await server.start(CHAIN, priority=5), await server.start(STEP, priority=5)
            worker = HandWorker(server)
            await worker.register()
            assert [await next_execution(worker) for _ in range(3)] == [chain, chain, other]

    play(test)


def test_what_no_worker_may_have_keeps_nobody_waiting(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            await server.start(ELSEWHERE, priority=50)
            chain = await server.start(CHAIN)
            worker = HandWorker(server)
            await worker.register()
            assert [await next_execution(worker) for _ in range(2)] == [chain, chain]

    play(test)


def test_executions_of_the_same_priority_take_turns(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            below = await server.start(FAN, priority=1)
            both = [await server.start(FAN, priority=2) for _ in range(2)]
            worker = HandWorker(server)
            await worker.register(slots=4)
            commands = [await worker.command() for _ in range(4)]
            assert Counter(command.execution for command in commands) == dict.fromkeys(both, 2)
            for command in commands:
                await worker.end(command)
            ends = Counter([await next_execution(worker) for _ in range(5)])
            assert ends == {**dict.fromkeys(both, 1), below: 3}

    play(test)


def test_a_child_is_as_urgent_as_its_parent(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            _, command = await start_family(server, worker, priority=7)
            child = command.execution
            below, above = await server.start(STEP, priority=6), await server.start(STEP, priority=8)
            await worker.end(command)
            assert [await next_execution(worker) for _ in range(2)] == [above, child]
            await check_rows(server, below)

    play(test)


def test_a_history_with_a_priority_is_decided_again_without_a_difference(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            execution_id = await server.start(STEP, priority=7)
            history = await read_history(server.store, execution_id)
            assert verify(history.state.plan, execution_id, history.events).differences == ()

    play(test)
