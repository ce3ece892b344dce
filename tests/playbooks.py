"""Playbooks as tests write them, and what loading says of them."""

import re
from collections.abc import Iterable
from textwrap import dedent, indent
from typing import NamedTuple

from noetl.dsl.document.playbook import Playbook, Step, Task
from noetl.dsl.document.problem import Problem
from noetl.loader import examine

HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: page, path: docs/page }\n"
NOOP = "tool: { kind: noop }"

_FRAGMENT = re.compile(r"(workflow|workload|keychain|executor|workbook|vars|steps):")


class ProblemPosition(NamedTuple):
    """A problem without its words."""

    line: int
    column: int
    code: str


def document_of(text: str) -> str:
    """The document that a fragment stands for: steps, or root sections, without the header."""
    if text.startswith("- step:"):
        return f"{HEADER}workflow:\n{text}"
    return HEADER + text if _FRAGMENT.match(text) else text


def step(body: str, name: str = "start") -> str:
    """One step of a workflow with these keys; they begin in the line after its name."""
    return f"- step: {name}\n" + indent(dedent(body).strip("\n"), "  ") + "\n"


def task(body: str) -> str:
    """A step whose pipeline is one task with these keys; they begin in the second line after its name."""
    return step("tool:\n  -\n" + indent(dedent(body).strip("\n"), "    "))


def problems_of(
    text: str, *, dialect: str | None = None, allow_kinds: Iterable[str] = ()
) -> tuple[Problem, ...]:
    """All problems of a document or a fragment of one, in document order; canonical unless it says otherwise."""
    document = document_of(text)
    read_as = dialect or (None if "dialect:" in document else "canonical")
    return examine(document, "playbook.yaml", dialect=read_as, allow_kinds=allow_kinds).problems


def problem_positions(text: str, *, allow_kinds: Iterable[str] = ()) -> list[ProblemPosition]:
    """Where the problems of a document stand, and their codes."""
    return [
        ProblemPosition(problem.line, problem.column, problem.code)
        for problem in problems_of(text, allow_kinds=allow_kinds)
    ]


def error_codes(text: str, *, allow_kinds: Iterable[str] = ()) -> list[str]:
    """The codes of the errors of a document."""
    problems = problems_of(text, allow_kinds=allow_kinds)
    return [problem.code for problem in problems if problem.severity == "error"]


def problem_of(text: str) -> Problem:
    """The only problem of a document."""
    (problem,) = problems_of(text)
    return problem


def playbook_of(text: str, *, allow_kinds: Iterable[str] = ()) -> Playbook:
    """The playbook of a document without errors."""
    loaded = examine(document_of(text), "playbook.yaml", allow_kinds=allow_kinds)
    assert loaded.playbook is not None, loaded.problems
    return loaded.playbook


def first_step(text: str, *, allow_kinds: Iterable[str] = ()) -> Step:
    return playbook_of(text, allow_kinds=allow_kinds).workflow[0]


def first_task(text: str, *, allow_kinds: Iterable[str] = ()) -> Task:
    return first_step(text, allow_kinds=allow_kinds).tasks[0]


def remove_marks(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without its `§` marks, and the line and column that each of them stood at."""
    places = []
    lines = []
    for number, line in enumerate(text.split("\n"), start=1):
        parts = line.split("§")
        places += [(number, sum(map(len, parts[:end])) + 1) for end in range(1, len(parts))]
        lines.append("".join(parts))
    return "\n".join(lines), places
