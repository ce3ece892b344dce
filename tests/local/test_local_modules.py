"""A module that `libs` names and that is not installed is found before the first step, here and in children."""

import json
from pathlib import Path

import pytest

import noetl
from tests.playbooks import HEADER

MEMORY = "sqlite:///:memory:"
LACKING = '{step: far, tool: {name: work, kind: python, libs: {n: no_such_module}, code: "result = 1"}}'
CHILD = HEADER.replace("docs/page", "docs/child") + f"workflow:\n- {LACKING}\n"
FOUND = "task `work` of step `far`: `libs` names the module `no_such_module`, which is not installed"


def test_a_playbook_is_refused_for_a_step_that_would_never_run() -> None:
    text = f"{HEADER}workflow:\n- {{step: start, tool: {{kind: noop}}}}\n- {LACKING}\n"
    with pytest.raises(noetl.CannotRun) as caught:
        noetl.run(text, store=MEMORY)
    (problem,) = caught.value.problems
    assert (problem.message, problem.line, problem.column) == (FOUND, 6, 28)
    assert problem.hint.endswith("-m pip install no_such_module`")


def test_so_is_one_in_the_dialect_in_use_at_its_own_line() -> None:
    text = (
        f"{HEADER}workflow:\n- {{step: start, tool: {{kind: noop, input: {{}}}}}}\n"
        "- step: far\n  tool:\n"
        '  - {name: work, kind: python, libs: [json, no-such-module], code: "result = 1"}\n'
    )
    with pytest.raises(noetl.CannotRun) as caught:
        noetl.run(text, store=MEMORY)
    (problem,) = caught.value.problems
    assert (problem.message, problem.line) == (FOUND, 8)


def test_so_is_one_whose_child_lacks_it(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(CHILD)
    (tmp_path / "page.yaml").write_text(
        f"{HEADER}workflow:\n- {{step: start, tool: {{kind: playbook, path: docs/child}}}}\n"
    )
    with pytest.raises(noetl.CannotRun) as caught:
        noetl.run(tmp_path / "page.yaml", store=MEMORY)
    (problem,) = caught.value.problems
    assert (problem.message, Path(problem.file).name) == (FOUND, "child.yaml")


def test_a_child_that_is_known_only_then_fails_before_its_first_step(tmp_path: Path) -> None:
    (tmp_path / "child.yaml").write_text(CHILD)
    document = json.dumps(
        {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"name": "c", "path": "docs/inner"},
            "workflow": [
                {"step": "begin", "tool": {"kind": "file", "action": "put", "url": "made", "content": "x"}},
                {
                    "step": "far",
                    "tool": {"name": "work", "kind": "python", "libs": {"n": "no_such_module"}, "code": "0"},
                },
            ],
        }
    )
    for inputs in ('path: "{{ workload.child }}"', f"document: {document}"):
        page = tmp_path / "page.yaml"
        page.write_text(
            f"{HEADER}workload: {{child: docs/child}}\nworkflow:\n- step: start\n  tool: {{kind: playbook, {inputs}}}\n"
        )
        execution = noetl.run(page, store=MEMORY)
        assert execution.error is not None
        assert execution.error["kind"] == "child_failed"
        assert FOUND in execution.error["message"]
        assert not (tmp_path / "made").exists()
