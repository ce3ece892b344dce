import asyncio
from pathlib import Path

import pytest

from noetl.ports.results import ResultDamaged, ResultError
from noetl.stores.results import FileResults
from noetl.testing.results_suite import ONE, Opener, ResultSuite, key_of


class TestFileResults(ResultSuite):
    @pytest.fixture
    def open_results(self, tmp_path: Path) -> Opener:
        return lambda: FileResults(tmp_path / "results")


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    results, key = FileResults(tmp_path), key_of(ONE, b"good")
    asyncio.run(results.put(key, b"good"))
    (tmp_path / key).write_bytes(b"evil")
    with pytest.raises(ResultDamaged, match="damaged"):
        asyncio.run(results.get(key))


def test_half_a_file_is_written_anew(tmp_path: Path) -> None:
    results, key = FileResults(tmp_path), key_of(ONE, b"good")
    asyncio.run(results.put(key, b"good"))
    (tmp_path / key).write_bytes(b"g")
    asyncio.run(results.put(key, b"good"))
    assert asyncio.run(results.get(key)) == b"good"


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    results = FileResults(tmp_path / "file")
    with pytest.raises(ResultError, match="file"):
        asyncio.run(results.put(key_of(ONE, b"1"), b"1"))


def test_nothing_else_is_left_behind(tmp_path: Path) -> None:
    results = FileResults(tmp_path)
    asyncio.run(results.put(key_of(ONE, b"1"), b"1"))
    assert [path.name for path in (tmp_path / ONE).iterdir()] == [key_of(ONE, b"1").rpartition("/")[2]]
