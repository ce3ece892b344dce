"""Folders for what a process needs only while it runs, among the temporary files of its system."""

import fcntl
import os
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

UNLOCKED_SECONDS = 60.0
"""Until a folder without a lock counts as abandoned: it may just be being made."""
_swept: set[str] = set()
"""Looked for once in a process: there may be thousands of other files."""


class ScratchFolder:
    """A folder that nobody else can read. It goes with this object, or with the process at the latest.

    A process that is killed removes nothing. So each folder is locked, which ends with its process, and
    the next process that makes one for the same purpose removes those without a lock.
    """

    def __init__(self, purpose: str) -> None:
        prefix = f"noetl-{purpose}-"
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        self._remove = weakref.finalize(self, _remove_own, self.path, _lock(self.path), os.getpid())
        if prefix not in _swept:
            _swept.add(prefix)
            for path in _abandoned(Path(tempfile.gettempdir()), prefix):
                _remove_abandoned(path)

    def remove(self) -> None:
        """With all that is in it. A second call does nothing."""
        self._remove()


def _lock(path: Path) -> int:
    """A descriptor that holds the lock until it is closed. Raises OSError if another one holds it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_own(path: Path, descriptor: int, process: int) -> None:
    if os.getpid() == process:  # not a fork of it, which ends earlier
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


def _abandoned(parent: Path, prefix: str) -> Iterator[Path]:
    """Folders of this user that may have lost their process."""
    before = time.time() - UNLOCKED_SECONDS
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with suppress(OSError):  # its owner has just removed it
                if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
                    status = entry.stat(follow_symlinks=False)
                    if status.st_uid == os.geteuid() and status.st_mtime < before:
                        yield Path(entry.path)


def _remove_abandoned(path: Path) -> None:
    with suppress(OSError):
        descriptor = _lock(path)
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)
