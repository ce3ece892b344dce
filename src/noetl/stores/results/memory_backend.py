"""Results in memory: for stores that end with their process."""

import asyncio
import tempfile
from pathlib import Path

from noetl.stores.results.backend import BlobMissing
from noetl.stores.results.result_store import BackendResultStore


class MemoryResults(BackendResultStore):
    """A result store that ends with this object."""

    def __init__(self) -> None:
        super().__init__(MemoryBackend())


class MemoryBackend:
    place = "memory"

    def __init__(self) -> None:
        self._stored: dict[str, bytes] = {}

    async def write(self, name: str, data: bytes) -> None:
        self._stored[name] = data

    async def write_file(self, name: str, path: Path) -> None:
        self._stored[name] = await asyncio.to_thread(path.read_bytes)

    async def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        if name not in self._stored:
            raise BlobMissing(name)
        found = self._stored[name]
        return found if not start and end is None else found[start:end]

    async def size(self, name: str) -> int:
        return len(await self.read(name))

    async def read_file(self, name: str, to: Path) -> None:
        to.write_bytes(await self.read(name))

    def path(self, name: str) -> None:
        if name not in self._stored:
            raise BlobMissing(name)

    async def copy(self, name: str, to: str) -> None:
        self._stored[to] = await self.read(name)

    async def names(self, folder: str) -> list[str]:
        return sorted(name for name in self._stored if name.startswith(f"{folder}/"))

    async def remove(self, names: list[str]) -> None:
        for name in names:
            self._stored.pop(name, None)

    async def remove_folder(self, folder: str) -> None:
        await self.remove(await self.names(folder))

    def scratch(self, folder: str) -> Path:  # noqa: ARG002 -- nothing outlives the process
        return Path(tempfile.gettempdir())

    async def sweep(self, before: float) -> int:  # noqa: ARG002 -- as above
        return 0

    async def close(self) -> None:
        """Nothing is held."""
