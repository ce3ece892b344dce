"""Workers that own shards of one run hear of their own alone."""

from pathlib import Path

from noetl.events.bodies import (
    EventBody,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    RunSuspended,
    TaskProcessed,
    TaskStarted,
)
from noetl.kernel.net.commands import Pause, Signal
from noetl.model.outcome import Outcome
from noetl.ports.control import RunCommand
from tests.engine.hand_worker import HandServer, HandWorker, hand_server
from tests.engine.test_served_executions import play
from tests.plane.raw_worker import lease_of

LOOP = """\
- step: start
  loop: {in: [10, 11], iterator: n, spec: {mode: parallel, max_in_flight: 2, policy: {exec: distributed}}}
  tool: {kind: wait, signal: go}
"""


async def open_shards(server: HandServer, owners: list[HandWorker]) -> tuple[str, list[RunCommand]]:
    """Each owns a shard of one iteration."""
    for owner in owners:
        await owner.register()
    execution_id = await server.start(LOOP)
    lease = lease_of(await owners[0].command())
    opened = LoopStarted(run=lease.run, total=2, items=[10, 11], max_in_flight=2, shard_size=1)
    assert await owners[0].report(lease, 0, opened, done=True) == "durable"
    commands = [await owner.command() for owner in owners]
    assert {command.shard for command in commands} == {0, 1}
    return execution_id, commands


async def begin(owner: HandWorker, command: RunCommand, *, waits: bool = False) -> None:
    """The task of its iteration starts, or lets go of the shard until a signal comes."""
    lease, index = lease_of(command), command.shard
    bodies: list[EventBody] = [
        LoopIterationStarted(run=lease.run, index=index),
        TaskStarted(run=lease.run, task="task_0", iteration=index, at=1),
        *([RunSuspended(run=lease.run, reason="signal", iteration=index, signal="go")] if waits else []),
    ]
    assert await owner.report(lease, 0, *bodies, done=waits) == "durable"


def test_the_owner_of_one_shard_hears_nothing_of_another(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            first, second = owners = [HandWorker(server), HandWorker(server)]
            execution_id, commands = await open_shards(server, owners)
            await begin(first, commands[0])
            await begin(second, commands[1], waits=True)
            await server.engine.submit(execution_id, Signal("go"))
            again = await second.command()
            assert again.shard == commands[1].shard
            assert first.unread() == [], "an iteration of another shard goes on"

            await server.engine.submit(execution_id, Pause())
            for owner, command in ((first, commands[0]), (second, again)):
                (news,) = (await owner.news()).items
                assert (news.run, news.fence) == (lease_of(command).run, command.fence)
                assert (news.owned, news.paused, news.resumed) == (True, True, ())

            lease, index = lease_of(commands[0]), commands[0].shard
            processed = TaskProcessed(
                run=lease.run, task="task_0", iteration=index, outcome=Outcome(status="ok", result=True)
            )
            ended = LoopIterationCompleted(run=lease.run, index=index, status="success", result=True)
            assert await first.report(lease, 2, processed, ended, done=True) == "durable"
            assert (first.unread(), second.unread()) == ([], []), (
                "who ends a shard knows it, and others need not"
            )

    play(test)


def test_nor_does_it_after_a_restart_of_the_server(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            owners = [HandWorker(server), HandWorker(server)]
            execution_id, (command, other) = await open_shards(server, owners)
            await begin(owners[0], command)
            await begin(owners[1], other, waits=True)
            session = owners[0].session
        async with hand_server(tmp_path) as server:
            first, second = HandWorker(server), HandWorker(server)
            await first.register(session, [lease_of(command)])
            (news,) = (await first.news()).items
            assert (news.fence, news.owned, news.resumed) == (command.fence, True, ())
            await second.register()
            await server.engine.take_up(execution_id)
            await server.engine.submit(execution_id, Signal("go"))
            assert (await second.command()).shard == other.shard
            assert first.unread() == [], "an iteration of another shard goes on"

    play(test)
