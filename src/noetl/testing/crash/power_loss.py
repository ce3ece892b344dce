"""What the loss of power leaves of a folder: what was synced, and of the rest whatever the disk likes.

While a `RecordedDisk` is entered it hears of every sync of this process, SQLite's and Python's. Writes are
not recorded: the files as they are show what was written, and a copy taken at each sync what of it counts.
"""

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from stat import S_ISDIR
from types import TracebackType
from typing import Any, Generic, NamedTuple, TypeVar

import apsw

Seen = TypeVar("Seen")

SECTOR = 512
"""Bytes that a disk writes together, or not at all."""
_VFS = "noetl-recorded"
_LOG = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL


class DiskImage(NamedTuple):
    """A folder as a disk has it: the paths below it, of folders and of files with their bytes."""

    folders: list[str]
    files: dict[str, bytes]

    def restore(self, folder: Path) -> None:
        """Makes the folder what it is in this image."""
        shutil.rmtree(folder)
        folder.mkdir()
        for path in self.folders:
            (folder / path).mkdir()
        for path, data in self.files.items():
            (folder / path).write_bytes(data)


class PowerLoss(NamedTuple, Generic[Seen]):
    """The power goes: what had been seen from outside by then, and a disk that may be left."""

    seen: Seen
    image: DiskImage


@contextmanager
def record_losses(folder: Path, look: Callable[[], Seen], disks: int = 1) -> Iterator[list[PowerLoss[Seen]]]:
    """The power goes before each sync below `folder` inside, and at the end. `look` says what is seen then.

    What is there before counts as synced. Each time a disk may be left that has nothing but what was synced,
    and `disks` more that have any part of the rest, too. Of losses that leave the former as it was before
    the last is given, since more was seen by then.
    """
    losses: list[PowerLoss[Seen]] = []
    least: list[PowerLoss[Seen]] = []

    def lose_power() -> None:
        seen = look()  # before the images: what is done meanwhile is not seen, as if it had not been done
        loss = PowerLoss(seen, disk.image())
        if least and least[-1].image == loss.image:
            losses.remove(least.pop())
        least.append(loss)
        losses.append(loss)
        chances = [Random(f"{len(losses)}/{number}") for number in range(disks)]  # noqa: S311 - to be repeatable
        images = [disk.image(chance) for chance in chances]
        losses.extend(PowerLoss(seen, image) for image in images if image != loss.image)

    with RecordedDisk(folder, lose_power) as disk:
        yield losses
        lose_power()


class RecordedDisk:
    """What the disk has of a folder, at worst: bytes once their file is synced, names once their folder is.

    What is there when it is entered counts as synced. `before_sync` is called before each sync below the
    folder, by the thread that asks for it: until it returns nothing else is synced or written by SQLite.
    """

    def __init__(self, folder: Path, before_sync: Callable[[], None]) -> None:
        self._folder = folder
        self._before_sync = before_sync
        self.busy = threading.Lock()
        self._synced_names: dict[int, dict[str, int]] = {}
        self._synced_bytes: dict[int, bytes] = {}
        # Held open to the end: so no inode is used again for another file, and closing one does not free the
        # locks that SQLite, or whoever owns an execution, has on it.
        self._descriptors: dict[int, int] = {}

    def __enter__(self) -> "RecordedDisk":
        self._synced_names = self._current_names()
        self._synced_bytes = {inode: self._current_bytes(inode) for inode in self._descriptors}
        self._fsync, os.fsync = os.fsync, self._sync_descriptor
        self._default_vfs = apsw.vfs_names()[0]
        self._vfs = _RecordedFiles(self, self._default_vfs)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.fsync = self._fsync
        apsw.set_default_vfs(self._default_vfs)
        self._vfs.unregister()
        for descriptor in self._descriptors.values():
            os.close(descriptor)

    def image(self, chance: Random | None = None) -> DiskImage:
        """What the disk has now; with `chance` also any part of what was not synced: names and sectors."""
        image = DiskImage([], {})
        current = self._current_names() if chance else {}
        folders = [("", os.stat(self._folder).st_ino)]
        for path, folder in folders:
            names = self._synced_names.get(folder, {})
            if chance:
                names = _any_names(names, current.get(folder, {}), chance)
            for name, inode in names.items():
                if S_ISDIR(os.fstat(self._descriptors[inode]).st_mode):
                    image.folders.append(f"{path}{name}")
                    folders.append((f"{path}{name}/", inode))
                    continue
                data = self._synced_bytes.get(inode, b"")
                if chance:
                    data = _any_sectors(data, self._current_bytes(inode), chance)
                image.files[f"{path}{name}"] = data
        return image

    def sync(self, inode: int, really_sync: Callable[[], None]) -> None:
        """Notes that this file or folder is synced, by `really_sync`."""
        with self.busy:
            names = self._current_names()
            if inode in self._descriptors:
                self._before_sync()
            really_sync()
            if inode in names:
                self._synced_names[inode] = names[inode]
            elif inode in self._descriptors:
                self._synced_bytes[inode] = self._current_bytes(inode)

    def _sync_descriptor(self, fd: Any) -> None:
        descriptor = fd if isinstance(fd, int) else fd.fileno()  # as `os.fsync` takes both
        self.sync(os.fstat(descriptor).st_ino, lambda: self._fsync(descriptor))

    def _current_names(self) -> dict[int, dict[str, int]]:
        """The names in each folder, and the inodes that they name, which are held from now on."""
        names: dict[int, dict[str, int]] = {os.stat(self._folder).st_ino: {}}
        for folder, path, status in _walk(self._folder):
            if status.st_ino not in self._descriptors:
                with suppress(FileNotFoundError):
                    self._descriptors[status.st_ino] = os.open(path, os.O_RDONLY)
            if status.st_ino in self._descriptors:
                names[folder][path.name] = status.st_ino
                if S_ISDIR(status.st_mode):
                    names[status.st_ino] = {}
        return names

    def _current_bytes(self, inode: int) -> bytes:
        descriptor = self._descriptors[inode]
        status = os.fstat(descriptor)
        return b"" if S_ISDIR(status.st_mode) else os.pread(descriptor, status.st_size, 0)


