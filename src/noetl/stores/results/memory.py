"""Results in memory: for stores that end with their process."""

import hashlib

from noetl.ports.results import ResultMissing
from noetl.stores.results.key import checked, checked_id


class MemoryResults:
    """A result store that ends with this object."""

    def __init__(self) -> None:
        self._stored: dict[str, bytes] = {}

    async def put(self, key: str, data: bytes) -> None:
        if hashlib.sha256(data).hexdigest() != checked(key).hash:
            raise ValueError(f"`{key}` is not the key of these bytes")
        self._stored[key] = data

    async def get(self, key: str) -> bytes:
        checked(key)
        if key not in self._stored:
            raise ResultMissing(f"nothing is stored under `{key}`", "it was deleted")
        return self._stored[key]

    async def delete(self, execution_id: str) -> None:
        checked_id(execution_id)
        for key in [key for key in self._stored if key.startswith(f"{execution_id}/")]:
            del self._stored[key]

    async def close(self) -> None:
        """Nothing is held."""
