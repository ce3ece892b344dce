"""Two server engines on one store in PostgreSQL, in one loop: what each does while the other one writes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from bench.postgres_server import PostgresServer
from noetl.engine.catalog.catalog_playbooks import CatalogPlaybooks
from noetl.engine.history.read import read_history
from noetl.engine.inbox import encode_command
from noetl.events.bodies import Patch
from noetl.kernel.net.commands import Cancel, PatchCtx, Pause, Resume, Signal
from noetl.ports.control import RunCommand, Work
from noetl.ports.store import Append, Verdict
from noetl.server.server_engine import ServerEngine
from noetl.stores.ownership import Owners
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.doorbell import Doorbell
from noetl.stores.postgres.store import PostgresStore
from noetl.system import SYSTEM
from tests.engine.hand_worker import PATIENCE, ForgetfulStore, HandServer, HandWorker, RegistrationRefused
from tests.engine.test_served_executions import suspend, suspend_for_child
from tests.plane.raw_worker import lease_of
from tests.stores.postgres_link import new_address, query

NOOP = "- step: start\n  tool: {kind: noop}\n"
FORK = """\
- step: start
  tool: {kind: noop}
  next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: right}]}
- step: left
  tool: {kind: noop}
- step: right
  tool: {kind: noop}
"""
SIGNALS = """\
- step: start
  tool: {kind: wait, signal: go}
  next: {arcs: [{step: second}]}
- step: second
  tool: {kind: wait, signal: go}
"""
WAIT = "- step: start\n  tool: {kind: wait, seconds: 60}\n"
PARENT = "- step: start\n  tool: {kind: playbook, path: child}\n"
PATCH = PatchCtx((Patch(scope="ctx", path=("n",), value=1),))
Race = Callable[[], Coroutine[None, None, None]]


class RacingStore(PostgresStore):
    """Has something done by others just before it writes, if it is told to."""

    race: Race | None = None

    async def commit(self, appends: Sequence[Append]) -> list[Verdict]:
        race, self.race = self.race, None
        if race is not None:
            await race()
        return await super().commit(appends)


@asynccontextmanager
async def engine_on(
    address: DatabaseAddress, folder: Path, name: str, **options: Any
) -> AsyncIterator[HandServer]:
    store = RacingStore(address)
    try:
        async with ServerEngine(
            store,
            playbooks=CatalogPlaybooks(store, folder),
            owners=Owners(folder / f"{name}.lock"),
            adopts=False,
            shared=store.shared,
            **options,
        ) as engine:
            yield HandServer(cast("ForgetfulStore", store), engine)
    finally:
        await store.close()


def with_engines(
    postgres: PostgresServer,
    folder: Path,
    test: Callable[[HandServer, HandServer], Coroutine[None, None, None]],
    **options: Any,
) -> None:
    """What the test does with two servers, and nothing is wrong with what is stored then."""

    async def play() -> None:
        address = new_address(postgres)
        async with (
            engine_on(address, folder, "first", **options) as first,
            engine_on(address, folder, "second", **options) as second,
        ):
            await test(first, second)
            assert await first.store.check() == []

    asyncio.run(asyncio.wait_for(play(), 2 * PATIENCE))


def race_before_writing(server: HandServer, race: Race) -> None:
    cast("RacingStore", server.store).race = race


async def submit(server: HandServer, execution_id: str, command: Any) -> None:
    assert await server.engine.take_up(execution_id)
    await server.engine.submit(execution_id, command)


async def ended(server: HandServer, execution_id: str) -> str:
    await server.wait_for(execution_id, "PlaybookProcessed")
    return (await read_history(server.store, execution_id)).state.status


@pytest.fixture
def unheard(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server hears what another one writes."""
    monkeypatch.setattr(Doorbell, "ring", lambda *_: None)
    monkeypatch.setattr("noetl.stores.postgres.doorbell.LOOK_SECONDS", 3 * PATIENCE)


