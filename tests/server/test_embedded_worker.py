"""A server that is a worker itself takes others beside it, and `executor.kind` says who runs what."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.ports.http_api import StartExecution
from tests.plane.plane_processes import HELD, MeetingPoint, WorkerProcess
from tests.server.server_process import ServerProcess, kill, server_process

HEAD = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: placed, path: tests/placed}\n"
PLACED = """\
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    return 1"}
  next: {arcs: [{step: pass}]}
- step: pass
  tool: {kind: noop}
  next: {arcs: [{step: named}]}
- step: named
  spec: {pool: others}
  tool: {kind: python, code: "def main():\\n    return 2"}
"""


class Setting(NamedTuple):
    """A server that is a worker itself, and a worker of the pool `others`."""

    server: ServerProcess
    worker: WorkerProcess

    @property
    def client(self) -> Client:
        return self.server.client


def worker_of(server: ServerProcess, folder: Path, *options: str) -> WorkerProcess:
    token = (server.home / "worker.token").read_text().strip()
    return WorkerProcess(server.url, folder, *options, NOETL_TOKEN=token)


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    folder = tmp_path_factory.mktemp("embedded")
    with server_process(folder, "--allow-local") as server:
        worker = worker_of(server, folder, "--pool", "others")
        try:
            worker.wait_for("registered with")
            yield Setting(server, worker)
        finally:
            worker.stop()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that runs no tasks."""
    with server_process(tmp_path_factory.mktemp("plain"), worker=False) as server:
        yield server


def start(client: Client, text: str, **request: Any) -> str:
    return client.start(StartExecution(playbook=HEAD + text, **request)).execution_id


def places(client: Client, executor: str = "") -> dict[str, str]:
    """By step, the worker that had its run."""
    execution_id = start(client, f"executor: {executor}\n{PLACED}" if executor else PLACED)
    assert client.wait(execution_id).status == "completed"
    steps, workers = {}, {}
    for event in client.events(execution_id).events:
        match event:
            case {"name": "StepScheduled"}:
                steps[event["step_run_id"]] = event["data"]["step"]
            case {"name": "TokenClaimed"}:
                own = event["data"]["session"].startswith("server-")
                workers[steps[event["step_run_id"]]] = "server" if own else "elsewhere"
    return workers


def test_its_own_worker_is_one_of_several(setting: Setting) -> None:
    assert places(setting.client) == {"start": "server", "pass": "server", "named": "elsewhere"}
    workers = {worker.worker: worker.pools for worker in setting.client.workers().workers}
    assert workers.pop("embedded") == ["$server", "default"]
    assert list(workers.values()) == [["others"]]


@pytest.mark.parametrize(
    ("executor", "start", "handed_on", "named"),
    [
        ("{kind: distributed, spec: {pool: others}}", "elsewhere", "elsewhere", "elsewhere"),
        ("{kind: hybrid, spec: {pool: others}}", "elsewhere", "server", "elsewhere"),
        ("{kind: local, spec: {pool: others}}", "server", "server", "server"),
    ],
)
@pytest.mark.spec("001 §4")
def test_the_kind_of_the_executor_says_where_runs_go(
    setting: Setting, executor: str, start: str, handed_on: str, named: str
) -> None:
    assert places(setting.client, executor) == {"start": start, "pass": handed_on, "named": named}


ABSENT = """\
keychain: [{name: api, kind: env, env: ANY}]
workflow:
- step: start
  tool: {kind: noop}
  next: {arcs: [{step: more}]}
- step: more
  spec: {pool: absent}
  tool: {kind: noop, args: {a: "{{ keychain.api.value }}"}}
"""


def test_an_execution_says_why_its_runs_wait(setting: Setting) -> None:
    client = setting.client
    held = start(client, ABSENT)
    reason = "no worker of the pool `absent` is there to say whether what it needs is there"
    assert client.show(held).waiting == [{"step": "start", "reason": reason}]
    (problem,) = [pool.problem for pool in client.pools().pools if pool.pool == "absent"]
    assert problem is not None
    assert "no worker serves the pool `absent`, and executions wait" in problem
    also_held = start(client, ABSENT)
    client.cancel(held)
    assert "absent" in {pool.pool for pool in client.pools().pools}
    client.cancel(also_held)
    assert "absent" not in {pool.pool for pool in client.pools().pools}, "nobody waits for it any more"


def test_no_other_worker_may_be_that_of_the_server(setting: Setting, tmp_path: Path) -> None:
    worker = worker_of(setting.server, tmp_path, "--pool", "$server")
    assert worker.process.wait(60) != 0
    worker.stop()
    assert any("is for the server's own worker" in line for line in worker.lines)


