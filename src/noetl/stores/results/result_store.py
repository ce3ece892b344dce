"""The result store over any shelf: keys, checksums, packing, and bodies that expire."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from uuid import uuid4

from noetl.ports.results import ResultDamaged, ResultExpired, ResultMissing
from noetl.stores.results import body_format
from noetl.stores.results.backend import BlobMissing, ResultBackend
from noetl.stores.results.result_key import (
    artifact_file_name,
    artifact_name,
    check_execution_id,
    is_result_key,
    parse_result_key,
)

ARTIFACTS = "artifacts"
"""The folder of the entries by name."""
_PIECE = 1 << 20
_KNOWN = 1_000
"""Files of which is remembered that they were whole."""
_SMALL = 1 << 16
"""Bytes that are packed and hashed in the loop's own thread: handing them over would take longer."""


class BackendResultStore:
    """See `noetl.ports.results.ResultStore`."""

    def __init__(self, shelf: ResultBackend) -> None:
        self._shelf = shelf
        self._sound: dict[str, tuple[int, int, int]] = {}
        """Files that were found whole, by key: which, of what size, and when it was written."""

    async def put(self, key: str, data: bytes, compression: str = "none") -> None:
        name = _name(key)
        if len(data) <= _SMALL:
            body = _ready(key, data, compression)
        else:
            body = await asyncio.to_thread(_ready, key, data, compression)
        await self._shelf.write(name, body)

    async def get(self, key: str) -> bytes:
        with self._finding(key):
            data = await self._shelf.read(_name(key))
        if len(data) <= _SMALL:
            return self._opened(key, data)
        return await asyncio.to_thread(self._opened, key, data)

    async def read(self, key: str, start: int, end: int | None = None) -> bytes:
        with self._finding(key):
            head = await self._shelf.read(_name(key), 0, body_format.HEAD)
            if body_format.is_plain_body(head):
                return await self._shelf.read(_name(key), start, end)
        async with self.local(key) as path:
            return await asyncio.to_thread(_between, path, start, end)

    def scratch(self, execution_id: str) -> Path:
        return self._shelf.scratch(check_execution_id(execution_id))

    async def put_file(self, key: str, path: Path, compression: str = "none") -> None:
        name = _name(key)
        if compression == "none" and await asyncio.to_thread(_is_plain, path):
            await self._shelf.write_file(name, path)
        else:
            beside = self.scratch(parse_result_key(key).execution_id) / f".packed-{uuid4().hex}"
            try:
                await asyncio.to_thread(body_format.pack_body_file, path, beside, compression)
                await self._shelf.write_file(name, beside)
            finally:
                beside.unlink(missing_ok=True)
        path.unlink(missing_ok=True)

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        name = _name(key)
        with self._finding(key):
            path = self._shelf.path(name)
            if path is not None and await asyncio.to_thread(self._is_whole, key, path):
                yield path
                return
        folder = self.scratch(parse_result_key(key).execution_id)
        raw, whole = folder / f".raw-{uuid4().hex}", folder / f".whole-{uuid4().hex}"
        try:
            with self._finding(key):
                if path is None:
                    await self._shelf.read_file(name, raw)
                found = await asyncio.to_thread(self._unpack, key, path or raw, whole)
            yield found
        finally:
            raw.unlink(missing_ok=True)
            whole.unlink(missing_ok=True)

    async def copy(self, key: str, to: str) -> None:
        with self._finding(key):
            await self._shelf.copy(_name(key), _name(to))

    async def keys(self, execution_id: str) -> list[str]:
        names = await self._shelf.names(check_execution_id(execution_id))
        return [name for name in names if is_result_key(name)]

    async def expire(self, key: str, since: str) -> int:
        try:
            head = await self._shelf.read(_name(key), 0, 1 << 10)
            if body_format.expiry_note_in(head) is not None:
                return 0
            size = await self._shelf.size(_name(key))
        except BlobMissing:
            return 0
        await self._shelf.write(
            _name(key), body_format.encode_expiry_note(body_format.ExpiryNote(since, size))
        )
        return size

    async def delete(self, execution_id: str) -> None:
        await self._shelf.remove_folder(check_execution_id(execution_id))

    async def put_entry(self, name: str, entry: bytes, store: str = "") -> None:
        self._refuse_others(store)
        await self._shelf.write(f"{ARTIFACTS}/{artifact_file_name(name)}", entry)

    async def entry(self, name: str, store: str = "") -> bytes | None:
        self._refuse_others(store)
        try:
            return await self._shelf.read(f"{ARTIFACTS}/{artifact_file_name(name)}")
        except BlobMissing:
            return None

    async def entries(self, prefix: str = "", store: str = "") -> list[str]:
        self._refuse_others(store)
        found = [artifact_name(name.partition("/")[2]) for name in await self._shelf.names(ARTIFACTS)]
        return sorted(name for name in found if name.startswith(prefix))

    async def delete_entry(self, name: str, store: str = "") -> None:
        self._refuse_others(store)
        await self._shelf.remove([f"{ARTIFACTS}/{artifact_file_name(name)}"])

    async def sweep(self, before: float) -> int:
        return await self._shelf.sweep(before)

    async def close(self) -> None:
        await self._shelf.close()

    def _refuse_others(self, store: str) -> None:
        if store:
            raise ResultMissing(f"there is no result store `{store}`", "name it in `result_stores`")

    @contextmanager
    def _finding(self, key: str) -> Iterator[None]:
        try:
            yield
        except BlobMissing:
            message = f"nothing is stored under `{key}` in {self._shelf.place}"
            raise ResultMissing(
                message, "it was deleted, or the execution belongs to another place of results"
            ) from None

    def _opened(self, key: str, data: bytes) -> bytes:
        try:
            self._refuse_expired(key, data)
            data = body_format.unpack_body(data)
        except body_format.DamagedBody:
            raise self._damaged(key) from None
        if hashlib.sha256(data).hexdigest() != parse_result_key(key).hash:
            raise self._damaged(key)
        return data

    def _is_whole(self, key: str, path: Path) -> bool:
        """Whether a file is the body itself: its checksum is tried once. Raises ResultDamaged, NotThere."""
        if not _is_plain(path):
            return False
        about = path.stat()
        seen = (about.st_ino, about.st_size, about.st_mtime_ns)
        if self._sound.get(key) != seen:
            self._refuse_damaged(key, path)
            while len(self._sound) >= _KNOWN:
                del self._sound[next(iter(self._sound))]
            self._sound[key] = seen
        return True

    def _unpack(self, key: str, raw: Path, whole: Path) -> Path:
        """The file of the body, its checksum tried."""
        try:
            with raw.open("rb") as file:
                head = file.read(1 << 10)
            self._refuse_expired(key, head)
            if not body_format.is_plain_body(head):
                body_format.unpack_body_file(raw, whole)
                raw = whole
        except body_format.DamagedBody:
            raise self._damaged(key) from None
        self._refuse_damaged(key, raw)
        return raw

    def _refuse_damaged(self, key: str, path: Path) -> None:
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != parse_result_key(key).hash:
                raise self._damaged(key)

    def _refuse_expired(self, key: str, data: bytes) -> None:
        if (note := body_format.expiry_note_in(data)) is not None:
            message = f"what was stored under `{key}` ({note.size:,} bytes) expired at {note.since}"
            hint = "`spec.result.ttl` says how long it is kept; its event has a preview"
            raise ResultExpired(message, hint)

    def _damaged(self, key: str) -> ResultDamaged:
        hint = "it was changed or the disk is damaged; restore it from a copy"
        where = self._shelf.place
        return ResultDamaged(f"`{key}` in {where} is damaged: its content does not match its name", hint)


def _name(key: str) -> str:
    return "/".join(parse_result_key(key))


def _ready(key: str, data: bytes, compression: str) -> bytes:
    if hashlib.sha256(data).hexdigest() != parse_result_key(key).hash:
        raise ValueError(f"`{key}` is not the key of these bytes")
    return body_format.pack_body(data, compression)


def _is_plain(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return body_format.is_plain_body(file.read(body_format.HEAD))
    except FileNotFoundError:
        raise BlobMissing from None


def _between(path: Path, start: int, end: int | None) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read() if end is None else file.read(max(end - start, 0))
