"""Results in a bucket: of S3 or a store that speaks it, of Google Cloud Storage, or a container of Azure."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct

from noetl.ports.results import AccessGrant, GrantMethod, ResultError, StoredBody
from noetl.stores.results.backend import BlobMissing
from noetl.stores.results.file_backend import translate_os_errors
from noetl.stores.results.remote_backend import RemoteBackend
from noetl.stores.results.result_store import BackendResultStore, read_range

PART_BYTES = 8 << 20
"""Bytes of one part of a large upload, and of one piece of a download."""
MAX_CONCURRENT_PARTS = 4
_COMPARED_BYTES = 1 << 16
"""Bytes at the beginning of a body that say whether it is the one to be written: its name is its hash."""
_CONDITIONAL_TRIES = 3


class _Provider(Struct, frozen=True, kw_only=True):
    """What is peculiar to one kind of bucket."""

    store: str
    """The class of obstore."""
    parameters: Mapping[str, str]
    """What a URL may say after `?`, and what obstore calls it."""
    defaults: Mapping[str, str] = {}
    """What holds where the URL does not say it."""
    credentials: str
    """Where they come from, for people."""
    upload_headers: Mapping[str, str] = {}
    """What whoever writes to a signed URL has to send along."""


_PROVIDERS = {
    "s3": _Provider(
        store="S3Store",
        parameters={"region": "region", "endpoint": "endpoint"},
        # The server compares what it got with it.
        defaults={"checksum_algorithm": "SHA256"},
        credentials="AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role of the machine",
    ),
    "gs": _Provider(
        store="GCSStore",
        parameters={"endpoint": "base_url"},
        credentials="GOOGLE_SERVICE_ACCOUNT (a file), GOOGLE_SERVICE_ACCOUNT_KEY, or the machine's account",
    ),
    "az": _Provider(
        store="AzureStore",
        parameters={"account": "account_name", "endpoint": "endpoint"},
        credentials="AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or an identity of the machine",
        upload_headers={"x-ms-blob-type": "BlockBlob"},
    ),
}
BUCKET_SCHEMES = tuple(_PROVIDERS)


class BucketResults(BackendResultStore):
    """A result store below `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or `az://CONTAINER/PREFIX`.

    Credentials are as the environment says. Raises ResultError.
    """

    def __init__(self, url: str, scratch: Path | None = None) -> None:
        super().__init__(BucketBackend(url, scratch))


class BucketBackend(RemoteBackend):
    """A body is written where nothing is yet, or over what was seen there: writers never undo each other."""

    def __init__(self, url: str, scratch: Path | None) -> None:
        super().__init__(scratch)
        self.location = url.partition("?")[0]
        parts = urlsplit(url)
        self._provider = _PROVIDERS[parts.scheme]
        self._bucket_name = parts.netloc
        self._obstore = _import_obstore(parts.scheme)
        self._bucket = _open_bucket(url, self._provider)

    async def write(self, name: str, data: bytes) -> None:
        if len(data) > PART_BYTES:
            await self._write_in_parts(name, data, len(data), data[:_COMPARED_BYTES])
            return
        mode: Any = "create"
        with self._translate_errors(name, writing=True):
            for _ in range(_CONDITIONAL_TRIES):
                try:
                    await self._obstore.put_async(self._bucket, name, data, mode=mode)
                except (
                    self._obstore.exceptions.AlreadyExistsError,
                    self._obstore.exceptions.PreconditionError,
                ):
                    mode = await self._mode_to_replace(name, len(data), data[:_COMPARED_BYTES])
                    if mode is None:
                        return
                except (NotImplementedError, self._obstore.exceptions.NotSupportedError):
                    mode = "overwrite"  # a server that knows no conditions
                else:
                    return
        raise ResultError(
            f"{self.location}: others write to `{name}` all the time", "look who uses this bucket"
        )

    async def write_file(self, name: str, path: Path) -> None:
        with translate_os_errors(path):
            size = path.stat().st_size
            if size <= PART_BYTES:
                await self.write(name, await asyncio.to_thread(path.read_bytes))
                return
            head = read_range(path, 0, _COMPARED_BYTES)
        await self._write_in_parts(name, path, size, head)

    async def _write_in_parts(self, name: str, source: bytes | Path, size: int, head: bytes) -> None:
        """Parts are put together by the server, at once: there is no condition for that."""
        with self._translate_errors(name, writing=True):
            if await self._mode_to_replace(name, size, head) is None:
                return
            await self._obstore.put_async(
                self._bucket, name, source, chunk_size=PART_BYTES, max_concurrency=MAX_CONCURRENT_PARTS
            )
        if (stored := await self.size(name)) != size:
            raise ResultError(
                f"{self.location}: of {size:,} bytes of `{name}` {stored:,} arrived", "try again"
            )

    async def _mode_to_replace(self, name: str, size: int, head: bytes) -> Any:
        """How to write what begins so in the place of what is there; None if that is it already."""
        try:
            meta = await self._obstore.head_async(self._bucket, name)
        except FileNotFoundError:
            return "create"
        # All of it need not be compared: a key is the hash of its bytes, and an entry begins with its name.
        if meta["size"] == size and await self._head_of(name, len(head)) == head:
            return None
        return {key: meta[key] for key in ("e_tag", "version") if meta.get(key)}

    async def _head_of(self, name: str, size: int) -> bytes:
        if not size:
            return b""
        return bytes(await self._obstore.get_range_async(self._bucket, name, start=0, end=size))

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
                await asyncio.to_thread(file.write, chunk)

    async def copy(self, name: str, to: str) -> None:
        with self._translate_errors(name):
            await self._obstore.copy_async(self._bucket, name, to)

    async def names(self, folder: str) -> list[str]:
        return [body.key for body in await self.blobs(folder)]

    async def folders(self) -> list[str]:
        with self._translate_errors(self.location):
            listing = await self._obstore.list_with_delimiter_async(self._bucket)
        return sorted(folder.strip("/") for folder in listing["common_prefixes"])

    async def blobs(self, folder: str) -> list[StoredBody]:
        with self._translate_errors(folder):
            entries = await self._obstore.list(self._bucket, prefix=f"{folder}/").collect_async()
        bodies = [
            StoredBody(each["path"], each["size"], each["last_modified"].timestamp()) for each in entries
        ]
        return sorted(bodies)

    async def grant(self, name: str, method: GrantMethod, seconds: float) -> AccessGrant | None:
        """A signed URL. None where what signs in cannot sign, as a mere token."""
        try:
            url = await self._obstore.sign_async(self._bucket, method, name, timedelta(seconds=seconds))
        except (self._obstore.exceptions.BaseError, NotImplementedError, ValueError):
            return None
        return AccessGrant(url, dict(self._provider.upload_headers) if method == "PUT" else {})

    async def remove(self, names: list[str]) -> None:
        try:
            with self._translate_errors(self.location):
                await self._obstore.delete_async(self._bucket, names)
        except BlobMissing:
            if len(names) > 1:  # the others may be there, and not every provider has gone on with them
                for name in names:
                    await self.remove([name])

    async def close(self) -> None:
        """Nothing is held."""

    @contextmanager
    def _translate_errors(self, name: str, *, writing: bool = False) -> Iterator[None]:
        errors = self._obstore.exceptions
        try:
            yield
        except FileNotFoundError:
            if not writing:
                raise BlobMissing(name) from None
            hint = "make it, or name another in the URL"
            raise ResultError(f"{self.location}: there is no bucket `{self._bucket_name}`", hint) from None
        except (errors.PermissionDeniedError, errors.UnauthenticatedError):
            message = f"{self.location}: the credentials do not allow this"
            raise ResultError(message, f"they come from {self._provider.credentials}") from None
        except (errors.BaseError, OSError) as error:
            # The first line: obstore goes on with a dump for its developers.
            reason = str(error).strip("'\" \n").partition("\n")[0]
            hint = f"check the bucket, the endpoint and the credentials: {self._provider.credentials}"
            raise ResultError(f"{self.location}: {reason}", hint) from None


def _import_obstore(scheme: str) -> Any:
    try:
        import obstore  # noqa: PLC0415 - only who has a bucket needs it
    except ImportError:
        missing = ResultError(f"results in {scheme}:// need obstore", "pip install 'noetl[s3]'")
        missing.kind = "tool"
        raise missing from None
    return obstore


def _open_bucket(url: str, provider: _Provider) -> Any:
    import obstore.store  # noqa: PLC0415 - only who has a bucket needs it

    parts = urlsplit(url)
    parameters = dict(parse_qsl(parts.query))
    if not parts.netloc or (unknown := sorted(set(parameters) - set(provider.parameters))):
        reason = f" with `{unknown[0]}`" if parts.netloc else ""
        raise ResultError(
            f"`{url}` is no place for results{reason}",
            f"{parts.scheme}://BUCKET/PREFIX?{'=…&'.join(provider.parameters)}=…",
        )
    config: dict[str, Any] = {**provider.defaults}
    config |= {provider.parameters[name]: value for name, value in parameters.items()}
    if parts.scheme == "s3" and "endpoint" in config:
        # Servers beside Amazon's have no regions, but a request is signed for one.
        config = {"region": "us-east-1", **config}
    try:
        return getattr(obstore.store, provider.store)(
            parts.netloc,
            prefix=unquote(parts.path).strip("/") or None,
            config=config,
            # Whether it is encrypted is what the endpoint says; that of each provider is.
            client_options={"allow_http": True, "timeout": "3600s", "connect_timeout": "10s"},
            retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=60)},
        )
    except (obstore.exceptions.BaseError, ValueError) as error:
        reason = str(error).strip("'\" \n").partition("\n")[0]
        raise ResultError(f"`{url}`: {reason}", f"credentials come from {provider.credentials}") from None
