"""What holds for all tests of tools."""

from pathlib import Path

import pytest

from tests.tools.sql_calls import SqlDatabase, sqlite_at


@pytest.fixture(autouse=True)
def forgetting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds live as long as the process: no other test shall see those of this one."""
    monkeypatch.setattr("noetl.tools.kind_registry._declared", {})


@pytest.fixture
def db(tmp_path: Path) -> SqlDatabase:
    """A file of SQLite; the tests of other databases have their own."""
    return sqlite_at(tmp_path)
