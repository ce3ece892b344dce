"""`noetl server start`, `noetl token create` and `noetl worker start` together."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from noetl.client.http_client import Client
from noetl.ports.http_api import StartExecution
from tests.plane.plane_processes import PATIENCE, WorkerProcess
from tests.server.server_process import ServerProcess, command, kill, server_process

PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sum, path: tests/sum}
workload: {numbers: [1, 2, 3]}
workflow:
- step: start
  loop: {in: "{{ workload.numbers }}", iterator: n, spec: {mode: parallel}}
  tool: {kind: python, args: {n: "{{ n }}"}, code: "import os\\ndef main(n):\\n    return [n * 2, os.getcwd()]"}
"""


def worker_token(server: ServerProcess, role: str = "worker") -> str:
    created = subprocess.run(
        command("token", "create", f"test-{role}", "--role", role, "--home", str(server.home), "-o", "json"),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    return str(json.loads(created.stdout)["token"])


@pytest.mark.spec("000 §11.1")
def test_a_registered_playbook_runs_in_workers_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "sum.yaml").write_text(PLAYBOOK, "utf-8")
    with server_process(tmp_path, worker=False) as server:
        # A worker of the same user finds the token that the server made for it.
        environment = {"NOETL_HOME": str(server.home), "NOETL_TOKEN": ""}
        worker = WorkerProcess(server.url, tmp_path, "--processes", "2", "--slots", "4", **environment)
        try:
            worker.wait_for("registered with", 2)
            client = {**os.environ, "NOETL_TOKEN": server.token, "NOETL_SERVER": server.url}
            for words in (
                ["catalog", "register", str(tmp_path / "sum.yaml")],
                ["execute", "tests/sum", "--wait"],
            ):
                done = subprocess.run(
                    command(*words, "-o", "json"),
                    env=client,
                    capture_output=True,
                    check=True,
                    timeout=PATIENCE,
                )
            execution = json.loads(done.stdout)
            assert (execution["status"], [double for double, _ in execution["result"]]) == (
                "completed",
                [2, 4, 6],
            )
            assert worker.stop(signal.SIGTERM) == 0
        finally:
            worker.stop(signal.SIGKILL)
        assert server.stop() == 0


def test_a_token_of_another_role_is_no_worker_s(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False) as server:
        worker = WorkerProcess(server.url, tmp_path, NOETL_TOKEN=worker_token(server, "admin"))
        try:
            worker.wait_for("403")
        finally:
            worker.stop(signal.SIGKILL)


