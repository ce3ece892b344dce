"""A server whose lists and histories a replica answers: a real standby, which follows by streaming."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from bench.postgres_server import PostgresCluster, postgres_cluster
from noetl.ports.http_api import StartExecution
from tests.cli.command_line import run
from tests.server.server_process import GREET, WAITING, ServerProcess, server_process


class Replicated(NamedTuple):
    primary: PostgresCluster
    standby: PostgresCluster

    @property
    def urls(self) -> tuple[str, ...]:
        return "--store", self.primary.server.dsn(), "--read-store", self.standby.server.dsn()

    def ask(self, cluster: PostgresCluster, statement: str) -> Any:
        with psycopg.connect(cluster.server.dsn(), autocommit=True) as connection:
            cursor = connection.execute(statement)
            row = cursor.fetchone() if cursor.description is not None else None
            return row[0] if row else None

    def pause(self) -> None:
        """The standby stays as it is."""
        self.ask(self.standby, "SELECT pg_wal_replay_pause()")

    def resume(self) -> None:
        self.ask(self.standby, "SELECT pg_wal_replay_resume()")


@pytest.fixture
def replicated(tmp_path: Path) -> Iterator[Replicated]:
    with postgres_cluster() as primary:
        assert run("store", "migrate", "--store", primary.server.dsn(), cwd=tmp_path).code == 0
        with psycopg.connect(primary.server.dsn(), autocommit=True) as connection:
            # As after a restore: positions in the feed are not the numbers of transactions.
            connection.execute("UPDATE noetl.store SET xact_shift = 5000")
        with primary.replica() as standby:
            yield Replicated(primary, standby)


def until(holds: Callable[[], bool]) -> None:
    while not holds():
        pass


def ids(server: ServerProcess) -> list[str]:
    return [item.execution_id for item in server.client.list().executions]


def start(server: ServerProcess, path: str) -> str:
    return server.client.start(StartExecution(path=path)).execution_id


def test_a_replica_answers_and_its_lag_is_said(tmp_path: Path, replicated: Replicated) -> None:
    with server_process(tmp_path, *replicated.urls) as server:
        client, env = server.client, {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
        for text in (GREET, WAITING):
            client.register(text)
        first = start(server, "examples/greet")
        assert client.wait(first).status == "completed"
        until(lambda: ids(server) == [first])
        until(lambda: client.status().read_store.lag == 0)  # type: ignore[union-attr]  # it has one
        replicated.pause()
        second = start(server, "examples/waiting")
        until(lambda: client.show(second).status == "running")
        assert ids(server) == [first], "lists are the replica's"
        assert client.explanation(second).execution_id == second, "what it lacks is the primary's"
        state = client.status().read_store
        assert state is not None
        assert (state.store, state.problem) == (client.status().store.replace(*folders(replicated)), None)
        assert state.lag is not None
        assert state.lag > 0
        request = urllib.request.Request(  # noqa: S310 - ours
            f"{server.url}/metrics", headers={"Authorization": f"Bearer {server.token}"}
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - likewise
            lines = answer.read().decode().splitlines()
        assert [line for line in lines if line.startswith("noetl_read_store_lag_seconds ")]
        assert "noetl_commits_repeated_total 0.0" in lines
        assert " s behind" in run("server", "status", "--home", str(server.home), cwd=tmp_path).out
        assert "read store: " in run("doctor", cwd=tmp_path, env=env).out
        replicated.resume()
        until(lambda: ids(server) == [second, first])
        assert server.stop() == 0


def folders(replicated: Replicated) -> tuple[str, str]:
    names = [cluster.server.folder.name for cluster in (replicated.primary, replicated.standby)]
    return names[0], names[1]


def test_a_replica_that_is_gone_is_an_error_and_the_rest_goes_on(
    tmp_path: Path, replicated: Replicated
) -> None:
    with server_process(tmp_path, *replicated.urls) as server:
        client, env = server.client, {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
        client.register(GREET)
        replicated.standby.stop()
        execution_id = start(server, "examples/greet")
        until(lambda: client.show(execution_id).status == "completed")
        request = urllib.request.Request(  # noqa: S310 - ours
            f"{server.url}/api/executions", headers={"Authorization": f"Bearer {server.token}"}
        )
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)  # noqa: S310 - likewise
        assert (refused.value.code, int(refused.value.headers["Retry-After"]) > 0) == (503, True)
        problem = json.loads(refused.value.read())
        assert (problem["code"], folders(replicated)[1] in problem["detail"]) == ("store_unavailable", True)
        state = client.status().read_store
        assert state is not None
        assert (state.lag, folders(replicated)[1] in str(state.problem)) == (None, True)
        doctor = run("doctor", cwd=tmp_path, env=env)
        assert (doctor.code, "error   read store: " in doctor.out) == (1, True)
        replicated.standby.start()
        until(lambda: client.status().read_store.lag == 0)  # type: ignore[union-attr]  # it has one
        assert ids(server) == [execution_id]
        assert server.stop() == 0


def test_commands_look_into_a_replica_and_cannot_write_there(tmp_path: Path, replicated: Replicated) -> None:
    primary, standby = (cluster.server.dsn() for cluster in replicated)
    (tmp_path / "greet.yaml").write_text(GREET)
    name = run("run", "greet.yaml", "-o", "json", "--store", primary, cwd=tmp_path).json["execution_id"]
    assert run("store", "views", "--store", primary, cwd=tmp_path).code == 0
    until(
        lambda: replicated.ask(replicated.standby, "SELECT to_regclass('noetl_views.execution')") is not None
    )
    assert replicated.ask(replicated.standby, "SELECT status FROM noetl_views.execution") == "completed"
    for words in (("list",), ("show", name), ("events", name), ("logs", name)):
        looked = run("executions", *words, "--store", standby, cwd=tmp_path)
        assert (looked.code, looked.err) == (0, "")
    exported = run("store", "export", "archive", "--store", standby, "-o", "json", cwd=tmp_path)
    assert (exported.code, exported.json["executions"]) == (0, 1)
    assert "0 problems" in run("store", "check", "--store", standby, cwd=tmp_path).out
    refused = run("run", "greet.yaml", "--store", standby, cwd=tmp_path)
    assert refused.code == 3
    assert "read-only transaction" in refused.err


COUNTING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: counting, path: examples/counting}
workflow:
- step: each
  loop: {in: "{{ range(20) | list }}", iterator: n}
  tool:
  - {name: pause, kind: wait, seconds: 0.2}
  - {name: work, kind: noop, args: {n: "{{ n }}"}}
  next: {arcs: [{step: total, args: {rows: "{{ event.result }}"}}]}
- step: total
  tool: {kind: noop, args: {sum: "{{ args.rows | map(attribute='n') | sum }}"}}
"""


