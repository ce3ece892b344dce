"""Commands, a server and workers on a store in PostgreSQL: real processes, and a database that comes and goes."""

import json
import subprocess
import urllib.error
import urllib.request
from itertools import count
from pathlib import Path

import duckdb
import psycopg
import pytest

import noetl
from bench.postgres_server import PostgresServer, postgres_cluster
from bench.s3_server import S3Server
from noetl.client.http_client import Client
from noetl.ports.http_api import StartExecution
from tests.cli.command_line import CompletedCommand, environment, run
from tests.server.server_process import (
    GREET,
    PARENT,
    WAITING,
    ServerProcess,
    command,
    server_process,
)

_numbers = count(1)
FSYNC = {"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on"}
COUNTING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: counting, path: examples/counting}
workload: {count: 5}
workflow:
- step: each
  loop: {in: "{{ range(workload.count) | list }}", iterator: n}
  tool:
  - {name: pause, kind: wait, seconds: 0.2}
  - {name: work, kind: python, args: {n: "{{ n }}"}, code: "def main(n):\\n    return n * n"}
  next: {arcs: [{step: total, args: {rows: "{{ event.result }}"}}]}
- step: total
  tool: {kind: noop, args: {sum: "{{ args.rows | sum }}"}}
"""


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    """A store that is not there yet."""
    return postgres.dsn(schema=f"server_{next(_numbers)}")


def client_of(server: ServerProcess) -> Client:
    client = server.client
    for text in (GREET, PARENT, COUNTING):
        client.register(text)
    return client


def start(client: Client, path: str, **workload: int) -> str:
    return client.start(StartExecution(path=path, workload=dict(workload))).execution_id


def test_every_command_works_on_a_database(tmp_path: Path, url: str) -> None:
    (tmp_path / "greet.yaml").write_text(GREET)
    store = ("--store", url)

    def noetl(*words: str, code: int = 0) -> str:
        done = run(*words, *store, cwd=tmp_path)
        assert done.code == code, done.err
        return done.out

    assert "new" in noetl("store", "migrate")
    assert "nothing to do" in noetl("store", "migrate")
    ended = json.loads(noetl("run", "greet.yaml", "-o", "json"))
    assert ended["status"] == "completed"
    name = ended["execution_id"]
    assert name in noetl("executions", "list")
    assert "Hello World" in noetl("executions", "show", name)
    assert "hello World" in noetl("executions", "logs", name)
    assert "PlaybookExecutionRequested" in noetl("executions", "events", name)
    assert "1 execution, 0 problems" in noetl("store", "check")
    assert "0 problems" in noetl("store", "check", "--rebuild")
    exported = json.loads(noetl("store", "export", "archive", "-o", "json"))
    assert (exported["executions"], exported["events"]) == (
        1,
        json.loads(noetl("executions", "events", name, "-o", "json"))["events"][-1]["seq"],
    )
    assert json.loads(noetl("store", "export", "archive", "-o", "json"))["events"] == 0
    again = json.loads(noetl("run", "greet.yaml", "-o", "json"))["execution_id"]
    assert json.loads(noetl("store", "export", "archive", "-o", "json"))["executions"] == 1
    events = duckdb.read_parquet(f"{tmp_path}/archive/event_log/*/*.parquet")
    rows = events.aggregate("execution_id, count(*), max(seq)").fetchall()
    assert sorted(row[0] for row in rows) == sorted([name, again])
    assert all(count == last for _, count, last in rows)
    pruned = json.loads(noetl("store", "prune", "--days", "36500", "-y", "-o", "json"))
    assert (pruned["executions"], pruned["orphans"]) == ([], {"bodies": 0, "bytes": 0, "unknown": 0})
    doctor = noetl("doctor")
    assert "PostgreSQL" in doctor
    assert "error" not in doctor
    settings = run("config", "show", cwd=tmp_path, env={"NOETL_STORE": url})
    assert "postgresql://" in settings.out
    assert "correct" not in doctor + settings.out, "the password is not shown"
    done = run("store", "backup", "copy.tar", *store, cwd=tmp_path)
    assert (done.code, "pg_dump" in done.err) == (2, True)
    noetl("credential", "set", "api", "--kind", "bearer", "--field", "token=secret-token-1")
    assert "api" in noetl("credential", "list")
    assert json.loads(noetl("store", "prune", "--days", "1", "-o", "json"))["executions"] == []
    assert name in noetl("executions", "prune", "--before", "0s", "--dry-run")
    noetl("executions", "prune", "--before", "0s", "-y")
    assert name not in noetl("executions", "list")
    assert "0 executions, 0 problems" in noetl("store", "check")


def test_a_program_runs_and_finds_executions_in_a_database(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = noetl.run(GREET, store=url)
    assert ended.status == "completed"
    monkeypatch.setenv("NOETL_STORE", url)
    assert [listed.execution_id for listed in noetl.open().list()] == [ended.execution_id]


def doctor_findings(folder: Path, url: str) -> list[dict[str, str]]:
    done = run("doctor", "--store", url, "-o", "json", cwd=folder)
    assert done.code == 0, done.err
    findings: list[dict[str, str]] = done.json["findings"]
    return findings


def test_the_doctor_says_what_is_wrong_with_a_database(tmp_path: Path, url: str) -> None:
    def doctor(code: int) -> str:
        done = run("doctor", "--store", url, cwd=tmp_path)
        assert done.code == code, done.err
        return done.out

    assert "there is no store in" in doctor(0)
    assert run("store", "migrate", "--store", url, cwd=tmp_path).code == 0
    levels = {finding["check"]: finding["level"] for finding in doctor_findings(tmp_path, url)}
    for check in ("store", "database clock", "partitions", "transactions", "connections", "vacuum", "clock"):
        assert levels[check] == "ok"
    schema = url.rpartition("schema=")[2]
    with psycopg.connect(url.rpartition("&schema=")[0], autocommit=True) as connection:
        connection.execute(f"SET search_path = {schema}")
        names = connection.execute(
            "SELECT max(inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'event'::regclass"
            " AND inhrelid::regclass::text LIKE 'event_week%'"
        )
        [newest] = names.fetchone() or [""]
        connection.execute(f"DROP TABLE {newest}")
        assert "warning partitions: 1 week to come without one" in doctor(0)
        connection.execute("UPDATE store SET version = 99")
        assert "upgrade NoETL" in doctor(1)
        connection.execute("UPDATE store SET version = -1")
        assert "noetl store migrate" in doctor(1)


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        (("///postgres", "///missing"), "does not exist", "createdb"),
        (("user=postgres", "user=nobody_here"), "password authentication failed", "user and password"),
        (("schema=", "schema=No"), "cannot be the schema", "small letters"),
        (("postgresql://", "postgresql://nowhere.invalid:1"), "nowhere.invalid", "PostgreSQL runs"),
    ],
)
def test_a_database_that_cannot_be_used_ends_every_command_with_what_to_do(
    tmp_path: Path, url: str, change: tuple[str, str], message: str, hint: str
) -> None:
    (tmp_path / "greet.yaml").write_text(GREET)
    wrong = url.replace(*change)
    if "nowhere" in wrong:
        wrong = "postgresql://nowhere.invalid:1/db"
    for words in (["run", "greet.yaml"], ["executions", "list"], ["server", "start", "--port", "0"]):
        done = run(*words, "--store", wrong, cwd=tmp_path)
        assert done.code == (2 if "schema=No" in wrong else 3), done.err
        assert message in done.err or "nowhere" in wrong
        assert hint in done.err
        assert "correct" not in done.err


def test_without_the_driver_it_is_said_what_to_install(tmp_path: Path, url: str) -> None:
    (tmp_path / "asyncpg.py").write_text("raise ModuleNotFoundError('gone', name='asyncpg')")
    done = subprocess.run(
        command("executions", "list", "--store", url),
        cwd=tmp_path,
        env=environment(tmp_path, {"PYTHONPATH": str(tmp_path)}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "noetl[postgres-store]" in done.stderr


def test_a_server_keeps_everything_in_the_database(tmp_path: Path, url: str) -> None:
    with server_process(tmp_path, "--store", url) as server:
        client = client_of(server)
        ended = client.wait(start(client, "examples/parent"))
        assert ended.status == "completed"
        assert client.status().store.startswith("postgresql://")
        assert "correct" not in client.status().store
        assert server.stop() == 0
    assert not (server.home / "store.db").exists()
    with server_process(tmp_path, "--store", url) as server:
        assert server.client.show(ended.execution_id).status == "completed"
        assert [entry.path for entry in server.client.playbooks().playbooks]


PRINTING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: printing, path: examples/printing}
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    print('said by a task')\\n    raise ValueError('no')"}
"""


