"""Runs the real command in a child process, and playbooks for it to look at."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tests.cli.command_forks import command_forks

COMMAND = [sys.executable, "-m", "noetl"]

VALID = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: greet, path: examples/greet}
workflow:
  - step: start
    tool:
      - name: say
        kind: noop
"""
BROKEN = VALID.replace("kind: Playbook\n", "kind: Playbook\nkind: Playbook\n")
"""The second `kind` is a duplicate: an error in line 3, column 1."""
WARNED = VALID.replace("greet}", "greet, dialect: canonical}").replace(
    "workflow:", "executor: {kind: local, profile: small}\nworkflow:"
)
OLD = """\
apiVersion: noetl.io/v1
kind: Playbook
name: greet
path: examples/greet
# a comment
workbook:
  - task: say
    type: python
    code: |
      def main(input):
          return {"said": True}
workflow:
  - step: start
    run:
      - task: say
    next:
      - then:
          - step: end
  - step: end
"""
DRAFT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: greet, path: examples/greet}
workflow:
  - step: start
    tool:
      - name: say
        kind: noop
        eval:
          - expr: "{{ outcome.status == 'error' }}"
            do: fail
          - else:
              do: continue
    next:
      - step: finish
  - step: finish
    tool:
      - name: done
        kind: noop
"""


class CompletedCommand(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def environment(cwd: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without anything of ours, at home just above `cwd`."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("NOETL_", "_NOETL"))}
    inherited = {key: value for key, value in inherited.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    return {**inherited, "HOME": str(cwd.parent), "TERM": "xterm", **(more or {})}


def run(
    *arguments: str, cwd: Path, stdin: str | bytes = "", env: Mapping[str, str] | None = None
) -> CompletedCommand:
    """What a command does in a child process, which is forked where that makes no difference."""
    stdin = stdin.encode() if isinstance(stdin, str) else stdin
    variables = environment(cwd, env)
    forks = command_forks()
    done = forks.run(arguments, cwd, variables, stdin) if forks else None
    if done is None:
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=cwd, env=variables, input=stdin, capture_output=True, check=False
        )
    return CompletedCommand(done.returncode, done.stdout.decode(), done.stderr.decode())


def run_on_terminal(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    terminal: Literal["stdout", "stderr"] = "stdout",
) -> CompletedCommand:
    """The same with standard output or standard error on a terminal."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment(cwd, env),
        stdin=subprocess.DEVNULL,
        stdout=slave if terminal == "stdout" else subprocess.PIPE,
        stderr=slave if terminal == "stderr" else subprocess.PIPE,
    ) as child:
        os.close(slave)
        output = b""
        while part := read_terminal(master):
            output += part
        piped = child.stdout or child.stderr
        rest = piped.read() if piped else b""
    os.close(master)
    texts = output.decode().replace("\r\n", "\n"), rest.decode()
    return CompletedCommand(child.returncode, *(texts if terminal == "stdout" else reversed(texts)))


def read_terminal(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux says EIO when the other side is closed
        return b""