def test_a_server_goes_on_with_the_standby_that_takes_the_place_of_the_primary(
    tmp_path: Path, replicated: Replicated
) -> None:
    for statement in ("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"):
        replicated.ask(replicated.primary, statement)
    until(lambda: replicated.ask(replicated.primary, "SHOW synchronous_standby_names") == "*")
    folders = ",".join(str(cluster.server.folder) for cluster in replicated)
    url = replicated.primary.server.dsn(host=folders, target_session_attrs="read-write")
    with server_process(tmp_path, "--store", url) as server:
        server.client.register(COUNTING)
        names = [start(server, "examples/counting") for _ in range(3)]
        until(lambda: server.client.show(names[-1]).status == "running")
        replicated.primary.stop()
        replicated.ask(replicated.standby, "SELECT pg_promote()::text")
        ended = [server.client.wait(name) for name in names]
        assert [(execution.status, execution.result) for execution in ended] == [
            ("completed", {"sum": 190})
        ] * 3
        assert server.stop() == 0
    done = run("store", "check", "--store", replicated.standby.server.dsn(), cwd=tmp_path)
    assert "3 executions, 0 problems" in done.out


def test_only_a_replica_of_the_store_can_stand_in_for_it(tmp_path: Path, replicated: Replicated) -> None:
    (tmp_path / "greet.yaml").write_text(GREET)
    primary, other = replicated.primary.server.dsn(), replicated.primary.server.dsn(schema="other")
    for url in (primary, other):
        assert run("run", "greet.yaml", "--store", url, cwd=tmp_path).code == 0
    words = ["server", "start", "--port", "0", "--home", "h"]
    wrong = run(*words, "--store", primary, "--read-store", other, cwd=tmp_path)
    assert (wrong.code, "is no replica of the server's store" in wrong.err) == (3, True)
    copied = replicated.primary.server.dsn(schema="copied")
    assert run("store", "copy", primary, copied, "--home", "copier", cwd=tmp_path).code == 0
    copy = run(*words, "--store", primary, "--read-store", copied, cwd=tmp_path)
    assert (copy.code, "is no replica of the server's store" in copy.err) == (3, True)
    missing = replicated.standby.server.dsn(schema="missing")
    empty = run(*words, "--store", primary, "--read-store", missing, cwd=tmp_path)
    assert (empty.code, "is a standby, and has no store" in empty.err) == (3, True)
    gone = run(*words, "--store", primary, "--read-store", "postgresql://127.0.0.1:1/x", cwd=tmp_path)
    assert (gone.code, "`read_store`: " in gone.err) == (3, True)
    for flags in (["--read-store", primary], ["--store", primary, "--read-store", "sqlite:///x.db"]):
        usage = run(*words, *flags, cwd=tmp_path)
        assert (usage.code, "--read-store names a replica of the database in --store" in usage.err) == (
            2,
            True,
        )
