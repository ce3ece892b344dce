"""Where large values are kept: the port that every result store implements.

A key is `EXECUTION_ID/HASH`, and the hash is the SHA-256 of the bytes, in hex: what is stored under a
key never changes. An event that names a key is written only after its bytes are durable.
"""

from typing import Protocol

from noetl.model import NoetlError


class ResultError(NoetlError):
    """The store could not do what was asked. `hint` says what to do about it.

    ResultError          the world failed: reading or writing did not work
    ├── ResultMissing    nothing is stored under this key
    └── ResultDamaged    what is stored under this key is not what was written
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


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

    async def delete(self, execution_id: str) -> None:
        """Removes everything of an execution; nothing happens if there is nothing."""
        ...

    async def close(self) -> None:
        """Frees everything. A second call does nothing."""
        ...
