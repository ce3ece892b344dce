"""Secrets that tasks gave: known in this process and nowhere else."""

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from noetl.model.secret import Origin, origin_in

ROOM = 10_000
"""How many are known at a time; the oldest go first."""


class Memory(Mapping[str, Any]):
    """By key. One for all executions: children get what their parents know."""

    def __init__(self) -> None:
        self._values: dict[Origin, Any] = {}

    def keep(self, value: Any, origin: Origin) -> Origin:
        """Under a number that no other process will ever use for something else."""
        origin = structs.replace(origin, path=(), number=secrets.randbits(48))
        self._values[origin] = value
        while len(self._values) > ROOM:
            self._values.pop(next(iter(self._values)))
        return origin

    def __getitem__(self, key: str) -> Any:
        origin = origin_in(key)
        value = self._values[structs.replace(origin, path=())]
        for step in origin.path:
            value = value[step]
        return value

    def __iter__(self) -> Iterator[str]:
        return (origin.key for origin in self._values)

    def __len__(self) -> int:
        return len(self._values)
