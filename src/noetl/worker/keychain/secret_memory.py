"""Secrets that tasks gave: known in this process and nowhere else."""

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import structs

from noetl.model.reference import encode_value
from noetl.model.secret import SecretOrigin, origin_of_key

ROOM = 64 << 20
"""Bytes, as JSON, of what is known at a time; the oldest go first."""


class SecretMemory(Mapping[str, Any]):
    """By key. One for all executions: children get what their parents know."""

    def __init__(self, room: int = ROOM) -> None:
        self._values: dict[SecretOrigin, tuple[Any, int]] = {}
        self._left = room

    def keep(self, value: Any, origin: SecretOrigin) -> SecretOrigin:
        """Under a number that no other process will ever use for something else."""
        origin = structs.replace(origin, path=(), number=secrets.randbits(48))
        size = len(encode_value(value))
        self._values[origin] = value, size
        self._left -= size
        while self._left < 0 and len(self._values) > 1:
            _, freed = self._values.pop(next(iter(self._values)))
            self._left += freed
        return origin

    def __getitem__(self, key: str) -> Any:
        origin = origin_of_key(key)
        value, _ = self._values[structs.replace(origin, path=())]
        for step in origin.path:
            value = value[step]
        return value

    def __iter__(self) -> Iterator[str]:
        return (origin.key for origin in self._values)

    def __len__(self) -> int:
        return len(self._values)
