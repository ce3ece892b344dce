"""The schema, the ways to it, who is refused, and the queries on it."""

import asyncio
import re
from typing import Any

import asyncpg
import pytest

from bench.postgres_server import PostgresServer
from noetl.ports.store import StoreBusy, StoreError, StoreUnusable, StoreUrlWrong
from noetl.stores.postgres import queries
from noetl.stores.postgres.address import DatabaseAddress
from noetl.stores.postgres.database_schema import POSTGRES_SCHEMA_VERSION, PostgresSchema
from noetl.stores.postgres.partitions import week_bound, week_of_id
from noetl.stores.postgres.store import PostgresStore
from noetl.testing.store.store_fixtures import begin_execution
from tests.stores.postgres_link import new_address, query, with_stores

SHAPE = """
SELECT c.relname, c.relkind::text, c.relpersistence::text, c.reloptions::text, pg_get_partkeydef(c.oid),
  pg_get_expr(c.relpartbound, c.oid), pg_get_indexdef(i.indexrelid), a.attname, format_type(a.atttypid, a.atttypmod),
  a.attnotnull, a.attidentity::text, a.attstorage::text, a.attcollation::regcollation::text,
  pg_get_expr(d.adbin, d.adrelid)
FROM pg_class AS c
LEFT JOIN pg_index AS i ON i.indexrelid = c.oid
LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = $1::regnamespace ORDER BY 1, a.attnum
"""


async def run_script(address: DatabaseAddress, *scripts: str) -> list[Any]:
    """The shape that scripts give to the schema of this address."""
    connection = await asyncpg.connect(address.dsn)
    try:
        await connection.execute(f"CREATE SCHEMA {address.schema}; SET search_path = {address.schema}")
        for script in scripts:
            await connection.execute(script)
        rows = await connection.fetch(SHAPE, address.schema)
        return [tuple(str(value).replace(address.schema, "") for value in row) for row in rows]
    finally:
        await connection.close()


def test_the_migrations_lead_to_the_schema(postgres: PostgresServer) -> None:
    shape = asyncio.run(run_script(new_address(postgres), queries.current_schema()))
    assert "event_feed" in {row[0] for row in shape}
    assert asyncio.run(run_script(new_address(postgres), *queries.schema_migrations())) == shape
    other = asyncio.run(
        run_script(new_address(postgres), queries.current_schema(), "CREATE INDEX more ON event (kind)")
    )
    assert other != shape, "a difference would be seen"


def test_every_query_fits_the_schema(postgres: PostgresServer) -> None:
    address = new_address(postgres)

    async def prepare_all(store: PostgresStore) -> None:
        await store.feed_end()
        connection = await asyncpg.connect(address.dsn)
        await connection.execute(f"SET search_path = {address.schema}")
        for file in (queries.READ, queries.WRITE, queries.CHECK):
            for text in file.values():
                if not text.startswith("LOCK"):
                    await connection.prepare(queries.number_parameters(text).text)
        await connection.close()

    with_stores(address, prepare_all)


def test_a_parameter_has_one_number_wherever_it_stands() -> None:
    assert queries.number_parameters("SELECT :a::int, :b_2, :a, b::text") == (
        "SELECT $1::int, $2, $1, b::text",
        ("a", "b_2"),
    )


def migrate(address: DatabaseAddress, scripts: list[str] | None = None) -> tuple[int, int]:
    async def run() -> tuple[int, int]:
        connection = await asyncpg.connect(address.dsn)
        try:
            await connection.execute(f"SET search_path = {address.schema}")
            return await PostgresSchema(address).migrate(connection, scripts)
        finally:
            await connection.close()

    return asyncio.run(run())


def test_only_what_is_missing_is_run_and_what_fails_changes_nothing(postgres: PostgresServer) -> None:
    address = new_address(postgres)
    first = queries.schema_migrations()[0]
    scripts = [first, "CREATE TABLE two (a int)"]
    assert migrate(address, scripts[:1]) == (0, 1)
    with pytest.raises(asyncpg.UndefinedTableError):
        migrate(address, [*scripts, "CREATE TABLE three (a int); INSERT INTO missing VALUES (1)"])
    assert asyncio.run(query(address, "SELECT version, to_regclass('two') FROM store")) == [(1, None)]
    assert migrate(address, scripts) == (1, 2)
    assert migrate(address, scripts) == (2, 2)


