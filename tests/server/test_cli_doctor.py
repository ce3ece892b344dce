"""`noetl doctor` finds what is wrong, or about to be."""

import sqlite3
from pathlib import Path
from typing import Any

from noetl.ports.http_api import StartExecution
from tests.cli.command_line import run
from tests.server.server_process import FAILING, GREET, kill, server_process


def findings(folder: Path, *flags: str, code: int = 0, env: dict[str, str] | None = None) -> dict[str, Any]:
    """What it says of each thing, but for those that are in order."""
    ran = run("doctor", *flags, "-o", "json", cwd=folder, env=env)
    assert ran.code == code, ran
    assert ran.json["ok"] is (code == 0)
    return {
        finding["check"]: (finding["level"], finding["message"])
        for finding in ran.json["findings"]
        if finding["level"] != "ok"
    }


def test_where_nothing_is_that_is_said(tmp_path: Path) -> None:
    ran = run("doctor", cwd=tmp_path)
    assert (ran.code, "there are no executions here yet" in ran.out) == (0, True)


def test_a_home_that_is_in_order_and_one_whose_playbook_keeps_failing(tmp_path: Path) -> None:
    (tmp_path / "greet.yaml").write_text(GREET)
    (tmp_path / "failing.yaml").write_text(FAILING)
    assert run("run", "greet.yaml", cwd=tmp_path).code == 0
    assert findings(tmp_path) == {}
    assert "ok      clock: " in run("doctor", cwd=tmp_path).out
    for _ in range(3):
        assert run("run", "failing.yaml", cwd=tmp_path).code == 1
    assert findings(tmp_path) == {"failures": ("warning", "the last 3 executions of examples/failing failed")}
    assert run("executions", "retry", "latest", "--no-run", cwd=tmp_path).code == 0
    interrupted = findings(tmp_path)["executions"]
    assert interrupted[0] == "warning"
    assert "1 are running, and no process runs them" in interrupted[1]
    with sqlite3.connect(tmp_path / ".noetl" / "store.db") as store:
        store.execute("UPDATE event SET ts = ts + 1000000000000")
    assert findings(tmp_path, code=1)["clock"][0] == "error"


def test_a_damaged_store_is_said_and_one_that_is_none_is_the_environment(tmp_path: Path) -> None:
    (tmp_path / "greet.yaml").write_text(GREET)
    assert run("run", "greet.yaml", cwd=tmp_path).code == 0
    file = tmp_path / ".noetl" / "store.db"
    with sqlite3.connect(file) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(file.read_bytes())
    content[8192 * 2 : 8192 * 2 + 64] = b"x" * 64
    file.write_bytes(content)
    assert run("doctor", cwd=tmp_path).code in (1, 3)
    file.write_bytes(b"not a store" * 1_000)
    assert run("doctor", cwd=tmp_path).code == 3


def test_runs_that_no_worker_takes_and_a_server_that_was_killed(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False) as server:
        env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
        assert findings(tmp_path, env=env) == {}
        server.client.register(GREET)
        server.client.start(StartExecution(path="examples/greet"))
        level, message = findings(tmp_path, env=env)["workers"]
        assert (level, message.startswith("1 run of the pool default waits for")) == ("warning", True)
        assert "no worker serves the pool `default`" in message
        assert "workers" in findings(tmp_path, "--home", str(server.home))
        text = run("executions", "show", "latest", cwd=tmp_path, env=env).out
        assert "\nwaiting\n  start: no worker serves the pool `default`\n" in text
        local = run("executions", "show", "latest", "--home", str(server.home), cwd=tmp_path).out
        assert "\nwaiting\n  start: waits for a worker of the pool `default`; `noetl doctor` says" in local
        kill(server)
    document = run(
        "executions", "show", "latest", "-o", "json", "--home", str(server.home), cwd=tmp_path
    ).json
    assert document["waiting"] == []  # nobody runs it: that is what is wrong
    assert findings(tmp_path, "--home", str(server.home))["server"][0] == "warning"
    gone = run("doctor", "-o", "json", cwd=tmp_path, env=env)
    assert (gone.code, gone.json["error"]["code"]) == (3, "server-unreachable")
