"""Programs and code of tasks that run under the real command: their log, their end, what they pass on."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.command_line import COMMAND, environment, run
from tests.playbooks import document_of
from tests.tools.python_calls import ends

SHELL = """
- step: start
  tool:
    name: hang
    kind: shell
    command: "echo $$; sleep 1000 & echo $!; wait"
"""
PYTHON = """
- step: start
  tool:
    name: hang
    kind: python
    code: |
      import os, subprocess, time
      print(os.getpid())
      print(subprocess.Popen(["sleep", "1000"]).pid)
      time.sleep(1000)
"""


@contextmanager
def command(folder: Path, *words: str) -> "Iterator[subprocess.Popen[str]]":
    with subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def hanging(folder: Path, text: str) -> "Iterator[tuple[subprocess.Popen[str], list[int]]]":
    """A run that hangs, and the processes of its task, as `logs --follow` tells them meanwhile."""
    (folder / "p.yaml").write_text(document_of(text.lstrip()))
    with command(folder, "run", "p.yaml", "-o", "json") as running:
        assert running.stderr
        name = next(line.split()[1].rstrip(",") for line in running.stderr if line.startswith("execution "))
        with command(folder, "executions", "logs", name, "-f", "-o", "json") as logs:
            assert logs.stdout
            lines = [json.loads(logs.stdout.readline()) for _ in range(2)]
        assert {(line["step"], line["task"]) for line in lines} == {("start", "hang")}
        yield running, [int(line["text"]) for line in lines]


@pytest.mark.parametrize("text", [SHELL, PYTHON], ids=["shell", "python"])
def test_cancelling_an_execution_ends_its_processes(tmp_path: Path, text: str) -> None:
    with hanging(tmp_path, text) as (running, pids):
        assert run("executions", "cancel", "latest", cwd=tmp_path).code == 0
        out, _ = running.communicate()
        assert json.loads(out)["status"] == "cancelled"
        assert all(ends(pid) for pid in pids)


@pytest.mark.parametrize("text", [SHELL, PYTHON], ids=["shell", "python"])
def test_the_death_of_the_run_is_the_end_of_its_processes(tmp_path: Path, text: str) -> None:
    with hanging(tmp_path, text) as (running, pids):
        running.kill()
        running.communicate()
        assert all(ends(pid) for pid in pids)


def test_the_log_of_a_loop_says_which_iteration_wrote_a_line(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        document_of(
            """\
- step: start
  loop: { in: [a, b], iterator: item }
  tool: { name: say, kind: python, args: { item: "{{ item }}" }, code: "print(item)" }
  next: { arcs: [{ step: end }] }
- step: end
  tool: { name: say, kind: python, code: "print('end')" }
"""
        )
    )
    assert run("run", "p.yaml", cwd=tmp_path).code == 0
    output = run("executions", "logs", "latest", cwd=tmp_path).out
    assert [line.split()[2:] for line in output.splitlines()] == [
        ["start/say[0]", "a"],
        ["start/say[1]", "b"],
        ["end/say", "end"],
    ]
    lines = run("executions", "logs", "latest", "-o", "json", cwd=tmp_path).json["lines"]
    assert [line.get("iteration") for line in lines] == [0, 1, None]


def test_programs_and_code_hand_on_what_they_make(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "count.py").write_text(
        "def main(text, floor):\n    return [len(line) for line in text.split() if len(line) > floor]\n"
    )
    (tmp_path / "jobs" / "p.yaml").write_text(
        document_of(
            """\
- step: start
  tool:
    - { name: make, kind: shell, command: "printf 'a\\nbb\\nccc\\n'; pwd >&2" }
    - { name: count, kind: python, script: count.py, args: { text: "{{ _prev.stdout }}", floor: 1 } }
    - { name: sort, kind: shell, command: [sort, -nr], stdin: "{{ _prev | join('\\n') }}\\n" }
    - { name: many, kind: shell, command: "yes abcdefg | head -n 300000" }
    - { name: lines, kind: shell, command: [wc, -l], stdin: "{{ many.stdout_ref }}" }
    - name: end
      kind: noop
      args:
        sorted: "{{ sort.stdout }}"
        folder: "{{ make.stderr }}"
        lines: "{{ lines.stdout | trim | int }}"
        tail: "{{ many.stdout[-8:] }}"
        size: "{{ many.stdout_ref.size }}"
"""
        )
    )
    ran = run("run", "jobs/p.yaml", "-o", "json", cwd=tmp_path)
    assert ran.code == 0, ran
    assert ran.json["result"] == {
        "sorted": "3\n2\n",
        "folder": f"{tmp_path}/jobs\n",
        "lines": 300_000,
        "tail": "abcdefg\n",
        "size": 2_400_000,
    }


def test_policies_see_how_a_program_ended(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        document_of(
            """\
- step: start
  tool:
    name: flaky
    kind: shell
    command: 'echo x >> tries; test $(wc -l < tries) -ge 3 || { echo "not yet" >&2; exit 75; }; echo ok'
    spec:
      policy:
        rules:
          - when: "{{ outcome.error.exit_code == 75 and outcome.result.stderr == 'not yet\\n' }}"
            then: { do: retry, attempts: 5 }
"""
        )
    )
    ran = run("run", "p.yaml", "-o", "json", cwd=tmp_path)
    assert ran.json["result"] == {"exit_code": 0, "stdout": "ok\n", "stderr": ""}
    assert (tmp_path / "tries").read_text() == "x\n" * 3
