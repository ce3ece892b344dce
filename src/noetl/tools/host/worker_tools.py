"""The tools of one worker: which kinds it can run, and what runs them."""

import asyncio
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any

from msgspec import Struct

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.dsl.document.playbook import Playbook, Position
from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, Outcome, failed
from noetl.ports.tool import Call, ExecutionScoped, Tool
from noetl.system import SYSTEM, System
from noetl.tools.host.deadlines import Deadlines
from noetl.tools.host.extras import install_command

ENGINE_KINDS = frozenset({"playbook", "wait", "workbook"})
"""What the engine does itself, without a tool. A test holds it equal to the built-in kinds without one."""


class Tools:
    """The tools of one worker, each made when it is first asked for.

    With `traced` they tell others whom they ask to which span that belongs.
    """

    def __init__(self, kinds: Kinds, system: System = SYSTEM, *, traced: bool = False) -> None:
        self.kinds = kinds
        self.traced = traced
        self.system = system
        self.deadlines = Deadlines()
        self._tools: dict[str, Tool] = {}
        self._execution_scoped: list[ExecutionScoped] = []
        self._immediate: dict[str, bool] = {}  # asked for at every task
        self._closed = False

    def immediate(self, kind: str) -> bool:
        """Whether tasks of this kind are pure and wait for nothing, so that they are done when they begin."""
        immediate = self._immediate.get(kind)
        if immediate is None:
            registered = self.kinds.get(kind)
            immediate = registered is not None and registered.effect == "pure" and not registered.threaded
            self._immediate[kind] = immediate
        return immediate

    def repeatable(self, kind: str, inputs: Mapping[str, Json]) -> bool:
        """Whether a task may begin before that is recorded, as nobody would notice that it began again."""
        registered = self.kinds.get(kind)
        if registered is None:
            return False
        if registered.repeatable is None:
            return registered.effect == "pure"
        return registered.repeatable(inputs)

    def get(self, kind: str) -> Tool | None:
        """The tool for this kind; None if nothing here runs it.

        One that cannot be made is a tool whose every call fails and says why; the next `get` tries again.
        """
        tool = self._tools.get(kind)
        if tool is not None:
            return tool
        registered = self.kinds.get(kind)
        if registered is None or registered.implementation is None:
            return None
        if self._closed:
            return _FailingTool(ErrorInfo(kind="cancelled", message="the worker is ending"))
        try:
            tool = _load_maker(registered)()
        except Exception as error:  # noqa: BLE001 - packages of others may raise anything on import
            message = f"{_load_error(registered, error)}; {_install_hint(registered)}"
            return _FailingTool(ErrorInfo(kind="tool", message=message))
        self._tools[kind] = tool
        if isinstance(tool, ExecutionScoped):
            self._execution_scoped.append(tool)
        return tool

    def forget(self, execution_id: str) -> None:
        """An execution has ended: tools free what they kept for it."""
        for tool in self._execution_scoped:
            tool.forget(execution_id)

    async def close(self) -> None:
        """Closes every tool that was made, at once. Then raises what closing them raised, in a group."""
        self._closed = True
        tools = list(self._tools.values())
        ends = await asyncio.gather(*(tool.close() for tool in tools), return_exceptions=True)
        if errors := [end for end in ends if isinstance(end, Exception)]:
            raise ExceptionGroup("tools could not be closed", errors)


class UnrunnableTask(Struct, frozen=True):
    """A task that cannot be run here: what is missing, and what to do about it."""

    step: str
    task: str
    kind: str
    position: Position
    reason: str
    hint: str


def unrunnable_tasks(playbook: Playbook, kinds: Kinds) -> tuple[UnrunnableTask, ...]:
    """The tasks of a playbook whose kind cannot be run here, in document order.

    Imports what runs the others, for only that tells whether its driver is installed.
    """
    reasons: dict[str, tuple[str, str] | None] = {}
    unrunnable = []
    for step in playbook.workflow:
        for task in step.tasks:
            if task.kind not in reasons:
                reasons[task.kind] = _obstacle(task.kind, kinds)
            if (obstacle := reasons[task.kind]) is not None:
                unrunnable.append(UnrunnableTask(step.name, task.label, task.kind, task.position, *obstacle))
    return tuple(unrunnable)


def _obstacle(name: str, kinds: Kinds) -> tuple[str, str] | None:
    """Why no task of this kind can be run, and what to do about it."""
    if name in ENGINE_KINDS:
        return None
    kind = kinds.get(name)
    if kind is None:
        return f"the tool kind `{name}` is not installed", "install the package that brings it"
    if kind.implementation is None:
        return f"this release cannot run the tool kind `{name}`", "its tasks can be checked, not run"
    try:
        _load_maker(kind)
    except Exception as error:  # noqa: BLE001 - packages of others may raise anything on import
        return _load_error(kind, error), _install_hint(kind)
    return None


def _load_maker(kind: Kind) -> Callable[[], Tool]:
    implementation: Any = kind.implementation
    maker: Callable[[], Tool] = (
        resolve_name(implementation) if isinstance(implementation, str) else implementation
    )
    return maker


def _load_error(kind: Kind, error: Exception) -> str:
    return f"the tool kind `{kind.name}` cannot be loaded: {str(error) or type(error).__name__}"


def _install_hint(kind: Kind) -> str:
    return install_command(kind.extra) if kind.extra else "look at the package that brings it"


class _FailingTool:
    """Stands in for a tool that there cannot be."""

    def __init__(self, error: ErrorInfo) -> None:
        self._error = error

    async def run(self, _call: Call) -> Outcome:
        return failed(self._error)

    async def close(self) -> None:
        """Nothing is held."""
