"""Results as files: one folder for each execution, one file for each value."""

import asyncio
import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from noetl.ports.results import AccessGrant, GrantMethod, ResultError, StoredBody
from noetl.stores.durable_folder import flush_folder
from noetl.stores.private_files import make_private_folder, open_private_file, restrict_file
from noetl.stores.results.backend import BlobMissing
from noetl.stores.results.result_store import BackendResultStore, read_range

INLINE_BYTES = 1_048_576
"""Less than this is read in the loop's own thread: handing it over would take longer."""


class FileResults(BackendResultStore):
    """A result store in a folder, which is made when something is stored."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FileBackend(folder))


class FileBackend:
    """Writes wait for the disk, so they go to a thread; so do reads of large files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.location = str(folder)

    async def write(self, name: str, data: bytes) -> None:
        await asyncio.to_thread(_write_durably, self._folder / name, data)

    async def write_file(self, name: str, path: Path) -> None:
        await asyncio.to_thread(_move_durably, path, self._folder / name)

    async def read(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        path = self.path(name)
        with translate_os_errors(path):
            size = path.stat().st_size if end is None else end
            if size - start < INLINE_BYTES:
                return read_range(path, start, end)
            return await asyncio.to_thread(read_range, path, start, end)

    async def size(self, name: str) -> int:
        return self.path(name).stat().st_size

    async def read_file(self, name: str, to: Path) -> None:
        with translate_os_errors(to):
            await asyncio.to_thread(shutil.copyfile, self.path(name), to)

    def path(self, name: str) -> Path:
        path = self._folder / name
        if not path.exists():
            raise BlobMissing(name)
        return path

    async def copy(self, name: str, to: str) -> None:
        await asyncio.to_thread(_copy_durably, self.path(name), self._folder / to)

    async def names(self, folder: str) -> list[str]:
        with translate_os_errors(self._folder), suppress(FileNotFoundError):
            file_names = os.listdir(self._folder / folder)
            return sorted(f"{folder}/{name}" for name in file_names if not name.startswith("."))
        return []

    async def folders(self) -> list[str]:
        with translate_os_errors(self._folder), suppress(FileNotFoundError):
            entries = await asyncio.to_thread(lambda: list(os.scandir(self._folder)))
            return sorted(
                entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")
            )
        return []

    async def blobs(self, folder: str) -> list[StoredBody]:
        return await asyncio.to_thread(_stored_bodies, self._folder, await self.names(folder))

    async def grant(self, name: str, method: GrantMethod, seconds: float) -> AccessGrant | None:  # noqa: ARG002 - there is none
        return None

    async def remove(self, names: list[str]) -> None:
        await asyncio.to_thread(_remove_durably, [self._folder / name for name in names])

    async def remove_folder(self, folder: str) -> None:
        await asyncio.to_thread(remove_folder, self._folder / folder)

    def scratch(self, folder: str) -> Path:
        with translate_os_errors(self._folder / folder):
            make_result_folder(self._folder / folder)
        return self._folder / folder

    async def sweep(self, before: float) -> int:
        return await asyncio.to_thread(sweep_hidden_files, self._folder, before)

    async def close(self) -> None:
        """Nothing is held."""


def _stored_bodies(folder: Path, names: list[str]) -> list[StoredBody]:
    bodies: list[StoredBody] = []
    for name in names:
        with translate_os_errors(folder / name), suppress(FileNotFoundError):
            status = (folder / name).stat()
            # Not when its content was: a copy is another name of the same file.
            bodies.append(StoredBody(name, status.st_size, status.st_ctime))
    return bodies


def sweep_hidden_files(folder: Path, before: float) -> int:
    """Removes hidden files below a folder that nobody has written to since; how many."""
    removed = 0
    with translate_os_errors(folder):
        for path in folder.glob("*/.*"):
            with suppress(FileNotFoundError):
                if path.is_file() and path.stat().st_mtime < before:
                    path.unlink()
                    removed += 1
    return removed


def _write_durably(path: Path, data: bytes) -> None:
    """Durable on return: the bytes, their name, and the folders that lead there."""
    with translate_os_errors(path):
        if _is_written(path, data):
            # Somebody else may have just written it and not flushed its name yet.
            flush_folder(path.parent)
            return
        make_result_folder(path.parent)
        temporary = path.with_name(f".{uuid4().hex}")
        try:
            with open(open_private_file(temporary, os.O_WRONLY | os.O_EXCL), "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        flush_folder(path.parent)


def _is_written(path: Path, data: bytes) -> bool:
    """Whether the file has this size and beginning.

    All of it need not be compared: a key is the hash of its bytes, and an artifact's entry names that early.
    """
    try:
        return path.stat().st_size == len(data) and read_range(path, 0, 65_536) == data[:65_536]
    except FileNotFoundError:
        return False


def _move_durably(source: Path, path: Path) -> None:
    """As `_write_durably`, for a file that may lie on another disk."""
    with translate_os_errors(path):
        make_result_folder(path.parent)
        temporary = path.with_name(f".{uuid4().hex}")
        try:
            shutil.move(source, temporary)  # not a rename: the source may lie on another disk
            _put_in_place(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _copy_durably(source: Path, path: Path) -> None:
    """The same bytes under another name, and where the file system can, the same on the disk."""
    with translate_os_errors(path):
        make_result_folder(path.parent)
        temporary = path.with_name(f".{uuid4().hex}")
        try:
            try:
                os.link(source, temporary)
            except OSError:
                shutil.copyfile(source, temporary)
            _put_in_place(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def _put_in_place(temporary: Path, path: Path) -> None:
    with temporary.open("rb") as file:
        restrict_file(file.fileno())  # tools wrote it, and users' code
        os.fsync(file.fileno())
    temporary.replace(path)
    flush_folder(path.parent)


def _remove_durably(paths: list[Path]) -> None:
    """Durable on return: else a name could come back whose body was removed after it."""
    for path in paths:
        with translate_os_errors(path), suppress(FileNotFoundError):
            path.unlink()
            flush_folder(path.parent)


def make_result_folder(folder: Path) -> None:
    """Makes a folder and those above it that are missing, each durable and private. Raises OSError."""
    if folder.is_dir():
        return
    make_result_folder(folder.parent)
    make_private_folder(folder)
    flush_folder(folder.parent)


def remove_folder(folder: Path) -> None:
    """Removes a folder with all that is in it; nothing happens if there is none."""
    with translate_os_errors(folder), suppress(FileNotFoundError):
        shutil.rmtree(folder)
        flush_folder(folder.parent)


@contextmanager
def translate_os_errors(path: Path) -> Iterator[None]:
    """Raises ResultError where the system fails inside."""
    try:
        yield
    except OSError as error:
        hint = "check the rights of the folder"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space"
        raise ResultError(f"{path}: {error.strerror or error}", hint) from error
