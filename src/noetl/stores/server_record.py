"""What a running server leaves in its home, so that others find it and know whether it lives."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from noetl.model.errors import NoetlError
from noetl.stores.home_folder import Home
from noetl.stores.private_files import open_private_file

_LOOK_SECONDS = 0.05


class ServerRecord(Struct, frozen=True):
    """Where a server answers, and which process it is."""

    url: str
    pid: int


class ServerRunning(NoetlError):
    """A server uses this home already: ask that one, or stop it."""


def read_server_record(home: Home) -> ServerRecord | None:
    """The server that uses this home and answers; None if there is none."""
    try:
        with open(home.server_lock, "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return None  # whoever wrote the record is gone: the kernel has freed its lock
    except FileNotFoundError:
        return None
    except BlockingIOError:
        pass
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode(home.server.read_bytes(), type=ServerRecord)
    return None


def write_server_record(home: Home, record: ServerRecord) -> None:
    write_private_file(home.server, msgspec.json.encode(record))


def read_token_file(path: Path) -> str:
    """A token that a server made for commands of its own user; empty if it made none."""
    try:
        return path.read_text("utf-8").strip()
    except OSError:
        return ""


def wait_for_server_end(home: Home, seconds: float | None = None) -> bool:
    """Whether no server uses the home any more: waits for that, but for no longer than so many seconds."""
    until = None if seconds is None else time.monotonic() + seconds
    with suppress(FileNotFoundError), open(home.server_lock, "rb") as lock:
        while until is not None:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_SECONDS)  # a lock can be waited for, or looked at
        fcntl.flock(lock, fcntl.LOCK_SH)
    return True


@contextmanager
def only_server(home: Home) -> Iterator[None]:
    """For as long as a server lives: no second one uses the home. Raises ServerRunning."""
    descriptor = open_private_file(home.server_lock, os.O_RDWR)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ServerRunning(f"a server uses {home.folder} already") from None
        yield
        home.server.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def write_private_file(path: Path, data: bytes) -> None:
    """For its owner alone, and never half: who reads it sees the old content or the new."""
    beside = path.with_name(f"{path.name}.new")
    with open(open_private_file(beside, os.O_WRONLY | os.O_TRUNC), "wb") as file:
        file.write(data)
    beside.replace(path)
