"""The types of the public names, as a program that imports noetl sees them.

It is never run; mypy reads it. A name that has lost its type is `Any`, and so is whatever is asked of it: hence
attributes and calls, since `Any` equals itself.
"""

from datetime import datetime
from pathlib import Path
from typing import Any, Literal, assert_type

import noetl


async def running(path: Path) -> None:
    assert_type(noetl.run("a.yaml"), noetl.Execution)
    assert_type(noetl.run(path, {"name": "Ada"}, store="sqlite:///:memory:"), noetl.Execution)
    assert_type(
        await noetl.arun(path, {"name": "Ada"}, labels={"team": "shop"}, timeout=1.5), noetl.Execution
    )
    await noetl.arun(1)  # type: ignore[arg-type]  # must be refused
    await noetl.arun(path, timeot=1)  # type: ignore[call-arg]  # must be refused


def steering(path: Path) -> None:
    executions = noetl.open(path, catalogs=["playbooks"], slots=2)
    assert_type(executions, noetl.Executions)
    assert_type(noetl.open(), noetl.Executions)
    listed = executions.list(status=["failed"], path="shop/", labels={"team": "shop"}, limit=3)
    assert_type(listed, list[noetl.ListedExecution])
    assert_type(
        [(entry.execution_id, entry.status, entry.parent) for entry in listed],
        list[tuple[str, str, str | None]],
    )
    assert_type(listed[0].started_at, datetime)
    assert_type(listed[0].ended_at, datetime | None)
    assert_type(executions.show(), noetl.Execution)
    assert_type(executions.events("latest", after=3), list[dict[str, Any]])
    assert_type(executions.resume("latest"), noetl.Execution)
    assert_type(executions.retry("latest"), noetl.Execution)
    executions.signal("latest", "approved", {"by": "Ada"})
    executions.cancel("latest", reason="no longer needed")
    executions.signal("latest")  # type: ignore[call-arg]  # must be refused
    executions.list(stats=["failed"])  # type: ignore[call-arg]  # must be refused
    noetl.open(1)  # type: ignore[arg-type]  # must be refused


async def serving(client: noetl.Client) -> None:
    detail = client.show("id", wait=3)
    assert_type(detail.status, str)
    assert_type([item.path for item in client.list(status=("failed",)).executions], list[str])
    assert_type(client.events("id", after=3).events, list[dict[str, Any]])
    client.signal("id", "approved", {"by": "Ada"})
    client.list(stats=())  # type: ignore[call-arg]  # must be refused
    noetl.Client(1)  # type: ignore[arg-type]  # must be refused
    async with noetl.AsyncClient("http://127.0.0.1:8642", "token", ca="ca.pem") as server:
        assert_type((await server.show("id")).status, str)
        async for event in server.stream("id", after=3):
            assert_type(event, dict[str, Any])


def refusals(refused: noetl.ServerError, unreachable: noetl.ServerUnreachable) -> None:
    assert_type(refused.problem.status, int)
    assert_type(refused.code, str)
    assert_type(unreachable.hint, str)


def reading(path: Path) -> None:
    assert_type(noetl.load(path, dialect="v1", allow_kinds=["greet"]), noetl.Playbook)
    assert_type(noetl.validate("a.yaml"), list[noetl.Problem])
    noetl.load(path, dialekt="v1")  # type: ignore[call-arg]  # must be refused
    noetl.validate(1)  # type: ignore[arg-type]  # must be refused


def values(execution: noetl.Execution, playbook: noetl.Playbook, problem: noetl.Problem) -> None:
    assert_type(execution.execution_id, str)
    assert_type(execution.status, str)
    assert_type(execution.ok, bool)
    assert_type(execution.ctx, dict[str, Any])
    assert_type(execution.error, dict[str, Any] | None)
    assert_type(execution.duration_ms, int)
    assert_type(execution.raise_for_status(), noetl.Execution)
    assert_type(playbook.hash, str)
    assert_type(playbook.metadata.path, str)
    assert_type([task.kind for step in playbook.workflow for task in step.tasks], list[str])
    assert_type(problem.line, int)
    assert_type(problem.severity, Literal["error", "warning"])
    len(execution.statsu)  # type: ignore[attr-defined]  # must be refused


def errors(
    failed: noetl.ExecutionFailed,
    invalid: noetl.PlaybookInvalid,
    cannot_run: noetl.CannotRun,
    expression: noetl.ExpressionError,
) -> None:
    assert_type(failed.execution, noetl.Execution)
    assert_type(invalid.problems, tuple[noetl.Problem, ...])
    assert_type(cannot_run.problems, tuple[noetl.Problem, ...])
    assert_type(cannot_run.hint, str)
    assert_type(expression.offset, int | None)
    assert_type(noetl.ToolError("not_found", "no such city", retryable=True).info.message, str)
    noetl.ToolError("not_a_kind", "")  # type: ignore[arg-type]  # must be refused
    assert_type(noetl.NoetlError().args, tuple[Any, ...])
    roots: list[noetl.NoetlError] = [failed, invalid, cannot_run, expression, noetl.ToolError("tool", "")]
    roots.append(ValueError())  # type: ignore[arg-type]  # must be refused


@noetl.tool("greet", effect="pure")
async def greet(name: str, times: int = 1) -> str:
    return f"Hello, {name}! " * times


@noetl.tool("refused", effect="none")  # type: ignore[arg-type]  # must be refused
async def refused() -> None: ...


async def calling() -> None:
    assert_type(await greet("Ada", times=2), str)
    await greet(1)  # type: ignore[arg-type]  # must be refused: a tool is still the function it was
