"""A tool whose only effect is a line in a file, durable before it returns."""

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.loader import installed_kinds
from noetl.model.outcome import ErrorInfo, Outcome, failed, succeeded
from noetl.ports.tool import Call
from noetl.testing.crash.fuse import Fuse, ProcessCrash
from noetl.tools.host.worker_tools import Tools

EFFECT_KIND = "effect"


class Effect(Struct, frozen=True, kw_only=True):
    """What one run of a tool did to the world."""

    execution_id: str = ""
    task: str = ""
    label: str
    attempt: int = 0
    key: str = ""


class EffectTool:
    """Writes a line, then gives the input `give`, or fails if `fail` is true.

    Before it writes it lets others work for `turns` turns of the loop; with `unless` it fails until there
    is such a file. With `object` it gives an object with this text. A process that is dead writes nothing.
    """

    def __init__(self, path: Path, fuse: Fuse) -> None:
        self._path = path
        self._fuse = fuse

    async def run(self, call: Call) -> Outcome:
        inputs: Any = call.inputs
        for _ in range(int(inputs.get("turns", 0))):
            await asyncio.sleep(0)
        if self._fuse.dead:
            await self._fuse.hang()
        effect = Effect(
            execution_id=call.execution_id,
            task=call.task,
            label=str(inputs["label"]),
            attempt=call.attempt,
            key=call.idempotency_key,
        )
        _append_durably(self._path, msgspec.json.encode(effect) + b"\n")
        missing = "unless" in inputs and not (self._path.parent / inputs["unless"]).exists()
        if inputs.get("fail") or missing:
            return failed(ErrorInfo(kind="tool", message=f"{effect.label} did not work", retryable=True))
        if "object" in inputs:
            return await self._give_object(call, str(inputs["object"]))
        return succeeded(inputs.get("give", effect.label))

    async def _give_object(self, call: Call, text: str) -> Outcome:
        async with call.objects.draft() as draft:
            draft.path.write_text(text, "utf-8")
            try:
                return succeeded(await draft.keep("text/plain"))
            except ProcessCrash:
                await self._fuse.hang()
                raise

    async def close(self) -> None:
        """Nothing is held."""


def effect_tools(path: Path, fuse: Fuse) -> Tools:
    """The tools of a worker, and the one that is counted."""
    tool = EffectTool(path, fuse)
    kind = Kind(name=EFFECT_KIND, summary="Writes a line.", implementation=lambda: tool)
    return Tools(Kinds([*installed_kinds(), kind]))


def read_effects(path: Path) -> list[Effect]:
    """Everything that was done, in order."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [msgspec.json.decode(line, type=Effect) for line in lines]


def _append_durably(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
