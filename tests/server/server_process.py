"""A real server in a process of its own, and playbooks for it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from noetl.client.http_client import Client
from tests.cli.command_line import environment

GREET = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: greet, path: examples/greet, version: "1.0"}
workload: {name: World}
workflow:
- step: start
  tool:
  - name: say
    kind: python
    args: {name: "{{ workload.name }}"}
    code: |
      def main(name):
          print("hello", name)
          return {"greeting": "Hello " + name}
"""
WAITING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: waiting, path: examples/waiting}
workflow:
- step: start
  tool: {kind: wait, signal: go}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, args: {}}
"""
FAILING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: failing, path: examples/failing}
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    raise ValueError('no')"}
"""
PARENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parent, path: examples/parent}
workflow:
- step: start
  tool: {kind: playbook, path: examples/greet, args: {name: Child}}
"""
LARGE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: large, path: examples/large}
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    return {'text': 'abcdefghij' * 20000}"}
"""


LOOPING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: looping, path: examples/looping}
workflow:
- step: each
  loop: {in: "{{ [1, 2, 3] }}", iterator: n, spec: {policy: {failure: {mode: best_effort}}}}
  tool:
  - name: work
    kind: python
    args: {n: "{{ n }}"}
    code: |
      def main(n):
          if n == 2:
              raise ValueError("no")
          return n
  next: {arcs: [{step: total, args: {rows: "{{ event.result }}"}}]}
- step: total
  tool: {kind: noop, args: {sum: "{{ args.rows | select | sum }}"}}
"""
"""Its second iteration fails, and the loop goes on."""
REPAIRED_LOOPING = LOOPING.replace("n == 2", "n == 0")


class ServerProcess(NamedTuple):
    """A server that answers. `url` ends without a slash."""

    process: "subprocess.Popen[str]"
    url: str
    home: Path
    announced: dict[str, Any]
    """What it printed when it was ready."""

    @property
    def token(self) -> str:
        """That of its administrator."""
        return (self.home / "admin.token").read_text().strip()

    @property
    def client(self) -> Client:
        return Client(self.url, self.token)

    def stop(self) -> int:
        """Asks it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait()


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "noetl", *arguments]


@contextmanager
def server_process(
    folder: Path, *arguments: str, worker: bool = True, env: dict[str, str] | None = None
) -> Iterator[ServerProcess]:
    """A server on a free port, with its home in `folder`; it is gone afterwards."""
    home = folder / "server-home"
    flags = ["--embedded-worker"] if worker else []
    errors = folder / "server.err"
    with errors.open("a") as log:
        process = subprocess.Popen(
            command("server", "start", "--port", "0", "--home", str(home), "-o", "json", *flags, *arguments),
            cwd=folder,
            env=environment(folder, env),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        record = read_json_document(process, errors)
        yield ServerProcess(process, record["url"], home, record)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def read_json_document(process: "subprocess.Popen[str]", errors: Path) -> Any:
    """The indented document that a process prints first."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line == "}\n":
            return json.loads("".join(lines))
    raise AssertionError(f"it ended with {process.wait()}: {errors.read_text()}")


def kill(server: ServerProcess) -> None:
    """As a crash does."""
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