def test_a_newer_or_older_schema_is_refused_with_what_to_do(postgres: PostgresServer) -> None:
    address = new_address(postgres)
    with_stores(address, lambda store: begin_execution(store, "a"))
    for version, message, hint in (
        (POSTGRES_SCHEMA_VERSION + 1, "newer NoETL", "upgrade NoETL"),
        (POSTGRES_SCHEMA_VERSION - 1, "older form", "store migrate"),
    ):
        asyncio.run(query(address, "UPDATE store SET version = $1", version))
        with pytest.raises(StoreUnusable, match=message) as refused:
            with_stores(address, lambda store: store.execution("a"))
        assert hint in refused.value.hint


def test_a_migration_waits_five_seconds_for_what_others_hold(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = new_address(postgres)
    migrate(address)
    monkeypatch.setattr("noetl.stores.postgres.database_schema.LOCK_SECONDS", 0.2)

    async def hold() -> None:
        foreign = await asyncpg.connect(address.dsn)
        async with foreign.transaction():
            await foreign.execute(f"LOCK TABLE {address.schema}.event IN ACCESS SHARE MODE")
            connection = await asyncpg.connect(address.dsn)
            await connection.execute(f"SET search_path = {address.schema}")
            scripts = [*queries.schema_migrations(), "ALTER TABLE event ADD COLUMN more int"]
            with pytest.raises(asyncpg.LockNotAvailableError):
                await PostgresSchema(address).migrate(connection, scripts)
            await connection.close()
        await foreign.close()

    asyncio.run(hold())
    assert asyncio.run(query(address, "SELECT version FROM store")) == [(POSTGRES_SCHEMA_VERSION,)]


@pytest.mark.parametrize(
    ("options", "error", "message", "hint"),
    [
        ({"user": "nobody_here"}, StoreUnusable, "password", "user and password"),
        ({"password": "wrong"}, StoreUnusable, "password", "user and password"),
        ({"database": "missing"}, StoreUnusable, "does not exist", "createdb"),
        ({"host": "/nowhere"}, StoreError, "No such file", "whether PostgreSQL runs"),
    ],
)
def test_who_cannot_get_in_is_told_what_to_do(
    postgres: PostgresServer, options: dict[str, str], error: type[StoreError], message: str, hint: str
) -> None:
    database = options.pop("database", "postgres")
    address = DatabaseAddress.parse(postgres.dsn(**options).replace("///postgres", f"///{database}"))
    for ask in (PostgresStore.feed_end, lambda store: store.put_blob("a", b"")):
        with pytest.raises(error, match=message) as refused:
            with_stores(address, ask)
        assert hint in refused.value.hint
        assert "wrong" not in str(refused.value)


def test_who_may_not_make_a_schema_is_told_what_to_do(postgres: PostgresServer) -> None:
    admin = new_address(postgres)
    asyncio.run(query(admin, "DROP ROLE IF EXISTS onlooker"))
    asyncio.run(query(admin, "CREATE ROLE onlooker LOGIN PASSWORD 'looks'"))
    address = new_address(postgres, user="onlooker", password="looks")
    with pytest.raises(StoreUnusable, match="permission denied") as refused:
        with_stores(address, PostgresStore.feed_end)
    assert "CREATE SCHEMA" in refused.value.hint
    asyncio.run(query(admin, f"CREATE SCHEMA {address.schema} AUTHORIZATION onlooker"))
    with_stores(address, lambda store: begin_execution(store, "a"))


def test_a_schema_of_another_program_and_another_encoding_are_refused(postgres: PostgresServer) -> None:
    address = new_address(postgres)
    asyncio.run(query(address, f"CREATE SCHEMA {address.schema}"))
    asyncio.run(query(address, "CREATE TABLE theirs (a int)"))
    with pytest.raises(StoreUnusable, match="another program"):
        with_stores(address, PostgresStore.feed_end)
    asyncio.run(query(address, "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0"))
    latin = DatabaseAddress.parse(postgres.dsn().replace("///postgres", "///latin"))
    with pytest.raises(StoreUnusable, match="encoding LATIN1"):
        with_stores(latin, PostgresStore.feed_end)


def test_a_busy_lock_is_no_fault_of_the_store(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = new_address(postgres)
    migrate(address)
    monkeypatch.setattr("noetl.stores.postgres.partitions.LOCK_SECONDS", 0.2)

    async def hold() -> None:
        foreign = await asyncpg.connect(address.dsn)
        await foreign.execute(f"SET search_path = {address.schema}")
        async with foreign.transaction():
            await foreign.execute("LOCK TABLE event IN SHARE UPDATE EXCLUSIVE MODE")
            store = PostgresStore(address)
            with pytest.raises(StoreBusy):
                await store.feed_end()
        assert await store.feed_end() == 0
        await store.close()
        await foreign.close()

    asyncio.run(hold())


def test_partitions_that_come_can_wait_while_others_hold_the_table(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = new_address(postgres)
    with_stores(address, PostgresStore.feed_end)
    monkeypatch.setattr("noetl.stores.postgres.partitions.LOCK_SECONDS", 0.2)

    async def hold() -> None:
        [[newest]] = await query(
            address,
            "SELECT max(relname) FROM pg_class WHERE relname ~ '^event_week_[0-9]+$' AND relnamespace = current_schema()::regnamespace",
        )
        await query(address, f"DROP TABLE {newest}")
        foreign = await asyncpg.connect(address.dsn)
        async with foreign.transaction():
            await foreign.execute(f"LOCK TABLE {address.schema}.event IN SHARE UPDATE EXCLUSIVE MODE")
            store = PostgresStore(address)
            await begin_execution(store, "a")
            await store.close()
        await foreign.close()

    asyncio.run(hold())
    with_stores(address, PostgresStore.feed_end)
    assert asyncio.run(
        query(address, "SELECT count(*) FROM pg_inherits WHERE inhparent = 'event'::regclass")
    ) == [(7,)]


def test_the_weeks_of_ids_cover_everything_in_the_order_of_texts() -> None:
    assert week_bound(0) == "0"
    assert week_of_id("a") is week_of_id("") is week_of_id("1") is None
    for execution_id in (
        "0",
        "0zz",
        "00000000-0000-7000-8000-000000000000",
        "019a9000-1234-7abc-8000-000000000000",
        "0fffffff-ffff-7",
    ):
        week = week_of_id(execution_id)
        assert week is not None
        assert week_bound(week) <= execution_id < week_bound(week + 1)
    known = week_of_id("01b8f9a5-5400-7000-8000-000000000000")
    assert known == int("01b8f9a55400", 16) // (7 * 24 * 3600 * 1000)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://u:secret@host:port/db", "port"),
        ("postgresql://u:secret@a:1,b:x2/db", "x2"),
        ("postgresql://u:secret@host/db?schema=pg_x", "pg_x"),
        ("postgresql://u:secret@host/db?schema=No", "No"),
        ("postgresql://u:secret@host/db?schema=", "``"),
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: str, message: str) -> None:
    with pytest.raises(StoreUrlWrong, match=re.escape(message)) as refused:
        DatabaseAddress.parse(url)
    assert "secret" not in str(refused.value)


def test_a_url_names_database_and_schema() -> None:
    address = DatabaseAddress.parse("postgresql://u:p%40@h:5433/db?sslmode=require&schema=flows&password=p")
    assert address.dsn == "postgresql://u:p%40@h:5433/db?sslmode=require&password=p"
    assert address.schema == "flows"
    assert address.label == "postgresql://u@h:5433/db?sslmode=require&schema=flows&password=…"
    assert DatabaseAddress.parse("postgres://h/db").schema == "noetl"
    several = "postgresql://u@a:1,b:2/db?target_session_attrs=read-write"
    assert DatabaseAddress.parse(several).dsn == several
    assert DatabaseAddress.parse("postgresql://[::1]:5432/db").dsn == "postgresql://[::1]:5432/db"
