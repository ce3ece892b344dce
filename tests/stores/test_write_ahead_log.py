"""The log that commits are written to."""

import asyncio
import shutil
from pathlib import Path

from noetl.ports.store import Effects
from noetl.stores.sqlite.store import SqliteStore
from noetl.stores.sqlite.writer import CHECKPOINT_PAGES, LOG_ROOM
from noetl.testing.store.store_fixtures import begin_execution, commit_accepted, effects_in_row, new_append

NOTHING = Effects()
PAGE = 8_192


def log_size(store_path: Path) -> int:
    return store_path.with_name("store.db-wal").stat().st_size


def test_commits_find_room_in_the_log(tmp_path: Path) -> None:
    async def use() -> set[int]:
        store = SqliteStore.at(tmp_path / "store.db")
        await begin_execution(store, "a")
        sizes = set()
        for version in range(1, 200):
            await commit_accepted(store, new_append("a", version))
            sizes.add(log_size(tmp_path / "store.db"))
        await store.close()
        return sizes

    sizes = asyncio.run(use())
    # each commit writes at least two pages: without room in advance there would be as many sizes as commits
    assert len(sizes) <= 2 + 200 * 4 * PAGE // LOG_ROOM
    assert max(sizes) >= 200 * 2 * PAGE


def test_a_store_whose_log_has_room_left_opens_with_everything(tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()

    async def write() -> None:
        store = SqliteStore.at(tmp_path / "store.db")
        await begin_execution(store, "a")
        for version in range(1, 50):
            await commit_accepted(store, new_append("a", version))
        for file in tmp_path.glob("store.db*"):
            if file.suffix != ".db-shm":  # as after the loss of power: files alone, nobody closed them
                shutil.copy(file, copy)
        await store.close()

    async def read() -> None:
        store = SqliteStore.at(copy / "store.db")
        assert len(await store.read("a")) == 50
        await commit_accepted(store, new_append("a", 50))
        assert await store.check(effects_in_row) == []
        await store.close()

    asyncio.run(write())
    assert log_size(copy / "store.db") > 50 * 2 * PAGE
    asyncio.run(read())


def test_the_log_is_emptied_in_time(tmp_path: Path) -> None:
    async def use() -> None:
        store = SqliteStore.at(tmp_path / "store.db")
        await begin_execution(store, "a")
        for part in range(40):
            first = 1 + part * 1_000
            await commit_accepted(store, new_append("a", first, *[NOTHING] * 1_000))
        # 40,000 rows take more pages than the log may have before it begins again
        assert (tmp_path / "store.db").stat().st_size > 100 * PAGE
        assert log_size(tmp_path / "store.db") < 2 * CHECKPOINT_PAGES * PAGE
        await store.close()

    asyncio.run(use())