@pytest.mark.parametrize("kept_in", ["database", "bucket", "folder"])
def test_what_tasks_print_is_read_on_any_machine(
    tmp_path: Path, url: str, kept_in: str, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("first", "second", "third")]
    for folder in folders:
        folder.mkdir()
    location = {
        "database": "",
        "bucket": f"s3://{s3.bucket}/logs-{next(_numbers)}?endpoint={s3.endpoint}",
        "folder": (tmp_path / "shared").as_uri(),
    }[kept_in]
    shared = {**s3.environment, "NOETL_RESULT_STORE": location}
    with server_process(folders[0], "--store", url, env=shared) as server:
        server.client.register(PRINTING)
        failed = server.client.wait(start(server.client, "examples/printing"))
        assert failed.status == "failed"
        lines = [line["text"] for line in server.client.logs(failed.execution_id).lines]
        assert "said by a task" in lines
        last = server.client.wait(start(server.client, "examples/printing"))
        assert server.stop() == 0
    with server_process(folders[1], "--store", url, env=shared) as moved:
        assert [line["text"] for line in moved.client.logs(failed.execution_id).lines] == lines
        texts = [line["text"] for line in moved.client.logs(last.execution_id).lines]
        assert texts == lines, "what was printed just before the end of the server"
        (failure,) = moved.client.failures(failed.execution_id).failures
        assert failure.printed == ["said by a task"]

    def noetl(*words: str) -> CompletedCommand:
        done = run("executions", *words, "--store", url, cwd=folders[2], env=shared)
        assert done.code == 0, done.err
        return done

    assert "said by a task" in noetl("logs", failed.execution_id).out
    assert "said by a task" in noetl("show", failed.execution_id).out
    pruned = noetl("prune", "--before", "0s", "-y", "-o", "json").json["executions"]
    assert {*pruned} == {failed.execution_id, last.execution_id}
    if kept_in == "database":
        schema = url.rpartition("schema=")[2]
        with psycopg.connect(url.rpartition("&schema=")[0]) as connection:
            count = connection.execute(f"SELECT count(*) FROM {schema}.blob")  # noqa: S608 - ours
            assert count.fetchone() == (0,)
    elif kept_in == "folder":
        assert not [path for path in (tmp_path / "shared").rglob("*") if path.is_file()]