def test_a_worker_whose_token_is_revoked_gets_nothing_more(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False, env={"NOETL_LEASE_TTL": "3"}) as server:
        client = server.client
        worker = WorkerProcess(server.url, tmp_path, NOETL_TOKEN=worker_token(server))
        try:
            worker.wait_for("registered with")
            client.revoke_token("test-worker")
            worker.wait_for("401")
            while client.workers().workers:
                pass
            waits = client.start(StartExecution(playbook=PLAYBOOK)).execution_id
            assert client.show(waits).waiting[0]["reason"] == "no worker serves the pool `default`"
        finally:
            worker.stop(signal.SIGKILL)


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ([], 3, "no server is running here"),
        (["--slots", "0"], 2, "--slots"),
        (["--directory", "nowhere"], 2, "nowhere"),
        (["--server", "nonsense"], 2, "is not the URL of a server"),
    ],
)
def test_a_worker_that_cannot_begin_says_why(tmp_path: Path, words: list[str], code: int, why: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NOETL_")}
    environment["HOME"] = str(tmp_path)
    ended = subprocess.run(
        command("worker", "start", *words),
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (ended.returncode, why in ended.stderr) == (code, True)


SLEEPING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: sleeping, path: tests/sleeping}
workflow:
- step: start
  tool: {kind: shell, command: "sleep 600"}
"""
NOWHERE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: nowhere, path: tests/nowhere}
executor: {spec: {pool: nowhere}}
workflow:
- step: start
  tool: {kind: noop}
"""


def ask(server: ServerProcess, *words: str) -> Any:
    done = subprocess.run(
        command(*words, "--home", str(server.home), "-o", "json"),
        check=False,
        env={**os.environ, "NOETL_TOKEN": "", "NOETL_SERVER": ""},
        capture_output=True,
        timeout=PATIENCE,
    )
    return json.loads(done.stdout) if done.returncode == 0 else done.returncode


@pytest.mark.spec("000 §1.2")
def test_workers_are_listed_and_stopped_here_and_through_the_server(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False) as server:
        assert ask(server, "worker", "list") == {"workers": [], "pools": []}
        assert ask(server, "worker", "stop") == 3
        detached = subprocess.run(
            command(
                *("worker", "start", "--detach", "--pool", "own", "--slots", "3"),
                *("--home", str(server.home), "-o", "json"),
            ),
            env={**os.environ, "NOETL_TOKEN": "", "NOETL_SERVER": ""},
            capture_output=True,
            check=True,
            timeout=PATIENCE,
        )
        try:
            started = json.loads(detached.stdout)
            assert (started["processes"], started["log"]) == (1, str(server.home / "worker.log"))
            token = worker_token(server)
            other = WorkerProcess(
                server.url, tmp_path, NOETL_HOME=str(tmp_path / "elsewhere"), NOETL_TOKEN=token
            )
            other.wait_for("registered with")
            log = server.home / "worker.log"
            wait_until(lambda: "registered with" in log.read_text("utf-8"))
            client = Client(server.url, server.token)
            listed = client.workers().workers
            assert {item.worker.rpartition("-")[2] for item in listed} >= {str(started["pid"])}
            assert sorted((item.pools, item.slots, item.runs) for item in listed) == [
                (["default"], 32, []),
                (["own"], 3, []),
            ]
            names = {item.pools[0]: item.worker for item in listed}
            assert ask(server, "worker", "stop", "nobody") == 2
            assert ask(server, "worker", "stop", names["default"])["draining"] == [names["default"]]
            assert other.process.wait(PATIENCE) == 0
            assert other.stop() == 0
            assert ask(server, "worker", "stop")["stopped"] == [names["own"]]
            assert "worker stopped" in log.read_text("utf-8")

            client.register(NOWHERE)
            client.start(StartExecution(path="tests/nowhere"))
            (pool,) = [pool for pool in client.pools().pools if pool.pool == "nowhere"]
            assert (pool.depth, pool.workers) == (1, 0)
            assert pool.problem == "no worker serves the pool `nowhere`"
        finally:
            ask(server, "worker", "stop")


def test_what_a_worker_has_that_has_not_come_back_after_a_restart_is_listed(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False) as server:
        worker = WorkerProcess(server.url, tmp_path, NOETL_TOKEN=worker_token(server))
        worker.wait_for("registered with")
        held = server.client.start(StartExecution(playbook=SLEEPING)).execution_id
        wait_until(
            lambda: [run.run for item in server.client.workers().workers for run in item.runs] == ["r5"]
        )
        worker.stop(signal.SIGKILL)
        kill(server)
    with server_process(tmp_path, worker=False) as server:
        (item,) = server.client.workers().workers
        assert (item.worker, [(run.execution_id, run.run) for run in item.runs]) == ("", [(held, "r5")])
        listed = subprocess.run(
            command("worker", "list", "--home", str(server.home)),
            capture_output=True,
            check=True,
            text=True,
            env={**os.environ, "NOETL_TOKEN": "", "NOETL_SERVER": ""},
        )
        assert listed.stdout.splitlines()[1].split()[:4] == ["not", "back", "yet", "1"]


def wait_until(condition: Callable[[], bool]) -> None:
    """Of files, which nobody says anything about."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
