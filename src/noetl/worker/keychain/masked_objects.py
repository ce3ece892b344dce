"""Stored objects without secrets in them."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from noetl.credentials.file_masker import CHUNK, holds_secret, is_textual, mask_file
from noetl.credentials.masker import Masker
from noetl.model.json import Json
from noetl.model.outcome import ToolError
from noetl.model.reference import JSON_MEDIA_TYPE, SECRET_MARKER_BYTES, StoredReference
from noetl.ports.results import ExecutionObjects, ObjectDraft

_MASKED = "masked"


class MaskedObjects:
    """In text, `***` takes the place of secrets, and no tool reads it again; anything else is refused."""

    def __init__(self, objects: ExecutionObjects, masker: Masker) -> None:
        self._objects = objects
        self._masker = masker

    @asynccontextmanager
    async def draft(self) -> AsyncIterator["MaskedDraft"]:
        async with self._objects.draft() as draft:
            yield MaskedDraft(draft, self._masker)

    @asynccontextmanager
    async def local(self, reference: Mapping[str, Any]) -> AsyncIterator[Path]:
        _refuse_masked(reference)
        async with self._objects.local(reference) as path:
            if reference.get("media_type", JSON_MEDIA_TYPE) == JSON_MEDIA_TYPE:
                await asyncio.to_thread(_refuse_markers, path)
            yield path

    async def publish(self, name: str, reference: StoredReference, store: str = "") -> dict[str, Json]:
        _refuse_masked(reference)
        return await self._objects.publish(name, reference, store)

    async def published(self, name: str, store: str = "") -> StoredReference | None:
        return await self._objects.published(name, store)

    async def artifacts(self, prefix: str = "", store: str = "") -> list[dict[str, Json]]:
        return await self._objects.artifacts(prefix, store)

    async def withdraw(self, name: str, store: str = "") -> bool:
        return await self._objects.withdraw(name, store)


class MaskedDraft:
    """A file that is looked through before it is kept. ToolError of kind `credential` if it cannot be."""

    def __init__(self, draft: ObjectDraft, masker: Masker) -> None:
        self._draft = draft
        self._masker = masker

    @property
    def path(self) -> Path:
        return self._draft.path

    async def keep(self, media_type: str, *, preview: str = "", **about: Json) -> StoredReference:
        masker = self._masker
        if masker.empty or not await asyncio.to_thread(holds_secret, self.path, masker):
            about = masker.mask_for_display(about)
            return await self._draft.keep(media_type, preview=masker.mask_text(preview), **about)
        if not is_textual(media_type):
            message = f"the object of type {media_type} holds a secret, and cannot be stored without it"
            raise ToolError("credential", message)
        await asyncio.to_thread(mask_file, self.path, masker)
        about_masked = {**masker.mask_for_display(about), _MASKED: True}
        return await self._draft.keep(media_type, preview=masker.mask_text(preview), **about_masked)


def _refuse_masked(reference: Mapping[str, Any]) -> None:
    if reference.get(_MASKED):
        message = "secrets were masked in this stored object: it can be shown, not used"
        raise ToolError("credential", message)


def _refuse_markers(path: Path) -> None:
    """A stored value that holds secrets is whole only where the engine puts it together."""
    overlap = b""
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            if SECRET_MARKER_BYTES in overlap + data:
                message = "the stored value holds secrets, and a file of it would not: give the parts needed"
                raise ToolError("credential", message)
            overlap = data[-len(SECRET_MARKER_BYTES) :]