def test_commands_from_elsewhere_reach_the_server_through_the_database(tmp_path: Path, url: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with server_process(tmp_path, "--store", url) as server:
        server.client.register(WAITING)
        execution_id = start(server.client, "examples/waiting")
        again = run("run", "--resume", execution_id, "--store", url, cwd=elsewhere)
        assert again.code != 0
        assert "is running in another process" in again.err
        assert "a server" in run("executions", "show", execution_id, "--store", url, cwd=elsewhere).out
        done = run("executions", "cancel", execution_id, "--store", url, cwd=elsewhere)
        assert done.code == 0, done.err
        assert server.client.wait(execution_id).status == "cancelled"


def test_a_database_that_is_gone_for_a_while_delays_and_loses_nothing(tmp_path: Path) -> None:
    with (
        postgres_cluster(**FSYNC) as cluster,
        server_process(tmp_path, "--store", cluster.server.dsn()) as server,
    ):
        client = client_of(server)
        ids = [start(client, "examples/counting", count=8) for _ in range(4)]
        for _ in range(2):
            cluster.stop()
            request = urllib.request.Request(  # noqa: S310 - ours
                f"{server.url}/api/executions", headers={"Authorization": f"Bearer {server.token}"}
            )
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)  # noqa: S310 - ours
            assert refused.value.code == 503
            assert int(refused.value.headers["Retry-After"]) > 0
            refused.value.close()
            cluster.start()
            with psycopg.connect(cluster.server.dsn()) as connection:
                connection.execute("SELECT 1")
        ended = [client.wait(name) for name in ids]
        assert [execution.status for execution in ended] == ["completed"] * 4
        assert server.stop() == 0
        done = run("store", "check", "--store", cluster.server.dsn(), cwd=tmp_path)
        assert "4 executions, 0 problems" in done.out
