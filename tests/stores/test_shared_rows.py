"""What several servers share on a real PostgreSQL: who takes a row has it to himself, for a while."""

import asyncio
from datetime import timedelta

import pytest
from msgspec.structs import replace

from bench.postgres_server import PostgresServer
from noetl.model.run_rows import LeasedRun, ReadyRun
from noetl.ports.shared_rows import DeadSession, SessionRow
from noetl.ports.store import Effects
from noetl.stores.postgres import doorbell, server_rows
from noetl.stores.postgres.store import PostgresStore
from noetl.testing.store.store_fixtures import commit_accepted, new_append
from tests.stores.postgres_link import new_address, with_stores

ROWS = Effects(
    timers={"late": 200, "early": 100},
    outbox={"one": b"1", "two": b"2"},
    ready={
        "r1": ReadyRun("default", ("python",), 0),
        "r2": ReadyRun("default", (), 5),
        "r3": ReadyRun("gpu", ("python",), 9),
    },
    leases={"r4": LeasedRun("s", 4)},
)
PYTHON = ("python", "noop")


async def begin(store: PostgresStore, name: str = "a", effects: Effects = ROWS) -> None:
    await commit_accepted(store, replace(new_append(name, 0), effects=effects))


def test_what_one_server_takes_others_leave_alone(postgres: PostgresServer) -> None:
    async def take(first: PostgresStore, second: PostgresStore) -> None:
        await begin(first)
        await first.send("a", b"hello")
        assert [timer.key for timer in await first.shared.take_timers(until=150)] == ["early"]
        assert [timer.key for timer in await second.shared.take_timers(until=300)] == ["late"]
        assert [message.key for message in await second.shared.take_outbox(limit=1)] == ["one"]
        assert [message.key for message in await first.shared.take_outbox()] == ["two"]
        assert [message.body for message in await second.shared.take_inbox()] == [b"hello"]
        assert await first.shared.take_inbox() == []
        assert not await first.shared.take_timers(until=300)
        assert not await first.shared.take_outbox()
        # All of it is there until the append that it led to is written.
        assert len(await first.timers()) == len(await first.outbox()) == 2

    with_stores(new_address(postgres), take, 2)


def test_what_was_taken_by_a_server_that_is_gone_is_found_again(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_rows, "_HOLD", timedelta(0))

    async def take(first: PostgresStore, second: PostgresStore) -> None:
        await begin(first)
        await first.send("a", b"hello")
        for store in (first, second):
            assert len(await store.shared.take_timers(until=300)) == 2
            assert len(await store.shared.take_outbox()) == 2
            assert len(await store.shared.take_inbox()) == 1
            assert len(await store.shared.take_ready("default", PYTHON, limit=9)) == 2

    with_stores(new_address(postgres), take, 2)


def test_what_is_set_again_may_be_taken_at_once(postgres: PostgresServer) -> None:
    async def take(store: PostgresStore) -> None:
        await begin(store)
        await store.shared.take_timers(until=300)
        await store.shared.take_outbox()
        await store.shared.take_ready("default", PYTHON, limit=9)
        again = Effects(timers={"early": 120}, outbox={"two": b"3"}, ready={"r1": ROWS.ready["r1"]})
        await commit_accepted(store, replace(new_append("a", 1), effects=again))
        assert [timer.due for timer in await store.shared.take_timers(until=300)] == [120]
        assert [message.body for message in await store.shared.take_outbox()] == [b"3"]
        assert [row.key for row in await store.shared.take_ready("default", PYTHON, limit=9)] == ["r1"]

    with_stores(new_address(postgres), take, 1)


def test_ready_runs_are_taken_by_pool_kinds_and_priority(postgres: PostgresServer) -> None:
    async def take(store: PostgresStore) -> None:
        await begin(store)
        assert await store.shared.take_ready("other", PYTHON, limit=9) == []
        assert await store.shared.take_ready("gpu", ("noop",), limit=9) == []
        [first] = await store.shared.take_ready("default", PYTHON, limit=1)
        assert (first.key, first.run) == ("r2", ROWS.ready["r2"])
        [second] = await store.shared.take_ready("default", PYTHON, limit=9)
        assert (second.key, second.run) == ("r1", ROWS.ready["r1"])

    with_stores(new_address(postgres), take, 1)


def test_a_session_is_that_of_the_server_that_it_registered_with_last(postgres: PostgresServer) -> None:
    async def move(store: PostgresStore) -> None:
        rows = store.shared
        row = SessionRow("s", "first", 1, "machines", "w")
        assert await rows.open_session(row) == "opened"
        assert await rows.beat_sessions("first", ["s", "unknown"]) == {"s"}
        assert await rows.open_session(row._replace(server="second", connection=2)) == "opened"
        assert await rows.beat_sessions("first", ["s"]) == set()
        assert await rows.beat_sessions("second", ["s"]) == {"s"}
        # What a server reads late, when it wakes up, is not what its worker says now.
        assert await rows.open_session(row) == "outdated"
        assert await rows.open_session(row._replace(connection=3, token="other")) == "forbidden"
        await rows.end_session("first", "s")
        assert await rows.take_dead_sessions(10) == []
        await rows.end_session("second", "s")
        assert await rows.take_dead_sessions(10) == [DeadSession("s", "w")]

    with_stores(new_address(postgres), move, 1)


