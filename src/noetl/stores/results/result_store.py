"""The result store over any backend: keys, checksums, packing, and bodies that expire."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

from noetl.ports.results import (
    AccessGrant,
    GrantMethod,
    ResultDamaged,
    ResultError,
    ResultExpired,
    ResultMissing,
    StoredBody,
)
from noetl.stores.results import body_format
from noetl.stores.results.backend import BlobMissing, ResultBackend
from noetl.stores.results.result_key import (
    artifact_file_name,
    artifact_name,
    check_execution_id,
    folder_owner,
    is_execution_id,
    is_result_key,
    log_folder,
    log_segment_name,
    parse_result_key,
)

ARTIFACTS = "artifacts"
"""The folder of the entries by name."""
_CHECKS = "checks"
"""The folder in which is tried whether something can be stored."""
_MAX_INTACT_FILES = 1_000
"""Files of which is remembered that their checksum was right."""
_INLINE_BYTES = 1 << 16
"""Bytes that are packed and hashed in the loop's own thread: handing them over would take longer."""
_NOTE_BYTES = 1 << 10
"""Bytes that hold any note of an expired body."""


class BackendResultStore:
    """See `noetl.ports.results.ResultStore`."""

    def __init__(self, backend: ResultBackend) -> None:
        self._backend = backend
        self._intact_files: dict[str, tuple[int, int, int]] = {}
        """By key, the file whose checksum was right: which, of what size, and when it was written.

        A gigabyte would else be hashed for each part that is read of it. Whoever replaces a file makes
        another inode, and whoever writes into it another time."""

    async def put(self, key: str, data: bytes, compression: str = "none") -> None:
        name = _blob_name(key)
        if len(data) <= _INLINE_BYTES:
            body = _encode_body(key, data, compression)
        else:
            body = await asyncio.to_thread(_encode_body, key, data, compression)
        await self._backend.write(name, body)

    async def get(self, key: str) -> bytes:
        with self._missing_as_error(key):
            data = await self._backend.read(_blob_name(key))
        if len(data) <= _INLINE_BYTES:
            return self._decode_body(key, data)
        return await asyncio.to_thread(self._decode_body, key, data)

    async def read(self, key: str, start: int, end: int | None = None) -> bytes:
        with self._missing_as_error(key):
            head = await self._backend.read(_blob_name(key), 0, body_format.HEADER_BYTES)
            # The fast path for a body that is there as it is; the slow path below gives the same bytes, but
            # reads, unpacks and hashes all of them.
            if body_format.is_plain_body(head):
                return await self._backend.read(_blob_name(key), start, end)
        async with self.local(key) as path:
            return await asyncio.to_thread(read_range, path, start, end)

    def scratch(self, execution_id: str) -> Path:
        return self._backend.scratch(check_execution_id(execution_id))

    async def put_file(self, key: str, path: Path, compression: str = "none") -> None:
        folder = self.scratch(parse_result_key(key).execution_id)
        async with packed_body(path, folder, compression) as packed:
            await self._backend.write_file(_blob_name(key), packed)
        path.unlink(missing_ok=True)

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        name = _blob_name(key)
        with self._missing_as_error(key):
            path = self._backend.path(name)
            # The fast path: the backend's own file, if it has one that is not packed; else a copy in scratch.
            if path is not None and await asyncio.to_thread(self._is_intact_body, key, path):
                yield path
                return
        folder = self.scratch(parse_result_key(key).execution_id)
        raw, unpacked = folder / f".raw-{uuid4().hex}", folder / f".whole-{uuid4().hex}"
        try:
            with self._missing_as_error(key):
                if path is None:
                    await self._backend.read_file(name, raw)
                location = self._backend.location
                body_file = await asyncio.to_thread(open_body, key, path or raw, unpacked, location)
            yield body_file
        finally:
            raw.unlink(missing_ok=True)
            unpacked.unlink(missing_ok=True)

    async def copy(self, key: str, to: str) -> None:
        with self._missing_as_error(key):
            await self._backend.copy(_blob_name(key), _blob_name(to))

    async def keys(self, execution_id: str) -> list[str]:
        names = await self._backend.names(check_execution_id(execution_id))
        return [name for name in names if is_result_key(name)]

    async def owners(self) -> list[str]:
        folders = {folder_owner(folder) for folder in await self._backend.folders()}
        return sorted(owner for owner in folders - {ARTIFACTS, _CHECKS} if is_execution_id(owner))

    async def bodies(self, execution_id: str) -> list[StoredBody]:
        blobs = await self._backend.blobs(check_execution_id(execution_id))
        return [blob for blob in blobs if is_result_key(blob.key)]

    async def remove(self, keys: Sequence[str]) -> None:
        await self._backend.remove([_blob_name(key) for key in keys])

    async def grant(self, key: str, method: GrantMethod, seconds: float) -> AccessGrant | None:
        return await self._backend.grant(_blob_name(key), method, seconds)

    async def expire(self, key: str, since: str) -> int:
        try:
            head = await self._backend.read(_blob_name(key), 0, _NOTE_BYTES)
            if body_format.expiry_note_in(head) is not None:
                return 0
            size = await self._backend.size(_blob_name(key))
        except BlobMissing:
            return 0
        await self._backend.write(
            _blob_name(key), body_format.encode_expiry_note(body_format.ExpiryNote(since, size))
        )
        return size

    async def delete(self, execution_id: str) -> None:
        await self._backend.remove_folder(check_execution_id(execution_id))
        await self.delete_log(execution_id)

    async def put_entry(self, name: str, entry: bytes, store: str = "") -> None:
        self._refuse_named_store(store)
        await self._backend.write(f"{ARTIFACTS}/{artifact_file_name(name)}", entry)

    async def entry(self, name: str, store: str = "") -> bytes | None:
        self._refuse_named_store(store)
        try:
            return await self._backend.read(f"{ARTIFACTS}/{artifact_file_name(name)}")
        except BlobMissing:
            return None

    async def entries(self, prefix: str = "", store: str = "") -> list[str]:
        self._refuse_named_store(store)
        files = await self._backend.names(ARTIFACTS)
        names = [artifact_name(file.partition("/")[2]) for file in files]
        return sorted(name for name in names if name.startswith(prefix))

    async def delete_entry(self, name: str, store: str = "") -> None:
        self._refuse_named_store(store)
        await self._backend.remove([f"{ARTIFACTS}/{artifact_file_name(name)}"])

    async def put_log(self, execution_id: str, segment: str, lines: bytes) -> None:
        await self._backend.write(log_segment_name(execution_id, segment), lines)

    async def log_segments(self, execution_id: str) -> list[StoredBody]:
        folder = log_folder(execution_id)
        segments = await self._backend.blobs(folder)
        return [segment._replace(key=segment.key.removeprefix(f"{folder}/")) for segment in segments]

    async def log_segment(self, execution_id: str, segment: str, start: int = 0) -> bytes:
        try:
            return await self._backend.read(log_segment_name(execution_id, segment), start)
        except BlobMissing:
            return b""

    async def delete_log(self, execution_id: str) -> None:
        await self._backend.remove_folder(log_folder(execution_id))

    async def check(self) -> None:
        name, data = f"{_CHECKS}/{uuid4().hex}", b"noetl"
        await self._backend.write(name, data)
        try:
            read = await self._backend.read(name)
        except BlobMissing:
            read = b""
        if read != data:
            location = self._backend.location
            raise ResultError(
                f"{location}: what was written could not be read again", "check what is behind it"
            )
        await self._backend.remove([name])

    async def sweep(self, before: float) -> int:
        return await self._backend.sweep(before)

    async def close(self) -> None:
        await self._backend.close()

    def _refuse_named_store(self, store: str) -> None:
        if store:
            raise ResultMissing(f"there is no result store `{store}`", "name it in `result_stores`")

    @contextmanager
    def _missing_as_error(self, key: str) -> Iterator[None]:
        try:
            yield
        except BlobMissing:
            message = f"nothing is stored under `{key}` in {self._backend.location}"
            raise ResultMissing(
                message, "it was deleted, or the execution belongs to another place of results"
            ) from None

    def _decode_body(self, key: str, data: bytes) -> bytes:
        try:
            _refuse_expired(key, data)
            data = body_format.unpack_body(data)
        except body_format.DamagedBody:
            raise _damage_error(key, self._backend.location) from None
        if hashlib.sha256(data).hexdigest() != parse_result_key(key).hash:
            raise _damage_error(key, self._backend.location)
        return data

    def _is_intact_body(self, key: str, path: Path) -> bool:
        """Whether a file is the body itself: tried once. Raises ResultDamaged, BlobMissing."""
        if not _is_plain_file(path):
            return False
        status = path.stat()
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._intact_files.get(key) != stamp:
            _refuse_damaged(key, path, self._backend.location)
            while len(self._intact_files) >= _MAX_INTACT_FILES:
                del self._intact_files[next(iter(self._intact_files))]
            self._intact_files[key] = stamp
        return True


