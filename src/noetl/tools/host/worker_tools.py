"""The tools of one worker: which kinds it can run, and what runs them."""

import asyncio
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Any, Literal

from msgspec import Struct

from noetl.dsl.document.kinds import Kind, Kinds
from noetl.dsl.document.playbook import Playbook, Position
from noetl.model import Json
from noetl.model.outcome import ErrorInfo, Outcome, failed
from noetl.ports.tool import Call, ExecutionScoped, Tool
from noetl.tools.host.deadlines import Deadlines
from noetl.tools.host.extras import install_command

ENGINE_KINDS = frozenset({"playbook", "wait", "workbook"})
"""What the engine does itself, without a tool."""


class Tools:
    """The tools of one worker, each made when it is first asked for."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds
        self.deadlines = Deadlines()
        self._made: dict[str, Tool] = {}
        self._keeping: list[ExecutionScoped] = []
        self._effects: dict[str, Literal["pure", "write"]] = {}
        self._closed = False

    def effect(self, kind: str) -> Literal["pure", "write"]:
        """What running a task of this kind may do; of an unknown one the worst is assumed."""
        found = self._effects.get(kind)
        if found is None:
            known = self.kinds.get(kind)
            found = self._effects[kind] = known.effect if known else "write"
        return found

    def repeatable(self, kind: str, inputs: Mapping[str, Json]) -> bool:
        """Whether a task may begin before that is recorded, as nobody would notice that it began again."""
        known = self.kinds.get(kind)
        return known is not None and known.repeatable is not None and known.repeatable(inputs)

    def get(self, kind: str) -> Tool | None:
        """The tool for this kind; None if nothing here runs it.

        One that cannot be made is a tool whose every call fails and says why; the next `get` tries again.
        """
        if (made := self._made.get(kind)) is not None:
            return made
        known = self.kinds.get(kind)
        if known is None or known.implementation is None:
            return None
        if self._closed:
            return _Failing(ErrorInfo(kind="cancelled", message="the worker is ending"))
        try:
            tool: Tool = _maker(known)()
        except Exception as error:  # noqa: BLE001  # packages of others may raise anything on import
            return _Failing(ErrorInfo(kind="tool", message=f"{_unmade(known, error)}; {_install(known)}"))
        self._made[kind] = tool
        if isinstance(tool, ExecutionScoped):
            self._keeping.append(tool)
        return tool

    def forget(self, execution_id: str) -> None:
        """An execution has ended: tools free what they kept for it."""
        for tool in self._keeping:
            tool.forget(execution_id)

    async def close(self) -> None:
        """Closes every tool that was made, at once. Then raises what closing them raised, in a group."""
        self._closed = True
        made = list(self._made.values())
        ends = await asyncio.gather(*(tool.close() for tool in made), return_exceptions=True)
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
    found = []
    for step in playbook.workflow:
        for task in step.tasks:
            if task.kind not in reasons:
                reasons[task.kind] = _obstacle(task.kind, kinds)
            if (obstacle := reasons[task.kind]) is not None:
                found.append(UnrunnableTask(step.name, task.label, task.kind, task.position, *obstacle))
    return tuple(found)


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
        _maker(kind)
    except Exception as error:  # noqa: BLE001  # packages of others may raise anything on import
        return _unmade(kind, error), _install(kind)
    return None


def _maker(kind: Kind) -> Callable[[], Tool]:
    made: Any = kind.implementation
    found: Callable[[], Tool] = resolve_name(made) if isinstance(made, str) else made
    return found


def _unmade(kind: Kind, error: Exception) -> str:
    return f"the tool kind `{kind.name}` cannot be loaded: {str(error) or type(error).__name__}"


def _install(kind: Kind) -> str:
    return install_command(kind.extra) if kind.extra else "look at the package that brings it"


class _Failing:
    """Stands in for a tool that there cannot be."""

    def __init__(self, error: ErrorInfo) -> None:
        self._error = error

    async def run(self, _call: Call) -> Outcome:
        return failed(self._error)

    async def close(self) -> None:
        """Nothing is held."""
