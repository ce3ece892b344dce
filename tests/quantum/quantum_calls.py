"""Calls of the quantum tool for tests."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.ports.tool import Call
from noetl.stores.results.file_backend import FileResults
from noetl.stores.results.result_store_objects import ResultStoreObjects
from noetl.tools.quantum.tool import QuantumTool
from tests.tools.calls import call_of

BELL = """\
OPENQASM 3.0;
include "stdgates.inc";
qubit[2] q;
bit[2] c;
h q[0];
cx q[0], q[1];
c = measure q;
"""

ROTATED = """\
// a comment
OPENQASM 3.0;
include "stdgates.inc";
input float theta;
qubit[1] q;
rx(theta) q[0];
"""

ENDLESS = """\
OPENQASM 3.0;
include "stdgates.inc";
qubit[1] q;
bit[2] c;
h q[0];
c[0] = measure q[0];
h q[0];
c[1] = measure q[0];
"""
"""With a billion shots, each of which is simulated alone."""


class QuantumCalls:
    """An execution with its stored objects, which outlive the tools."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.objects = ResultStoreObjects(FileResults(folder / "results"), "x")
        self.lines: list[str] = []

    def call(self, action: str, *, timeout: float = 60.0, key: str = "k", **inputs: Any) -> Call:
        spec: dict[str, Json] = inputs.pop("spec", {})
        return call_of(
            "quantum",
            {"action": action, **inputs},
            spec=spec,
            key=key,
            timeout=timeout,
            folder=self.folder,
            log=self.lines.append,
            objects=self.objects,
        )

    def run(self, *calls: Call) -> list[Outcome]:
        """The outcomes of the calls, one after the other on one tool, which is closed at the end."""

        async def run_calls(tool: QuantumTool) -> list[Outcome]:
            return [await tool.run(outcome) for outcome in calls]

        return with_tool(run_calls)


def with_tool(work: Callable[[QuantumTool], Awaitable[list[Outcome]]]) -> list[Outcome]:
    async def run_calls() -> list[Outcome]:
        tool = QuantumTool()
        try:
            return await work(tool)
        finally:
            await tool.close()

    return asyncio.run(run_calls())


def error_of(outcome: Outcome) -> tuple[str, str]:
    assert outcome.error is not None
    return outcome.error.kind, outcome.error.message
