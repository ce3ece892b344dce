"""What a command writes: files, whole or not at all."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from noetl.cli.command_failure import CommandFailure


def write_file(path: str, data: bytes) -> None:
    """As `write_pieces`, for all of it at once."""
    write_pieces(path, (data,))


def read_pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file, some at a time. Raises OSError."""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece


def write_pieces(path: str, pieces: Iterable[bytes]) -> None:
    """Replace or make the file; a reader sees the old content or the new, never a part.

    Mode, owner and symbolic links stay as they are. Raises CommandFailure.
    """
    try:
        before = os.stat(path)
    except FileNotFoundError:
        before = None
    except OSError as error:
        raise _failure(path, error) from None
    try:
        if before and not stat.S_ISREG(before.st_mode):
            # A device or a pipe must be written to, not replaced.
            with open(path, "wb") as file:
                file.writelines(pieces)
        else:
            _replace(os.path.realpath(path), pieces, before)
    except OSError as error:
        raise _failure(path, error) from None


def create_file(path: str, data: bytes) -> None:
    """Make the file. Raises CommandFailure if it exists."""
    try:
        with open(path, "xb") as file:
            file.write(data)
    except FileExistsError:
        if os.path.isdir(path):
            raise CommandFailure("unwritable", f"{path}: is a directory", hint="name a file in it") from None
        raise CommandFailure("exists", f"{path}: the file exists", hint="--force replaces it") from None
    except OSError as error:
        raise _failure(path, error) from None


def _replace(path: str, pieces: Iterable[bytes], before: os.stat_result | None) -> None:
    # In the same folder: a rename is atomic only within one file system.
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=os.path.dirname(path))
    try:
        with open(handle, "wb") as file:
            file.writelines(pieces)
            file.flush()
            # Else the new name may survive a crash of the machine, and what is in the file not.
            os.fsync(handle)
            if before:
                with contextlib.suppress(PermissionError):
                    os.fchown(handle, before.st_uid, before.st_gid)
            os.fchmod(handle, stat.S_IMODE(before.st_mode) if before else 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    # It can be read only by setting it.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _failure(path: str, error: OSError) -> CommandFailure:
    """A path that cannot be is the caller's fault; anything else is the machine's."""
    wrong = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    return CommandFailure("unwritable", f"{path}: {error.strerror}", exit_code=2 if wrong else 3)
