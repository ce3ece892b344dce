"""A server and its workers as processes, and a place where their tasks meet the test."""

import asyncio
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

import noetl
from noetl.engine.inbox import RemoteCommand, encode_command
from noetl.ports.credentials import StoredCredential
from noetl.stores import open_store
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials
from noetl.stores.credentials.encryption_key import KeyLocation
from noetl.stores.home_folder import Home
from tests.plane.plane_server import TOKEN

PATIENCE = 60.0
"""Seconds: long enough for a machine that is busy with other things."""


class WorkerProcess:
    """`noetl worker start`. What it says is read as it comes."""

    def __init__(self, url: str, folder: Path, *options: str, **environment: str) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "noetl",
                "worker",
                "start",
                "--server",
                url,
                "--directory",
                str(folder),
                *options,
            ],
            env={**os.environ, "NOETL_TOKEN": TOKEN, "NOETL_HOME": str(folder / ".noetl"), **environment},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[str] = []
        self._changed = threading.Condition()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self.lines.append(line.rstrip())
                self._changed.notify_all()

    def wait_for(self, text: str, times: int = 1) -> None:
        """Until it has said so, as often as that."""
        with self._changed:
            heard = self._changed.wait_for(
                lambda: sum(text in line for line in self.lines) >= times, PATIENCE
            )
        assert heard, self.lines

    def send_signal(self, number: int) -> None:
        self.process.send_signal(number)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


class Plane:
    """A server on a home of its own, and any number of workers. A context manager."""

    def __init__(self, folder: Path, ttl: float = 10.0) -> None:
        self.home = folder / "home"
        self.playbooks = folder / "playbooks"
        self.playbooks.mkdir(exist_ok=True)
        self.ttl = ttl
        self.port = 0
        self.workers: list[WorkerProcess] = []
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> "Plane":
        self.start_server()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for worker in self.workers:
                worker.stop(signal.SIGKILL)
        finally:
            self.kill_server()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start_server(self) -> None:
        """The second time where it was before."""
        command = [sys.executable, "-m", "tests.plane.plane_server", "--home", str(self.home)]
        command += ["--catalog", str(self.playbooks), "--ttl", str(self.ttl), "--port", str(self.port)]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._server.stdout is not None
        self.port = int(self._server.stdout.readline())

    @property
    def server_pid(self) -> int:
        assert self._server is not None
        return self._server.pid

    def kill_server(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait(PATIENCE)
            assert self._server.stdout is not None
            self._server.stdout.close()
            self._server = None

    def worker(self, *options: str, **environment: str) -> WorkerProcess:
        """One that is registered."""
        worker = WorkerProcess(self.url, self.playbooks, *options, **environment)
        self.workers.append(worker)
        worker.wait_for("registered with")
        return worker

    def start(self, workflow: str, ctx: dict[str, Any] | None = None, **workload: Any) -> str:
        """A new execution; its id."""
        body = {"text": document(workflow), "workload": workload, "ctx": ctx or {}}
        return str(self._call("/executions", body))

    def end(self, execution_id: str) -> dict[str, Any]:
        """What `noetl run -o json` would print, when it is over."""
        ended: dict[str, Any] = self._call(f"/executions/{execution_id}")
        return ended

    def submit(self, execution_id: str, command: RemoteCommand) -> None:
        """Asks it of the server; it is recorded then."""
        self._call(f"/executions/{execution_id}/commands", data=encode_command(command))

    def retry(self, execution_id: str) -> None:
        self._call(f"/executions/{execution_id}/retry", {})

    def redrive(self, execution_id: str) -> None:
        self._call(f"/executions/{execution_id}/redrive", {})

    def wait_for(self, execution_id: str, event: str, count: int = 1) -> None:
        """Until so many of these were recorded since the server was started."""
        self._call(f"/executions/{execution_id}/events/{event}?count={count}")

    def run(self, workflow: str, **workload: Any) -> dict[str, Any]:
        return self.end(self.start(workflow, **workload))

    @property
    def executions(self) -> noetl.Executions:
        """The same store from here: what it asks comes to the server by the inbox."""
        return noetl.open(self.home)

    def events(self, execution_id: str) -> list[dict[str, Any]]:
        return list(self.executions.events(execution_id))

    def set_credential(self, name: str, **fields: str) -> None:
        """Into the server's credential store."""

        async def keep() -> None:
            home = Home(self.home)
            store = open_store(f"sqlite:///{home.store}")
            try:
                credentials = EncryptedCredentials(store, KeyLocation(file=home.key))
                await credentials.set(StoredCredential(name, "static", dict(fields)))
            finally:
                await store.close()

        asyncio.run(keep())

    def _call(self, path: str, body: Any = None, data: bytes | None = None) -> Any:
        data = data if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(self.url + path, data, timeout=PATIENCE) as response:  # noqa: S310 - our own server
            return json.loads(response.read())


def document(workflow: str) -> str:
    head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: {name: played, path: tests/played}\n"
    return workflow if workflow.startswith("apiVersion") else head + workflow


class Guest:
    """A task that came to the meeting point, and waits."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        connection.settimeout(PATIENCE)
        self._stream = connection.makefile("rw")
        self.text = self._stream.readline().strip()

    def let_go(self, answer: str = "done") -> None:
        self._stream.write(answer + "\n")
        self._stream.flush()

    def wait_until_killed(self) -> None:
        """Raises TimeoutError if it lives on."""
        assert self._stream.readline() == ""

    @property
    def is_alive(self) -> bool:
        return not select.select([self._connection], [], [], 0)[0]

    def close(self) -> None:
        self._stream.close()
        self._connection.close()


class MeetingPoint:
    """Where the tasks of `HELD` come: each waits there until it is let go. A context manager."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(PATIENCE)
        self.port: int = self._listener.getsockname()[1]
        self._guests: list[Guest] = []

    def __enter__(self) -> "MeetingPoint":
        return self

    def __exit__(self, *_: object) -> None:
        for guest in self._guests:
            guest.close()
        self._listener.close()

    def next_guest(self) -> Guest:
        connection, _ = self._listener.accept()
        guest = Guest(connection)
        self._guests.append(guest)
        return guest


HELD = """\
workload: {port: 0}
workflow:
- step: start
  tool:
  - meet:
      kind: python
      args: {port: "{{ workload.port }}", text: "{{ _idempotency_key }}"}
      code: |
        import socket
        def main(port, text):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                stream = connection.makefile("rw")
                stream.write(text + "\\n")
                stream.flush()
                return stream.readline().strip()
  - after: {kind: noop, args: {word: "{{ _prev }}"}}
"""
"""One task that comes to the meeting point and says its key, and one after it."""


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """The names of events but for claims, and runs that were given back, which depend on who was there."""
    return [
        event["name"]
        for event in events
        if event["name"] != "TokenClaimed" and event["data"].get("reason") != "released"
    ]


def counted_kinds(events: list[dict[str, Any]]) -> Counter[str]:
    return Counter(kinds(events))
