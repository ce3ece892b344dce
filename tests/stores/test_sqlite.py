from pathlib import Path

import pytest

from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.store_suite import SharedStoreSuite, StoreOpener, StoreSuite


class TestFile(SharedStoreSuite):
    """As `noetl run` uses it: commits in the loop's own thread."""

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> StoreOpener:
        return lambda: SqliteStore.at(tmp_path / "store.db")


class TestFileOfServer(SharedStoreSuite):
    """As a server uses it: everything in the writer's thread."""

    @pytest.fixture
    def open_store(self, tmp_path: Path) -> StoreOpener:
        return lambda: SqliteStore.at(tmp_path / "store.db", inline="nothing")


class TestMemory(StoreSuite):
    @pytest.fixture
    def open_store(self) -> StoreOpener:
        return SqliteStore.in_memory
