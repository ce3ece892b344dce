"""NoETL: playbooks that run, resume and explain themselves."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noetl.dsl.playbook import Playbook
    from noetl.dsl.problem import PlaybookInvalid, Problem
    from noetl.loading import load, validate
    from noetl.model import ExpressionError, NoetlError
    from noetl.model.outcome import ToolError
    from noetl.running import Execution, ExecutionFailed, arun, run
    from noetl.server.fitness import CannotRun
    from noetl.tools.declaration import tool

__all__ = [
    "CannotRun",
    "Execution",
    "ExecutionFailed",
    "ExpressionError",
    "NoetlError",
    "Playbook",
    "PlaybookInvalid",
    "Problem",
    "ToolError",
    "arun",
    "load",
    "run",
    "tool",
    "validate",
]

_HOMES = {
    "CannotRun": "noetl.server.fitness",
    "Execution": "noetl.running",
    "ExecutionFailed": "noetl.running",
    "ExpressionError": "noetl.model",
    "NoetlError": "noetl.model",
    "Playbook": "noetl.dsl.playbook",
    "PlaybookInvalid": "noetl.dsl.problem",
    "Problem": "noetl.dsl.problem",
    "ToolError": "noetl.model.outcome",
    "arun": "noetl.running",
    "load": "noetl.loading",
    "run": "noetl.running",
    "tool": "noetl.tools.declaration",
    "validate": "noetl.loading",
}


def __getattr__(name: str) -> object:
    # Imported on first use, so that the command line starts fast.
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module `noetl` has no attribute `{name}`")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
