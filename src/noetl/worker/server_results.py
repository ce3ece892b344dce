"""The server's result store, as its workers have it: over HTTP, in pieces, and going on where one broke."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import aiohttp

from noetl.ports.results import (
    AccessGrant,
    GrantMethod,
    ResultDamaged,
    ResultError,
    ResultMissing,
    StoredBody,
)
from noetl.scratch_folder import ScratchFolder
from noetl.stores.results.result_key import parse_result_key, split_store_key
from noetl.worker.granted_results import LEAST_GRANTED, GrantedResults
from noetl.worker.plane_requests import ServerAccess, server_error_of
from noetl.worker.server_link import FIRST_WAIT, TRIES, ServerLink, ServerUnavailable, retry_while_unavailable

CHUNK = 1 << 20
PIECE = 8 << 20
"""Bytes that are sent in one request: proxies bound them, and what breaks off is sent again from here."""


class ServerResults:
    """See `noetl.ports.results.ResultStore`. Only of what the session has claimed.

    What belongs to no execution is for the server: see `noetl.worker.remote_ledgers`.
    """

    def __init__(self, access: ServerAccess, link: ServerLink) -> None:
        self._access = access
        self._granted = GrantedResults(access.http, link)
        self._folder = ScratchFolder("worker")

    async def put(self, key: str, data: bytes, compression: str = "none") -> None:
        if hashlib.sha256(data).hexdigest() != parse_result_key(split_store_key(key)[1]).hash:
            raise ValueError(f"`{key}` is not the key of these bytes")
        if len(data) >= LEAST_GRANTED and await self._granted.put(key, data, compression):
            return
        if len(data) > PIECE:
            path = self.scratch(parse_result_key(split_store_key(key)[1]).execution_id) / f".{uuid4().hex}"
            await asyncio.to_thread(path.write_bytes, data)
            await self.put_file(key, path, compression)
            return
        await self._offer(key, {"compression": compression}, data, {})

    async def put_file(self, key: str, path: Path, compression: str = "none") -> None:
        size, start = path.stat().st_size, 0
        if size >= LEAST_GRANTED:
            folder = self.scratch(parse_result_key(split_store_key(key)[1]).execution_id)
            if await self._granted.put_file(key, path, folder, compression):
                return
        upload = uuid4().hex
        while start < size or not size:
            piece = await asyncio.to_thread(_read_piece, path, start, PIECE)
            params, headers = {"compression": compression}, {}
            if size > PIECE:
                params["upload"] = upload
                headers["content-range"] = f"bytes {start}-{start + len(piece) - 1}/{size}"
            await self._offer(key, params, piece, headers)
            start += len(piece)
            if not size:
                break
        path.unlink(missing_ok=True)

    async def _offer(
        self, key: str, params: Mapping[str, str], data: bytes, headers: Mapping[str, str]
    ) -> None:
        """One request, made again while the server does not answer. Raises ResultError."""
        try:
            await retry_while_unavailable(lambda: self._put(key, params, data, headers))
        except ServerUnavailable as error:
            raise ResultError(str(error)) from None

    async def _put(
        self, key: str, params: Mapping[str, str], data: bytes, headers: Mapping[str, str]
    ) -> None:
        access = self._access
        url, store = self._url(key)
        try:
            async with access.http.put(
                url, params={**params, **store}, data=data, headers={**access.headers, **headers}
            ) as response:
                if response.status not in (202, 204):
                    _raise_result_error(response.status, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ServerUnavailable(f"the server does not take a result: {error}") from error

    async def get(self, key: str) -> bytes:
        data = b"".join([piece async for piece in self._pieces(key, 0, None)])
        if hashlib.sha256(data).hexdigest() != parse_result_key(split_store_key(key)[1]).hash:
            raise _torn(key)
        return data

    async def read(self, key: str, start: int, end: int | None = None) -> bytes:
        if end is not None and end <= start:
            return b""
        pieces = [piece async for piece in self._pieces(key, start, end)]
        return b"".join(pieces)

    def scratch(self, execution_id: str) -> Path:
        path = self._folder.path / execution_id
        path.mkdir(mode=0o700, exist_ok=True)
        return path

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        bare_key = parse_result_key(split_store_key(key)[1])
        folder = self.scratch(bare_key.execution_id)
        async with self._granted.local(key, folder) as body_file:
            if body_file is not None:
                yield body_file
                return
        path = folder / f".fetched-{uuid4().hex}"
        try:
            with path.open("wb") as file:
                async for piece in self._pieces(key, 0, None):
                    await asyncio.to_thread(file.write, piece)
            if await asyncio.to_thread(_hash_of, path) != bare_key.hash:
                raise _torn(key)
            yield path
        finally:
            path.unlink(missing_ok=True)

    async def _pieces(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        """The bytes from `start` on; where a connection breaks, the next one goes on. Raises ResultError."""
        position, failures = start, 0
        while True:
            try:
                async for piece in self._stream(key, position, end):
                    position += len(piece)
                    failures = 0
                    yield piece
            except ServerUnavailable as error:
                failures += 1
                if failures == TRIES:
                    raise ResultError(str(error)) from None
                await asyncio.sleep(FIRST_WAIT * 2**failures)
            else:
                return

    async def _stream(self, key: str, start: int, end: int | None) -> AsyncIterator[bytes]:
        access = self._access
        url, store = self._url(key)
        headers = dict(access.headers)
        if start or end is not None:
            headers["range"] = f"bytes={start}-{'' if end is None else end - 1}"
        try:
            async with access.http.get(url, params=store, headers=headers) as response:
                if response.status == 416:
                    return
                if response.status not in (200, 206):
                    _raise_result_error(response.status, await response.read())
                async for piece in response.content.iter_chunked(CHUNK):
                    yield piece
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise ServerUnavailable(f"the server does not give `{key}`: {error}") from error

    def _url(self, key: str) -> tuple[str, dict[str, str]]:
        """Where a value is, and what says in which store."""
        store, bare_key = split_store_key(key)
        return f"{self._access.url}/api/results/{bare_key}", {"store": store} if store else {}

    async def copy(self, key: str, to: str) -> None:
        async with self.local(key) as path:
            await self.put_file(to, path)

    async def keys(self, execution_id: str) -> list[str]:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def owners(self) -> list[str]:
        raise _not_offered()

    async def bodies(self, execution_id: str) -> list[StoredBody]:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def remove(self, keys: Sequence[str]) -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def check(self) -> None:
        raise _not_offered()

    async def grant(self, key: str, method: GrantMethod, seconds: float) -> AccessGrant | None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def expire(self, key: str, since: str) -> int:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def delete(self, execution_id: str) -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def put_entry(self, name: str, entry: bytes, store: str = "") -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def entry(self, name: str, store: str = "") -> bytes | None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def entries(self, prefix: str = "", store: str = "") -> list[str]:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def delete_entry(self, name: str, store: str = "") -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def put_log(self, execution_id: str, segment: str, lines: bytes) -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def log_segments(self, execution_id: str) -> list[StoredBody]:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def log_segment(self, execution_id: str, segment: str, start: int = 0) -> bytes:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def delete_log(self, execution_id: str) -> None:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def sweep(self, before: float) -> int:  # noqa: ARG002 - the port has it
        raise _not_offered()

    async def close(self) -> None:
        await asyncio.to_thread(self._folder.remove)


def _raise_result_error(status: int, body: bytes) -> None:
    error = server_error_of(status, body)
    if status == 404 and b'"not_found"' in body:
        raise ResultMissing(str(error))
    if isinstance(error, ServerUnavailable):
        raise error
    raise ResultError(str(error))


def _torn(key: str) -> ResultDamaged:
    return ResultDamaged(f"`{key}` did not come from the server as it is stored", "try again")


def _read_piece(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)


def _hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _not_offered() -> ResultError:
    return ResultError("that is for the server to do, not for its workers")
