"""Results in the database of the events: for small deployments, which then have one file to keep."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

from noetl.ports.results import ResultError, StoredBody
from noetl.ports.store import Store, StoreError
from noetl.stores.results.backend import BlobMissing
from noetl.stores.results.file_backend import translate_os_errors
from noetl.stores.results.remote_backend import RemoteBackend
from noetl.stores.results.result_key import is_log_segment, is_result_key
from noetl.stores.results.result_store import BackendResultStore

MAX_VALUE_BYTES = 256 << 20
"""The most bytes, as kept, of one value."""
CHUNK_BYTES = 4 << 20
"""Bytes that are read at once where all need not be in memory."""


class DatabaseResults(BackendResultStore):
    """A result store in an open event store, which somebody else closes."""

    def __init__(self, store: Store, scratch: Path | None = None) -> None:
        super().__init__(DatabaseBackend(store, scratch))


class DatabaseBackend(RemoteBackend):
    location = "the event store"

    def __init__(self, store: Store, scratch: Path | None) -> None:
        super().__init__(scratch)
        self._store = store

    async def write(self, name: str, data: bytes) -> None:
        if len(data) > MAX_VALUE_BYTES:
            raise _too_large(len(data))
        with _translate_store_errors():
            await self._store.put_blob(name, data)

    async def write_file(self, name: str, path: Path) -> None:
        if (size := path.stat().st_size) > MAX_VALUE_BYTES:
            raise _too_large(size)
        await self.write(name, await asyncio.to_thread(path.read_bytes))

    async def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        with _translate_store_errors():
            blob = await self._store.blob(name, start, end)
        if blob is None:
            raise BlobMissing(name)
        return blob

    async def size(self, name: str) -> int:
        with _translate_store_errors():
            sizes = dict(await self._store.blob_sizes(name))
        if name not in sizes:
            raise BlobMissing(name)
        return sizes[name]

    async def read_file(self, name: str, to: Path) -> None:
        with translate_os_errors(to), to.open("wb") as file:
            async for chunk in self._chunks(name):
                await asyncio.to_thread(file.write, chunk)

    async def copy(self, name: str, to: str) -> None:
        await self.write(to, await self.read(name))

    async def _chunks(self, name: str) -> AsyncIterator[bytes]:
        start, chunk = 0, b""
        while not start or len(chunk) == CHUNK_BYTES:
            chunk = await self.read(name, start, start + CHUNK_BYTES)
            start += CHUNK_BYTES
            yield chunk

    async def names(self, folder: str) -> list[str]:
        with _translate_store_errors():
            return await self._store.blobs(f"{folder}/")

    async def folders(self) -> list[str]:
        with _translate_store_errors():
            names = await self._store.blobs("")
        # Others keep other things by names of theirs.
        ours = [name for name in names if is_result_key(name) or is_log_segment(name)]
        return sorted({name.partition("/")[0] for name in ours})

    async def blobs(self, folder: str) -> list[StoredBody]:
        with _translate_store_errors():
            sizes = await self._store.blob_sizes(f"{folder}/")
        return [StoredBody(name, size, None) for name, size in sizes]

    async def remove(self, names: list[str]) -> None:
        with _translate_store_errors():
            await self._store.delete_blobs(names)

    async def close(self) -> None:
        """The event store is not ours."""


def _too_large(size: int) -> ResultError:
    hint = f"it takes {MAX_VALUE_BYTES:,} bytes; name another store in `spec.result.store`"
    error = ResultError(f"a value of {size:,} bytes does not go into the event store", hint)
    error.kind = "limit"
    return error


@contextmanager
def _translate_store_errors() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise ResultError(str(error), error.hint) from error
