"""Who runs an execution on this machine: whoever holds the lock on its file.

The kernel frees the lock when the process ends, however it ends. A child that is forked without `exec`
shares it; one that is started as a program does not.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType


class Ownership:
    """The right to append to one execution, until `release` or the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Lets others own it. A second call does nothing."""
        if self._descriptor < 0:
            return
        descriptor, self._descriptor = self._descriptor, -1
        self._path.unlink(
            missing_ok=True
        )  # before the lock is free: afterwards it may be somebody else's file
        os.close(descriptor)

    def abandon(self) -> None:
        """Frees the lock and leaves the file, as the end of the process does."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)

    def __enter__(self) -> "Ownership":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Owners:
    """The owners of executions, in a folder that all processes on the store share. It is made when needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def claim(self, execution_id: str) -> Ownership | None:
        """Owns an execution from here on; None if it has an owner, this process included. Never waits."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / execution_id
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(descriptor, path):
                    os.truncate(descriptor, 0)
                    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
                    return Ownership(path, descriptor)
            except BlockingIOError:
                os.close(descriptor)
                return None
            os.close(descriptor)  # its last owner removed the file between our opening and locking it

    def owner(self, execution_id: str) -> int | None:
        """The process that owns an execution; None if nobody does.

        0 for an owner that has not yet said who it is.
        """
        try:
            descriptor = os.open(self._folder / execution_id, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return int(os.pread(descriptor, 32, 0) or b"0")
        else:
            return None
        finally:
            os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
