"""The server as a process: streams, signals, crashes."""

import asyncio
import json
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from noetl.client.http_client import AsyncClient, Client
from noetl.client.server_requests import ServerError
from noetl.ports.control import PROTOCOL, Register, encode_message
from noetl.ports.http_api import StartExecution
from tests.cli.command_line import environment, run
from tests.server.server_process import (
    GREET,
    WAITING,
    ServerProcess,
    command,
    kill,
    server_process,
)

LONG = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: long, path: examples/long}
workflow:
- step: start
  tool:
    kind: python
    args: {fifo: "{{ workload.fifo }}"}
    code: |
      def main(fifo):
          print("begun")
          with open(fifo) as pipe:
              return pipe.read()
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop}
"""


def stream_until(server: ServerProcess, execution_id: str, name: str, after: int = 0) -> list[int]:
    """The numbers of events up to the first of this name."""

    async def follow() -> list[int]:
        numbers = []
        async with AsyncClient(server.url, server.token) as client:
            async for event in client.stream(execution_id, after=after):
                numbers.append(event["seq"])
                if event["name"] == name:
                    break
        return numbers

    return asyncio.run(follow())


@contextmanager
def raw_stream(
    server: ServerProcess, path: str, last_event_id: str = ""
) -> Iterator[tuple[str, Iterator[str]]]:
    """The head of an answer, and its lines as they come."""
    port = int(server.url.rpartition(":")[2])
    header = f"Last-Event-ID: {last_event_id}\r\n" if last_event_id else ""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        sent_request = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n{header}\r\n"
        )
        connection.sendall(sent_request.encode())
        with connection.makefile("r", newline="\r\n") as lines:
            head = "".join(iter(lines.readline, "\r\n"))
            yield head, iter(lines.readline, "")


def test_a_stream_goes_on_after_the_last_event_that_was_seen(server: ServerProcess) -> None:
    execution_id = server.client.start(StartExecution(path="examples/waiting")).execution_id
    first = stream_until(server, execution_id, "RunSuspended")
    assert first == list(range(1, len(first) + 1))
    server.client.signal(execution_id, "go")
    rest = stream_until(server, execution_id, "never", after=first[-1])
    last = server.client.show(execution_id).events
    assert rest == list(range(first[-1] + 1, last + 1))
    path = f"/api/executions/{execution_id}/stream"
    with raw_stream(server, path, str(last)) as (head, _):
        assert head.startswith("HTTP/1.1 204 ")
    with raw_stream(server, path, str(last - 1)) as (head, lines):
        assert "text/event-stream" in head
        text = "".join(lines)
    assert text.count("id: ") == 1
    assert f"id: {last}\n" in text
    assert "event: PlaybookProcessed\n" in text
    with raw_stream(server, path, "x") as (head, _):
        assert head.startswith("HTTP/1.1 422 ")


def test_sigterm_lets_tasks_end_and_closes_streams(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    subprocess.run(["mkfifo", fifo], check=True)
    with server_process(tmp_path) as server:
        server.client.register(LONG)
        started = server.client.start(StartExecution(path="examples/long", workload={"fifo": str(fifo)}))
        path = f"/api/executions/{started.execution_id}/stream"
        with raw_stream(server, path) as (_, lines), fifo.open("w") as pipe:
            # Opening returned: the task has begun, and waits for what it reads.
            server.process.terminate()
            list(lines)  # ends: the server closes its streams
            pipe.write("done")
        assert server.process.wait() == 0
        assert not (server.home / "server.json").exists()
    with server_process(tmp_path, worker=False) as server:
        events = server.client.events(started.execution_id).events
    done = next(event for event in events if event["name"] == "TaskProcessed")
    assert done["data"]["outcome"]["result"] == "done"
    assert "LeaseExpired" not in {
        event["name"] for event in events if event["data"].get("reason") == "expired"
    }


def test_how_long_leases_live_can_be_set(tmp_path: Path) -> None:
    with server_process(tmp_path, worker=False, env={"NOETL_LEASE_TTL": "7"}) as server:
        token = (server.home / "worker.token").read_text().strip()
        request = urllib.request.Request(  # noqa: S310 - our own server
            f"{server.url}/api/worker/register",
            encode_message(Register(protocol=PROTOCOL)),
            {"authorization": f"Bearer {token}"},
        )
        with urllib.request.urlopen(request) as answer:  # noqa: S310 - likewise
            (registered,) = json.loads(answer.read())
    assert registered["ttl"] == 7
    refused = run("server", "start", "--port", "0", cwd=tmp_path, env={"NOETL_LEASE_TTL": "0"})
    assert refused.code == 2
    assert "`lease_ttl` cannot be 0" in refused.err


def test_all_that_was_answered_outlives_a_kill(tmp_path: Path) -> None:
    with server_process(tmp_path) as server:
        client = server.client
        registered = client.register(GREET)
        client.register(WAITING)
        token = client.create_token("ci", "operator").token
        done = client.wait(client.start(StartExecution(path="examples/greet")).execution_id)
        held = client.start(StartExecution(path="examples/waiting", idempotency_key="k")).execution_id
        paused = client.start(StartExecution(path="examples/waiting", idempotency_key="p")).execution_id
        stream_until(server, held, "RunSuspended")
        client.pause(paused)
        kill(server)
        assert run("server", "status", "--home", str(server.home), cwd=tmp_path).code == 3
    with server_process(tmp_path) as server:
        client = Client(server.url, token)
        assert server.client.me().name == "local-admin"
        assert client.playbook("examples/greet").hash == registered.hash
        assert client.show(done.execution_id).result == done.result
        assert client.start(StartExecution(path="examples/waiting", idempotency_key="k")).execution_id == held
        client.signal(held, "go")
        assert client.wait(held).status == "completed"
        # Asking again with its key does not wake what is paused.
        assert client.start(StartExecution(path="examples/waiting", idempotency_key="p")).status == "paused"
        assert client.show(paused).status == "paused"
        client.signal(paused, "go")
        client.resume(paused)
        assert client.wait(paused).status == "completed"
        assert server.stop() == 0


def test_a_home_has_one_server(server: ServerProcess, tmp_path: Path) -> None:
    second = run("server", "start", "--port", "0", "--home", str(server.home), "-o", "json", cwd=tmp_path)
    assert (second.code, second.json["error"]["code"]) == (2, "server-running")
    detached = run("server", "start", "--detach", "--port", "0", "--home", str(server.home), cwd=tmp_path)
    in_json = run(
        "server", "start", "--detach", "--port", "0", "--home", str(server.home), "-o", "json", cwd=tmp_path
    )
    assert (in_json.code, in_json.json["error"]["code"]) == (2, "server-running")
    assert (detached.code, "uses" in detached.err, "already" in detached.err) == (2, True, True)
    status = run("server", "status", "--home", str(server.home), "-o", "json", cwd=tmp_path)
    assert (status.code, status.json["url"], status.json["pid"]) == (0, server.url, server.process.pid)


def test_a_port_that_is_taken_is_said(server: ServerProcess, tmp_path: Path) -> None:
    port = server.url.rpartition(":")[2]
    refused = run("server", "start", "--port", port, "--home", "h", "-o", "json", cwd=tmp_path)
    assert (refused.code, refused.json["error"]["code"]) == (2, "listen")


def test_a_detached_server_is_there_when_the_command_returns(tmp_path: Path) -> None:
    started = run("server", "start", "--port", "0", "--detach", "--home", "h", "-o", "json", cwd=tmp_path)
    assert started.code == 0
    try:
        assert Client(started.json["url"]).health().status == "ok"
    finally:
        stopped = run("server", "stop", "--home", "h", "-o", "json", cwd=tmp_path)
    assert (stopped.code, stopped.json["stopped"]) == (0, True)
    assert run("server", "stop", "--home", "h", cwd=tmp_path).code == 3
    (tmp_path / "h" / "store.db").write_text("nothing of ours")
    broken = run("server", "start", "--port", "0", "--detach", "--home", "h", "-o", "json", cwd=tmp_path)
    assert broken.code == 3
    assert broken.json["error"]["message"].startswith("the server did not start: ")
    assert "store.db" in broken.json["error"]["message"]
    in_text = run("server", "start", "--port", "0", "--detach", "--home", "h", cwd=tmp_path)
    assert in_text.code == 3
    assert in_text.err.splitlines()[0] == f"noetl: {broken.json['error']['message']}"


def test_what_a_noetl_run_runs_is_left_to_it(tmp_path: Path) -> None:
    """On one store: the server steers it, and does not take it."""
    (tmp_path / "waiting.yaml").write_text(WAITING)
    runner = subprocess.Popen(
        command("run", "waiting.yaml", "--home", "server-home", "-o", "json"),
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert runner.stderr is not None
    next(line for line in runner.stderr if "signal" in line)  # it says how to go on: it is there
    with server_process(tmp_path) as server:
        execution_id = server.client.list().executions[0].execution_id
        assert server.client.signal(execution_id, "go").recorded
        assert server.client.wait(execution_id).status == "completed"
        out, _ = runner.communicate()
        assert (runner.returncode, json.loads(out)["execution_id"]) == (0, execution_id)
        with pytest.raises(ServerError):
            server.client.signal(execution_id, "go")
