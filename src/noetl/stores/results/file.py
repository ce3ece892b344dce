"""Results as files: one folder for each execution, one file for each value."""

import asyncio
import errno
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from noetl.ports.results import ResultDamaged, ResultError, ResultMissing
from noetl.stores.results.key import checked, checked_id

INLINE_BYTES = 1_048_576
"""Less than this is read in the loop's own thread: handing it over would take longer."""


class FileResults:
    """A result store in a folder, which is made when something is stored.

    Writes wait for the disk, so they go to a thread; so do reads of large files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def put(self, key: str, data: bytes) -> None:
        path = self._path(key)
        if hashlib.sha256(data).hexdigest() != path.name:
            raise ValueError(f"`{key}` is not the key of these bytes")
        await asyncio.to_thread(_write, path, data)

    async def get(self, key: str) -> bytes:
        path = self._path(key)
        with _told(path):
            try:
                size = path.stat().st_size
                data = path.read_bytes() if size < INLINE_BYTES else await asyncio.to_thread(path.read_bytes)
            except FileNotFoundError:
                raise self._missing(key) from None
        if hashlib.sha256(data).hexdigest() != path.name:
            hint = "the file was changed or the disk is damaged; restore it from a copy"
            raise ResultDamaged(f"{path} is damaged: its content does not match its name", hint)
        return data

    def scratch(self, execution_id: str) -> Path:
        folder = self._folder / checked_id(execution_id)
        with _told(folder):
            _make(folder)
        return folder

    async def put_file(self, key: str, path: Path) -> None:
        await asyncio.to_thread(_take, path, self._path(key))

    @asynccontextmanager
    async def local(self, key: str) -> AsyncIterator[Path]:
        path = self._path(key)
        if not path.exists():
            raise self._missing(key)
        yield path

    async def delete(self, execution_id: str) -> None:
        await asyncio.to_thread(_remove, self._folder / checked_id(execution_id))

    async def close(self) -> None:
        """Nothing is held."""

    def _missing(self, key: str) -> ResultMissing:
        message = f"nothing is stored under `{key}` in {self._folder}"
        return ResultMissing(message, "it was deleted, or the execution belongs to another folder of results")

    def _path(self, key: str) -> Path:
        return self._folder.joinpath(*checked(key))


def _write(path: Path, data: bytes) -> None:
    """Durable on return: the bytes, their name, and the folders that lead there."""
    with _told(path):
        if path.exists() and path.stat().st_size == len(data):
            # Somebody else may have just written it and not flushed its name yet.
            _flush(path.parent)
            return
        _make(path.parent)
        beside = path.with_name(f".{uuid4().hex}")
        try:
            with beside.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        _flush(path.parent)


def _take(source: Path, path: Path) -> None:
    """As `_write`, for a file that may lie on another disk."""
    with _told(path):
        _make(path.parent)
        beside = path.with_name(f".{uuid4().hex}")
        try:
            shutil.move(source, beside)
            with beside.open("rb") as file:
                os.fsync(file.fileno())
            beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
        _flush(path.parent)


def _make(folder: Path) -> None:
    """Makes a folder and those above it that are missing, each durable."""
    if folder.is_dir():
        return
    _make(folder.parent)
    folder.mkdir(exist_ok=True)
    _flush(folder.parent)


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    with _told(folder), suppress(FileNotFoundError):
        shutil.rmtree(folder)
        _flush(folder.parent)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Raises ResultError where the system fails inside."""
    try:
        yield
    except OSError as error:
        hint = "check the rights of the folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space, then go on"
        raise ResultError(f"{path}: {error.strerror or error}", hint) from error
