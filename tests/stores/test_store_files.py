"""Files that are no stores, or cannot be used: say which, why, and what to do."""

import asyncio
import os
from pathlib import Path

import apsw
import pytest

from noetl.ports.store import Committed, Effects, StoreBusy, StoreError, StoreFull, StoreUnusable
from noetl.stores.sqlite.connection import APPLICATION_ID, SCHEMA_VERSION, ErrorTranslation, open_reader
from noetl.stores.sqlite.store import SqliteStore
from noetl.stores.sqlite.writer import Inline
from noetl.testing.store.store_fixtures import begin_execution, effects_in_row, new_append
from tests.file_rights import readable_only

LARGE = Effects(path="x" * 100_000)


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def opening_refusal(store_path: Path) -> str:
    with pytest.raises(StoreUnusable) as caught:
        SqliteStore.at(store_path)
    assert str(store_path) in str(caught.value)
    assert caught.value.hint
    return str(caught.value)


def make_store(store_path: Path) -> None:
    asyncio.run(SqliteStore.at(store_path).close())


def test_a_store_has_the_settings_that_make_it_durable_and_small(store_path: Path) -> None:
    make_store(store_path)
    database = apsw.Connection(str(store_path))
    names = ("page_size", "auto_vacuum", "journal_mode", "application_id", "user_version")
    assert [database.pragma(name) for name in names] == [8192, 2, "wal", APPLICATION_ID, SCHEMA_VERSION]
    database.close()


def test_a_closed_store_is_one_file(store_path: Path) -> None:
    make_store(store_path)
    assert [path.name for path in store_path.parent.iterdir()] == ["store.db"]


def test_a_file_that_is_no_database(store_path: Path) -> None:
    store_path.write_text("apiVersion: noetl.io/v2\n" * 100)
    assert "no SQLite database" in opening_refusal(store_path)
    assert store_path.read_text().startswith("apiVersion")


def test_a_database_of_another_program(store_path: Path) -> None:
    database = apsw.Connection(str(store_path))
    database.execute("CREATE TABLE theirs (a)")
    database.close()
    assert "another program" in opening_refusal(store_path)


def test_a_store_of_a_newer_version(store_path: Path) -> None:
    make_store(store_path)
    database = apsw.Connection(str(store_path))
    database.pragma("user_version", 99)
    database.close()
    assert "newer NoETL: schema 99" in opening_refusal(store_path)


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    assert "cannot be opened" in opening_refusal(tmp_path / "missing" / "store.db")


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    assert "cannot be opened" in opening_refusal(tmp_path)


def test_a_new_store_in_a_folder_that_cannot_be_written(public_folder: Path) -> None:
    with readable_only(public_folder):
        assert "cannot be opened" in opening_refusal(public_folder / "store.db")
    assert [*public_folder.iterdir()] == []


def test_a_store_in_a_folder_that_cannot_be_written(public_folder: Path) -> None:
    store_path = public_folder / "store.db"
    make_store(store_path)
    store_path.chmod(0o444)
    with readable_only(public_folder):
        assert "cannot be" in opening_refusal(store_path)


def read_executions(store_path: Path) -> list[str]:
    """The executions of a store that is opened to be read; whatever writes is refused."""

    async def look() -> list[str]:
        store = SqliteStore.to_read(store_path)
        execution_ids = [record.execution_id for record in (await store.executions()).executions]
        assert await store.check(effects_in_row) == []
        with pytest.raises(StoreUnusable, match="cannot be written"):
            await store.commit([new_append("b", 0)])
        with pytest.raises(StoreUnusable, match="cannot be written"):
            await store.delete("a")
        await store.close()
        return execution_ids

    return asyncio.run(look())


def test_a_store_that_cannot_be_written_can_be_read(public_folder: Path) -> None:
    store_path = public_folder / "a store?.db"
    asyncio.run(fill_store(store_path))
    with readable_only(public_folder):
        assert read_executions(store_path) == ["a"]
    assert [*public_folder.iterdir()] == [store_path]


