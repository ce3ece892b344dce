"""What backends have in common that keep no files here."""

import asyncio
import os
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from stat import S_ISDIR

from noetl.ports.results import AccessGrant, GrantMethod, ResultError
from noetl.stores.private_files import restrict_folder
from noetl.stores.results.file_backend import (
    make_result_folder,
    remove_folder,
    sweep_hidden_files,
    translate_os_errors,
)


class RemoteBackend(ABC):
    """Files on their way to or from such a backend lie in a folder of folders, each made when needed.

    Without a folder of its own it lies among temporary files, where others can write, too.
    """

    def __init__(self, scratch: Path | None) -> None:
        self._is_shared = scratch is None
        self._scratch = scratch or Path(tempfile.gettempdir()) / f"noetl-scratch-{os.geteuid()}"

    @abstractmethod
    async def names(self, folder: str) -> list[str]: ...

    @abstractmethod
    async def remove(self, names: list[str]) -> None: ...

    async def grant(self, name: str, method: GrantMethod, seconds: float) -> AccessGrant | None:  # noqa: ARG002 - most have none
        return None

    async def remove_folder(self, folder: str) -> None:
        await self.remove(await self.names(folder))
        await asyncio.to_thread(remove_folder, self._scratch / folder)

    def path(self, name: str) -> None:  # noqa: ARG002 - nothing of it is a file here
        return None

    def scratch(self, folder: str) -> Path:
        path = self._scratch / folder
        with translate_os_errors(path):
            make_result_folder(self._scratch)
            status = self._scratch.lstat()
            if self._is_shared and not (S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()):
                # Whoever made it first could read what we write there, and replace it.
                hint = "remove it, or set TMPDIR to a folder of yours"
                raise ResultError(f"{self._scratch} is no folder of this user's", hint)
            restrict_folder(self._scratch)
            make_result_folder(path)
        return path

    async def sweep(self, before: float) -> int:
        return await asyncio.to_thread(sweep_hidden_files, self._scratch, before)
