"""Values cut to a length that a person reads."""

from collections.abc import Mapping
from typing import Any

TEXT = 300
ENTRIES = 20
DEPTH = 4


def shown(value: Any, depth: int = DEPTH) -> Any:
    """The value, or as much of it as fits: long text ends in `…`, and so do long lists and mappings."""
    if isinstance(value, str):
        return value if len(value) <= TEXT else value[:TEXT] + "…"
    if isinstance(value, Mapping):
        if depth == 0 and value:
            return "{…}"
        found = {str(key): shown(item, depth - 1) for key, item in _first(value.items())}
        return found if len(value) <= ENTRIES else {**found, "…": f"{len(value) - ENTRIES} more"}
    if isinstance(value, list | tuple):
        if depth == 0 and value:
            return "[…]"
        items = [shown(item, depth - 1) for item in _first(value)]
        return items if len(value) <= ENTRIES else [*items, f"… {len(value) - ENTRIES} more"]
    return value


def _first(entries: Any) -> Any:
    return (entry for _, entry in zip(range(ENTRIES), entries, strict=False))
