"""Results in memory: for stores that end with their process."""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

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

    def scratch(self, execution_id: str) -> Path:
        checked_id(execution_id)
        return Path(tempfile.gettempdir())

    async def put_file(self, key: str, path: Path) -> None:
        await self.put(key, await asyncio.to_thread(path.read_bytes))
        path.unlink()

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        data = await self.get(key)
        with tempfile.NamedTemporaryFile(prefix="noetl-") as file:
            file.write(data)
            file.flush()
            yield Path(file.name)

    async def delete(self, execution_id: str) -> None:
        checked_id(execution_id)
        for key in [key for key in self._stored if key.startswith(f"{execution_id}/")]:
            del self._stored[key]

    async def close(self) -> None:
        """Nothing is held."""