def test_a_session_that_does_not_beat_is_taken_once_and_for_all(postgres: PostgresServer) -> None:
    async def lose(first: PostgresStore, second: PostgresStore) -> None:
        row = SessionRow("s", "server", 1, "", "w", ttl=0.0)
        await first.shared.open_session(row)
        await begin(first)
        assert await second.shared.beat_sessions("server", ["s"]) == {"s"}, "it is late, and nobody minded"
        assert await first.shared.take_dead_sessions(10) == [DeadSession("s", "w")]
        assert await second.shared.take_dead_sessions(10) == []
        assert await first.shared.beat_sessions("server", ["s"]) == set()
        assert await first.shared.open_session(row._replace(connection=2)) == "ended"
        [lease] = await first.shared.leases_of(["s"])
        assert (lease.execution_id, lease.key, lease.run) == ("a", "r4", ROWS.leases["r4"])
        await first.shared.forget_session("s")
        assert await first.shared.open_session(row) == "ended", "it has a lease yet"
        await commit_accepted(first, replace(new_append("a", 1), effects=Effects(leases={"r4": None})))
        await first.shared.forget_session("s")
        assert await first.shared.open_session(row) == "opened"

    with_stores(new_address(postgres), lose, 2)


def test_a_lease_without_a_session_lives_for_one_ttl(postgres: PostgresServer) -> None:
    async def find(store: PostgresStore) -> None:
        await begin(store)
        assert await store.shared.take_dead_sessions(100) == []
        assert await store.shared.open_session(SessionRow("s", "server", 1)) == "opened"
        await begin(store, "b", Effects(leases={"r1": LeasedRun("t", 1)}))
        assert await store.shared.take_dead_sessions(0) == [DeadSession("t", "")]

    with_stores(new_address(postgres), find, 1)


def test_a_first_server_spares_whom_nobody_could_hear(postgres: PostgresServer) -> None:
    async def spare(store: PostgresStore) -> None:
        rows = store.shared
        await rows.open_session(SessionRow("late", "gone", 1, ttl=0.1))
        await rows.open_session(SessionRow("left", "gone", 1, ttl=100))
        await rows.end_session("gone", "left")
        await asyncio.sleep(0.15)  # nothing is waited for: it is late afterwards
        await rows.spare_sessions()
        assert [dead.session for dead in await rows.take_dead_sessions(10)] == ["left"]

    with_stores(new_address(postgres), spare, 1)


def test_one_server_has_its_turn_until_it_is_over(postgres: PostgresServer) -> None:
    async def take(first: PostgresStore, second: PostgresStore) -> None:
        assert await first.shared.take_turn("feed", "first", 100)
        assert await first.shared.take_turn("feed", "first", 100)
        assert not await second.shared.take_turn("feed", "second", 100)
        assert await second.shared.take_turn("other", "second", 100)
        await second.shared.end_turn("feed", "second")
        assert not await second.shared.take_turn("feed", "second", 100)
        await first.shared.end_turn("feed", "first")
        assert await second.shared.take_turn("feed", "second", 0.0)
        assert await first.shared.take_turn("feed", "first", 100)

    with_stores(new_address(postgres), take, 2)


def test_versions_are_those_of_executions_that_there_are(postgres: PostgresServer) -> None:
    async def look(store: PostgresStore) -> None:
        await begin(store)
        await commit_accepted(store, new_append("a", 1))
        assert await store.shared.versions(["a", "nothing"]) == {"a": 2}

    with_stores(new_address(postgres), look, 1)


def test_a_ring_says_what_was_written(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorbell, "LOOK_SECONDS", 100.0)
    monkeypatch.setattr(doorbell, "NAMES_BYTES", 30)

    async def ring(first: PostgresStore, second: PostgresStore) -> None:
        rings = aiter(first.changes())
        assert await anext(rings) is None, "whatever was written before"
        names = [f"execution-{number}" for number in range(5)]
        await second.commit([new_append(name, 0) for name in names])
        heard: set[str] = set()
        while heard != set(names):
            changed = await asyncio.wait_for(anext(rings), 30)
            assert changed is not None
            heard |= changed
        await second.send(names[0], b"hello")
        assert await asyncio.wait_for(anext(rings), 30) == frozenset()
        # What is not to be named, or too much, may be anything.
        await second.commit([new_append("x, y", 0)])
        assert await asyncio.wait_for(anext(rings), 30) is None
        monkeypatch.setattr(doorbell, "MOST_NAMES", 1)
        await second.commit([new_append(name, 1) for name in names])
        assert await asyncio.wait_for(anext(rings), 30) is None

    with_stores(new_address(postgres), ring, 2)
