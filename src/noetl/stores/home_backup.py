"""A copy of a home in one file, made while others use the home."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import apsw
from msgspec import Struct

from noetl.model.errors import NoetlError
from noetl.stores.durable_folder import flush_folder
from noetl.stores.home_folder import STORE, Home
from noetl.stores.private_files import FILE_MODE, open_private_file
from noetl.stores.sqlite.connection import ErrorTranslation, open_reader

_PAGES_IN_STEP = 4_096


class BackupExists(NoetlError):
    """A file of this name is there: a backup overwrites nothing."""


class BackupReport(Struct, frozen=True):
    """What a backup holds. `key` is whether the key of credentials is in it."""

    bytes: int
    results: int
    key: bool


def back_up_home(home: Home, target: Path, *, with_key: bool) -> BackupReport:
    """Writes store, results, logs and key into an archive (tar), which is a home again when it is unpacked.

    All of it is as at one moment, whoever writes meanwhile. The file is for its owner alone, and there only
    when it is complete and durable. Raises BackupExists, OSError, StoreError.
    """
    if target.exists():
        raise BackupExists(f"{target} is there already")
    part = target.with_name(f"{target.name}.part")
    try:
        with (
            open(open_private_file(part, os.O_WRONLY | os.O_TRUNC), "wb") as file,
            tarfile.open(fileobj=file, mode="w") as archive,
        ):
            report = _write_archive(archive, home, part, with_key=with_key)
        size = _flush_file(part)
        part.rename(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    flush_folder(target.absolute().parent)
    return BackupReport(size, *report)


def _write_archive(archive: tarfile.TarFile, home: Home, part: Path, *, with_key: bool) -> tuple[int, bool]:
    # A result is durable before the event that names it, and never changes. Those that are there before the
    # copy of the store is made, and those that are there after it, are all that it can name: between the two
    # some may be deleted with their executions, which the copy may still have.
    results = _add_files(archive, home.results, set())
    copy = part.with_name(f"{part.name}.db")
    try:
        _copy_database(home.store, copy)
        _add_file(archive, copy, STORE)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            copy.with_name(copy.name + suffix).unlink(missing_ok=True)
    _add_files(archive, home.results, results)
    _add_files(archive, home.logs, set())
    return len(results), with_key and _add_file(archive, home.key, home.key.name)


def _copy_database(source: Path, copy: Path) -> None:
    """A copy of all that was committed when it began."""
    with ErrorTranslation(str(source)):
        reader, writer = open_reader(str(source)), apsw.Connection(str(copy))
        try:
            copy.chmod(FILE_MODE)
            # Within one transaction of the reader: else each commit of others would begin the copy anew.
            reader.execute("BEGIN; SELECT count(*) FROM sqlite_schema").get  # noqa: B018 - it reads when it is asked
            with writer.backup("main", reader, "main") as backup:
                while not backup.done:
                    backup.step(_PAGES_IN_STEP)
            reader.execute("COMMIT")
        finally:
            writer.close()
            reader.close()


def _add_files(archive: tarfile.TarFile, folder: Path, known: set[str]) -> set[str]:
    """All below the folder that is not known yet; what is known then."""
    for path in _files_below(folder):
        name = f"{folder.name}/{path.relative_to(folder)}"
        if name not in known and _add_file(archive, path, name):
            known.add(name)
    return known


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            yield Path(parent, name)


def _add_file(archive: tarfile.TarFile, path: Path, name: str) -> bool:
    """False if it is not there."""
    try:
        file: IO[bytes] = path.open("rb")
    except FileNotFoundError:
        return False
    with file:
        # Its size is taken once: of a log that grows meanwhile, what came later is left out.
        entry = archive.gettarinfo(arcname=name, fileobj=file)
        entry.mode = FILE_MODE
        archive.addfile(entry, file)
    return True


def _flush_file(path: Path) -> int:
    """Its size."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)
