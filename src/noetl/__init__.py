"""NoETL: playbooks that run, resume and explain themselves."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noetl.api import arun, run
    from noetl.client.http_client import AsyncClient, Client
    from noetl.client.server_requests import ServerError, ServerUnreachable
    from noetl.dsl.document.playbook import Playbook
    from noetl.dsl.document.problem import PlaybookInvalid, Problem
    from noetl.engine.catalog.preflight import CannotRun
    from noetl.engine.summary import Execution, ExecutionFailed
    from noetl.executions import Executions, ListedExecution, open  # noqa: A004 - `noetl.open`
    from noetl.loader import load, validate
    from noetl.model.errors import ExpressionError, NoetlError
    from noetl.model.outcome import ToolError
    from noetl.tools.declaration import tool

__all__ = [
    "AsyncClient",
    "CannotRun",
    "Client",
    "Execution",
    "ExecutionFailed",
    "Executions",
    "ExpressionError",
    "ListedExecution",
    "NoetlError",
    "Playbook",
    "PlaybookInvalid",
    "Problem",
    "ServerError",
    "ServerUnreachable",
    "ToolError",
    "arun",
    "load",
    "open",
    "run",
    "tool",
    "validate",
]

_HOMES = {
    "AsyncClient": "noetl.client.http_client",
    "Client": "noetl.client.http_client",
    "ServerError": "noetl.client.server_requests",
    "ServerUnreachable": "noetl.client.server_requests",
    "CannotRun": "noetl.engine.catalog.preflight",
    "Execution": "noetl.engine.summary",
    "ExecutionFailed": "noetl.engine.summary",
    "Executions": "noetl.executions",
    "ExpressionError": "noetl.model.errors",
    "ListedExecution": "noetl.executions",
    "NoetlError": "noetl.model.errors",
    "Playbook": "noetl.dsl.document.playbook",
    "PlaybookInvalid": "noetl.dsl.document.problem",
    "Problem": "noetl.dsl.document.problem",
    "ToolError": "noetl.model.outcome",
    "arun": "noetl.api",
    "load": "noetl.loader",
    "open": "noetl.executions",
    "run": "noetl.api",
    "tool": "noetl.tools.declaration",
    "validate": "noetl.loader",
}


def __getattr__(name: str) -> object:
    # Imported on first use, so that the command line starts fast.
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module `noetl` has no attribute `{name}`")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
