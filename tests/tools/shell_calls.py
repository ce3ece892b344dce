"""Calls of the shell tool for tests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from noetl.model.outcome import ErrorInfo, Outcome
from noetl.ports.results import ExecutionObjects
from noetl.ports.tool import Call
from noetl.tools.shell.tool import GRACE, ShellTool
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
    given = {"command": command, **inputs}
    return call_of("shell", given, timeout=timeout, folder=folder, log=log, objects=objects)


def with_tool(work: Callable[[ShellTool], Awaitable[T]], **options: Any) -> T:
    """What the work gives; the tool is closed afterwards."""

    async def whole() -> T:
        tool = ShellTool(**options)
        try:
            return await work(tool)
        finally:
            await tool.close()

    return asyncio.run(whole())


def outcome(command: str | list[Any], **about: Any) -> Outcome:
    return with_tool(lambda tool: tool.run(call(command, **about)))


def result(command: str | list[Any], **about: Any) -> Any:
    """The result of a command that succeeds."""
    found = outcome(command, **about)
    assert found.error is None, found
    return found.result


def error(command: str | list[Any], *, grace: float = GRACE, **about: Any) -> ErrorInfo:
    """The error of a command that fails."""
    found = with_tool(lambda tool: tool.run(call(command, **about)), grace=grace)
    assert found.error is not None, found
    return found.error
