"""Results in a bucket of S3, or of a store that speaks it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from noetl.ports.results import ResultError
from noetl.stores.results.backend import BlobMissing
from noetl.stores.results.remote_backend import RemoteBackend
from noetl.stores.results.result_store import BackendResultStore

PART = 8 << 20
"""Bytes of one part of a large upload, and of one piece of a download."""
PARTS_AT_ONCE = 4
_KNOBS = ("region", "endpoint")


class S3Results(BackendResultStore):
    """A result store below `s3://BUCKET/PREFIX?region=…&endpoint=…`; credentials as the environment says.

    Raises ResultError.
    """

    def __init__(self, url: str, scratch: Path | None = None) -> None:
        super().__init__(S3Backend(url, scratch))


class S3Backend(RemoteBackend):
    def __init__(self, url: str, scratch: Path | None) -> None:
        super().__init__(scratch)
        self.place = url.partition("?")[0]
        self._objects = _objects()
        self._store = _opened(url)

    async def write(self, name: str, data: bytes) -> None:
        with self._told(name):
            await self._objects.put_async(
                self._store, name, data, chunk_size=PART, max_concurrency=PARTS_AT_ONCE
            )

    async def write_file(self, name: str, path: Path) -> None:
        with self._told(name):
            await self._objects.put_async(
                self._store, name, path, chunk_size=PART, max_concurrency=PARTS_AT_ONCE
            )

    async def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        with self._told(name):
            if not start and end is None:
                answer = await self._objects.get_async(self._store, name)
                return bytes(await answer.bytes_async())
        size = await self.size(name)
        end = size if end is None else min(end, size)
        if start >= end:
            return b""
        with self._told(name):
            return bytes(await self._objects.get_range_async(self._store, name, start=start, end=end))

    async def size(self, name: str) -> int:
        with self._told(name):
            found: int = (await self._objects.head_async(self._store, name))["size"]
            return found

    async def read_file(self, name: str, to: Path) -> None:
        with self._told(name), to.open("wb") as file:
            answer = await self._objects.get_async(self._store, name)
            async for piece in answer.stream(min_chunk_size=PART):
                file.write(piece)

    async def copy(self, name: str, to: str) -> None:
        with self._told(name):
            await self._objects.copy_async(self._store, name, to)

    async def names(self, folder: str) -> list[str]:
        with self._told(folder):
            found = await self._objects.list(self._store, prefix=f"{folder}/").collect_async()
        return sorted(one["path"] for one in found)

    async def remove(self, names: list[str]) -> None:
        with self._told(self.place):
            await self._objects.delete_async(self._store, names)

    async def close(self) -> None:
        """Nothing is held."""

    @contextmanager
    def _told(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise BlobMissing(name) from None
        except (self._objects.exceptions.BaseError, OSError) as error:
            said = str(error).strip("'\" \n").partition("\n")[0]
            hint = "check the bucket, the credentials and the endpoint"
            raise ResultError(f"{self.place}: {said}", hint) from None


def _objects() -> Any:
    try:
        import obstore  # noqa: PLC0415 -- only who has a bucket needs it
    except ImportError:
        missing = ResultError("results in S3 need obstore", "pip install 'noetl[s3]'")
        missing.kind = "tool"
        raise missing from None
    return obstore


def _opened(url: str) -> Any:
    from obstore.store import S3Store  # noqa: PLC0415 -- as above

    parts = urlsplit(url)
    knobs = dict(parse_qsl(parts.query))
    if not parts.netloc or (unknown := sorted(set(knobs) - set(_KNOBS))):
        said = f" with `{unknown[0]}`" if parts.netloc else ""
        raise ResultError(
            f"`{url}` is no place for results{said}", f"s3://BUCKET/PREFIX?{'=…&'.join(_KNOBS)}=…"
        )
    config: dict[str, Any] = {"region": "us-east-1", **knobs} if "endpoint" in knobs else dict(knobs)
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        config=config,  # type: ignore[arg-type]  # a mapping of known keys
        # Whether it is encrypted is what the endpoint says; that of Amazon is.
        client_options={"allow_http": True, "timeout": "3600s", "connect_timeout": "10s"},
        retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=60)},
    )
