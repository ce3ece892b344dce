"""What tasks print: while they run, and after they failed."""

import json
from pathlib import Path

from tests.cli.command_line import run, run_on_terminal
from tests.cli.run_playbooks import HEADER

TALKING = HEADER + (
    "workflow:\n"
    "  - step: start\n"
    "    loop: {in: [a, b], iterator: name}\n"
    "    tool:\n"
    "      - name: say\n"
    "        kind: python\n"
    "        args: {name: '{{ iter.name }}'}\n"
    "        code: print('hello', name)\n"
    "    next: {arcs: [{step: more, when: '{{ event.name == \"loop.done\" }}'}]}\n"
    "  - step: more\n"
    "    tool: {name: sh, kind: shell, command: 'echo one; echo two >&2'}\n"
)
FAILING = HEADER + (
    "workflow:\n"
    "  - step: start\n"
    "    tool: {name: say, kind: python, code: print('not of the task that fails')}\n"
    "    next: {arcs: [{step: fails, when: '{{ event.name == \"step.done\" }}'}]}\n"
    "  - step: fails\n"
    "    tool:\n"
    "      - name: say\n"
    "        kind: python\n"
    "        args: {attempt: '{{ _attempt }}'}\n"
    "        code: |\n"
    "          for number in range(12):\n"
    "              print('attempt', attempt, 'line', number)\n"
    "          raise ValueError('no')\n"
    "        spec: {policy: {rules: [{when: '{{ true }}', then: {do: retry, attempts: 2}}]}}\n"
)


def test_lines_are_shown_as_they_come_and_json_stays_one_document(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(TALKING)
    done = run("run", "p.yaml", "--logs", "-o", "json", cwd=tmp_path)
    assert done.code == 0
    assert json.loads(done.out)["status"] == "completed"
    lines = done.err.splitlines()
    assert lines[0].startswith("execution ")
    lines_seen = [line for line in lines if " | " in line]
    stored_lines = run("executions", "logs", "latest", "-o", "json", cwd=tmp_path).json["lines"]
    assert [line["text"] for line in stored_lines] == ["hello a", "hello b", "one", "two"]
    assert lines_seen == [
        "start/say[0] | hello a",
        "start/say[1] | hello b",
        "more/sh | one",
        "more/sh | two",
    ]


def test_they_are_shown_only_when_asked_for(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(TALKING)
    assert " | " not in run("run", "p.yaml", cwd=tmp_path).err


def test_without_progress_they_are_still_shown(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(TALKING)
    done = run("run", "p.yaml", "--logs", "-q", cwd=tmp_path)
    assert done.err.splitlines()[0] == "start/say[0] | hello a"


def test_on_a_terminal_they_stand_above_the_display(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(TALKING)
    done = run_on_terminal("run", "p.yaml", "--logs", cwd=tmp_path, terminal="stderr")
    assert "start/say[0] | hello a\n" in done.err


def test_what_children_print_has_their_path_before_it(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(TALKING.replace("path: test/it", "path: lib/child"))
    (tmp_path / "p.yaml").write_text(
        HEADER + "workflow: [{step: start, tool: {name: c, kind: playbook, path: lib/child}}]\n"
    )
    done = run("run", "p.yaml", "--logs", cwd=tmp_path)
    assert "lib/child: start/say[0] | hello a\n" in done.err


def test_a_failure_shows_the_last_lines_of_its_attempt_and_names_the_command_for_all(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(FAILING)
    done = run("run", "p.yaml", cwd=tmp_path)
    expected = "".join(f"    attempt 2 line {number}\n" for number in range(2, 12))
    assert f"\n  printed:\n    …\n{expected}\n  traceback:\n" in done.err
    assert "not of the task" not in done.err
    execution_id = done.err.split()[1].removesuffix(",")
    assert f"  noetl executions logs {execution_id} " in done.err
    seen = run("executions", "show", "latest", cwd=tmp_path).out
    assert f"\n  printed:\n    …\n{expected}\n  traceback:\n" in seen
    logs = run("executions", "logs", "latest", cwd=tmp_path).out
    assert "not of the task that fails" in logs


def test_of_a_loop_it_shows_the_lines_of_the_iteration_that_failed(tmp_path: Path) -> None:
    failing = TALKING.replace("print('hello', name)", "print('hello', name); assert name != 'b'")
    (tmp_path / "p.yaml").write_text(failing)
    assert "  printed:\n    hello b\n\n" in run("run", "p.yaml", cwd=tmp_path).err


def test_where_nothing_was_printed_nothing_is_said_of_it(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(
        HEADER + "workflow: [{step: start, tool: {kind: shell, command: exit 3}}]\n"
    )
    done = run("run", "p.yaml", cwd=tmp_path)
    assert "printed:" not in done.err
    assert "executions logs" not in done.err


def test_what_goes_on_shows_them_too(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(FAILING)
    run("run", "p.yaml", cwd=tmp_path)
    done = run("executions", "retry", "latest", "--logs", cwd=tmp_path)
    assert "fails/say#3 | attempt 1 line 0\n" in done.err
