"""Documents small enough to read, upgraded."""

import json
from textwrap import dedent, indent
from typing import Literal, NamedTuple

import pytest

from noetl.dsl.dialects import upgrade_document
from noetl.dsl.document.composer import compose
from noetl.dsl.document.source import Located, Mapping, node_value
from noetl.model.json import Json


class ReportedProblem(NamedTuple):
    code: str
    line: int
    column: int


class UpgradedDocument(NamedTuple):
    root: Mapping
    problems: list[ReportedProblem]

    @property
    def document(self) -> dict[str, Json]:
        document = node_value(self.root)
        assert isinstance(document, dict)
        return document

    @property
    def steps(self) -> list[Json]:
        steps = self.document["workflow"]
        assert isinstance(steps, list)
        return steps


def yaml_values(text: str) -> Json:
    """A piece of YAML as plain values."""
    node = compose(dedent(text))
    return None if node is None else node_value(node)


def upgrade_text(text: str, dialect: Literal["v1", "draft"]) -> UpgradedDocument:
    root = compose(text)
    assert isinstance(root, Mapping)
    problems: list[ReportedProblem] = []

    def report(code: str, at: Located, message: str, hint: str = "") -> None:
        assert message
        problems.append(ReportedProblem(code, at.line, at.column))

    return UpgradedDocument(upgrade_document(root, dialect, report), problems)


def case(clause: str, name: str, *texts: str) -> object:
    """A row of a table: a construct and what it becomes, with the clause that says so."""
    return pytest.param(*texts, marks=pytest.mark.spec(clause), id=name)


def draft_document(workflow: str) -> str:
    """A draft playbook with this workflow."""
    head = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: a, path: b, dialect: draft }\n"
    return head + "workflow:\n" + indent(dedent(workflow), "  ")


def draft_step(text: str) -> Json:
    """The canonical form of the first step of a draft workflow, which must be sound."""
    upgraded = upgrade_text(draft_document(text), "draft")
    assert upgraded.problems == []
    return upgraded.steps[0]


def draft_task(text: str) -> Json:
    """The canonical form of a draft task."""
    task = yaml_values(text)
    assert isinstance(task, dict)
    step = draft_step(f"- step: s\n  tool: [{json.dumps(task)}]\n")
    assert isinstance(step, dict)
    tool = step["tool"]
    assert isinstance(tool, list)
    return tool[0]


def v1_document(workbook: str, workflow: str, workload: str = "{}") -> str:
    """A v1 playbook; the workload is one line."""
    return (
        "apiVersion: noetl.io/v1\nkind: Playbook\nname: a\npath: b\n"
        f"workload: {workload}\n"
        "workbook:\n" + indent(dedent(workbook), "  ") + "workflow:\n" + indent(dedent(workflow), "  ")
    )


def v1_steps(workbook: str, workflow: str, workload: str = "{}") -> list[Json]:
    """The canonical steps of a sound v1 document; warnings are allowed."""
    upgraded = upgrade_text(v1_document(workbook, workflow, workload), "v1")
    errors = [problem for problem in upgraded.problems if problem.code not in WARNINGS]
    assert errors == []
    return upgraded.steps


WARNINGS = {"v1-unused-task", "v1-error-condition", "v1-ignored-run", "dead-arc"}


def v1_pipeline(workbook: str, run: str, workload: str = "{}") -> Json:
    """The canonical pipeline of a v1 step `start` that runs these tasks."""
    steps = v1_steps(workbook, f"- step: start\n  run: {run}\n", workload)
    assert isinstance(steps[0], dict)
    return steps[0]["tool"]
