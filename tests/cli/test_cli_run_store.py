"""Where `noetl run` keeps executions, and which of them it finds again."""

import sqlite3
from pathlib import Path

import pytest

from tests.cli.command_line import run


def test_an_unknown_execution_in_a_store_that_is_there(folder: Path) -> None:
    assert run("run", "greet.yaml", "-q", cwd=folder).code == 0
    ran = run("run", "--resume", "nothing", cwd=folder)
    assert ran.code == 2
    assert "there is no execution `nothing`" in ran.err
    assert run("run", "--resume", "latest", "-q", cwd=folder).code == 0


def test_a_key_starts_an_execution_once(folder: Path) -> None:
    first, second, other = (
        run("run", "greet.yaml", "-q", "-o", "json", "--idempotency-key", key, cwd=folder).json
        for key in ("monday", "monday", "tuesday")
    )
    assert first == second
    assert other["execution_id"] != first["execution_id"]
    (folder / "other.yaml").write_text((folder / "greet.yaml").read_text().replace("path: ", "path: other/"))
    wrong = run("run", "other.yaml", "-o", "json", "--idempotency-key", "monday", cwd=folder)
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "refused")
    assert first["execution_id"] in wrong.json["error"]["message"]
    wrong = run(
        *("run", "greet.yaml", "-o", "json", "--idempotency-key", "monday", "--set", "name=Other"), cwd=folder
    )
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "refused")
    assert "`monday`" in wrong.json["error"]["message"]
    assert "another workload" in wrong.json["error"]["message"]
    listed = run("executions", "list", "-o", "json", cwd=folder).json["executions"]
    assert [execution["execution_id"] for execution in listed] == [
        other["execution_id"],
        first["execution_id"],
    ]


def test_home_and_store_are_where_they_are_said_to_be(folder: Path) -> None:
    assert run("run", "greet.yaml", "-q", "--home", "elsewhere", cwd=folder).code == 0
    assert (folder / "elsewhere" / "store.db").is_file()
    assert run("run", "greet.yaml", "-q", cwd=folder, env={"NOETL_STORE": "sqlite:///one.db"}).code == 0
    assert (folder / "one.db").is_file()
    assert not (folder / ".noetl").exists()
    ran = run("run", "failing.yaml", "-q", "--store", "sqlite:///one.db", cwd=folder)
    assert " --store sqlite:///one.db" in ran.err
    wrong = run("run", "greet.yaml", "--store", "mysql://x", "-o", "json", cwd=folder)
    assert (wrong.code, wrong.json["error"]["code"]) == (2, "store-url")


@pytest.mark.parametrize("home", ["greet.yaml", "greet.yaml/x"])
def test_a_home_that_cannot_be_made_is_told_with_what_to_do(folder: Path, home: str) -> None:
    ran = run("run", "greet.yaml", "--home", home, "-o", "json", cwd=folder)
    assert (ran.code, ran.json["error"]["code"]) == (3, "store")
    assert "is no folder" in ran.json["error"]["message"]
    assert "--home" in ran.json["error"]["hint"]


def test_a_store_that_cannot_be_used_is_the_environments_fault(folder: Path) -> None:
    (folder / ".noetl").mkdir()
    (folder / ".noetl" / "store.db").write_text("this is no database, but it is long enough for one\n" * 50)
    ran = run("run", "greet.yaml", "-o", "json", cwd=folder)
    assert (ran.code, ran.json["error"]["code"]) == (3, "store")
    assert run("run", "greet.yaml", cwd=folder).code == 3


def test_a_damaged_store_is_told_without_a_traceback(folder: Path) -> None:
    assert run("run", "greet.yaml", "-q", cwd=folder).code == 0
    store = folder / ".noetl" / "store.db"
    pages = store.read_bytes()
    store.write_bytes(pages[: 2 * 8192] + b"\xff" * (len(pages) - 2 * 8192))
    ran = run("run", "greet.yaml", "-q", cwd=folder)
    assert (ran.code, ran.out) == (3, "")
    assert ran.err.splitlines() == [
        f"noetl: {store} is damaged: database disk image is malformed",
        "  hint: restore it from a copy",
    ]


def test_old_executions_are_forgotten(folder: Path) -> None:
    old = run("run", "greet.yaml", "-q", "-o", "json", cwd=folder).json["execution_id"]
    with sqlite3.connect(folder / ".noetl" / "store.db") as store:
        store.execute("UPDATE execution SET ended_at = ended_at - 8 * 86400000000")
    store.close()
    resumed = ["run", "--resume", old, "-q"]
    assert run(*resumed, cwd=folder, env={"NOETL_KEEP_DAYS": "0"}).code == 0
    assert run(*resumed, cwd=folder, env={"NOETL_KEEP_DAYS": "7"}).code == 0
    assert run(*resumed, cwd=folder).code == 2
