"""What a result store needs of whatever keeps its bytes: names and blobs."""

from pathlib import Path
from typing import Protocol

from noetl.ports.results import AccessGrant, GrantMethod, StoredBody


class BlobMissing(Exception):
    """Nothing has this name."""


class ResultBackend(Protocol):
    """Bytes by name. A name is a folder and a file, such as `EXECUTION/HASH`. Raises ResultError."""

    @property
    def location(self) -> str:
        """What to call it in messages."""
        ...

    async def write(self, name: str, data: bytes) -> None:
        """Durable on return, and at no time there in part. What had the name before is replaced."""
        ...

    async def write_file(self, name: str, path: Path) -> None:
        """The same for the bytes of a file, which may be gone afterwards."""
        ...

    async def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        """Raises BlobMissing."""
        ...

    async def size(self, name: str) -> int:
        """How many bytes it takes. Raises BlobMissing."""
        ...

    async def read_file(self, name: str, to: Path) -> None:
        """Writes the bytes to a file. Raises BlobMissing."""
        ...

    def path(self, name: str) -> Path | None:
        """The file that holds it, if it is one that can be read here. Raises BlobMissing."""
        ...

    async def copy(self, name: str, to: str) -> None:
        """Raises BlobMissing."""
        ...

    async def names(self, folder: str) -> list[str]:
        """All in a folder, in order."""
        ...

    async def folders(self) -> list[str]:
        """All folders that have something, in order."""
        ...

    async def blobs(self, folder: str) -> list[StoredBody]:
        """As `names`, with what is known about each."""
        ...

    async def grant(self, name: str, method: GrantMethod, seconds: float) -> AccessGrant | None:
        """A way to it for those who have no credentials, if there is one."""
        ...

    async def remove(self, names: list[str]) -> None:
        """What is not there is no fault."""
        ...

    async def remove_folder(self, folder: str) -> None:
        """Everything in it, what was left half-written included."""
        ...

    def scratch(self, folder: str) -> Path:
        """A folder here for files that will be written."""
        ...

    async def sweep(self, before: float) -> int:
        """Removes what was left half-written before this time (seconds since 1970); how many there were."""
        ...

    async def close(self) -> None: ...