class _RecordedFiles(apsw.VFS):
    """SQLite's way to files, as long as the disk is recorded."""

    def __init__(self, disk: RecordedDisk, base: str) -> None:
        super().__init__(_VFS, base, makedefault=True)
        self._disk = disk
        self._base = base

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "_RecordedFile":  # noqa: N802 - SQLite's name
        return _RecordedFile(self._disk, self._base, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802, FBT001 - SQLite's name and call
        super().xDelete(filename, syncdir)
        if syncdir:
            self._disk.sync(os.stat(os.path.dirname(filename)).st_ino, lambda: None)


class _RecordedFile(apsw.VFSFile):
    def __init__(
        self, disk: RecordedDisk, base: str, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> None:
        self._disk = disk
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        self._syncs_folder = bool(flags[0] & _LOG and flags[0] & apsw.SQLITE_OPEN_CREATE)
        super().__init__(base, name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        with self._disk.busy:
            super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._disk.sync(os.stat(self._path).st_ino, lambda: super(_RecordedFile, self).xSync(flags))
        if self._syncs_folder:
            # With the first sync of a log that it may have made SQLite syncs the folder, too.
            self._syncs_folder = False
            self._disk.sync(os.stat(os.path.dirname(self._path)).st_ino, lambda: None)


def _walk(folder: Path) -> Iterator[tuple[int, Path, os.stat_result]]:
    """Everything below a folder, each with the inode of the folder that it is in, folders first."""
    inode = os.stat(folder).st_ino
    for path in sorted(folder.iterdir()):
        with suppress(FileNotFoundError):
            status = path.stat()
            yield inode, path, status
            if S_ISDIR(status.st_mode):
                yield from _walk(path)


def _any_names(synced: dict[str, int], current: dict[str, int], chance: Random) -> dict[str, int]:
    """Each change is there or not; of a rename both sides are, which file systems do promise."""
    names: dict[str, int] = {}
    is_new_by_inode: dict[int, bool] = {}
    for name in sorted({*synced, *current}):
        renamed = current.get(name) or synced[name]
        is_new = is_new_by_inode.setdefault(renamed, chance.random() < 0.5)
        inode = (current if is_new else synced).get(name)
        if inode is not None:
            names[name] = inode
    return names


def _any_sectors(synced: bytes, current: bytes, chance: Random) -> bytes:
    if synced == current:
        return synced
    length = chance.choice([len(synced), len(current)])
    share = chance.choice([0.1, 0.5, 0.9, 1.0])
    sectors = [
        (current if chance.random() < share else synced)[start : start + SECTOR].ljust(SECTOR, b"\0")
        for start in range(0, length, SECTOR)
    ]
    return b"".join(sectors)[:length]