def test_a_store_that_others_write_can_be_read_by_those_who_may_not(public_folder: Path) -> None:
    store_path = public_folder / "store.db"

    async def write() -> None:
        store = SqliteStore.at(store_path)
        await begin_execution(store, "a")
        with readable_only(public_folder):
            read_only_store = SqliteStore.to_read(store_path)
            assert await read_only_store.execution("a")
        await begin_execution(store, "b")
        assert await read_only_store.execution("b")
        await read_only_store.close()
        await store.close()

    asyncio.run(write())


def test_what_is_written_while_it_is_read_without_a_lock_is_noticed(public_folder: Path) -> None:
    store_path = public_folder / "store.db"
    asyncio.run(fill_store(store_path))

    async def look() -> None:
        with readable_only(public_folder):
            read_only_store = SqliteStore.to_read(store_path)
        await fill_store(store_path, "b")
        with pytest.raises(StoreBusy, match="was written meanwhile"):
            await read_only_store.executions()
        with pytest.raises(StoreBusy, match="was written meanwhile"):
            await read_only_store.execution("a")
        await read_only_store.close()

    asyncio.run(look())


def test_an_older_store_that_cannot_be_written_says_what_to_do(public_folder: Path) -> None:
    store_path = public_folder / "store.db"
    make_store(store_path)
    database = apsw.Connection(str(store_path))
    database.pragma("user_version", SCHEMA_VERSION - 1)
    database.close()
    with readable_only(public_folder), pytest.raises(StoreUnusable, match="has an older form") as caught:
        SqliteStore.to_read(store_path)
    assert "copy it" in caught.value.hint


def test_a_store_whose_log_cannot_be_read_says_what_to_do(public_folder: Path) -> None:
    store_path = public_folder / "store.db"
    make_store(store_path)
    (public_folder / "store.db-wal").write_bytes(b"of a process that was killed")
    with readable_only(public_folder), pytest.raises(StoreUnusable, match="without writing") as caught:
        SqliteStore.to_read(store_path)
    assert "copy it" in caught.value.hint


def test_a_store_that_cannot_be_read(public_folder: Path) -> None:
    store_path = public_folder / "store.db"
    make_store(store_path)
    store_path.chmod(0)
    with readable_only(public_folder), pytest.raises(StoreUnusable, match="cannot be read"):
        SqliteStore.to_read(store_path)


async def fill_store(store_path: Path, execution_id: str = "a") -> None:
    store = SqliteStore.at(store_path)
    await begin_execution(store, execution_id)
    await store.close()


def test_a_copy_that_sqlite_made_is_a_store_like_any_other(store_path: Path) -> None:
    """`VACUUM INTO` does not keep the journal mode, which readers and a writer share a file by."""
    asyncio.run(fill_store(store_path))
    copy = store_path.with_name("copy.db")
    database = apsw.Connection(str(store_path))
    database.execute("VACUUM INTO ?", (str(copy),))
    database.close()
    asyncio.run(fill_store(copy, "b"))
    database = apsw.Connection(str(copy))
    assert database.pragma("journal_mode") == "wal"
    assert database.execute("SELECT count(*) FROM event").get == 2
    database.close()


def test_a_connection_that_reads_cannot_write(store_path: Path) -> None:
    """Whatever a query says: what is written passes the writer, which alone knows the log and the versions."""
    asyncio.run(fill_store(store_path))
    connection = open_reader(str(store_path))
    with pytest.raises(apsw.ReadOnlyError):
        connection.execute("DELETE FROM event")
    assert connection.execute("SELECT count(*) FROM event").get == 1
    connection.close()


