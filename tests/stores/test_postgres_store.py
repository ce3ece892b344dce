"""The suite that every store passes, on a real PostgreSQL, and what only this store promises."""

import asyncio
from pathlib import Path

import asyncpg
import pytest
from msgspec.structs import replace

from bench.postgres_server import PostgresServer
from noetl.model.timestamp import now_micros
from noetl.ports.store import (
    Append,
    Committed,
    Conflict,
    Effects,
    ExecutionQuery,
    KeyTaken,
    Row,
    StoreDamaged,
    StoreError,
    StoreSlow,
)
from noetl.stores.postgres.database_connections import PostgresConnection
from noetl.stores.postgres.database_schema import PostgresSchema
from noetl.stores.postgres.store import PostgresStore
from noetl.stores.postgres.upkeep import read_health_of
from noetl.testing.store.store_fixtures import (
    begin_execution,
    commit_accepted,
    effects_in_row,
    new_append,
)
from noetl.testing.store_suite import SharedStoreSuite, StoreOpener
from tests.stores.postgres_link import CutLine, new_address, query, with_stores

END_OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
"""
PARTITIONS = """
SELECT inhrelid::regclass::text FROM pg_inherits
WHERE inhparent = 'event'::regclass AND inhrelid::regclass::text LIKE 'event_week%'
"""
WEEK_OF_2030 = "01b8f9a5-5400-7000-8000-000000000000"


class TestSchema(SharedStoreSuite):
    @pytest.fixture
    def open_store(self, postgres: PostgresServer) -> StoreOpener:
        address = new_address(postgres)
        return lambda: PostgresStore(address)


def test_stores_that_race_for_the_same_executions_write_no_wrong_history(postgres: PostgresServer) -> None:
    address = new_address(postgres)
    names = [f"x{number}" for number in range(8)]

    async def write(store: PostgresStore, seed: int) -> int:
        versions, won = dict.fromkeys(names, 0), 0
        for turn in range(60):
            # In another order each, so that whoever locks in the order of the call waits for the other.
            order = names[(turn + seed) % 8 :] + names[: (turn + seed) % 8]
            order = order[::-1] if seed % 2 else order
            verdicts = await store.commit([new_append(name, versions[name]) for name in order])
            for name, verdict in zip(order, verdicts, strict=True):
                assert isinstance(verdict, Committed | Conflict)
                versions[name] = verdict.version
                won += isinstance(verdict, Committed)
        return won

    async def race(*stores: PostgresStore) -> None:
        won = sum(await asyncio.gather(*(write(store, seed) for seed, store in enumerate(stores))))
        records = (await stores[0].executions()).executions
        assert sum(record.version for record in records) == won
        assert await stores[0].check(effects_in_row) == []
        assert [store.repeated_commits for store in stores] == [0, 0, 0]

    with_stores(address, race, 3)


def test_a_deadlock_with_others_is_decided_again_and_counted(postgres: PostgresServer) -> None:
    address = new_address(postgres)

    async def collide(store: PostgresStore) -> None:
        await commit_accepted(store, new_append("a", 0), new_append("b", 0))
        foreign = await asyncpg.connect(address.dsn)
        await foreign.execute(f"SET search_path = {address.schema}")
        await foreign.execute("SET deadlock_timeout = '10s'")
        transaction = foreign.transaction()
        await transaction.start()
        await foreign.execute("SELECT FROM execution WHERE id = 'b' FOR UPDATE")
        commit = asyncio.create_task(store.commit([new_append("a", 1), new_append("b", 1)]))
        while not await query(address, "SELECT FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0)
        # The store has `a` and waits for `b`; now the other one waits for `a`. The store looks first.
        await foreign.execute("SELECT FROM execution WHERE id = 'a' FOR UPDATE")
        await transaction.rollback()
        assert await commit == [Committed(2), Committed(2)]
        assert store.repeated_commits >= 1
        await foreign.close()

    with_stores(address, collide)


@pytest.mark.parametrize("times", [1, 3])
def test_a_commit_whose_answer_was_lost_was_written_once(
    postgres: PostgresServer, tmp_path: Path, times: int
) -> None:
    address = new_address(postgres, host=str(tmp_path))
    facts = Effects(status="running", timers={"t": 1}, outbox={"m": b"1"})

    async def cut(store: PostgresStore) -> None:
        async with CutLine(postgres, tmp_path).open() as line:
            await begin_execution(store, "other")
            line.word, line.times = b"lost-here", times
            appends = [
                new_append("lost-here", 0, facts, start_key="key"),
                new_append("other", 1),
                new_append("third", 5),
                new_append("fourth", 0, start_key="key"),
            ]
            verdicts = await store.commit(appends)
            assert line.cuts == times
            assert verdicts == [Committed(1), Committed(2), Conflict(0), KeyTaken("lost-here")]
            assert await store.commit(appends[:2]) == [KeyTaken("lost-here"), Conflict(2)]
            assert len(await store.outbox()) == 1
            assert await store.check(effects_in_row) == []
            await store.close()

    with_stores(address, cut)


def test_what_another_one_wrote_while_the_answer_was_lost_is_a_conflict(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    address, direct = new_address(postgres, host=str(tmp_path)), new_address(postgres)
    direct = replace(direct, schema=address.schema)

    async def cut(store: PostgresStore) -> None:
        async with CutLine(postgres, tmp_path).open() as line:
            await begin_execution(store, "a")
            other = PostgresStore(direct)
            await commit_accepted(other, new_append("a", 1, Effects(status="theirs")))
            line.word, line.times = b"mine", 1
            assert await store.commit([new_append("a", 1, Effects(status="mine"))]) == [Conflict(2)]
            assert line.cuts == 1
            await other.close()
            await store.close()

    with_stores(address, cut)


def test_a_connection_that_the_server_ends_is_opened_again(postgres: PostgresServer) -> None:
    address = new_address(postgres)

    async def work(store: PostgresStore) -> None:
        await begin_execution(store, "a")
        for version in range(1, 4):
            await query(address, END_OTHERS)
            assert len(await store.read("a")) == version
            assert len((await store.executions()).executions) == 1
            await query(address, END_OTHERS)
            assert await store.commit([new_append("a", version)]) == [Committed(version + 1)]

    with_stores(address, work)


@pytest.mark.parametrize("patience", [0, 30])
def test_a_server_that_says_that_it_ends_and_does_not_hang_up_is_lost(
    postgres: PostgresServer, tmp_path: Path, patience: int
) -> None:
    address, direct = new_address(postgres, host=str(tmp_path)), new_address(postgres)
    direct = replace(direct, schema=address.schema)

    async def work(store: PostgresStore) -> None:
        async with CutLine(postgres, tmp_path).open() as line:
            await begin_execution(store, "a")
            line.hangs = True
            await query(direct, END_OTHERS)
            await line.hung_up.wait()
            await query(direct, "SELECT 1")  # meanwhile its last words have arrived
            line.hangs = False
            if patience:
                assert await store.commit([new_append("a", 1)]) == [Committed(2)]
            else:
                with pytest.raises(StoreError, match="the connection was lost"):
                    await store.commit([new_append("a", 1)])
                assert await store.commit([new_append("a", 1)]) == [Committed(2)]
            await store.close()

    with_stores(address, work, patience=patience)


def test_a_database_that_has_become_read_only_counts_as_lost(postgres: PostgresServer) -> None:
    address = new_address(postgres)

    async def work(store: PostgresStore) -> None:
        await begin_execution(store, "a")
        database = (await query(address, "SELECT current_database()"))[0][0]
        other = new_address(postgres)
        try:
            await query(other, f"ALTER DATABASE {database} SET default_transaction_read_only = on")
            await query(other, END_OTHERS)
            # The first may hear of the end of its connection, the next one is on a new one.
            for message in ("read-only|terminat|closed|lost", "read-only"):
                with pytest.raises(StoreError, match=message):
                    await store.commit([new_append("a", 1)])
        finally:
            connection = await asyncpg.connect(other.dsn)
            await connection.execute("SET default_transaction_read_only = off")
            await connection.execute(f"ALTER DATABASE {database} RESET default_transaction_read_only")
            await connection.close()
        assert await store.commit([new_append("a", 1)]) == [Committed(2)]

    with_stores(address, work, patience=0)


def test_the_feed_shows_nothing_that_a_running_transaction_may_still_precede(
    postgres: PostgresServer,
) -> None:
    address = new_address(postgres)

    async def follow(store: PostgresStore) -> None:
        await begin_execution(store, "a")
        [first] = await store.feed()
        foreign = await asyncpg.connect(address.dsn)
        await foreign.execute(f"SET search_path = {address.schema}")
        transaction = foreign.transaction()
        await transaction.start()
        # As a commit that takes long: it has its number, and its rows are not to be seen yet.
        await foreign.execute(
            "INSERT INTO event (execution_id, seq, ts, kind, enc, v, pos, xact, body)"
            " SELECT 'slow', 1, 1, 1, 1, 1, 1, pg_current_xact_id()::text::bigint, ''"
        )
        await commit_accepted(store, new_append("a", 1))
        assert await store.feed(after=first.pos) == []
        assert await store.feed_end() == first.pos
        await transaction.commit()
        assert [entry.execution_id for entry in await store.feed(after=first.pos)] == ["slow", "a"]
        await foreign.close()

    with_stores(address, follow)


def test_the_feed_goes_on_after_a_dump_was_restored_where_transactions_have_lower_numbers(
    postgres: PostgresServer,
) -> None:
    address = new_address(postgres)

    async def write(store: PostgresStore) -> int:
        await begin_execution(store, "a")
        await query(address, "UPDATE event SET xact = xact + 1000000")
        return int((await query(address, "SELECT max(xact) FROM event"))[0][0])

    async def follow(store: PostgresStore) -> None:
        [old] = await store.feed()
        await commit_accepted(store, new_append("b", 0))
        assert [entry.execution_id for entry in await store.feed(after=old.pos)] == ["b"]

    before = with_stores(address, write)
    with_stores(address, follow)
    with_stores(address, lambda store: commit_accepted(store, new_append("c", 0)))
    rows = asyncio.run(query(address, "SELECT execution_id FROM event WHERE xact > $1 ORDER BY xact", before))
    assert rows == [("b",), ("c",)]


def test_executions_of_a_week_are_in_a_partition_that_is_made_when_it_is_missing(
    postgres: PostgresServer,
) -> None:
    address = new_address(postgres)

    async def write(store: PostgresStore) -> None:
        await commit_accepted(store, new_append(WEEK_OF_2030, 0), new_append("a", 0), new_append("0zz", 0))
        assert await store.commit([new_append(WEEK_OF_2030, 0)]) == [Conflict(1)]
        assert len(await store.feed()) == 3

    with_stores(address, write)
    rows = asyncio.run(query(address, "SELECT tableoid::regclass::text, execution_id FROM event ORDER BY 2"))
    assert [name for _, name in rows] == [WEEK_OF_2030, "0zz", "a"]
    assert rows[0][0] == "event_week_3131"
    assert rows[1][0].startswith("event_week_")
    assert rows[2][0] == "event_other"


def test_partitions_of_past_weeks_go_when_nothing_is_left_in_them(postgres: PostgresServer) -> None:
    address = new_address(postgres)
    past, remaining = "018f0000-0000-7000-8000-000000000000", "01900000-0000-7000-8000-000000000000"

    async def partitions() -> set[str]:
        return {row[0] for row in await query(address, PARTITIONS)}

    async def prune(store: PostgresStore) -> None:
        await commit_accepted(store, new_append(past, 0), new_append(remaining, 0))
        before = await partitions()
        assert await store.reclaim() == 0
        await store.delete(past)
        assert await store.reclaim() == 1
        after = await partitions()
        assert len(before - after) == 1
        assert after < before
        assert await store.commit([new_append(past, 0)]) == [Committed(1)]
        assert await partitions() == before
        # As if whoever dropped it had been killed after it was detached.
        await store.delete(past)
        [name] = before - after
        await query(address, f"ALTER TABLE event DETACH PARTITION {name}")
        assert await store.commit([new_append(past, 0)]) == [Committed(1)]
        assert len(await store.read(remaining)) == len(await store.read(past)) == 1

    with_stores(address, prune)


def test_the_health_of_a_database_names_what_will_be_wrong(postgres: PostgresServer) -> None:
    address = new_address(postgres)

    async def look(store: PostgresStore) -> None:
        assert (await read_health_of(address, now_micros())).schema_version == 0
        await begin_execution(store, "a")
        foreign = await asyncpg.connect(address.dsn, server_settings={"application_name": "report"})
        transaction = foreign.transaction()
        await transaction.start()
        await foreign.execute("SELECT pg_current_xact_id()")
        health = await read_health_of(address, now_micros() - 60_000_000)
        assert health.schema_version == health.current_version
        assert 50 < health.clock_ahead < 70
        assert (health.weeks_missing, health.oldest_owner) == (0, "report (postgres)")
        assert health.oldest_transaction > 0
        assert 0 < health.connections < health.max_connections
        await transaction.rollback()
        await foreign.close()
        newest = sorted(row[0] for row in await query(address, PARTITIONS))[-1]
        await query(address, f"DROP TABLE {newest}")
        assert (await read_health_of(address, now_micros())).weeks_missing == 1

    with_stores(address, look)


def test_a_list_that_takes_too_long_is_given_up_and_the_next_one_is_answered(
    postgres: PostgresServer,
) -> None:
    address = new_address(postgres)

    async def search(store: PostgresStore) -> None:
        await begin_execution(store, "a", Effects(labels={"k": "v"}))
        foreign = await asyncpg.connect(address.dsn)
        transaction = foreign.transaction()
        await transaction.start()
        await foreign.execute(f"LOCK TABLE {address.schema}.execution")
        with pytest.raises(StoreSlow, match=r"longer than 0\.2 s"):
            await store.executions(ExecutionQuery(labels={"k": "v"}))
        await transaction.rollback()
        await foreign.close()
        assert len((await store.executions(ExecutionQuery(labels={"k": "v"}))).executions) == 1

    with_stores(address, search, search_seconds=0.2)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE event SET body = '{}'::bytea || body WHERE execution_id = 'a' AND seq = 2",
        "UPDATE event SET ts = ts + 1 WHERE execution_id = 'a' AND seq = 1",
        "UPDATE event SET kind = kind + 1 WHERE execution_id = 'a' AND seq = 3",
        "UPDATE event SET checksum = NULL WHERE execution_id = 'a' AND seq = 3",
        "DELETE FROM event WHERE execution_id = 'a' AND seq = 2",
    ],
)
def test_what_is_not_as_it_was_written_is_an_error_and_found_by_the_check(
    postgres: PostgresServer, damage: str
) -> None:
    address = new_address(postgres)

    async def look(store: PostgresStore) -> None:
        await begin_execution(store, "a", Effects(), Effects())
        await commit_accepted(store, new_append("a", 2), new_append("b", 0))
        await query(address, damage)
        with pytest.raises(StoreDamaged, match="a: event"):
            await store.read("a")
        assert {wrong.execution_id for wrong in await store.check()} == {"a"}
        assert len(await store.read("b")) == 1

    with_stores(address, look)


def test_texts_with_a_character_that_postgresql_has_not_come_back(postgres: PostgresServer) -> None:
    address = new_address(postgres)
    facts = Effects(path="a\0b", fair_key="\uf8ff0", labels={"k\0": "v\0"}, status="failed", ended_at=9)

    async def write(store: PostgresStore) -> None:
        body = b'{"error": {"kind": "sql", "message": "no\\u0000pe \\\\u0000"}}'
        append = Append(
            execution_id="a",
            expected_version=0,
            rows=[Row(1, 5, 1, 1, body, last=True)],
            effects=facts,
            start_key="k\0",
        )
        assert await store.commit([append]) == [Committed(1)]
        assert await store.commit([new_append("b", 0, start_key="k\0")]) == [KeyTaken("a")]
        assert await store.commit([new_append("c", 0, start_key="k")]) == [Committed(1)]
        record = await store.execution("a")
        assert record
        assert (record.path, record.fair_key, record.labels) == ("a\0b", "\uf8ff0", {"k\0": "v\0"})
        for wanted in ({"path": "a\0"}, {"labels": {"k\0": "v\0"}}, {"text": "pe"}):
            page = await store.executions(ExecutionQuery(**wanted))
            assert [record.execution_id for record in page.executions] == ["a"]
        assert await store.execution("\0") is None

    with_stores(address, write)


def test_a_connection_is_durable_and_leaves_no_lock_for_long(postgres: PostgresServer) -> None:
    """The database of these tests has none of this as its default."""
    address = new_address(postgres)
    names = ("synchronous_commit", "idle_in_transaction_session_timeout", "statement_timeout", "jit")

    async def look() -> dict[str, str]:
        connection = PostgresConnection(address, PostgresSchema(address).prepare)

        async def read(opened: asyncpg.Connection) -> dict[str, str]:
            return {name: await opened.fetchval(f"SHOW {name}") for name in names}

        try:
            return await connection.run(read)
        finally:
            await connection.close()

    assert asyncio.run(look()) == dict(zip(names, ("on", "5s", "50s", "off"), strict=True))


def test_others_hear_the_doorbell_long_before_they_look(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.stores.postgres.doorbell.LOOK_SECONDS", 100.0)

    async def ring(first: PostgresStore, second: PostgresStore) -> None:
        rings = aiter(first.changes())
        await anext(rings)
        for version in range(3):
            await commit_accepted(second, new_append("a", version))
            await asyncio.wait_for(anext(rings), 30)

    with_stores(new_address(postgres), ring, 2)


def test_the_doorbell_rings_seldom_however_much_is_written(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = new_address(postgres)
    monkeypatch.setattr("noetl.stores.postgres.doorbell.RING_SECONDS", 0.3)

    async def write(store: PostgresStore) -> None:
        heard: list[str] = []
        foreign = await asyncpg.connect(address.dsn)
        await foreign.add_listener(f"noetl_{address.schema}", lambda *rung: heard.append(rung[2]))
        loop = asyncio.get_running_loop()
        began = loop.time()
        for version in range(60):
            await commit_accepted(store, new_append("a", version))
        while not heard:
            await foreign.execute("SELECT")
        assert len(heard) <= (loop.time() - began) / 0.3 + 1
        await foreign.close()

    with_stores(address, write)


def test_commits_that_wait_together_are_one_transaction_of_bounded_size(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def transactions() -> int:
        address = new_address(postgres)
        store = PostgresStore(address)
        await begin_execution(store, "a")
        await asyncio.gather(*(store.commit([new_append(f"x{number}", 0)]) for number in range(20)))
        await store.close()
        rows = await query(address, "SELECT count(DISTINCT xact) FROM event")
        return int(rows[0][0])

    assert asyncio.run(transactions()) < 10
    monkeypatch.setattr("noetl.stores.postgres.writer.COMMIT_BYTES", 1)
    assert asyncio.run(transactions()) == 21


def test_who_writes_faster_than_the_database_waits(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noetl.stores.postgres.writer.QUEUE_BYTES", 2_000)

    async def flood(store: PostgresStore) -> None:
        await begin_execution(store, "a")
        commits = [asyncio.create_task(store.commit([new_append(f"x{n}", 0)])) for n in range(100)]
        most = 0
        while not all(commit.done() for commit in commits):
            most = max(most, store.queued_bytes)
            await asyncio.sleep(0)
        assert 0 < most <= 2_000
        assert all(commit.result() == [Committed(1)] for commit in commits)
        assert store.queued_bytes == 0

    with_stores(new_address(postgres), flood)


def test_executions_are_locked_in_the_order_of_their_ids(postgres: PostgresServer) -> None:
    address = new_address(postgres)

    async def look(store: PostgresStore) -> None:
        await begin_execution(store, "b")  # first in the table, too
        await begin_execution(store, "a")
        foreign = await asyncpg.connect(address.dsn)
        await foreign.execute(f"SET search_path = {address.schema}")
        transaction = foreign.transaction()
        await transaction.start()
        await foreign.execute("SELECT FROM execution WHERE id = 'a' FOR UPDATE")
        commit = asyncio.create_task(store.commit([new_append("b", 1), new_append("a", 1)]))
        while not await query(address, "SELECT FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0)
        # It waits for `a`, and has not taken `b` before.
        assert await foreign.fetch("SELECT FROM execution WHERE id = 'b' FOR UPDATE NOWAIT")
        await transaction.rollback()
        assert await commit == [Committed(2), Committed(2)]
        await foreign.close()

    with_stores(address, look)


def test_a_checksum_that_was_taken_away_is_missed_wherever_reading_begins(postgres: PostgresServer) -> None:
    address = new_address(postgres)

    async def look(store: PostgresStore) -> None:
        await commit_accepted(store, new_append("a", 0), new_append("a", 1), new_append("a", 2))
        await query(address, "UPDATE event SET checksum = NULL WHERE seq = 3")
        assert len(await store.read("a", limit=1)) == 1
        with pytest.raises(StoreDamaged, match="event 3"):
            await store.read("a", after=2)

    with_stores(address, look)
