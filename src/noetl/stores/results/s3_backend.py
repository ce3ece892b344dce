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

PART_BYTES = 8 << 20
"""Bytes of one part of a large upload, and of one piece of a download."""
MAX_CONCURRENT_PARTS = 4
_URL_PARAMETERS = ("region", "endpoint")


class S3Results(BackendResultStore):
    """A result store below `s3://BUCKET/PREFIX?region=…&endpoint=…`; credentials as the environment says.

    Raises ResultError.
    """

    def __init__(self, url: str, scratch: Path | None = None) -> None:
        super().__init__(S3Backend(url, scratch))


class S3Backend(RemoteBackend):
    def __init__(self, url: str, scratch: Path | None) -> None:
        super().__init__(scratch)
        self.location = url.partition("?")[0]
        self._obstore = _import_obstore()
        self._bucket = _open_bucket(url)

    async def write(self, name: str, data: bytes) -> None:
        with self._translate_errors(name):
            await self._obstore.put_async(
                self._bucket, name, data, chunk_size=PART_BYTES, max_concurrency=MAX_CONCURRENT_PARTS
            )

    async def write_file(self, name: str, path: Path) -> None:
        with self._translate_errors(name):
            await self._obstore.put_async(
                self._bucket, name, path, chunk_size=PART_BYTES, max_concurrency=MAX_CONCURRENT_PARTS
            )

    async def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        with self._translate_errors(name):
            if not start and end is None:
                response = await self._obstore.get_async(self._bucket, name)
                return bytes(await response.bytes_async())
        # Servers refuse a range that begins behind the end, so the size is asked for first.
        size = await self.size(name)
        end = size if end is None else min(end, size)
        if start >= end:
            return b""
        with self._translate_errors(name):
            return bytes(await self._obstore.get_range_async(self._bucket, name, start=start, end=end))

    async def size(self, name: str) -> int:
        with self._translate_errors(name):
            byte_count: int = (await self._obstore.head_async(self._bucket, name))["size"]
            return byte_count

    async def read_file(self, name: str, to: Path) -> None:
        with self._translate_errors(name), to.open("wb") as file:
            response = await self._obstore.get_async(self._bucket, name)
            async for chunk in response.stream(min_chunk_size=PART_BYTES):
                file.write(chunk)

    async def copy(self, name: str, to: str) -> None:
        with self._translate_errors(name):
            await self._obstore.copy_async(self._bucket, name, to)

    async def names(self, folder: str) -> list[str]:
        with self._translate_errors(folder):
            entries = await self._obstore.list(self._bucket, prefix=f"{folder}/").collect_async()
        return sorted(entry["path"] for entry in entries)

    async def remove(self, names: list[str]) -> None:
        with self._translate_errors(self.location):
            await self._obstore.delete_async(self._bucket, names)

    async def close(self) -> None:
        """Nothing is held."""

    @contextmanager
    def _translate_errors(self, name: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise BlobMissing(name) from None
        except (self._obstore.exceptions.BaseError, OSError) as error:
            # The first line: obstore goes on with a dump for its developers.
            reason = str(error).strip("'\" \n").partition("\n")[0]
            hint = "check the bucket, the credentials and the endpoint"
            raise ResultError(f"{self.location}: {reason}", hint) from None


def _import_obstore() -> Any:
    try:
        import obstore  # noqa: PLC0415 - only who has a bucket needs it
    except ImportError:
        missing = ResultError("results in S3 need obstore", "pip install 'noetl[s3]'")
        missing.kind = "tool"
        raise missing from None
    return obstore


def _open_bucket(url: str) -> Any:
    from obstore.store import S3Store  # noqa: PLC0415 - only who has a bucket needs it

    parts = urlsplit(url)
    parameters = dict(parse_qsl(parts.query))
    if not parts.netloc or (unknown := sorted(set(parameters) - set(_URL_PARAMETERS))):
        reason = f" with `{unknown[0]}`" if parts.netloc else ""
        raise ResultError(
            f"`{url}` is no place for results{reason}",
            f"s3://BUCKET/PREFIX?{'=…&'.join(_URL_PARAMETERS)}=…",
        )
    config: dict[str, Any] = dict(parameters)
    if "endpoint" in parameters:  # servers beside Amazon's have no regions, but a request is signed for one
        config = {"region": "us-east-1", **parameters}
    return S3Store(
        parts.netloc,
        prefix=parts.path.strip("/") or None,
        config=config,  # type: ignore[arg-type]  # obstore wants a TypedDict; `_URL_PARAMETERS` holds its keys
        # Whether it is encrypted is what the endpoint says; that of Amazon is.
        client_options={"allow_http": True, "timeout": "3600s", "connect_timeout": "10s"},
        retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=60)},
    )
