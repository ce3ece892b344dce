"""What running workers leave in the home of their user, so that they can be stopped from there."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from noetl.stores.home_folder import Home
from noetl.stores.private_files import make_private_folder, open_private_file


class WorkerRecord(Struct, frozen=True):
    """A worker process of this machine."""

    name: str
    pid: int
    servers: list[str]
    pools: list[str]


@contextmanager
def recorded_worker(home: Home, record: WorkerRecord) -> Iterator[None]:
    """For as long as a worker lives. Whoever finds the file without a lock knows that it was killed."""
    home.make()
    make_private_folder(home.workers)
    path = home.workers / f"{record.pid}.json"
    path.unlink(missing_ok=True)
    descriptor = open_private_file(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(descriptor, msgspec.json.encode(record))
        yield
        path.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def read_worker_records(home: Home) -> list[WorkerRecord]:
    """The workers that live, by name. What others left is removed."""
    records = []
    for path in home.workers.glob("*.json"):
        with suppress(OSError, msgspec.DecodeError):
            if _is_locked(path):
                records.append(msgspec.json.decode(path.read_bytes(), type=WorkerRecord))
            else:
                path.unlink()
    return sorted(records, key=lambda record: record.name)


def wait_for_worker_end(home: Home, record: WorkerRecord) -> None:
    """Returns when this worker process is gone."""
    with suppress(FileNotFoundError), open(home.workers / f"{record.pid}.json", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)


def _is_locked(path: Path) -> bool:
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
