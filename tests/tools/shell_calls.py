"""Calls of the shell tool for tests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from noetl.model.outcome import ErrorInfo, Outcome
from noetl.ports.results import ExecutionObjects
from noetl.ports.tool import Call
from noetl.tools.process.captured_program import GRACE
from noetl.tools.shell.tool import ShellTool
from tests.tools.calls import HERE, call_of, quiet

T = TypeVar("T")


def call(
    command: str | list[Any],
    *,
    timeout: float = 30.0,
    folder: Path = HERE,
    log: Callable[[str], None] = quiet,
    objects: ExecutionObjects | None = None,
    **inputs: Any,
) -> Call:
    all_inputs = {"command": command, **inputs}
    return call_of("shell", all_inputs, timeout=timeout, folder=folder, log=log, objects=objects)


def with_tool(work: Callable[[ShellTool], Awaitable[T]], **options: Any) -> T:
    """What the work gives; the tool is closed afterwards."""

    async def run_calls() -> T:
        tool = ShellTool(**options)
        try:
            return await work(tool)
        finally:
            await tool.close()

    return asyncio.run(run_calls())


def outcome_of(command: str | list[Any], **options: Any) -> Outcome:
    return with_tool(lambda tool: tool.run(call(command, **options)))


def result_of(command: str | list[Any], **options: Any) -> Any:
    """The result of a command that succeeds."""
    outcome = outcome_of(command, **options)
    assert outcome.error is None, outcome
    return outcome.result


def error_of(command: str | list[Any], *, grace: float = GRACE, **options: Any) -> ErrorInfo:
    """The error of a command that fails."""
    outcome = with_tool(lambda tool: tool.run(call(command, **options)), grace=grace)
    assert outcome.error is not None, outcome
    return outcome.error
