"""Group commit: who waits for whom."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from noetl.ports.store import Append, Committed, Effects, Row, StoreClosed
from noetl.stores.sqlite import writer
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store.store_fixtures import begin_execution, effects_in_row, new_append


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def other(store_path: Path) -> Iterator[apsw.Connection]:
    """Another program with the file open."""
    asyncio.run(SqliteStore.at(store_path).close())
    connection = apsw.Connection(str(store_path))
    yield connection
    connection.close()


def writers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == writer.THREAD]


async def turns(count: int = 20) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_an_idle_store_commits_where_it_is_called(store_path: Path) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path)
        await begin_execution(store, "a")
        assert writers() == []
        await store.close()

    asyncio.run(use())


def test_a_server_commits_in_a_thread_that_ends_with_the_store(store_path: Path) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path, inline="nothing")
        await begin_execution(store, "a")
        assert len(writers()) == 1
        await store.close()
        assert writers() == []

    asyncio.run(use())


def test_a_server_commits_where_it_is_called_as_long_as_the_disk_is_quick(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path, inline="quick commits")
        version = 0

        async def is_inline() -> bool:
            nonlocal version
            commit = asyncio.create_task(store.commit([new_append("a", version)]))
            version += 1
            await asyncio.sleep(0)
            at_once = commit.done()
            assert await commit == [Committed(version)]
            return at_once

        monkeypatch.setattr(writer, "QUICK_SECONDS", 60.0)
        assert [await is_inline() for _ in range(12)] == [False] * 10 + [True] * 2
        monkeypatch.setattr(writer, "QUICK_SECONDS", 0.0)
        assert await is_inline()  # nobody knew
        monkeypatch.setattr(writer, "QUICK_SECONDS", 60.0)
        assert [await is_inline() for _ in range(11)] == [False] * 10 + [True]
        await store.close()

    asyncio.run(use())


def test_the_loop_goes_on_while_another_process_writes(store_path: Path, other: apsw.Connection) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path)
        await begin_execution(store, "a")
        other.execute("BEGIN IMMEDIATE")
        waiting = [asyncio.create_task(store.commit([new_append("a", version)])) for version in (1, 2, 3)]
        await turns()
        assert not any(task.done() for task in waiting)
        assert len(await store.read("a")) == 1
        other.execute("COMMIT")
        assert await asyncio.gather(*waiting) == [[Committed(2)], [Committed(3)], [Committed(4)]]
        assert await store.check(effects_in_row) == []
        await store.close()

    asyncio.run(use())


def test_a_commit_waits_for_its_turn_behind_longer_work(store_path: Path) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path)
        await begin_execution(store, "a")
        loop, reached, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

        def slow(row: Row) -> Effects:
            loop.call_soon_threadsafe(reached.set)
            assert go_on.wait(30)
            return effects_in_row(row)

        work = asyncio.create_task(store.rebuild(slow))
        await reached.wait()
        commit = asyncio.create_task(store.commit([new_append("a", 1)]))
        await turns()
        assert not commit.done()
        assert len(await store.read("a")) == 1
        go_on.set()
        assert (await work, await commit) == (1, [Committed(2)])
        await store.close()

    asyncio.run(use())


def test_what_waits_together_is_committed_together(store_path: Path, other: apsw.Connection) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path, inline="nothing")
        other.execute("BEGIN IMMEDIATE")
        waiting = [asyncio.create_task(store.commit([new_append(f"x{number}", 0)])) for number in range(50)]
        await turns()
        other.execute("COMMIT")
        await asyncio.gather(*waiting)
        await store.close()
        assert other.execute("SELECT count(*) FROM event").get == 50
        # each commit would have written several pages
        _, pages, _ = other.execute("PRAGMA wal_checkpoint").get
        assert pages < 50

    asyncio.run(use())


def test_when_too_much_waits_callers_wait_and_keep_their_order(
    store_path: Path, other: apsw.Connection
) -> None:
    body = b"x" * (writer.QUEUE_BYTES // 4)

    def large(version: int) -> Append:
        row = Row(version + 1, 1, 1, 1, body, True)
        return Append(execution_id="a", expected_version=version, rows=[row])

    async def use() -> None:
        store = SqliteStore.at(store_path, inline="nothing")
        other.execute("BEGIN IMMEDIATE")
        waiting = [asyncio.create_task(store.commit([large(version)])) for version in range(9)]
        await turns()
        assert store.queued_bytes <= writer.QUEUE_BYTES
        small = asyncio.create_task(store.commit([new_append("b", 0)]))
        await turns()
        other.execute("COMMIT")
        assert await asyncio.gather(*waiting) == [[Committed(version)] for version in range(1, 10)]
        assert await small == [Committed(1)]
        feed = await store.feed()
        assert [entry.execution_id for entry in feed] == ["a"] * 9 + ["b"]
        assert store.queued_bytes == 0
        await store.close()

    asyncio.run(use())


def test_one_append_larger_than_the_queue_goes_through(store_path: Path) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path, inline="nothing")
        row = Row(1, 1, 1, 1, b"x" * (writer.QUEUE_BYTES + 1), True)
        assert await store.commit([Append(execution_id="a", expected_version=0, rows=[row])]) == [
            Committed(1)
        ]
        await store.close()

    asyncio.run(use())


def test_a_caller_that_gave_up_waiting_for_room_appended_nothing(
    store_path: Path, other: apsw.Connection
) -> None:
    row = Row(1, 1, 1, 1, b"x" * writer.QUEUE_BYTES, True)

    async def use() -> None:
        store = SqliteStore.at(store_path, inline="nothing")
        other.execute("BEGIN IMMEDIATE")
        first = asyncio.create_task(store.commit([Append(execution_id="a", expected_version=0, rows=[row])]))
        await turns()
        second = asyncio.create_task(store.commit([new_append("b", 0)]))
        third = asyncio.create_task(store.commit([new_append("c", 0)]))
        await turns()
        second.cancel()
        await turns()
        other.execute("COMMIT")
        assert await first == await third == [Committed(1)]
        assert await store.execution("b") is None
        await store.close()

    asyncio.run(use())


def test_who_comes_while_the_store_closes_is_told(store_path: Path, other: apsw.Connection) -> None:
    async def use() -> None:
        store = SqliteStore.at(store_path, inline="nothing")
        other.execute("BEGIN IMMEDIATE")
        early = asyncio.create_task(store.commit([new_append("a", 0)]))
        await turns()
        closing = asyncio.create_task(store.close())
        await turns()
        with pytest.raises(StoreClosed):
            await store.commit([new_append("b", 0)])
        other.execute("COMMIT")
        await closing
        assert await early == [Committed(1)]

    asyncio.run(use())


def test_a_loop_that_ends_without_closing_leaves_what_was_acknowledged(store_path: Path) -> None:
    async def use() -> None:
        await begin_execution(SqliteStore.at(store_path, inline="nothing"), "a")

    async def look() -> None:
        store = SqliteStore.at(store_path)
        assert len(await store.read("a")) == 1
        await store.close()

    asyncio.run(use())
    asyncio.run(look())
