"""Where large values are kept: the port that every result store implements.

A key is `EXECUTION_ID/HASH`, and the hash is the SHA-256 of the bytes, in hex: what is stored under a
key never changes. An event that names a key is written only after its bytes are durable.
"""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

from noetl.model import Json, ResultError
from noetl.model.reference import Stored

__all__ = ["Draft", "Objects", "ResultDamaged", "ResultError", "ResultMissing", "ResultStore"]


class ResultMissing(ResultError): ...


class ResultDamaged(ResultError): ...


class ResultStore(Protocol):
    """Any number of objects, in any number of processes, may share the same data."""

    async def put(self, key: str, data: bytes) -> None:
        """Stores bytes; on return they survive the loss of power. The same key again changes nothing.

        Raises ValueError if the key is not one, or not that of these bytes.
        """
        ...

    async def get(self, key: str) -> bytes:
        """Raises ResultMissing, and ResultDamaged if the bytes are no longer those of the key."""
        ...

    def scratch(self, execution_id: str) -> Path:
        """A folder for files that `put_file` will take; what is left there goes with the execution."""
        ...

    async def put_file(self, key: str, path: Path) -> None:
        """As `put`, for the bytes of a file, which is gone afterwards. They need not fit into memory."""
        ...

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        """The bytes as a file to read, as long as the context lasts. Raises ResultMissing."""
        ...

    async def delete(self, execution_id: str) -> None:
        """Removes everything of an execution; nothing happens if there is nothing."""
        ...

    async def close(self) -> None:
        """Frees everything. A second call does nothing."""
        ...


class Draft(Protocol):
    """An object that is being made."""

    @property
    def path(self) -> Path:
        """The file to write: it does not exist yet."""
        ...

    async def keep(self, media_type: str, *, preview: str = "", **about: Json) -> Stored:
        """Stores what the file holds, and gives what stands for it. Raises ResultError."""
        ...


class Objects(Protocol):
    """The stored objects of one execution, as its tools see them: bytes that are no JSON value."""

    def draft(self) -> AbstractAsyncContextManager[Draft]:
        """Something new. What was not kept at the end of the context is gone."""
        ...

    def local(self, reference: Mapping[str, Any]) -> AbstractAsyncContextManager[Path]:
        """What a reference stands for, as a file to read. Raises ResultError.

        A reference to a JSON value is the file of its JSON.
        """
        ...