def test_a_server_without_a_worker_hands_values_on_itself_and_runs_nothing_else(plain: ServerProcess) -> None:
    client = plain.client
    hybrid = "executor: {kind: hybrid}\nworkflow:\n- step: start\n  tool: {kind: noop, args: {n: 7}}\n"
    ended = client.wait(start(client, hybrid))
    assert (ended.status, ended.result) == ("completed", {"n": 7})
    assert client.workers().workers == []
    waiting = start(client, "executor: {kind: hybrid}\n" + PLACED)
    (pool,) = client.pools().pools
    assert (pool.pool, pool.problem) == ("default", "no worker serves the pool `default`")
    assert client.show(waiting).waiting == [{"step": "start", "reason": pool.problem}]
    client.cancel(waiting)
    assert client.show(waiting).waiting == []


def test_what_would_run_beside_the_store_is_refused_of_children_too(plain: ServerProcess) -> None:
    client = plain.client
    local = f"executor: {{kind: local}}\n{PLACED}"
    with pytest.raises(ServerError, match="inside of the server"):
        start(client, local)
    client.register(HEAD.replace("tests/placed", "tests/local") + local)
    parent = (
        "executor: {kind: hybrid}\nworkflow:\n- step: start\n  tool: {kind: playbook, path: tests/local}\n"
    )
    with pytest.raises(ServerError, match="inside of the server"):
        start(client, parent)


def test_so_it_is_of_a_document_that_a_retry_or_a_fork_goes_on_with(plain: ServerProcess) -> None:
    client = plain.client
    fails = 'workflow:\n- step: start\n  tool: {kind: noop, args: {n: "{{ 1 / workload.by }}"}}\n'
    hybrid, local = (f"{HEAD}executor: {{kind: {kind}}}\n{fails}" for kind in ("hybrid", "local"))
    failed = client.start(StartExecution(playbook=hybrid, workload={"by": 0})).execution_id
    assert client.wait(failed).status == "failed"
    before = client.show(failed).events
    with pytest.raises(ServerError, match="inside of the server") as retried:
        client.retry(failed, playbook=local)
    with pytest.raises(ServerError, match="inside of the server") as forked:
        client.fork(failed, 3, playbook=local)
    assert {retried.value.code, forked.value.code} == {"refused"}
    assert client.show(failed).events == before, "nothing of it is recorded"
    assert client.wait(client.fork(failed, 3, workload={"by": 2}).execution_id).result == {"n": 0.5}


def test_a_server_goes_on_without_its_own_worker_when_that_was_drained(tmp_path: Path) -> None:
    with MeetingPoint() as meeting, server_process(tmp_path, env={"NOETL_LEASE_TTL": "600"}) as server:
        client = server.client
        held = start(client, HELD, workload={"port": meeting.port})
        guest = meeting.next_guest()
        assert client.drain_worker("embedded").draining == 1
        waits = start(client, "workflow:\n- step: start\n  tool: {kind: noop}\n")
        guest.let_go()
        # It is gone when it says so, not when its lease would have ended.
        while client.workers().workers:
            pass
        assert "worker left" in (tmp_path / "server.err").read_text()
        (waiting,) = client.show(waits).waiting
        assert waiting["reason"] == "no worker serves the pool `default`"
        worker = worker_of(server, tmp_path)
        try:
            assert {client.wait(held).status, client.wait(waits).status} == {"completed"}
            names = [event["name"] for event in client.events(held).events]
            assert names.count("TaskStarted") == names.count("TaskProcessed"), "what it had begun it ended"
            assert worker.stop() == 0
            while client.workers().workers:
                pass
        finally:
            worker.stop()
        assert server.stop() == 0
        assert (tmp_path / "server.err").read_text().count("worker left") == 2


def test_after_a_crash_it_goes_on_at_once_with_what_its_own_worker_had(tmp_path: Path) -> None:
    env = {"NOETL_LEASE_TTL": "600"}
    with MeetingPoint() as meeting:
        with server_process(tmp_path, env=env) as server:
            execution_id = start(server.client, HELD, workload={"port": meeting.port})
            meeting.next_guest()
            kill(server)
        with server_process(tmp_path, env=env) as server:
            meeting.next_guest().let_go()
            assert server.client.wait(execution_id).status == "completed"
            names = [event["name"] for event in server.client.events(execution_id).events]
            assert names.count("LeaseExpired") == 1
            server.client.drain_worker("embedded")
            assert server.stop() == 0