@asynccontextmanager
async def packed_body(path: Path, folder: Path, compression: str) -> AsyncIterator[Path]:
    """A file as it is to be kept: itself, or another in `folder` that is gone afterwards."""
    if compression == "none" and await asyncio.to_thread(_is_plain_file, path):
        yield path
        return
    packed = folder / f".packed-{uuid4().hex}"
    try:
        await asyncio.to_thread(body_format.pack_body_file, path, packed, compression)
        yield packed
    finally:
        packed.unlink(missing_ok=True)


def open_body(key: str, raw: Path, unpacked: Path, location: str) -> Path:
    """The file of a body that was kept as `raw`: this, or `unpacked`. Raises ResultDamaged, ResultExpired."""
    try:
        with raw.open("rb") as file:
            head = file.read(_NOTE_BYTES)
        _refuse_expired(key, head)
        if not body_format.is_plain_body(head):
            body_format.unpack_body_file(raw, unpacked)
            raw = unpacked
    except body_format.DamagedBody:
        raise _damage_error(key, location) from None
    _refuse_damaged(key, raw, location)
    return raw


def _refuse_damaged(key: str, path: Path, location: str) -> None:
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != parse_result_key(key).hash:
            raise _damage_error(key, location)


def _refuse_expired(key: str, data: bytes) -> None:
    if (note := body_format.expiry_note_in(data)) is not None:
        message = f"what was stored under `{key}` ({note.size:,} bytes) expired at {note.since}"
        hint = "`spec.result.ttl` says how long it is kept; its event has a preview"
        raise ResultExpired(message, hint)


def _damage_error(key: str, location: str) -> ResultDamaged:
    hint = "it was changed or the disk is damaged; restore it from a copy"
    checksum = f"sha256:{parse_result_key(key).hash}"
    return ResultDamaged(f"`{key}` in {location} is damaged: its checksum is not {checksum}", hint)


def _blob_name(key: str) -> str:
    return "/".join(parse_result_key(key))


def _encode_body(key: str, data: bytes, compression: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != parse_result_key(key).hash:
        raise ValueError(f"`{key}` is not the key of these bytes")
    return body_format.pack_body(data, compression)


def _is_plain_file(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return body_format.is_plain_body(file.read(body_format.HEADER_BYTES))
    except FileNotFoundError:
        raise BlobMissing from None


def read_range(path: Path, start: int, end: int | None) -> bytes:
    """The bytes of a file from `start` up to `end`, or as many as there are."""
    with path.open("rb") as file:
        file.seek(start)
        return file.read() if end is None else file.read(max(end - start, 0))
