"""Executions of a server are in memory when something happens to them, and outlive it."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from noetl.engine.effects import rows_as_effects
from noetl.engine.execution import LiveExecution
from noetl.engine.history.read import read_history
from noetl.engine.history.store_check import check_store
from noetl.engine.listener import EngineListener, EventHandler
from noetl.engine.service import AlreadyRunning
from noetl.events.bodies import (
    CtxPatched,
    EventBody,
    ExecutionPaused,
    LeaseExpired,
    PlaybookProcessed,
    RunSuspended,
    StepDone,
    TaskStarted,
)
from noetl.events.event import Event
from noetl.kernel.errors import Refused
from noetl.kernel.net import decider
from noetl.kernel.net.commands import Cancel, Pause, Signal, SkipStep
from noetl.kernel.net.routing import decide_routing
from noetl.local import Local
from noetl.ports.control import RunCommand
from noetl.ports.store import Effects, StoreFull
from noetl.stores.ownership import Owners
from noetl.stores.sqlite.store import SqliteStore
from noetl.system import SYSTEM
from tests.engine.hand_worker import PATIENCE, HandServer, HandWorker, hand_server
from tests.plane.raw_worker import lease_of

CHAIN = """\
- step: start
  tool: {kind: noop}
  next: {arcs: [{step: second}]}
- step: second
  tool: {kind: noop}
