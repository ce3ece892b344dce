"""The schema, the ways to it, and the queries on it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from apsw.ext import query_info

from noetl.events.bodies import ExecutionForked
from noetl.events.event_kind import kind_of_body
from noetl.ports.store import StoreUnusable
from noetl.stores.sql_files import choose_lines
from noetl.stores.sqlite import queries
from noetl.stores.sqlite.connection import APPLICATION_ID, create_schema, migrate_schema
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store.store_fixtures import begin_execution


@pytest.fixture
def database() -> Iterator[apsw.Connection]:
    connection = apsw.Connection(":memory:")
    yield connection
    connection.close()


def shape(connection: apsw.Connection) -> dict[str, Any]:
    """Everything that a schema says, without the words that it is said in."""
    tables = [
        *connection.execute("SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main'")
    ]
    indexes = 'SELECT name, "unique", origin, partial FROM pragma_index_list(?)'
    return {
        name: (
            (kind, without_rowid, strict),
            [*connection.execute("SELECT * FROM pragma_table_xinfo(?)", (name,))],
            {
                index: (properties, [*connection.execute("SELECT * FROM pragma_index_xinfo(?)", (index,))])
                for index, *properties in connection.execute(indexes, (name,))
            },
        )
        for name, kind, without_rowid, strict in tables
        if name != "sqlite_schema"
    }


def test_the_migrations_lead_to_the_schema(database: apsw.Connection) -> None:
    migrate_schema(database, 0, queries.migration_scripts())
    other = apsw.Connection(":memory:")
    create_schema(other)
    assert shape(database) == shape(other)
    assert "event" in shape(other)
    assert database.pragma("user_version") == other.pragma("user_version") == len(queries.migration_scripts())
    other.close()


def test_a_difference_would_be_seen(database: apsw.Connection) -> None:
    create_schema(database)
    before = shape(database)
    database.execute("CREATE INDEX more ON event (kind)")
    assert shape(database) != before


def test_a_store_of_before_is_all_there_and_uses_no_position_again(tmp_path: Path) -> None:
    store_path = tmp_path / "store.db"
    database = apsw.Connection(str(store_path))
    database.execute("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
    migrate_schema(database, 0, queries.migration_scripts()[:3])
    facts = ("completed", "p", "h", "", "", "", "{}", 0, "", 0, 9, 0)
    for x, name in [(1, "a"), (2, "b")]:
        row = (x, name, 2, 7, 8, *facts)
        database.execute("INSERT INTO execution VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", row)
        for seq, ts, kind, last in [(1, 7, 1, 0), (2, 8, 5, 1)]:
            event = (x, seq, ts, kind, last, 1, b"{}")
            database.execute(
                "INSERT INTO event (x, seq, ts, kind, enc, v, body) VALUES (?,?,?,?,?,?,?)", event
            )
    database.execute("DELETE FROM event WHERE x = 2; DELETE FROM execution WHERE x = 2")
    database.close()

    async def use() -> None:
        store = SqliteStore.at(store_path)
        record = await store.execution("a")
        assert record
        assert (record.version, record.started_at, record.updated_at) == (2, 7, 8)
        assert [entry.pos for entry in await store.feed()] == [1, 2]
        await begin_execution(store, "c")
        assert [(entry.pos, entry.execution_id) for entry in await store.feed(after=2)] == [(5, "c")]
        await store.delete("c")
        await begin_execution(store, "d")
        assert [(entry.pos, entry.execution_id) for entry in await store.feed(after=2)] == [(6, "d")]
        assert [wrong.message for wrong in await store.check()] == ["the document h is missing"]
        await store.close()

    asyncio.run(use())


def test_only_what_is_missing_is_run(database: apsw.Connection) -> None:
    scripts = ["CREATE TABLE one (a)", "CREATE TABLE two (a)", "CREATE TABLE three (a)"]
    migrate_schema(database, 0, scripts[:1])
    migrate_schema(database, 1, scripts)
    migrate_schema(database, 3, scripts)
    assert shape(database).keys() == {"one", "two", "three"}
    assert (database.pragma("application_id"), database.pragma("user_version")) == (APPLICATION_ID, 3)


def test_a_migration_that_fails_changes_nothing(database: apsw.Connection) -> None:
    scripts = ["CREATE TABLE one (a)", "CREATE TABLE two (a); INSERT INTO missing VALUES (1)"]
    with pytest.raises(apsw.SQLError, match="missing"):
        migrate_schema(database, 0, scripts)
    assert shape(database).keys() == {"one"}
    assert database.pragma("user_version") == 1


def test_a_place_where_a_store_cannot_be_shared_is_refused() -> None:
    temporary = apsw.Connection("")
    with pytest.raises(StoreUnusable, match="cannot share"):
        create_schema(temporary)
    temporary.close()


def test_an_interrupted_making_is_done_again(tmp_path: Path) -> None:
    store_path = tmp_path / "store.db"
    database = apsw.Connection(str(store_path))
    database.execute("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL")
    database.close()
    asyncio.run(SqliteStore.at(store_path).close())
    database = apsw.Connection(str(store_path))
    assert "event" in shape(database)
    assert database.pragma("application_id") == APPLICATION_ID
    database.close()


@pytest.mark.parametrize("query", [*queries.READ, *queries.WRITE, *queries.CHECK, *queries.REBUILD])
def test_every_query_fits_the_schema(database: apsw.Connection, query: str) -> None:
    create_schema(database)
    text = {**queries.READ, **queries.WRITE, **queries.CHECK, **queries.REBUILD}[query]
    assert query_info(database, text).has_vdbe


def test_no_query_has_two_meanings() -> None:
    files = (queries.READ, queries.WRITE, queries.CHECK, queries.REBUILD)
    names = [name for file in files for name in file]
    assert len(names) == len(set(names))


def test_a_query_for_many_rows_repeats_its_values() -> None:
    assert (
        queries.repeat_values("INSERT INTO a VALUES (?, ?);", 3)
        == "INSERT INTO a VALUES (?, ?),(?, ?),(?, ?);"
    )
    assert queries.repeat_values(queries.WRITE["insert_events"], 1) == queries.WRITE["insert_events"]


def test_lines_for_what_is_not_given_are_left_out() -> None:
    query = "SELECT 1\n  AND a = :a -- if a\n  AND b = :b -- if b\nLIMIT 1\n"
    assert choose_lines(query, {"b"}) == "SELECT 1\n  AND b = :b -- if b\nLIMIT 1\n"


def test_forks_of_before_get_a_start_of_their_own_and_their_origin(database: apsw.Connection) -> None:
    scripts = queries.migration_scripts()
    before = next(number for number, script in enumerate(scripts) if "ADD COLUMN forked_from" in script)
    migrate_schema(database, 0, scripts[:before])
    facts = ("running", "p", "h", "", "x", "", "{}", 0, "", 0, 0, 0)
    columns = (
        "x, id, started_at, status, path, playbook, namespace, parent, root, labels, priority,"
        " fair_key, next_wake, ended_at, expires_at"
    )
    for x, name in [(1, "a"), (2, "b")]:
        values = (x, name, 7, *facts)
        database.execute(f"INSERT INTO execution ({columns}) VALUES ({','.join('?' * 15)})", values)  # noqa: S608 - our own
    forked = kind_of_body(ExecutionForked(source="a", at=1)).number
    events = [(1, 1, 7, 1, b"{}"), (2, 1, 7, 1, b"{}")]
    events += [(2, 2, 8, forked, b'{"source":"z","at":1}'), (2, 3, 9, forked, b'{"source":"a","at":2}')]
    for event in events:
        database.execute("INSERT INTO event (x, seq, ts, kind, enc, v, body) VALUES (?,?,?,?,1,1,?)", event)
    migrate_schema(database, before, scripts)
    rows = list(database.execute("SELECT id, started_at, parent, forked_from FROM execution ORDER BY x"))
    assert rows == [("a", 7, "x", ""), ("b", 9, "", "a")]
