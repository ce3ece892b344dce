"""A server whose log is read, and playbooks that give it something to say."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, NamedTuple

from noetl.ports.control import SESSION_HEADER
from noetl.ports.http_api import ExecutionDetail, StartExecution
from tests.plane.plane_processes import WorkerProcess
from tests.server.server_process import ServerProcess

SECRET_TEXT = "xyzzy-plugh-4711"
FAILING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: failing, path: observed/failing}
workflow:
- step: start
  tool: {kind: python, code: "def main():\\n    raise ValueError('no')"}
"""
RETRYING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: retrying, path: observed/retrying}
workflow:
- step: start
  tool:
  - name: ask
    kind: python
    args: {attempt: "{{ _attempt }}"}
    code: "def main(attempt):\\n    if attempt < 3: raise ValueError('not yet')\\n    return attempt"
    spec:
      policy:
        rules:
        - when: "{{ outcome.status == 'error' }}"
          then: {do: retry, attempts: 3, delay: 0.001}
"""
SECRET = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: secret, path: observed/secret}
keychain:
- {name: door, kind: env, env: OBSERVED_SECRET}
workflow:
- step: start
  tool:
    kind: python
    args: {word: "{{ keychain.door.value }}"}
    code: "def main(word):\\n    raise ValueError('the word is ' + word)"
"""
STRANGE = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: strange, path: observed/strange}
executor: {kind: distributed, spec: {pool: strange}}
workflow:
- step: start
  tool: {kind: noop}
"""
"""For a pool that the worker does not serve."""


class ObservedServer(NamedTuple):
    server: ServerProcess
    worker: WorkerProcess
    errors: Path

    def run(self, path: str, **workload: Any) -> ExecutionDetail:
        client = self.server.client
        return client.wait(client.start(StartExecution(path=path, workload=workload)).execution_id)

    def server_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.errors.read_text().splitlines()]

    def worker_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.worker.lines]

    def lines_of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.server_lines() if line["event"] == event]


def post_as_worker(observed: ObservedServer, path: str, body: bytes, session: str = "") -> bytes:
    token = (observed.server.home / "worker.token").read_text().strip()
    headers = {"authorization": f"Bearer {token}", **({SESSION_HEADER: session} if session else {})}
    request = urllib.request.Request(f"{observed.server.url}/api/worker/{path}", body, headers)  # noqa: S310 - our own server
    try:
        with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310 - likewise
            return bytes(response.read())
    except urllib.error.HTTPError as error:
        return error.read()
