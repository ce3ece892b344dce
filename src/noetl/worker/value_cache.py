"""Stored values that runs have asked for, kept while there is room."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from noetl.model.table_reader import decode_value_or_table

ROOM = 32 << 20
"""Bytes, as stored, that are kept; as Python objects they take several times as much."""


class ValueCache(Mapping[str, Any]):
    """What was fetched, by key; the oldest go first, but never what was just asked for."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._sizes: dict[str, int] = {}
        self._size = 0

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    async def fetch(self, keys: tuple[str, ...], get: Callable[[str], Awaitable[bytes]]) -> None:
        """Has these values at hand. Raises ResultError."""
        for key in keys:
            if key not in self._values:
                data = await get(key)
                self._forget(key)
                self._values[key] = decode_value_or_table(data)
                self._sizes[key] = len(data)
                self._size += len(data)
        wanted = set(keys)
        for key in [key for key in self._values if key not in wanted]:
            if self._size <= ROOM:
                return
            self._forget(key)

    def _forget(self, key: str) -> None:
        self._values.pop(key, None)
        self._size -= self._sizes.pop(key, 0)
