"""NoETL: playbooks that load, check and explain themselves."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from noetl.dsl.playbook import Playbook
    from noetl.dsl.problem import PlaybookInvalid, Problem
    from noetl.loading import load, validate
    from noetl.model import ExpressionError, NoetlError

__all__ = ["ExpressionError", "NoetlError", "Playbook", "PlaybookInvalid", "Problem", "load", "validate"]

_HOMES = {
    "ExpressionError": "noetl.model",
    "NoetlError": "noetl.model",
    "Playbook": "noetl.dsl.playbook",
    "PlaybookInvalid": "noetl.dsl.problem",
    "Problem": "noetl.dsl.problem",
    "load": "noetl.loading",
    "validate": "noetl.loading",
}


def __getattr__(name: str) -> object:
    # Imported on first use, so that the command line starts fast.
    if (home := _HOMES.get(name)) is None:
        raise AttributeError(f"module `noetl` has no attribute `{name}`")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
