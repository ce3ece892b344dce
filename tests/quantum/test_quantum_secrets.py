"""A quantum job that has to do with secrets writes none of them."""

import os
from pathlib import Path

import pytest

from tests.cli.command_line import CompletedCommand, run
from tests.secrets.secret_search import SECRET, SIMPLE, leaks

MODULE = """\
class Loud:
    def __init__(self, auth):
        self.token = auth["token"]
        print("the token is", self.token)

    def submit(self, job):
        print(job["program"])
        return f"job of {self.token}"

    def status(self, job_id):
        raise ValueError(f"{job_id}: {self.token} is wrong")

    def result(self, job_id):
        result = {"counts": {self.token: 1}, "note": [job_id]}
        return {**result, "memory": [self.token]} if job_id.startswith("kept") else result
"""

HEAD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: leak, path: leak}
keychain:
  - {name: marked, kind: env, env: MARKED}
  - {name: simple, kind: env, env: SIMPLE}
workflow:
  - step: start
    tool:
"""

TASKS = {
    "a provider": """
      - all: {kind: quantum, action: run, backend: loud, auth: {token: "{{ keychain.marked.value }}"}, program: "OPENQASM 3.0;"}
      - simple: {kind: quantum, action: submit, backend: loud, auth: {token: "{{ keychain.simple.value }}"}, program: "OPENQASM 3.0;"}
""",
    "a table that fails": """
      - wrong: {kind: quantum, action: result, backend: loud, auth: {token: "{{ keychain.marked.value }}"}, job_id: kept}
""",
    "a provider that fails": """
      - wrong: {kind: quantum, action: status, backend: loud, auth: {token: "{{ keychain.marked.value }}"}, job_id: j}
""",
    "a program": """
      - comment: {kind: quantum, action: run, program: "OPENQASM 3.0; // {{ keychain.marked.value }}\\nqubit q;"}
""",
    "a program that fails": """
      - wrong: {kind: quantum, action: run, program: "OPENQASM 3.0;\\nqubit {{ keychain.simple.value }}\\n;;"}
""",
}


def run_tasks(tmp_path: Path, tasks: str) -> CompletedCommand:
    info = tmp_path / "package" / "loud-1.0.dist-info"
    info.mkdir(parents=True)
    (tmp_path / "package" / "loud.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: loud\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[noetl.quantum]\nloud = loud:Loud\n")
    (tmp_path / "leak.yaml").write_text(HEAD + tasks, "utf-8")
    paths = [str(tmp_path / "package"), os.environ.get("PYTHONPATH", "")]
    env = {"MARKED": SECRET, "SIMPLE": SIMPLE, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    return run("run", "leak.yaml", "-v", cwd=tmp_path, env=env)


@pytest.mark.parametrize("name", TASKS)
def test_no_secret_is_written(name: str, tmp_path: Path) -> None:
    ran = run_tasks(tmp_path, TASKS[name])
    assert ran.code == (1 if "fails" in name else 0), ran.err
    assert leaks(tmp_path / ".noetl", ran.out, ran.err) == {}
