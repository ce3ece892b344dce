"""Who runs an execution on this machine: whoever holds the lock on its byte of one file.

The kernel frees the locks of a process when it ends, however it ends, and tells who holds one. Locks of
this kind belong to the process: closing the file anywhere in it would free them all, so each process opens
the file once, and closes it when it holds none and nobody keeps it open. A child that is forked does not
share them.
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

from noetl.stores.home_folder import Home
from noetl.stores.private_files import make_private_folder, open_private_file

# struct flock, as the system lays it out: where the type, the byte and the process stand. `fcntl.lockf` does
# not say who holds a lock; F_GETLK does, and wants the struct.
_LAYOUT = "qqihh" if sys.platform == "darwin" else "hhqqi"


SERVER = ""
"""In the place of an execution: what the server of a home owns, and with it all executions that it serves."""


class _LockFile:
    """The file, opened once in this process, and the bytes of it that this process has locked."""

    def __init__(self, path: Path) -> None:
        make_private_folder(path.parent)
        self.wait_mode = fcntl.LOCK_EX
        try:
            self.descriptor = open_private_file(path, os.O_RDWR)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise
            # Who may only read can ask for owners, and wait for their end.
            self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            self.wait_mode = fcntl.LOCK_SH
        self.held: set[int] = set()
        self.users = 0
        """Those who need the file open whatever is held: they wait for a lock, or keep it open."""
        self.process = os.getpid()

    def close_if_unused(self) -> None:
        """Closing frees every lock on the file, so only when there is none."""
        if not self.held and not self.users:
            for path in [path for path, lock_file in _OPEN_FILES.items() if lock_file is self]:
                del _OPEN_FILES[path]
            os.close(self.descriptor)


_OPEN_FILES: dict[str, _LockFile] = {}
_OPEN_FILES_LOCK = threading.Lock()


class Ownership:
    """The right to append to one execution, until `release` or the end of the process."""

    def __init__(self, lock_file: _LockFile, byte: int) -> None:
        self._lock_file = lock_file
        self._byte = byte
        self._held = True

    def release(self) -> None:
        """Lets others own it. A second call does nothing."""
        with _OPEN_FILES_LOCK:
            if not self._held:
                return
            self._held = False
            # A forked child has a copy of this object, but the lock stayed with its parent.
            if self._lock_file.process == os.getpid():
                fcntl.lockf(self._lock_file.descriptor, fcntl.LOCK_UN, 1, self._byte)
                self._lock_file.held.discard(self._byte)
                self._lock_file.close_if_unused()

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
        self._path = os.path.realpath(file)
        self._keeps_open = False
        self._open_file: _LockFile | None = None

    def keep_open(self) -> None:
        """The file stays open from the next `acquire` until `close`.

        For who owns one execution after the other: to open and close the file around each takes longer than
        to lock it.
        """
        self._keeps_open = True

    def close(self) -> None:
        """Keeps the file open no longer; what is owned stays so. A second call does nothing."""
        with _OPEN_FILES_LOCK:
            self._keeps_open = False
            self._keep(None)

    def acquire(self, execution_id: str, *, served: bool = False) -> Ownership | None:
        """Owns an execution from here on; None if it has an owner, this process included. Never waits.

        `served`: see `owner`.
        """
        byte = _lock_byte(execution_id)
        if served and self._owner(_lock_byte(SERVER)) is not None:
            return None
        with _OPEN_FILES_LOCK:
            lock_file = self._lock_file()
            if byte in lock_file.held:
                return None
            try:
                fcntl.lockf(lock_file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
            except (BlockingIOError, PermissionError):  # the two ways in which systems say: taken
                lock_file.close_if_unused()
                return None
            lock_file.held.add(byte)
            if self._keeps_open and self._open_file is not lock_file:
                self._keep(lock_file)
            return Ownership(lock_file, byte)

    def owner(self, execution_id: str, *, served: bool = False) -> int | None:
        """The process that owns an execution; None if nobody does.

        `served`: its rows are those of a server, which owns it without a lock of its own.
        """
        owner = self._owner(_lock_byte(execution_id))
        return self._owner(_lock_byte(SERVER)) if owner is None and served else owner

    def _owner(self, byte: int) -> int | None:
        with _OPEN_FILES_LOCK:
            if not self._file.is_file():
                return None
            lock_file = self._lock_file()
            if byte in lock_file.held:
                return os.getpid()
            holder = _holder(lock_file.descriptor, byte)
            lock_file.close_if_unused()
            return holder

    def wait_until_released(self, execution_id: str) -> None:
        """Returns when no other process owns the execution. It blocks: give it a thread of its own."""
        byte = _lock_byte(execution_id)
        with _OPEN_FILES_LOCK:
            lock_file = self._lock_file()
            if byte in lock_file.held:
                return
            lock_file.users += 1
        # Outside the lock of this process, which others need meanwhile; `users` keeps the file open.
        fcntl.lockf(lock_file.descriptor, lock_file.wait_mode, 1, byte)
        with _OPEN_FILES_LOCK:
            # Another thread may own it by now: locks are the process's, and unlocking would free its lock.
            if byte not in lock_file.held:
                fcntl.lockf(lock_file.descriptor, fcntl.LOCK_UN, 1, byte)
            lock_file.users -= 1
            lock_file.close_if_unused()

    def _keep(self, lock_file: _LockFile | None) -> None:
        previous, self._open_file = self._open_file, lock_file
        if lock_file is not None:
            lock_file.users += 1
        # A forked child leaves the descriptor alone that its parent opened, as it does with what that owns.
        if previous is not None and previous.process == os.getpid():
            previous.users -= 1
            previous.close_if_unused()

    def _lock_file(self) -> _LockFile:
        path = self._path
        lock_file = _OPEN_FILES.get(path)
        if (
            lock_file is None
            or lock_file.process != os.getpid()
            or not _is_file_at(lock_file.descriptor, path)
        ):
            lock_file = _OPEN_FILES[path] = _LockFile(Path(path))
        return lock_file


class SharedOwners(Owners):
    """Those of a store in a database, whose server may be on another machine.

    What a server serves has an owner, whoever that is: commands to it wait in its inbox.
    """

    ELSEWHERE = 0
    """In the place of a process that is not to be seen from here."""

    def acquire(self, execution_id: str, *, served: bool = False) -> Ownership | None:
        return None if served else super().acquire(execution_id)

    def owner(self, execution_id: str, *, served: bool = False) -> int | None:
        return self.ELSEWHERE if served else super().owner(execution_id)


def owners_in(home: Home) -> Owners:
    """The owners as who does not serve sees them."""
    return SharedOwners(home.owners) if home.shared else Owners(home.owners)


def _lock_byte(execution_id: str) -> int:
    # 62 bits, which the signed offset of a lock holds: so many that two executions never share a byte.
    return int.from_bytes(hashlib.sha256(execution_id.encode()).digest()[:8]) >> 2


def _holder(descriptor: int, byte: int) -> int | None:
    if sys.platform == "darwin":
        lock = fcntl.fcntl(
            descriptor, fcntl.F_GETLK, struct.pack(_LAYOUT, byte, 1, 0, fcntl.F_WRLCK, os.SEEK_SET)
        )
        _, _, process, kind, _ = struct.unpack(_LAYOUT, lock)
    else:
        lock = fcntl.fcntl(
            descriptor, fcntl.F_GETLK, struct.pack(_LAYOUT, fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        )
        kind, _, _, _, process = struct.unpack(_LAYOUT, lock)
    return None if kind == fcntl.F_UNLCK else int(process)


def _is_file_at(descriptor: int, path: str) -> bool:
    """Whether it is still the file of this name, which somebody may have removed."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
