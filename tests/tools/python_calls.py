"""Calls of the Python tool for tests, and a look at processes without waiting blindly."""

import asyncio
import os
import select
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.ports.tool import Call
from noetl.tools.python.tool import PythonTool
from tests.tools.calls import HERE, call_of, quiet


def call(
    code: str | None = None,
    *,
    args: dict[str, Json] | None = None,
    spec: dict[str, Json] | None = None,
    timeout: float = 30.0,
    folder: Path = HERE,
    log: Callable[[str], None] = quiet,
    **inputs: Json,
) -> Call:
    if code is not None:
        inputs["code"] = textwrap.dedent(code)
    return call_of("python", inputs, args=args, spec=spec, timeout=timeout, folder=folder, log=log)


def run(*calls: Call, **options: Any) -> list[Outcome]:
    """The outcomes of the calls, one after the other on one tool, which is closed at the end."""

    async def run_calls() -> list[Outcome]:
        tool = PythonTool(**options)
        try:
            return [await tool.run(tool_call) for tool_call in calls]
        finally:
            await tool.close()

    return asyncio.run(run_calls())


def results(*codes: str, **options: Any) -> list[Json]:
    """The results of the pieces of code, which all succeed."""
    outcomes = run(*(call(code) for code in codes), **options)
    assert [outcome.error for outcome in outcomes] == [None] * len(codes)
    return [outcome.result for outcome in outcomes]


def result_of(code: str | None = None, **options: Any) -> Any:
    """The result of one call, which succeeds."""
    (outcome,) = run(call(code, **options))
    assert outcome.error is None, outcome
    return outcome.result


def failure_of(code: str | None = None, **options: Any) -> Outcome:
    """The outcome of one call, which fails. After it the same tool runs another call well."""
    outcome, after = run(call(code, **options), call("result = 'alive'"))
    assert outcome.status == "error"
    assert after.result == "alive"
    return outcome


def kind_and_message(outcome: Outcome) -> tuple[str, str]:
    assert outcome.error is not None
    return outcome.error.kind, outcome.error.message


def ends(pid: int, seconds: float = 60.0) -> bool:
    """Whether the process is gone within that time; a zombie is."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        return bool(poll.poll(seconds * 1_000))
    finally:
        os.close(handle)
