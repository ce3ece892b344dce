"""`noetl server start`, `noetl token create` and `noetl worker start` together."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.plane.plane_processes import PATIENCE, WorkerProcess
from tests.server.server_process import ServerProcess, command, server_process

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
