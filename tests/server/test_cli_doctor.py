"""`noetl doctor` finds what is wrong, or about to be."""

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.cli.command.doctor import describe_database, describe_releases
from noetl.ports.http_api import StartExecution
from noetl.settings import installed_release
from noetl.stores.postgres.upkeep import DatabaseHealth
from tests.cli.command_line import environment, run
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


HEALTHY = DatabaseHealth(
    label="postgresql://db/flows",
    server="17.2",
    schema_version=1,
    current_version=1,
    clock_ahead=-0.2,
    weeks_missing=0,
    oldest_transaction=0,
    oldest_owner="",
    connections=20,
    max_connections=100,
    dead_ready_rows=7,
)


def test_all_that_a_database_is_looked_at_for_is_said() -> None:
    assert [(finding.level, finding.check, finding.message) for finding in describe_database(HEALTHY)] == [
        ("ok", "store", "postgresql://db/flows, PostgreSQL 17.2, schema 1"),
        ("ok", "database clock", "0.2 s behind this one"),
        ("ok", "partitions", "those of the weeks to come are there"),
        ("ok", "transactions", "none holds the feed back"),
        ("ok", "connections", "20 of 100 are in use"),
        ("ok", "vacuum", "dead rows of `ready`: 7"),
    ]


@pytest.mark.parametrize(
    ("change", "check", "message"),
    [
        ({"clock_ahead": 6.0}, "database clock", "6.0 s ahead of this one"),
        ({"clock_ahead": -6.0}, "database clock", "6.0 s behind this one"),
        ({"weeks_missing": 2}, "partitions", "2 weeks to come without one"),
        (
            {"oldest_transaction": 61.0, "oldest_owner": "report (ann)"},
            "transactions",
            "one of report (ann) is open for 61 s",
        ),
        ({"connections": 91}, "connections", "91 of 100 are in use"),
        ({"dead_ready_rows": 100_001}, "vacuum", "dead rows of `ready`: 100,001"),
    ],
)
def test_what_will_be_wrong_with_a_database_is_a_warning_with_what_to_do(
    change: dict[str, Any], check: str, message: str
) -> None:
    (warning,) = [
        finding for finding in describe_database(replace(HEALTHY, **change)) if finding.level != "ok"
    ]
    assert (warning.level, warning.check, warning.message) == ("warning", check, message)
    assert warning.hint


def test_what_is_soon_wrong_is_not_said_too_early() -> None:
    busy = replace(HEALTHY, clock_ahead=4.9, oldest_transaction=59, oldest_owner="x (y)", connections=90)
    assert {finding.level for finding in describe_database(busy)} == {"ok"}


def test_releases_are_compared() -> None:
    here = installed_release()
    assert describe_releases(here, [here, here]).level == "ok"
    other = describe_releases(here, ["9.1", here, "9.0", "9.1"])
    assert (other.level, other.message) == ("warning", f"the server is {here}, workers 9.0, workers 9.1")
    assert describe_releases("9.0", []).message == f"the server is 9.0, this command {here}"


OF_ANOTHER_RELEASE = """\
import sys
from noetl import settings
settings.installed_release = lambda: "99.0"
from noetl.cli import main
main(["worker", "start", "--server", sys.argv[1]])
"""


def test_a_worker_of_another_release_works_and_the_doctor_says_so(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False) as server:
        env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
        worker_token = (server.home / "worker.token").read_text().strip()
        server.client.register(GREET)
        with subprocess.Popen(
            [sys.executable, "-c", OF_ANOTHER_RELEASE, server.url],
            cwd=tmp_path,
            env=environment(tmp_path, {"NOETL_TOKEN": worker_token, "HOME": str(tmp_path / "user")}),
            stderr=subprocess.DEVNULL,
        ) as worker:
            try:
                started = server.client.start(StartExecution(path="examples/greet"))
                assert server.client.wait(started.execution_id).status == "completed"
                level, message = findings(tmp_path, env=env)["releases"]
                assert (level, message.endswith("workers 99.0")) == ("warning", True)
            finally:
                worker.terminate()
        text = run("doctor", cwd=tmp_path, env=env).out
        assert "ok      releases: server, workers and this command are " in text
