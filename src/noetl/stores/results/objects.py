"""The stored objects of one execution, over any result store."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from noetl.model import Json
from noetl.model.reference import Stored, stored_object
from noetl.ports.results import ResultMissing, ResultStore


class StoredObjects:
    """Drafts are files in the store's scratch folder until they are kept."""

    def __init__(self, results: ResultStore, execution_id: str) -> None:
        self._results = results
        self._execution_id = execution_id

    @asynccontextmanager
    async def draft(self) -> AsyncIterator["FileDraft"]:
        path = self._results.scratch(self._execution_id) / f".draft-{uuid4().hex}"
        try:
            yield FileDraft(self._results, self._execution_id, path)
        finally:
            path.unlink(missing_ok=True)

    @asynccontextmanager
    async def local(self, reference: Mapping[str, Any]) -> AsyncIterator[Path]:
        key = reference.get("key")
        if not isinstance(key, str) or not key.startswith(f"{self._execution_id}/"):
            message = f"`{key}` is not stored by this execution"
            raise ResultMissing(message, "hand on the reference that a task of it gave")
        async with self._results.local(key) as path:
            yield path


class FileDraft:
    """A file that becomes an object."""

    def __init__(self, results: ResultStore, execution_id: str, path: Path) -> None:
        self._results = results
        self._execution_id = execution_id
        self.path = path

    async def keep(self, media_type: str, *, preview: str = "", **about: Json) -> Stored:
        size, digest = await asyncio.to_thread(_measured, self.path)
        key = f"{self._execution_id}/{digest}"
        await self._results.put_file(key, self.path)
        return stored_object(key, size=size, media_type=media_type, preview=preview, **about)


def _measured(path: Path) -> tuple[int, str]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256")
        return file.tell(), digest.hexdigest()
