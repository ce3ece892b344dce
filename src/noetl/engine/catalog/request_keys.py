"""Values of a request that its playbook never looks at: misspelt, nearly always."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.problem import Problem
from noetl.dsl.document.shape_check import did_you_mean
from noetl.model.json import Json

REQUEST = "<request>"
"""What problems call the values that came with a request."""

CODE = "unread-workload"

_WHOLE = re.compile(r"\bworkload\b(?!\s*[.\[:'\"])")
"""The workload in one piece: who gets it may look for any key."""


def unread_keys(playbook: Playbook, text: str, workload: Mapping[str, Any]) -> list[Problem]:
    """A warning about each key that the playbook neither declares nor mentions, and that looks misspelt.

    At the top a key is reported whatever it looks like, unless the workload is handed on in one piece.
    """
    document = playbook.document
    declared = document.get("workload") if isinstance(document, dict) else None
    is_open = _WHOLE.search(text) is not None
    problems = []
    for path, near in _undeclared(workload, declared if isinstance(declared, dict) else {}, ()):
        is_mentioned = re.search(rf"\b{re.escape(path[-1])}\b", text) is not None
        if is_mentioned or not (near or (len(path) == 1 and not is_open)):
            continue
        name = ".".join(("workload", *path))
        hint = near or f"`{playbook.metadata.path}` has no use for it"
        problems.append(Problem(REQUEST, 1, 1, CODE, "warning", f"nothing reads `{name}`", hint))
    return problems


def _undeclared(
    values: Mapping[str, Any], declared: Mapping[str, Json], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Keys that are not declared, each with the hint at the declared one that it looks like."""
    for key, value in values.items():
        if key not in declared:
            yield (*path, key), did_you_mean(key, declared)
        elif isinstance(value, dict) and isinstance(below := declared[key], dict):
            yield from _undeclared(value, below, (*path, key))
