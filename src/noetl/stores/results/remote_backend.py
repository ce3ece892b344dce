"""What backends have in common that keep no files here."""

import asyncio
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path

from noetl.stores.results.file_backend import remove_folder, sweep_hidden_files, translate_os_errors


class RemoteBackend(ABC):
    """Files on their way to or from such a backend lie in a folder of folders, each made when needed.

    Without a folder of its own it lies among temporary files.
    """

    def __init__(self, scratch: Path | None) -> None:
        self._scratch = scratch or Path(tempfile.gettempdir()) / "noetl-scratch"

    @abstractmethod
    async def names(self, folder: str) -> list[str]: ...

    @abstractmethod
    async def remove(self, names: list[str]) -> None: ...

    async def remove_folder(self, folder: str) -> None:
        await self.remove(await self.names(folder))
        await asyncio.to_thread(remove_folder, self._scratch / folder)

    def path(self, name: str) -> None:  # noqa: ARG002 - nothing of it is a file here
        return None

    def scratch(self, folder: str) -> Path:
        path = self._scratch / folder
        with translate_os_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        return path

    async def sweep(self, before: float) -> int:
        return await asyncio.to_thread(sweep_hidden_files, self._scratch, before)
