"""Nobody but its owner can read or lock what lies in a home."""

import asyncio
import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest

from noetl.ports.results import ResultError
from noetl.ports.store import StoreUnusable
from noetl.stores import open_store
from noetl.stores.home_folder import Home
from noetl.stores.results.database_backend import DatabaseResults
from noetl.stores.results.memory_backend import MemoryResults
from noetl.stores.sqlite.store import SqliteStore
from noetl.testing.results_suite import EXECUTION
from noetl.testing.store.store_fixtures import begin_execution
from tests.file_rights import rights_below

PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: private, path: tests/private}
workflow:
  - step: start
    tool:
      - {name: prints, kind: python, code: "print('private'); result = 'x' * 100_000"}
      - {name: streams, kind: shell, command: "head -c 200000 /dev/zero | tr '\\\\0' x"}
      - {name: packs, kind: python, code: "result = 'y' * 100_000", spec: {result: {compression: gzip}}}
      - {name: names, kind: artifact, action: put, key: report, content: "{{ _prev }}"}
"""


def noetl(folder: Path, *words: str, umask: int = 0, stdin: str = "") -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "noetl", *words],
        cwd=folder, umask=umask, input=stdin, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def open_up(folder: Path) -> None:
    """As an earlier version left it."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


def assert_private(folder: Path) -> None:
    rights = rights_below(folder)
    assert rights == {name: "0700" if (folder / name).is_dir() else "0600" for name in rights}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "p.yaml").write_text(PLAYBOOK)
    return tmp_path


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_a_home_and_all_that_is_in_it_is_its_owners_whatever_the_umask(project: Path, umask: int) -> None:
    noetl(project, "run", "p.yaml", "-q", umask=umask)
    words = ("credential", "set", "c", "--kind", "bearer", "--stdin")
    noetl(project, *words, umask=umask, stdin='{"token": "abcdefgh"}')
    home = project / ".noetl"
    assert {"store.db", "owners.lock", "key", "logs", "results"} <= {path.name for path in home.iterdir()}
    assert len([path for path in (home / "results").rglob("*") if path.is_file()]) >= 3
    assert_private(home)


@pytest.mark.parametrize("words", [("run", "p.yaml", "-q"), ("executions", "list"), ("credential", "list")])
def test_a_home_that_others_could_read_is_taken_from_them(project: Path, words: tuple[str, ...]) -> None:
    noetl(project, "run", "p.yaml", "-q", "--home", "kept")
    home = project / "kept"
    (home / "key").write_text("A" * 43)
    open_up(home)
    noetl(project, *words, "--home", "kept")
    assert_private(home)


def test_a_store_in_a_file_of_its_own_is_private_with_what_lies_beside_it(project: Path) -> None:
    noetl(project, "run", "p.yaml", "-q", "--store", "sqlite:///runs.db")
    open_up(project)
    noetl(project, "executions", "list", "--store", "sqlite:///runs.db")
    assert_private(project / "runs.db.noetl")
    rights = rights_below(project)
    assert (rights["."], rights["runs.db"], rights["p.yaml"]) == ("0755", "0600", "0644")


def test_the_log_of_a_store_and_its_index_are_private_while_it_is_open(tmp_path: Path) -> None:
    async def look() -> None:
        tmp_path.chmod(0o700)
        for execution_id in ("made", "there already"):
            store = SqliteStore.at(tmp_path / "store.db")
            await begin_execution(store, execution_id)
            assert {path.name for path in tmp_path.iterdir()} == {"store.db", "store.db-wal", "store.db-shm"}
            assert_private(tmp_path)
            for path in tmp_path.iterdir():
                path.chmod(0o644)
            other = SqliteStore.at(tmp_path / "store.db")
            assert_private(tmp_path)
            await other.close()
            await store.close()
            (tmp_path / "store.db").chmod(0o644)

    asyncio.run(look())


def test_a_folder_with_other_things_in_it_keeps_its_rights(project: Path) -> None:
    project.chmod(0o755)
    (project / "p.yaml").chmod(0o644)
    noetl(project, "run", "p.yaml", "-q", "--home", ".")
    noetl(project, "run", "p.yaml", "-q", "--home", ".")
    rights = rights_below(project)
    assert (rights["."], rights["p.yaml"]) == ("0755", "0644")
    assert (rights["store.db"], rights["owners.lock"], rights["results"], rights["logs"]) == (
        "0600", "0600", "0700", "0700",
    )  # fmt: skip


def test_an_empty_folder_becomes_a_private_home_unless_everybody_may_write_in_it(tmp_path: Path) -> None:
    for mode, after in ((0o755, "0700"), (0o1777, "1777")):
        folder = tmp_path / format(mode, "o")
        folder.mkdir()
        folder.chmod(mode)
        asyncio.run(open_store(f"sqlite:///{folder}/store.db").close())
        assert rights_below(folder) == {".": after, "store.db": "0600"}


def test_what_a_link_in_a_home_names_keeps_its_rights(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("")
    (tmp_path / "theirs").chmod(0o644)
    home = Home(tmp_path / ".noetl")
    home.make()
    home.results.mkdir(mode=0o755)
    (home.results / "link").symlink_to(tmp_path / "theirs")
    home.restrict()
    assert rights_below(tmp_path)["theirs"] == "0644"
    assert rights_below(home.folder)["results"] == "0700"


def test_a_database_of_another_program_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    database = apsw.Connection(str(path))
    database.execute("CREATE TABLE theirs (a)")
    database.close()
    path.chmod(0o644)
    with pytest.raises(StoreUnusable):
        SqliteStore.at(path)
    assert rights_below(tmp_path)["theirs.db"] == "0644"


def test_results_in_memory_have_a_private_folder_for_files_which_goes_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o700)
    results = MemoryResults()
    assert results.scratch(EXECUTION).parent == tmp_path
    assert_private(tmp_path)
    del results
    gc.collect()
    assert os.listdir(tmp_path) == []


def test_results_on_their_way_lie_in_a_folder_of_this_user_among_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o700)

    async def look() -> None:
        store = SqliteStore.in_memory()
        results = DatabaseResults(store)
        folder = results.scratch(EXECUTION)
        assert_private(tmp_path)
        folder.rmdir()
        folder.parent.rename(tmp_path / "elsewhere")
        folder.parent.symlink_to(tmp_path / "elsewhere")  # as another user would, to see what we write
        with pytest.raises(ResultError, match="no folder of this user's"):
            results.scratch(EXECUTION)
        assert os.listdir(tmp_path / "elsewhere") == []
        await store.close()

    asyncio.run(look())
