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

    async def whole() -> list[Outcome]:
        tools = Tools(installed_kinds())
        tool = tools.get(kind)
        assert tool is not None
        try:
            return [await tool.run(one) for one in calls]
        finally:
            await tools.close()

    return asyncio.run(whole())


def outcome(kind: str, **inputs: Any) -> Outcome:
    (found,) = run(kind, call(**inputs))
    return found


def error(kind: str, **inputs: Any) -> ErrorInfo:
    found = outcome(kind, **inputs)
    assert found.error is not None, found
    return found.error


def known(kind: str) -> Kind:
    found = installed_kinds().get(kind)
    assert found is not None
    return found
