"""Runs a document of a dialect, and what says the same canonically."""

from textwrap import dedent
from typing import Any, NamedTuple

import noetl
from tests.playbooks import HEADER

V1 = "apiVersion: noetl.io/v1\nkind: Playbook\nname: page\npath: docs/page\n"
MEMORY = "sqlite:///:memory:"


class EndedExecution(NamedTuple):
    """How an execution ended."""

    status: str
    result: Any
    error: str | None
    steps: dict[str, int]
    """How often each step ran, those that never did left out."""


def run_document(
    text: str, workload: dict[str, Any] | None = None, dialect: str | None = None
) -> EndedExecution:
    execution = noetl.run(text, workload, store=MEMORY, dialect=dialect)
    error = None if execution.error is None else execution.error["kind"]
    steps = {name: step["runs"] for name, step in execution.steps.items() if step["runs"]}
    return EndedExecution(execution.status, execution.result, error, steps)


def run_v1(text: str, workload: dict[str, Any] | None = None) -> EndedExecution:
    return run_document(V1 + dedent(text), workload)


def run_draft(text: str, workload: dict[str, Any] | None = None) -> EndedExecution:
    return run_document(HEADER + dedent(text), workload, "draft")


def run_canonical(text: str, workload: dict[str, Any] | None = None) -> EndedExecution:
    return run_document(HEADER + dedent(text), workload)