"""
WAIT = "- step: start\n  tool: {kind: wait, seconds: 60}\n"
SIGNAL = "- step: start\n  tool: {kind: wait, signal: go}\n"
PARENT = "- step: start\n  tool: {kind: playbook, path: child}\n"
NOTHING = 1
"""Bytes of states that may stay in memory: whatever waits goes."""


def play(test: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), PATIENCE * 2))


async def suspend(worker: HandWorker, command: RunCommand, **suspension: Any) -> None:
    """The run waits, and its worker lets go of it."""
    lease = lease_of(command)
    bodies = (
        TaskStarted(run=lease.run, task="task_0", at=1),
        RunSuspended(run=lease.run, **suspension),
    )
    assert await worker.report(lease, 0, *bodies, done=True) == "durable"


async def check_rows(server: HandServer, execution_id: str) -> None:
    """What is stored of it is what its history says."""
    stored = await server.store.rows_of(execution_id)
    folded = rows_as_effects((await read_history(server.store, execution_id)).state)
    assert (stored.ready, stored.leases, stored.timers) == (folded.ready, folded.leases, folded.timers)


def test_a_server_begins_without_reading_what_lives_and_all_of_it_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            session = await worker.register(slots=2)
            waiting, held = await server.start(SIGNAL), await server.start(CHAIN)
            commands = {}
            for _ in range(2):
                command = await worker.command()
                commands[command.execution] = command
            await suspend(worker, commands[waiting], reason="signal", signal="go")
            worker_of_ready = await server.start(CHAIN)
            await worker.command()
            ready = await server.start(CHAIN)
            for execution_id in (waiting, held, worker_of_ready, ready):
                await check_rows(server, execution_id)
        async with hand_server(tmp_path) as server:
            assert server.engine.live_executions == 0
            worker = HandWorker(server)
            # It never saw the third: that is given away anew, to it or to others.
            assert await worker.register(session, [lease_of(commands[held])], slots=1) == session
            assert await worker.end(commands[held]) == "durable"
            assert server.engine.live_executions < 4
            await server.engine.take_up(waiting)
            await server.engine.submit(waiting, Signal("go"))
            ended: set[str] = set()
            while len(ended) < 4:
                command = await worker.command()
                assert await worker.end(command) == "durable"
                if "PlaybookProcessed" in await server.names(command.execution):
                    ended.add(command.execution)
            assert ended == {waiting, held, worker_of_ready, ready}
            assert [await server.store.ready(), await server.store.leases()] == [[], []]
            assert server.engine.live_executions == 0

    play(test)


def test_a_session_that_does_not_come_back_after_a_restart_is_lost_after_one_ttl(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            execution_id = await server.start(CHAIN)
            await worker.command()
        async with hand_server(tmp_path, ttl=0.3) as server:
            assert "LeaseExpired" not in await server.names(execution_id)
            event: Any = await server.wait_for(execution_id, "LeaseExpired")
            assert event.body.reason == "expired"
            other = HandWorker(server)
            await other.register()
            assert (await other.command()).execution == execution_id

    play(test)


def test_timers_of_what_is_not_in_memory_fire(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            execution_id = await server.start(WAIT)
            soon = SYSTEM.now() + 300_000
            await suspend(worker, await worker.command(), reason="wait", until=soon)
        async with hand_server(tmp_path) as server:
            event: Any = await server.wait_for(execution_id, "RunResumed")
            assert event.ts >= soon
            assert event.body.reason == "timer"
            assert await server.store.timers() == []

    play(test)


def test_the_earlier_of_two_timers_fires_though_the_later_one_came_after_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            executions = [await server.start(WAIT) for _ in range(2)]
            for wait in (300_000, 3_600_000_000):
                await suspend(worker, await worker.command(), reason="wait", until=SYSTEM.now() + wait)
            await server.wait_for(executions[0], "RunResumed")
            assert "RunResumed" not in await server.names(executions[1])

    play(test)


def test_a_timer_that_leads_to_nothing_does_not_keep_the_server_busy(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            damaged = await server.start(WAIT)
            await suspend(worker, await worker.command(), reason="wait", until=SYSTEM.now() + 60_000_000)
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
            connection.execute("UPDATE event SET ts = ts + 1")
            assert connection.execute("UPDATE timer SET due = 1").rowcount
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            other = await server.start(WAIT)
            await suspend(worker, await worker.command(), reason="wait", until=SYSTEM.now() + 300_000)
            await server.wait_for(other, "RunResumed")
            assert [timer.execution_id for timer in await server.store.timers()] == [damaged]
            assert server.store.timer_reads < 20

    play(test)


def test_a_timer_goes_off_though_the_store_was_busy_then(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            execution_id = await server.start(WAIT)
            server.store.busy_timers = 1
            await suspend(worker, await worker.command(), reason="wait", until=SYSTEM.now() + 100_000)
            await server.wait_for(execution_id, "RunResumed")
            assert server.store.busy_timers == 0

    play(test)


def test_a_deadline_ends_what_is_not_in_memory(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            execution_id = await server.start(CHAIN, timeout=0.2)
            assert server.engine.live_executions == 0
            event: Any = await server.wait_for(execution_id, "PlaybookProcessed")
            assert event.body.error.kind == "timeout"

    play(test)


def test_states_that_wait_leave_memory_and_come_back(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            executions = [await server.start(CHAIN) for _ in range(5)]
            assert server.engine.live_executions == 0
            worker = HandWorker(server)
            await worker.register()
            for _ in range(10):
                command = await worker.command()
                await check_rows(server, command.execution)
                assert await worker.end(command) == "durable"
            for execution_id in executions:
                assert (await server.names(execution_id))[-1] == "PlaybookProcessed"
                await check_rows(server, execution_id)
            assert server.engine.live_executions == 0

    play(test)


def test_what_is_paused_or_cancelled_is_not_given_away_after_it_left_memory(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            paused, cancelled = await server.start(CHAIN), await server.start(CHAIN)
            for execution_id, command in ((paused, Pause()), (cancelled, Cancel())):
                assert await server.engine.take_up(execution_id)
                await server.engine.submit(execution_id, command)
            assert await server.store.ready() == []
            last = await server.start(CHAIN)
            worker = HandWorker(server)
            await worker.register(slots=3)
            assert (await worker.command()).execution == last
        async with hand_server(tmp_path, memory=NOTHING) as server:
            worker = HandWorker(server)
            await worker.register(slots=3)
            assert "TokenClaimed" not in await server.names(paused)

    play(test)


async def start_family(server: HandServer, worker: HandWorker, **options: Any) -> tuple[str, RunCommand]:
    """A parent that waits for its child, and the command of the child's run."""
    await server.register_playbook("child", CHAIN, at=1)
    parent = await server.start(PARENT, **options)
    await suspend_for_child(server, worker, await worker.command())
    command = await worker.command()
    assert command.execution != parent
    return parent, command


async def suspend_for_child(
    server: HandServer,
    worker: HandWorker,
    command: RunCommand,
    before_waiting: Callable[[], None] = lambda: None,
) -> None:
    lease = lease_of(command)
    started = TaskStarted(run=lease.run, task="task_0", input={"path": "child"}, at=1)
    assert await worker.report(lease, 0, started) == "durable"
    child = await server.child_of(command.execution, lease.run)
    waits = RunSuspended(run=lease.run, reason="child", child=child)
    before_waiting()
    assert await worker.report(lease, 1, waits, done=True) == "durable"


