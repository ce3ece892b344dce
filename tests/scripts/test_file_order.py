"""The order of the tests, in a project of two files."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CACHE = Path(".pytest_cache/v/file_order/seconds")
RECORD = Path("tests/file_seconds.json")


def order(folder: Path, *arguments: str) -> list[str]:
    """The tests of a folder in the order in which they ran."""
    command = [sys.executable, "-m", "pytest", "-v", "-p", "tests.file_order", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=True)
    return re.findall(r"test_\w\.py::test_\w", ran.stdout)


def write_seconds(path: Path, seconds: dict[str, float]) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(seconds))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = timeout(seconds)\n")
    for name in "abc":
        (tmp_path / f"test_{name}.py").write_text(f"def test_{name}(): pass\n")
    return tmp_path


def test_files_go_by_what_their_longest_test_took(folder: Path) -> None:
    cache = folder / CACHE
    write_seconds(cache, {"test_a.py": 0.9, "test_b.py": 2.0, "test_c.py": 30.0, "test_gone.py": 5.0})
    assert order(folder, "test_b.py", "test_a.py", "test_c.py") == [
        "test_c.py::test_c",
        "test_b.py::test_b",
        "test_a.py::test_a",
    ]
    seconds = json.loads(cache.read_text())
    assert seconds.pop("test_gone.py") == 5.0
    assert seconds == {"test_a.py": 0.0, "test_b.py": 0.0, "test_c.py": 0.0}


def test_the_files_of_a_package_stay_together(folder: Path) -> None:
    package = folder / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    for name in "de":
        (package / f"test_{name}.py").write_text(f"def test_{name}(): pass\n")
    record = {"test_a.py": 3.0, "package/test_e.py": 20.0, "test_c.py": 30.0}
    write_seconds(folder / RECORD, record)
    assert [name[5] for name in order(folder)] == ["c", "d", "e", "a", "b"]


def test_of_what_never_ran_those_with_a_timeout_go_first(folder: Path) -> None:
    waits = "import pytest\n@pytest.mark.timeout(300)\ndef test_c(): pass\n"
    (folder / "test_c.py").write_text(waits)
    assert order(folder, "-p", "xdist", "-n", "1")[0] == "test_c.py::test_c"
    assert order(folder)[0] == "test_a.py::test_a", "workers do not tell what their tests took"


def test_a_new_checkout_goes_by_the_record_and_then_by_what_it_took_there(folder: Path) -> None:
    write_seconds(folder / RECORD, {"test_b.py": 2.0, "test_c.py": 30.0})
    assert [name[5] for name in order(folder)] == ["c", "b", "a"]
    assert [name[5] for name in order(folder)] == ["a", "b", "c"], "here they took no time"


def test_the_record_is_written_when_it_is_asked_for(folder: Path) -> None:
    recorded = {"test_a.py": 4.0, "test_b.py": 2.0, "test_gone.py": 5.0}
    write_seconds(folder / RECORD, recorded)
    write_seconds(folder / CACHE, {"test_b.py": 3.0, "test_c.py": 0.5})
    order(folder, "test_c.py")
    assert json.loads((folder / RECORD).read_text()) == recorded
    order(folder, "--record-seconds", "test_c.py")
    assert json.loads((folder / RECORD).read_text()) == {"test_a.py": 4.0, "test_b.py": 3.0}