def test_a_claim_that_another_server_was_faster_with_reaches_no_worker(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        worker, other = HandWorker(first), HandWorker(second)
        execution_id = await first.start(NOOP)
        assert await second.engine.take_up(execution_id)
        claimed: list[RunCommand] = []

        async def claim() -> None:
            await other.register()
            claimed.append(await other.command())

        race_before_writing(first, claim)
        await worker.register()
        while not claimed:
            await asyncio.sleep(0)
        await first.engine.flush()
        assert [message for message in worker.unread() if isinstance(message, Work)] == []
        assert await other.end(claimed[0]) == "durable"
        assert (await first.names(execution_id)).count("TokenClaimed") == 1

    with_engines(postgres, tmp_path, test)


@pytest.mark.usefixtures("unheard")
def test_what_a_server_refuses_it_has_looked_up_before(postgres: PostgresServer, tmp_path: Path) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        execution_id = await first.start(NOOP)
        await submit(second, execution_id, Pause())
        await submit(first, execution_id, Resume())
        assert (await first.names(execution_id))[-2:] == ["ExecutionPaused", "ExecutionResumed"]

    with_engines(postgres, tmp_path, test)


@pytest.mark.usefixtures("unheard")
def test_a_worker_comes_to_a_server_that_knows_less_than_it(postgres: PostgresServer, tmp_path: Path) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        before, after = HandWorker(first), HandWorker(second)
        execution_id = await first.start(NOOP)
        assert await second.engine.take_up(execution_id)
        session = await before.register(connection=1)
        command = await before.command()
        await after.register(session, [lease_of(command)], connection=2)
        assert await after.end(command) == "durable"

    with_engines(postgres, tmp_path, test)


def test_of_two_servers_that_read_a_message_one_answers(postgres: PostgresServer, tmp_path: Path) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        worker = HandWorker(first)
        await worker.register()
        execution_id = await first.start(SIGNALS)
        await suspend(worker, await worker.command(), reason="signal", signal="go")
        assert await second.engine.take_up(execution_id)
        await first.store.send(execution_id, encode_command(Signal("go")))
        await asyncio.gather(*(server.engine._inbox.read(None) for server in (first, second)))
        await asyncio.gather(first.engine.flush(), second.engine.flush())
        assert (await first.names(execution_id)).count("SignalReceived") == 1
        assert await first.store.inbox(None) == []

    with_engines(postgres, tmp_path, test)


def test_of_two_servers_that_claim_a_run_at_once_one_gives_it_away(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        workers = [HandWorker(first), HandWorker(second)]
        for _ in range(10):
            execution_id = await first.start(NOOP)
            assert await second.engine.take_up(execution_id)
            await asyncio.gather(*(worker.register() for worker in workers))
            await first.wait_for(execution_id, "TokenClaimed")
            await asyncio.gather(first.engine.flush(), second.engine.flush())
            received = [
                (worker, command)
                for worker in workers
                for message in worker.unread()
                if isinstance(message, Work)
                for command in message.commands
            ]
            names = await first.names(execution_id)
            assert (len(received), names.count("TokenClaimed")) == (1, 1)
            for worker, command in received:
                assert await worker.end(command) == "durable"
            for worker in workers:
                await worker.leave()

    with_engines(postgres, tmp_path, test)


def test_what_a_worker_reports_while_another_server_writes_is_recorded_once(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        worker, other = HandWorker(first), HandWorker(second)
        await worker.register()
        execution_id = await first.start(FORK)
        await worker.end(await worker.command())
        left = await worker.command()
        await other.register()
        right = await other.command()
        assert left.execution == right.execution == execution_id
        race_before_writing(first, lambda: submit(second, execution_id, PATCH))
        assert await worker.end(left) in {"again", "durable"}
        assert await other.end(right) in {"again", "durable"}
        assert await ended(second, execution_id) == "completed"
        assert (await first.names(execution_id)).count("StepDone") == 3

    with_engines(postgres, tmp_path, test)


def test_a_message_is_answered_once_though_another_server_writes_meanwhile(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        worker = HandWorker(first)
        await worker.register()
        execution_id = await first.start(SIGNALS)
        await suspend(worker, await worker.command(), reason="signal", signal="go")
        stores = [cast("RacingStore", server.store) for server in (first, second)]

        async def patch(other: HandServer) -> None:
            for store in stores:
                store.race = None
            await submit(other, execution_id, PATCH)

        stores[0].race, stores[1].race = partial(patch, second), partial(patch, first)
        await first.store.send(execution_id, encode_command(Signal("go")))
        await first.wait_for(execution_id, "SignalReceived")
        while await first.store.inbox(None):
            await asyncio.sleep(0)
        await submit(first, execution_id, Pause())
        assert (await first.names(execution_id)).count("SignalReceived") == 1

    with_engines(postgres, tmp_path, test)


def test_a_child_does_not_outlive_a_parent_that_is_cancelled_while_it_starts(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        await first.register_playbook("child", WAIT, 1)
        worker = HandWorker(first)
        await worker.register()
        parent = await first.start(PARENT)
        command = await worker.command()
        children: list[str] = []

        async def cancel() -> None:
            # The next that is written is the child: it was begun when nobody had cancelled anything.
            children.extend(record.execution_id for record in (await first.store.executions()).executions)
            await submit(second, parent, Cancel())
            while any(message.key.startswith("cancel") for message in await second.store.outbox()):
                await asyncio.sleep(0)  # it finds no child
            cancelled.set()

        async def before_the_wait() -> None:
            race_before_writing(first, cancel)

        cancelled = asyncio.Event()
        await suspend_for_child(
            first, worker, command, before_waiting=lambda: race_before_writing(first, before_the_wait)
        )
        await cancelled.wait()
        assert await ended(second, parent) == "cancelled"
        assert children == [parent]
        while await first.store.outbox():
            await asyncio.sleep(0)
        for record in (await first.store.executions()).executions:
            assert "CancelRequested" in await first.names(record.execution_id)

    with_engines(postgres, tmp_path, test)


def test_children_start_and_end_at_whichever_server_is_there(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        await first.register_playbook("child", NOOP, 1)
        workers = [HandWorker(first)]
        await workers[0].register()
        parent = await first.start(PARENT)
        await suspend_for_child(first, workers[0], await workers[0].command())
        await workers[0].end(await workers[0].command())
        again = await workers[0].command()
        assert (again.execution, await workers[0].end(again)) == (parent, "durable")
        assert await ended(second, parent) == "completed"
        assert await first.store.outbox() == []

    with_engines(postgres, tmp_path, test)


def test_a_registration_that_is_read_late_takes_nothing_back(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        late, worker = HandWorker(first), HandWorker(second)
        session = await late.register(connection=1, slots=0)
        await worker.register(session, connection=3)
        execution_id = await second.start(NOOP)
        command = await worker.command()
        with pytest.raises(RegistrationRefused):
            await late.register(session, connection=2)
        assert "LeaseExpired" not in await second.names(execution_id)
        assert await worker.end(command) == "durable"

    with_engines(postgres, tmp_path, test)


def test_a_worker_keeps_its_runs_when_it_goes_to_another_server(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        before, after = HandWorker(first), HandWorker(second)
        session = await before.register(slots=2, connection=1)
        held, unseen = await first.start(NOOP), await first.start(NOOP)
        commands = {
            command.execution: command for command in [await before.command(), await before.command()]
        }
        # It has seen one of the two, and the server that it comes to has read that execution before.
        assert await second.engine.take_up(held)
        assert await after.register(session, [lease_of(commands[held])], slots=2, connection=2) == session
        assert await after.end(commands[held]) == "durable"
        again = await after.command()
        assert (again.execution, again.fence > commands[unseen].fence) == (unseen, True)
        assert await after.end(again) == "durable"
        for execution_id in (held, unseen):
            assert await ended(first, execution_id) == "completed"

    with_engines(postgres, tmp_path, test)


def test_what_is_claimed_for_a_worker_that_has_left_is_free_again(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        before, after = HandWorker(first), HandWorker(second)
        session = await before.register(connection=1)
        await after.register(session, connection=2, slots=1)
        # The first server has not noticed, and gives it a run that nobody will hear of.
        execution_id = await first.start(NOOP)
        event: Any = await second.wait_for(execution_id, "LeaseExpired")
        assert event.body.reason == "voided"

    with_engines(postgres, tmp_path, test)


def test_a_worker_that_no_server_hears_loses_its_runs(postgres: PostgresServer, tmp_path: Path) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        worker, other = HandWorker(first), HandWorker(second)
        await worker.register()
        execution_id = await first.start(NOOP)
        command = await worker.command()
        event: Any = await second.wait_for(execution_id, "LeaseExpired")
        assert (event.body.reason, command.execution) == ("expired", execution_id)
        await other.register()
        assert await other.end(await other.command()) == "durable"

    with_engines(postgres, tmp_path, test, ttl=1.5)


def test_what_one_server_is_asked_the_worker_of_another_hears(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        worker = HandWorker(first)
        await worker.register()
        execution_id = await first.start(NOOP)
        command = await worker.command()
        await submit(second, execution_id, Pause())
        [news] = (await worker.news()).items
        assert (news.run, news.fence, news.paused) == (lease_of(command).run, command.fence, True)
        await submit(second, execution_id, Cancel())
        [news] = (await worker.news()).items
        assert news.stopping or not news.owned

    with_engines(postgres, tmp_path, test)


def test_a_run_that_has_no_worker_at_its_server_goes_to_one_of_another(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        execution_id = await first.start(FORK)
        worker = HandWorker(second)
        await worker.register()
        for _ in range(3):
            command = await worker.command()
            assert (command.execution, await worker.end(command)) == (execution_id, "durable")
        assert await ended(first, execution_id) == "completed"

    with_engines(postgres, tmp_path, test)


def test_what_others_have_written_to_does_not_stay_in_memory(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def test(first: HandServer, second: HandServer) -> None:
        execution_id = await first.start(NOOP)
        assert first.engine.live_executions == 1
        await submit(second, execution_id, Pause())
        while first.engine.live_executions:
            await asyncio.sleep(0)
        # What a server has from before is not what it decides on.
        await submit(first, execution_id, PATCH)
        await submit(second, execution_id, Cancel())
        await ended(second, execution_id)
        assert not await first.engine.take_up(execution_id)

    with_engines(postgres, tmp_path, test)


def test_a_timer_of_a_server_that_is_gone_fires_elsewhere(postgres: PostgresServer, tmp_path: Path) -> None:
    async def play() -> None:
        address = new_address(postgres)
        async with engine_on(address, tmp_path, "second") as second:
            async with engine_on(address, tmp_path, "first") as first:
                worker = HandWorker(first)
                await worker.register()
                execution_id = await first.start(WAIT)
                until = SYSTEM.now() + 2_000_000
                await suspend(worker, await worker.command(), reason="wait", until=until)
            await second.wait_for(execution_id, "RunResumed")

    asyncio.run(asyncio.wait_for(play(), PATIENCE))


def test_a_damaged_execution_keeps_no_worker_from_going_to_another_server(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    async def play() -> None:
        address = new_address(postgres)
        async with engine_on(address, tmp_path, "second") as second:
            async with engine_on(address, tmp_path, "first") as first:
                before, after = HandWorker(first), HandWorker(second)
                session = await before.register(slots=2, connection=1)
                damaged, sound = await first.start(NOOP), await first.start(NOOP)
                commands = {c.execution: c for c in [await before.command(), await before.command()]}
            await query(address, "UPDATE event SET body = '{}' WHERE execution_id = $1 AND seq = 1", damaged)
            held = [lease_of(command) for command in commands.values()]
            assert await after.register(session, held, slots=2, connection=2) == session
            [news] = [item for item in (await after.news()).items if item.execution == damaged]
            assert not news.owned
            assert await after.end(commands[sound]) == "durable"

    asyncio.run(asyncio.wait_for(play(), PATIENCE))
