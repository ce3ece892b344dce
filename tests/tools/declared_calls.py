"""Calls of declared tools for tests."""

import asyncio
from typing import Any

from noetl.dsl.document.kinds import Kind
from noetl.loader import installed_kinds
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.ports.tool import Call
from noetl.tools.host.worker_tools import Tools
from tests.tools.python_calls import call


def run(kind: str, *calls: Call) -> list[Outcome]:
    """The outcomes of the calls on one tool of this kind, which is closed at the end."""

    async def run_calls() -> list[Outcome]:
        tools = Tools(installed_kinds())
        tool = tools.get(kind)
        assert tool is not None
        try:
            return [await tool.run(tool_call) for tool_call in calls]
        finally:
            await tools.close()

    return asyncio.run(run_calls())


def outcome_of(kind: str, **inputs: Any) -> Outcome:
    (outcome,) = run(kind, call(**inputs))
    return outcome


def error_of(kind: str, **inputs: Any) -> ErrorInfo:
    outcome = outcome_of(kind, **inputs)
    assert outcome.error is not None, outcome
    return outcome.error


def kind_named(kind: str) -> Kind:
    registered = installed_kinds().get(kind)
    assert registered is not None
    return registered