def test_a_parent_that_is_not_in_memory_hears_of_the_end_of_its_child(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            worker = HandWorker(server)
            await worker.register()
            parent, command = await start_family(server, worker)
            await worker.end(command)
            await worker.end(await worker.command())
            resumed: Any = await server.wait_for(parent, "RunResumed")
            assert resumed.body.reason == "child"
            assert (await worker.command()).execution == parent
            assert await server.store.outbox() == []

    play(test)


def look_at_outbox(server: HandServer) -> list[int]:
    """Gets the number of messages in it while the commit after the next waits, and all else goes on."""
    counts: list[int] = []

    async def look() -> None:
        for _ in range(20):
            await server.store.put_blob("turn", b"")  # behind whatever else is to be written
            counts.append(len(await server.store.outbox()))

    async def look_at_the_next() -> None:
        server.store.meanwhile = look

    server.store.meanwhile = look_at_the_next
    return counts


def test_the_end_of_a_child_is_kept_until_its_parent_has_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            worker = HandWorker(server)
            await worker.register()
            parent, command = await start_family(server, worker)
            await worker.end(command)
            last = await worker.command()
            message_counts = look_at_outbox(
                server
            )  # first the end is written, then what its parent makes of it
            await worker.end(last)
            await server.wait_for(parent, "RunResumed")
            assert set(message_counts) == {1}
            assert await server.store.outbox() == []

    play(test)


class HoldingListener(EngineListener):
    """Has what is decided about `held` wait, as soon as another execution ends: something is to be known for it."""

    def __init__(self, server: HandServer, held: str) -> None:
        self._commit_log = server.engine._service.commit_log
        self._registry = server.engine._service.registry
        self._held = held

    def handlers(self) -> dict[type[EventBody], EventHandler]:
        return {
            PlaybookProcessed: lambda live, _, __: self.hold() if live.execution_id != self._held else None
        }

    def hold(self) -> None:
        self._commit_log.hold(self._parent)

    def release(self) -> None:
        self._commit_log.release(self._parent)

    @property
    def _parent(self) -> LiveExecution:
        parent = self._registry.get(self._held)
        assert parent is not None
        return parent


def test_the_end_of_a_child_waits_for_what_its_parent_made_of_it(tmp_path: Path) -> None:
    """A crash between the two would leave a parent that waits, and nobody who says that its child is over."""

    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register(slots=9)
            parent, command = await start_family(server, worker)
            other = await server.start(CHAIN)
            await worker.end(command)
            last = await worker.command()
            while last.execution != command.execution:
                last = await worker.command()
            listener = HoldingListener(server, parent)
            server.engine.subscribe(listener)
            lease = lease_of(last)
            ended = asyncio.create_task(worker.end(last))
            # Others are written meanwhile, and with them whatever does not wait.
            await server.engine.submit(other, Pause())
            await server.wait_for(other, "ExecutionPaused")
            assert "PlaybookProcessed" not in await server.names(lease.execution)
            assert "RunResumed" not in await server.names(parent)
            listener.release()
            await ended
            await server.wait_for(parent, "RunResumed")
            assert "PlaybookProcessed" in await server.names(lease.execution)
            assert await server.store.outbox() == []

    play(test)


TWINS = """\
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: right}]}
- step: left
  tool: {kind: playbook, path: child}
- step: right
  tool: {kind: playbook, path: child}
"""


def test_only_the_child_that_nobody_waits_for_is_cancelled(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            worker = HandWorker(server)
            await worker.register(slots=9)
            await server.register_playbook("child", CHAIN, at=1)
            parent = await server.start(TWINS)
            children = []
            for command in [await worker.command() for _ in range(2)]:
                await suspend_for_child(server, worker, command)
                children.append(await server.child_of(parent, lease_of(command).run))
            for _ in children:
                await worker.command()
            message_counts = look_at_outbox(
                server
            )  # first what is asked of the parent is written, then of its child
            assert await server.engine.take_up(parent)
            await server.engine.submit(parent, SkipStep("left"))
            await server.wait_for(children[0], "CancelRequested")
            assert set(message_counts) == {1}, "a crash before that is written must not lose it"
            async for _ in server.store.changes():
                if not await server.store.outbox():
                    break
            assert "CancelRequested" not in await server.names(children[1])

    play(test)


def test_the_end_of_a_child_is_told_though_the_store_was_busy(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            worker = HandWorker(server)
            await worker.register()
            parent, command = await start_family(server, worker)
            await worker.end(command)
            last = await worker.command()
            server.store.busy_reads = 2  # of the outbox, and of an execution that it is about
            await worker.end(last)
            await server.wait_for(parent, "RunResumed")
            assert server.store.busy_reads == 0
            assert await server.store.outbox() == []

    play(test)


def test_what_was_ready_or_owned_when_a_server_ended_goes_on_though_the_store_is_busy(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            owned = await server.start(CHAIN)
            await worker.command()
            ready = await server.start(CHAIN)
        async with hand_server(tmp_path, ttl=0.3) as server:
            server.store.busy_reads = 1
            await server.wait_for(owned, "LeaseExpired")
            assert server.store.busy_reads == 0
        async with hand_server(tmp_path) as server:
            other = HandWorker(server)
            server.store.busy_reads = 2
            await other.register(slots=2)
            commands = [await other.command() for _ in range(2)]
            assert {command.execution for command in commands} == {owned, ready}
            assert server.store.busy_reads == 0

    play(test)


def test_a_worker_of_an_execution_that_is_damaged_goes_on_with_the_rest(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            session = await worker.register(slots=2)
            damaged, other = await server.start(CHAIN), await server.start(CHAIN)
            commands = {command.execution: command for command in [await worker.command() for _ in range(2)]}
        with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
            assert connection.execute("UPDATE event SET ts = ts + 1 WHERE x = 1").rowcount
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register(session, [lease_of(command) for command in commands.values()], slots=2)
            owned = {news.execution: news.owned for news in (await worker.news()).items}
            assert owned == {damaged: False, other: True}
            assert await worker.end(commands[other]) == "durable"
            assert (await worker.command()).execution == other

    play(test)


def test_the_end_of_a_child_is_told_after_a_crash_once(tmp_path: Path) -> None:
    """The server dies when the end is durable, before its parent has heard of it."""
    children: list[str] = []

    class Died(Exception): ...

    def die(execution_id: str, events: Sequence[Event], _: object) -> None:
        if execution_id in children and isinstance(events[-1].body, PlaybookProcessed):
            raise Died

    async def crash() -> str:
        async with hand_server(tmp_path, memory=NOTHING, watch=die) as server:
            worker = HandWorker(server)
            await worker.register()
            parent, command = await start_family(server, worker)
            children.append(command.execution)
            await worker.end(command)
            lease = lease_of(await worker.command())
            await worker.send(lease, 0, StepDone(run=lease.run), done=True)
            with pytest.raises(Died):
                await server.engine.wait_until_stopped()
            assert "RunResumed" not in await server.names(parent)
            return parent

    async def test() -> None:
        parent = await crash()
        for _ in range(2):
            async with hand_server(tmp_path) as server:
                await server.wait_for(parent, "RunResumed")
                assert (await server.names(parent)).count("RunResumed") == 1
                assert await server.store.outbox() == []

    play(test)


def test_children_that_are_not_in_memory_are_cancelled_with_their_parent(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            worker = HandWorker(server)
            await worker.register()
            parent, command = await start_family(server, worker)
            assert await server.engine.take_up(parent)
            await server.engine.submit(parent, Cancel(by="me", reason="enough"))
            requested: Any = await server.wait_for(command.execution, "CancelRequested")
            assert (requested.body.by, requested.body.reason) == ("me", "its parent was stopped: enough")

    play(test)


def test_a_child_runs_the_version_that_was_current_when_its_parent_began(tmp_path: Path) -> None:
    async def test() -> None:
        later = "- step: later\n  tool: {kind: noop}\n"
        async with hand_server(tmp_path) as server:
            await server.register_playbook("child", CHAIN, at=1)
            parent = await server.start(PARENT)
        async with hand_server(tmp_path) as server:
            await server.register_playbook("child", later, at=SYSTEM.now())
            worker = HandWorker(server)
            await worker.register()
            command = await worker.command()
            assert command.execution == parent
            await suspend_for_child(server, worker, command)
            await worker.command()
            page = await server.store.executions()
            child = next(record for record in page.executions if record.parent == parent)
            assert (await read_history(server.store, child.execution_id)).playbook.steps.keys() == {
                "start",
                "second",
            }
            youngest = await server.start(PARENT)
            await worker.register(slots=2)
            while (command := await worker.command()).execution != youngest:
                pass
            await suspend_for_child(server, worker, command)
            assert (await worker.command()).execution not in (parent, child.execution_id)
            page = await server.store.executions()
            child = next(record for record in page.executions if record.parent == youngest)
            assert (await read_history(server.store, child.execution_id)).playbook.steps.keys() == {"later"}

    play(test)


def test_what_somebody_else_wrote_is_read_and_all_is_decided_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register(slots=2)
            touched, other = await server.start(CHAIN), await server.start(CHAIN)
            commands = {command.execution: command for command in [await worker.command() for _ in range(2)]}
            await server.append_elsewhere(touched, CtxPatched(patches=(), by="somebody"))
            lease = lease_of(commands[touched])
            assert await worker.report(lease, 0, StepDone(run=lease.run), done=True) == "again"
            assert await worker.end(commands[other]) == "durable"
            names = await server.names(touched)
            assert names[names.index("CtxPatched") :][:2] == ["CtxPatched", "StepDone"]
            assert names.count("StepDone") == 1
            assert {(await worker.command()).execution for _ in range(2)} == {touched, other}
            await check_rows(server, touched)

    play(test)


def test_a_claim_that_was_never_written_is_chosen_anew(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            execution_id = await server.start(CHAIN)
            await server.append_elsewhere(execution_id, CtxPatched(patches=(), by="somebody"))
            worker = HandWorker(server)
            await worker.register()
            for _ in range(2):
                assert await worker.end(await worker.command()) == "durable"
            names = await server.names(execution_id)
            assert (names[-1], names.count("TokenClaimed")) == ("PlaybookProcessed", 2)

    play(test)


def test_a_command_is_refused_if_what_somebody_else_wrote_does_not_let_it_happen(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            execution_id = await server.start(CHAIN)
            ended = PlaybookProcessed(status="failed")
            await server.append_elsewhere(execution_id, ended)
            with pytest.raises(Refused):
                await server.engine.submit(execution_id, Signal("go"))
            paused = await server.start(CHAIN)
            await server.append_elsewhere(paused, ExecutionPaused(by="somebody"))
            await server.engine.submit(paused, Signal("go"))
            assert (await server.names(paused))[-2:] == ["ExecutionPaused", "SignalReceived"]

    play(test)


def test_so_is_what_is_asked_while_that_is_found_out(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            execution_id = await server.start(SIGNAL)
            await suspend(worker, await worker.command(), reason="signal", signal="go")
            await server.append_elsewhere(execution_id, PlaybookProcessed(status="failed"))
            submissions: list[asyncio.Task[None]] = []

            async def ask_more() -> None:
                submissions.append(asyncio.create_task(server.engine.submit(execution_id, Signal("more"))))
                await asyncio.sleep(0)

            server.store.meanwhile = ask_more
            with pytest.raises(Refused):
                await server.engine.submit(execution_id, Signal("some"))
            with pytest.raises(Refused):
                await submissions[0]
            await server.start(CHAIN)
            assert await worker.end(await worker.command()) == "durable", "all else goes on"

    play(test)


def test_a_commit_whose_answer_was_lost_is_found_written(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            execution_id = await server.start(CHAIN)
            command = await worker.command()
            server.store.loses_answer = True
            assert await worker.end(command) == "durable"
            assert (await server.names(execution_id)).count("StepDone") == 1
            server.store.loses_answer = True
            keyed = await server.start(CHAIN, idempotency_key="key")
            assert keyed == await server.start(CHAIN, idempotency_key="key")

    play(test)


async def fill_up(store: SqliteStore) -> None:
    for number in range(1_000):
        await store.put_blob(f"junk/{number}", bytes(8_000))


def test_a_full_disk_lets_reports_wait_and_all_goes_on_when_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "noetl")

    async def test() -> None:
        async with hand_server(tmp_path, max_pages=90) as server:
            worker = HandWorker(server)
            await worker.register()
            execution_id = await server.start(CHAIN)
            command = await worker.command()
            with pytest.raises(StoreFull):
                await fill_up(server.store)
            lease = lease_of(command)
            await worker.send(lease, 0, StepDone(run=lease.run, result="x" * 60_000), done=True)
            while server.engine.write_failure is None:
                await asyncio.sleep(0)
            assert isinstance(server.engine.write_failure, StoreFull)
            assert "StepDone" not in await server.names(execution_id)
            await server.store.delete_blobs(await server.store.blobs("junk/"))
            assert await worker.verdict() == "durable"
            assert server.engine.write_failure is None
            assert (await worker.command()).execution == execution_id
            await check_rows(server, execution_id)

    play(test)
    lines = [record.getMessage() for record in caplog.records if record.getMessage().startswith("store")]
    assert lines == ["store failing", "store recovered"]


def test_what_a_process_without_a_server_left_is_served_and_can_be_taken_back(tmp_path: Path) -> None:
    async def with_local(execution_id: str) -> bool:
        store = SqliteStore.at(tmp_path / "store.db")
        try:
            async with Local(store, owners=Owners(tmp_path / "owners.lock")) as local:
                await local.resume(execution_id)
                local.interrupt()
                await local.wait_until_stopped()
            return bool((await store.rows_of(execution_id)).served)
        finally:
            await store.close()

    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            execution_id = await server.start(SIGNAL)
            await suspend(worker, await worker.command(), reason="signal", signal="go")
            with pytest.raises(AlreadyRunning):
                await with_local(execution_id)
        assert not await with_local(execution_id)
        async with hand_server(tmp_path) as server:
            assert (await server.store.rows_of(execution_id)).served
            await check_rows(server, execution_id)
            assert await server.engine.take_up(execution_id)
            await server.engine.submit(execution_id, Signal("go"))
            worker = HandWorker(server)
            await worker.register()
            assert (await worker.command()).execution == execution_id

    play(test)


def test_rows_that_are_not_those_of_the_history_are_noticed_and_made_again(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            execution_id = await server.start(CHAIN)
            version = len(await server.events(execution_id))
            assert (await check_store(server.store)).problems == []
            await server.store.put_rows(execution_id, version, Effects(timers={"r1": 1}, served=True))
            [problem] = (await check_store(server.store)).problems
            assert problem.execution_id == execution_id
            assert (await check_store(server.store, rebuild=True)).problems == []
            await check_rows(server, execution_id)

    play(test)


@pytest.mark.parametrize("until", [2**63, 2**70, -(2**70)])
def test_whatever_time_a_worker_names_its_row_can_be_stored(tmp_path: Path, until: int) -> None:
    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register()
            execution_id = await server.start(WAIT)
            await suspend(worker, await worker.command(), reason="signal", signal="go", until=until)
            if until < 0:
                await server.wait_for(execution_id, "RunResumed")
            await check_rows(server, execution_id)
            await server.engine.submit(execution_id, Cancel())
            await server.wait_for(execution_id, "PlaybookProcessed")

    play(test)


def test_a_report_that_a_bug_keeps_from_being_decided_is_as_if_it_had_not_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = iter([RuntimeError("a bug")])

    def decide_wrongly(*arguments: Any) -> list[EventBody]:
        for fault in faults:
            raise fault
        return decide_routing(*arguments)

    async def test() -> None:
        async with hand_server(tmp_path) as server:
            worker = HandWorker(server)
            await worker.register(slots=2)
            broken, other = await server.start(CHAIN), await server.start(CHAIN)
            commands = {command.execution: command for command in [await worker.command() for _ in range(2)]}
            monkeypatch.setattr(decider, "decide_routing", decide_wrongly)
            lease = lease_of(commands[broken])
            end = StepDone(run=lease.run)
            assert await worker.report(lease, 0, end, done=True) != "durable"
            assert await worker.report(lease, 0, end, done=True) == "lost"
            expired = await server.wait_for(broken, "LeaseExpired")
            names = await server.names(broken)
            assert names[-3:] == ["TokenClaimed", "LeaseExpired", "TokenClaimed"], "and somebody has it again"
            assert isinstance(expired.body, LeaseExpired)
            assert expired.body.reason == "expired", "so that this has an end"
            again = await worker.command()
            assert again.execution == broken
            for command in (again, commands[other]):
                assert await worker.end(command) == "durable"
            for execution_id in (broken, other):
                await check_rows(server, execution_id)

    play(test)


def test_who_registers_once_more_before_the_first_time_is_through_keeps_what_it_holds(tmp_path: Path) -> None:
    async def test() -> None:
        async with hand_server(tmp_path, memory=NOTHING) as server:
            worker = HandWorker(server)
            session = await worker.register()
            execution_id = await server.start(CHAIN)
            command = await worker.command()
            await server.start(CHAIN)  # so that the first one goes out of memory
            assert not server.engine.is_running(execution_id)
            server.store.busy_reads = 1
            early = asyncio.create_task(HandWorker(server).connect(session))
            await asyncio.sleep(0)
            await worker.register(session, [lease_of(command)])
            assert await early is None, "that connection is nobody's"
            assert await worker.end(command) == "durable"
            assert "LeaseExpired" not in await server.names(execution_id)

    play(test)
