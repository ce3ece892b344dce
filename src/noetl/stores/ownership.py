"""Who runs an execution on this machine: whoever holds the lock on its byte of one file.

The kernel frees the locks of a process when it ends, however it ends, and tells who holds one. Locks of
this kind belong to the process: closing the file anywhere in it would free them all, so each process opens
the file once, and closes it when it holds none. A child that is forked does not share them.
"""

import errno
import fcntl
import hashlib
import os
import struct
import sys
import threading
from pathlib import Path
from types import TracebackType

# struct flock, as the system lays it out: where the type, the byte and the process stand
_LAYOUT = "qqihh" if sys.platform == "darwin" else "hhqqi"


class _Locks:
    """The file, opened once in this process, and the bytes of it that this process has locked."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.waits = fcntl.LOCK_EX
        try:
            self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            # Who may only read can ask for owners, and wait for their end.
            self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self.waits = fcntl.LOCK_SH
        self.held: set[int] = set()
        self.waiting = 0
        self.process = os.getpid()

    def close_if_unused(self) -> None:
        """Closing frees every lock on the file, so only when there is none."""
        if not self.held and not self.waiting:
            for place in [place for place, locks in _FILES.items() if locks is self]:
                del _FILES[place]
            os.close(self.descriptor)


_FILES: dict[str, _Locks] = {}
_GUARD = threading.Lock()


class Ownership:
    """The right to append to one execution, until `release` or the end of the process."""

    def __init__(self, locks: _Locks, byte: int) -> None:
        self._locks = locks
        self._byte = byte
        self._mine = True

    def release(self) -> None:
        """Lets others own it. A second call does nothing."""
        with _GUARD:
            if not self._mine:
                return
            self._mine = False
            if self._locks.process == os.getpid():
                fcntl.lockf(self._locks.descriptor, fcntl.LOCK_UN, 1, self._byte)
                self._locks.held.discard(self._byte)
                self._locks.close_if_unused()

    def __enter__(self) -> "Ownership":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Owners:
    """The owners of executions, in a file that all processes on the store share. It is made when needed."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._place = os.path.realpath(file)

    def acquire(self, execution_id: str) -> Ownership | None:
        """Owns an execution from here on; None if it has an owner, this process included. Never waits."""
        byte = _byte_of(execution_id)
        with _GUARD:
            locks = self._locks()
            if byte in locks.held:
                return None
            try:
                fcntl.lockf(locks.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except (BlockingIOError, PermissionError):  # the two ways in which systems say: taken
                locks.close_if_unused()
                return None
            locks.held.add(byte)
            return Ownership(locks, byte)

    def owner(self, execution_id: str) -> int | None:
        """The process that owns an execution; None if nobody does."""
        byte = _byte_of(execution_id)
        with _GUARD:
            if not self._file.is_file():
                return None
            locks = self._locks()
            if byte in locks.held:
                return os.getpid()
            holder = _holder(locks.descriptor, byte)
            locks.close_if_unused()
            return holder

    def wait_until_released(self, execution_id: str) -> None:
        """Returns when no other process owns the execution. It blocks: give it a thread of its own."""
        byte = _byte_of(execution_id)
        with _GUARD:
            locks = self._locks()
            if byte in locks.held:
                return
            locks.waiting += 1
        fcntl.lockf(locks.descriptor, locks.waits, 1, byte)
        with _GUARD:
            if byte not in locks.held:
                fcntl.lockf(locks.descriptor, fcntl.LOCK_UN, 1, byte)
            locks.waiting -= 1
            locks.close_if_unused()

    def _locks(self) -> _Locks:
        place = self._place
        known = _FILES.get(place)
        if known is None or known.process != os.getpid() or not _is_at(known.descriptor, place):
            known = _FILES[place] = _Locks(Path(place))
        return known


def _byte_of(execution_id: str) -> int:
    return int.from_bytes(hashlib.sha256(execution_id.encode()).digest()[:8]) >> 2


def _holder(descriptor: int, byte: int) -> int | None:
    if sys.platform == "darwin":
        answer = fcntl.fcntl(
            descriptor, fcntl.F_GETLK, struct.pack(_LAYOUT, byte, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)
        )
        _, _, process, kind, _ = struct.unpack(_LAYOUT, answer)
    else:
        answer = fcntl.fcntl(
            descriptor, fcntl.F_GETLK, struct.pack(_LAYOUT, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        )
        kind, _, _, _, process = struct.unpack(_LAYOUT, answer)
    return None if kind == fcntl.F_UNLCK else int(process)


def _is_at(descriptor: int, place: str) -> bool:
    """Whether it is still the file of this name, which somebody may have removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(place))
    except FileNotFoundError:
        return False
