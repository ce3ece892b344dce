"""Where large values are kept: the port that every result store implements.

A key is `EXECUTION_ID/HASH`, and the hash is the SHA-256 of the bytes, in hex: what is stored under a
key never changes. An event that names a key is written only after its bytes are durable.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from msgspec import Struct

from noetl.model.errors import ResultError
from noetl.model.json import Json
from noetl.model.reference import StoredReference

__all__ = [
    "AccessGrant",
    "ExecutionObjects",
    "GrantMethod",
    "ObjectDraft",
    "ResultDamaged",
    "ResultError",
    "ResultExpired",
    "ResultMissing",
    "ResultStore",
    "StoredBody",
]


class ResultMissing(ResultError):
    kind = "not_found"


class ResultExpired(ResultMissing): ...


class ResultDamaged(ResultError):
    @property
    def retryable(self) -> bool:
        return False


class StoredBody(NamedTuple):
    """What is kept under a key or name: how many bytes it takes, and when it was written.

    Seconds since 1970. A store that does not know the time says None.
    """

    key: str
    size: int
    written_at: float | None


GrantMethod: TypeAlias = Literal["GET", "PUT"]


class AccessGrant(Struct, frozen=True):
    """With this URL anybody may read or write one body, as it is kept, for a while; with these headers."""

    url: str
    headers: dict[str, str] = {}


class ResultStore(Protocol):
    """Any number of objects, in any number of processes, may share the same data."""

    async def put(self, key: str, data: bytes, compression: str = "none") -> None:
        """Stores bytes; on return they survive the loss of power. The same key again changes nothing.

        `compression` says how they are packed (`none`, `gzip`, `zstd`); the key is that of the whole bytes.
        Raises ValueError if the key is not one, or not that of these bytes.
        """
        ...

    async def get(self, key: str) -> bytes:
        """Raises ResultMissing, and ResultDamaged if the bytes are no longer those of the key."""
        ...

    async def read(self, key: str, start: int, end: int | None = None) -> bytes:
        """The bytes from `start` up to `end`, or as many as there are. Raises ResultMissing.

        Whoever reads a part alone may be given damaged bytes: the hash is that of the whole.
        """
        ...

    def scratch(self, execution_id: str) -> Path:
        """A folder for files that `put_file` will take; what is left there goes with the execution."""
        ...

    async def put_file(self, key: str, path: Path, compression: str = "none") -> None:
        """As `put`, for the bytes of a file, which is gone afterwards. They need not fit into memory."""
        ...

    def local(self, key: str) -> AbstractAsyncContextManager[Path]:
        """The bytes as a file to read, as long as the context lasts. Raises ResultMissing, ResultDamaged."""
        ...

    async def copy(self, key: str, to: str) -> None:
        """The same bytes under another key with the same hash. Raises ResultMissing."""
        ...

    async def keys(self, execution_id: str) -> list[str]:
        """All that an execution has, expired ones included."""
        ...

    async def owners(self) -> list[str]:
        """Whoever has something, be it a log: ids of executions, and what artifacts are kept by."""
        ...

    async def bodies(self, execution_id: str) -> list[StoredBody]:
        """As `keys`, with what is known about each."""
        ...

    async def remove(self, keys: Sequence[str]) -> None:
        """Removes bodies without a note. What is not there is no fault."""
        ...

    async def grant(self, key: str, method: GrantMethod, seconds: float) -> AccessGrant | None:
        """None where bodies can be had only through this store. Raises ValueError if the key is none."""
        ...

    async def expire(self, key: str, since: str) -> int:
        """Drops a body, and gives how many bytes that freed. Reading it raises ResultExpired from then on.

        What is not there or expired before stays as it is. Putting it again brings it back.
        """
        ...

    async def delete(self, execution_id: str) -> None:
        """Removes everything of an execution; nothing happens if there is nothing."""
        ...

    async def put_entry(self, name: str, entry: bytes, store: str = "") -> None:
        """Keeps something small by a name of the user's; `store` names another store, where there are more.

        Raises ValueError if the name is none, ResultMissing if there is no such store; so do all of these.
        """
        ...

    async def entry(self, name: str, store: str = "") -> bytes | None: ...

    async def entries(self, prefix: str = "", store: str = "") -> list[str]:
        """The names that begin so, in order."""
        ...

    async def delete_entry(self, name: str, store: str = "") -> None: ...

    async def put_log(self, execution_id: str, segment: str, lines: bytes) -> None:
        """Keeps a segment of the log of an execution; what had the name before is replaced.

        Durable on return. A name has letters, digits and `-`. Raises ValueError.
        """
        ...

    async def log_segments(self, execution_id: str) -> list[StoredBody]:
        """The names of its segments, in order, with their sizes. They go with the execution."""
        ...

    async def log_segment(self, execution_id: str, segment: str, start: int = 0) -> bytes:
        """From `start` to its end; nothing where there is no such segment."""
        ...

    async def delete_log(self, execution_id: str) -> None:
        """Removes all segments; nothing happens if there are none. `delete` does it, too."""
        ...

    async def check(self) -> None:
        """Writes, reads and removes something. Raises ResultError, whose hint says how that can work."""
        ...

    async def sweep(self, before: float) -> int:
        """Removes what crashes left half-written before this time (seconds since 1970); how many files."""
        ...

    async def close(self) -> None:
        """Frees everything. A second call does nothing."""
        ...


class ObjectDraft(Protocol):
    """An object that is being made."""

    @property
    def path(self) -> Path:
        """The file to write: it does not exist yet."""
        ...

    async def keep(self, media_type: str, *, preview: str = "", **about: Json) -> StoredReference:
        """Stores what the file holds, and gives what stands for it. Raises ResultError."""
        ...


class ExecutionObjects(Protocol):
    """The stored objects of one execution, as its tools see them: bytes that are no JSON value."""

    def draft(self) -> AbstractAsyncContextManager[ObjectDraft]:
        """Something new. What was not kept at the end of the context is gone."""
        ...

    def local(self, reference: Mapping[str, Any]) -> AbstractAsyncContextManager[Path]:
        """What a reference stands for, as a file to read. Raises ResultError.

        A reference to a JSON value is the file of its JSON.
        """
        ...

    async def publish(self, name: str, reference: StoredReference, store: str = "") -> dict[str, Json]:
        """Keeps a copy of an object for all executions, by name. What had the name before is replaced.

        Gives `{key, store, size, media_type, hash, created_at}`. Raises ResultError, or ValueError if the
        name is none; so do all of these.
        """
        ...

    async def published(self, name: str, store: str = "") -> StoredReference | None:
        """What has this name, as an object of this execution; None if nothing has."""
        ...

    async def artifacts(self, prefix: str = "", store: str = "") -> list[dict[str, Json]]:
        """What has a name that begins so, in order, as `publish` gives it."""
        ...

    async def withdraw(self, name: str, store: str = "") -> bool:
        """Deletes what has this name; False if nothing has."""
        ...
