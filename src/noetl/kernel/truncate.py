"""Values cut to a length that a person reads."""

from collections.abc import Mapping
from typing import Any

TEXT = 300
ENTRIES = 20
DEPTH = 5
VALUES = 200


def truncate_value(value: Any) -> Any:
    """The value, or as much of it as fits: what was left out is marked by `…`."""
    return _Truncation().value(value, DEPTH)


class _Truncation:
    """One value. `left` is how many more values in it are shown."""

    def __init__(self) -> None:
        self.left = VALUES

    def value(self, value: Any, depth: int) -> Any:
        self.left -= 1
        if isinstance(value, str):
            return value if len(value) <= TEXT else value[:TEXT] + "…"
        if isinstance(value, Mapping):
            return self.mapping(value, depth)
        return self.items(value, depth) if isinstance(value, list | tuple) else value

    def mapping(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        shortened: dict[str, Any] = {}
        for key, item in value.items():
            if len(shortened) >= ENTRIES or self.left < 1 or depth == 0:
                shortened["…"] = f"{len(value) - len(shortened)} more"
                break
            shortened[str(key)] = self.value(item, depth - 1)
        return shortened

    def items(self, value: list[Any] | tuple[Any, ...], depth: int) -> list[Any]:
        shortened: list[Any] = []
        for item in value:
            if len(shortened) >= ENTRIES or self.left < 1 or depth == 0:
                shortened.append(f"… {len(value) - len(shortened)} more")
                break
            shortened.append(self.value(item, depth - 1))
        return shortened
