import asyncio
import os
from pathlib import Path

import pytest

from noetl.ports.results import ResultDamaged, ResultError
from noetl.stores.results.file_backend import FileResults
from noetl.testing.results_suite import EXECUTION, OTHER_EXECUTION, result_key_of


def test_a_changed_file_is_noticed(tmp_path: Path) -> None:
    results, key = FileResults(tmp_path), result_key_of(EXECUTION, b"good")
    asyncio.run(results.put(key, b"good"))
    (tmp_path / key).write_bytes(b"evil")
    with pytest.raises(ResultDamaged, match="damaged"):
        asyncio.run(results.get(key))


def test_half_a_file_is_written_anew(tmp_path: Path) -> None:
    results, key = FileResults(tmp_path), result_key_of(EXECUTION, b"good")
    asyncio.run(results.put(key, b"good"))
    (tmp_path / key).write_bytes(b"g")
    asyncio.run(results.put(key, b"good"))
    assert asyncio.run(results.get(key)) == b"good"


def test_a_folder_that_cannot_be_made_is_an_error_of_ours(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    results = FileResults(tmp_path / "file")
    with pytest.raises(ResultError, match="file"):
        asyncio.run(results.put(result_key_of(EXECUTION, b"1"), b"1"))


def test_nothing_else_is_left_behind(tmp_path: Path) -> None:
    results = FileResults(tmp_path)
    asyncio.run(results.put(result_key_of(EXECUTION, b"1"), b"1"))
    assert [path.name for path in (tmp_path / EXECUTION).iterdir()] == [
        result_key_of(EXECUTION, b"1").rpartition("/")[2]
    ]


def test_what_a_crash_left_is_swept_away(tmp_path: Path) -> None:
    results = FileResults(tmp_path)
    asyncio.run(results.put(result_key_of(EXECUTION, b"1"), b"1"))
    left = [tmp_path / EXECUTION / name for name in (".draft-1", ".0123")]
    for path in left:
        path.write_bytes(b"half")
        os.utime(path, (1_000, 1_000))
    fresh = tmp_path / EXECUTION / ".draft-2"
    fresh.write_bytes(b"being written")
    assert asyncio.run(results.sweep(fresh.stat().st_mtime - 60)) == 2
    assert not any(path.exists() for path in left)
    assert fresh.exists()
    assert asyncio.run(results.get(result_key_of(EXECUTION, b"1"))) == b"1"


def test_a_copy_takes_no_room(tmp_path: Path) -> None:
    results = FileResults(tmp_path)
    asyncio.run(results.put(result_key_of(EXECUTION, b"1"), b"1"))
    asyncio.run(results.copy(result_key_of(EXECUTION, b"1"), result_key_of(OTHER_EXECUTION, b"1")))
    assert (tmp_path / result_key_of(EXECUTION, b"1")).samefile(
        tmp_path / result_key_of(OTHER_EXECUTION, b"1")
    )
    asyncio.run(results.expire(result_key_of(EXECUTION, b"1"), "2024-05-01T12:00:00Z"))
    assert asyncio.run(results.get(result_key_of(OTHER_EXECUTION, b"1"))) == b"1"
