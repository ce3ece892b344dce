"""What a command reads: files, directories and standard input. What it writes: files, whole or not at all."""

import contextlib
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from noetl.cli.command_failure import CommandFailure

if TYPE_CHECKING:
    from noetl.engine.catalog.playbook_record import PlaybookSource

STDIN = "-"
SUFFIXES = (".yaml", ".yml")


class FoundFiles(NamedTuple):
    """The files to look at, the YAML files left aside, and what could not be looked into."""

    files: list[str]
    skipped: list[str]
    unreadable: list[OSError]


def read_input(source: str) -> tuple[str, str]:
    """The name for messages and the text of a file, or of standard input for `-`. Raises CommandFailure."""
    from noetl.loader import SourceUnreadable, read_source, read_text

    try:
        if source == STDIN:
            if sys.stdin is None:
                raise CommandFailure("unreadable", "standard input is closed")
            return input_name(source), read_text(sys.stdin.buffer, "standard input")
        # A Path, because read_source takes a string of several lines for a document.
        return source, read_source(Path(source))[1]
    except SourceUnreadable as error:
        raise CommandFailure("unreadable", str(error)) from None


def read_playbook_source(file: str | None, dialect: str | None) -> "PlaybookSource | None":
    """The document that `--playbook` names, if it is there. Raises CommandFailure, UsageError."""
    if file is None:
        if dialect is not None:
            raise click.UsageError("--dialect says how --playbook is read, which is missing")
        return None
    from noetl.engine.catalog.playbook_record import PlaybookSource

    name, text = read_input(file)
    return PlaybookSource(text, name, "" if file == STDIN else os.path.abspath(file), dialect)


def input_name(source: str) -> str:
    """What messages call it."""
    return "<stdin>" if source == STDIN else source


def read_pieces(path: Path) -> Iterator[bytes]:
    """The bytes of a file, some at a time. Raises OSError."""
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece


def find_files(sources: Iterable[str]) -> FoundFiles:
    """The files that the arguments name, each once; of a directory, the playbooks below it."""
    files = FoundFiles([], [], [])
    seen = set()
    for source in sources:
        for path in _playbooks_below(source, files) if os.path.isdir(source) else (source,):
            identity = path if path == STDIN else os.path.realpath(path)
            if identity not in seen:
                seen.add(identity)
                files.files.append(path)
    return files


def _playbooks_below(directory: str, files: FoundFiles) -> Iterator[str]:
    for folder, directories, names in os.walk(directory, onerror=files.unreadable.append):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(names):
            if not name.endswith(SUFFIXES):
                continue
            path = os.path.normpath(os.path.join(folder, name))
            if _may_be_playbook(path):
                yield path
            else:
                files.skipped.append(path)


def _may_be_playbook(path: str) -> bool:
    """Whether the file says that it is a playbook; one that cannot be opened may be."""
    from noetl.loader import MAX_BYTES, looks_like_playbook

    try:
        with open(path, "rb") as file:
            return looks_like_playbook(file.read(MAX_BYTES))
    except OSError:
        return True


def write_file(path: str, data: bytes) -> None:
    """As `write_pieces`, for all of it at once."""
    write_pieces(path, (data,))


def write_pieces(path: str, pieces: Iterable[bytes]) -> None:
    """Replace or make the file; a reader sees the old content or the new, never a part.

    Mode, owner and symbolic links stay as they are. Raises CommandFailure.
    """
    try:
        before = os.stat(path)
    except FileNotFoundError:
        before = None
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        if before and not stat.S_ISREG(before.st_mode):
            # A device or a pipe must be written to, not replaced.
            with open(path, "wb") as file:
                file.writelines(pieces)
        else:
            _replace_file(os.path.realpath(path), pieces, before)
    except OSError as error:
        raise _unwritable(path, error) from None


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
        raise _unwritable(path, error) from None


def _replace_file(path: str, pieces: Iterable[bytes], before: os.stat_result | None) -> None:
    import tempfile

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


def _unwritable(path: str, error: OSError) -> CommandFailure:
    """A path that cannot be is the caller's fault; anything else is the machine's."""
    wrong = isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError)
    return CommandFailure("unwritable", f"{path}: {error.strerror}", exit_code=2 if wrong else 3)
