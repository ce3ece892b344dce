"""Results in memory: for stores that end with their process."""

import asyncio
from pathlib import Path

from noetl.ports.results import AccessGrant, GrantMethod, StoredBody
from noetl.scratch_folder import ScratchFolder
from noetl.stores.results.backend import BlobMissing
from noetl.stores.results.result_store import BackendResultStore


class MemoryResults(BackendResultStore):
    """A result store that ends with this object."""

    def __init__(self) -> None:
        super().__init__(MemoryBackend())


class MemoryBackend:
    location = "memory"

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}
        self._scratch: ScratchFolder | None = None

    async def write(self, name: str, data: bytes) -> None:
        self._blobs[name] = data

    async def write_file(self, name: str, path: Path) -> None:
        self._blobs[name] = await asyncio.to_thread(path.read_bytes)

    async def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        if name not in self._blobs:
            raise BlobMissing(name)
        blob = self._blobs[name]
        return blob if not start and end is None else blob[start:end]

    async def size(self, name: str) -> int:
        return len(await self.read(name))

    async def read_file(self, name: str, to: Path) -> None:
        to.write_bytes(await self.read(name))

    def path(self, name: str) -> None:
        if name not in self._blobs:
            raise BlobMissing(name)

    async def copy(self, name: str, to: str) -> None:
        self._blobs[to] = await self.read(name)

    async def names(self, folder: str) -> list[str]:
        return sorted(name for name in self._blobs if name.startswith(f"{folder}/"))

    async def folders(self) -> list[str]:
        return sorted({name.partition("/")[0] for name in self._blobs})

    async def blobs(self, folder: str) -> list[StoredBody]:
        return [StoredBody(name, len(self._blobs[name]), None) for name in await self.names(folder)]

    async def grant(self, name: str, method: GrantMethod, seconds: float) -> AccessGrant | None:  # noqa: ARG002 - there is none
        return None

    async def remove(self, names: list[str]) -> None:
        for name in names:
            self._blobs.pop(name, None)

    async def remove_folder(self, folder: str) -> None:
        await self.remove(await self.names(folder))

    def scratch(self, folder: str) -> Path:  # noqa: ARG002 - one for all goes with this object
        if self._scratch is None:
            self._scratch = ScratchFolder("results")
        return self._scratch.path

    async def sweep(self, before: float) -> int:  # noqa: ARG002 - nothing outlives the process
        return 0

    async def close(self) -> None:
        """Nothing is held."""