def test_a_file_that_somebody_else_holds(store_path: Path) -> None:
    make_store(store_path)
    database = apsw.Connection(str(store_path))
    database.execute("BEGIN IMMEDIATE")

    async def wait() -> None:
        store = SqliteStore.at(store_path, patience=0.01)
        with pytest.raises(StoreBusy, match="locked by another process"):
            await store.commit([new_append("a", 0)])
        assert await store.read("a") == []
        database.execute("ROLLBACK")
        assert await store.commit([new_append("a", 0)]) == [Committed(1)]
        await store.close()

    asyncio.run(wait())
    database.close()


@pytest.mark.parametrize("inline", ["commits", "nothing"])
def test_no_room_left_writes_nothing_and_what_was_there_is_safe(store_path: Path, inline: Inline) -> None:
    async def fill() -> None:
        store = SqliteStore.at(store_path, inline=inline, max_pages=60)
        await begin_execution(store, "a", Effects(status="running"))
        with pytest.raises(StoreFull, match="no room"):
            await store.commit([new_append("b", 0, *[LARGE] * 10), new_append("a", 1)])
        assert await store.execution("b") is None
        assert len(await store.read("a")) == 1
        assert await store.check(effects_in_row) == []
        assert await store.commit([new_append("a", 1)]) == [Committed(2)]
        await store.close()

    asyncio.run(fill())


def test_what_the_disk_refuses_is_told_with_what_to_do() -> None:
    """The file that readers share has no room, which SQLite calls an error of the disk; and a real one."""
    errors = []
    for code in (apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_READ):
        failure = apsw.IOError("disk I/O error")
        vars(failure)["extendedresult"] = code
        with pytest.raises(StoreError) as caught, ErrorTranslation("store.db"):
            raise failure
        errors.append(caught.value)
    assert [type(error) for error in errors] == [StoreFull, StoreError]
    assert all(error.hint for error in errors)


def test_when_there_is_no_room_all_of_a_group_fail_and_can_try_again(store_path: Path) -> None:
    async def fill() -> None:
        store = SqliteStore.at(store_path, inline="nothing", max_pages=60)
        commits = [store.commit([new_append(name, 0, *[LARGE] * 10)]) for name in "ab"]
        results = await asyncio.gather(*commits, return_exceptions=True)
        assert [type(result) for result in results] == [StoreFull, StoreFull]
        assert await store.commit([new_append("a", 0), new_append("b", 0)]) == [Committed(1)] * 2
        await store.close()

    asyncio.run(fill())


def test_deleting_gives_room_back(store_path: Path) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path)
        await begin_execution(store, "a", *[LARGE] * 50)
        await store.close()
        full = store_path.stat().st_size
        store = SqliteStore.at(store_path)
        await store.delete("a")
        await store.close()
        assert store_path.stat().st_size < full / 10

    asyncio.run(use())


def test_a_large_blob_is_not_in_memory_more_than_once(store_path: Path) -> None:
    async def use_store() -> None:
        store = SqliteStore.at(store_path)
        try:
            large = os.urandom(64 << 20)
            apsw.memory_high_water(True)
            before = apsw.memory_used()
            await store.put_blob("large", large)
            assert await store.blob("large", 50_000_000, 50_000_010) == large[50_000_000:50_000_010]
            assert apsw.memory_high_water() - before < len(large) // 4
            assert await store.blob("large") == large
        finally:
            await store.close()

    asyncio.run(use_store())


def test_damage_is_found(store_path: Path) -> None:
    async def write() -> None:
        store = SqliteStore.at(store_path)
        await begin_execution(store, "a", *[LARGE] * 20)
        await store.close()

    async def look() -> None:
        store = SqliteStore.at(store_path)
        assert [inconsistency.execution_id for inconsistency in await store.check(effects_in_row)][:1] == [""]
        await store.close()

    asyncio.run(write())
    with store_path.open("r+b") as file:
        file.seek(8192 * 3)
        file.write(b"\xff" * 8192 * 20)
    asyncio.run(look())
