"""Documents that were read before, below a folder of the home: a second process need not read them again.

The slow path is `loader.examine`, which gives an equal playbook: what it gives depends on the text, on its
name, on the kinds that it uses and on the code that reads it, and on nothing else. A test holds both equal.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from stat import S_IWGRP, S_IWOTH

import msgspec
from msgspec import structs

from noetl.dsl.document.playbook import Playbook
from noetl.engine.catalog.playbook_record import PlaybookSource, decode_record, decode_source
from noetl.loader import installed_kinds
from noetl.stores.private_files import make_private_folder, open_private_file
from noetl.tools.kind_registry import BUILTIN

MOST_KEPT = 256
"""Records in the folder; when there are more, the older half goes."""

_DIGEST = 16
_LOOK_AROUND = frozenset({"quantum"})
"""Built-in kinds whose checks look at what else is installed."""
_READERS = ("model", "expr", "dsl", "tools")
"""The packages of ours that have a part in what a document is read as."""


class KnownPlaybooks:
    """Records of documents by all that the reading depends on. What cannot be kept or read is not known.

    The folder is made when something is kept.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def has_home(self) -> bool:
        """Whether there is a home to keep something in: it is not made for this."""
        return self._folder.parent.is_dir()

    def find(self, source: PlaybookSource) -> tuple[Playbook, bytes] | None:
        """What this very document was read as, and its record, as `keep` got it."""
        name = _name_of(source)
        if name is None:
            return None
        data = _read_own(self._folder / name)
        digest, record = data[:_DIGEST], data[_DIGEST:]
        if _digest(record) != digest or (playbook := decode_record(record)) is None:
            return None
        # Who shares the folder could give the record of another document this name.
        return (playbook, record) if decode_source(record) == source else None

    def keep(self, source: PlaybookSource, record: bytes, allow_kinds: tuple[str, ...]) -> None:
        """Keeps the record of a document, unless it may use a kind whose code is not ours to watch."""
        foreign = {kind.name for kind in installed_kinds()} - {kind.name for kind in BUILTIN} | _LOOK_AROUND
        # Looked for in the text, as it may stand in a document inside of this one: too careful, never wrong.
        if any(name in source.text for name in (*foreign, *allow_kinds)):
            return
        name = _name_of(source)
        if name is None:
            return
        with suppress(OSError):  # a full disk, a folder that may only be read: it is then read again
            make_private_folder(self._folder)
            draft = self._folder / f".{name}.{os.getpid()}"
            with open(open_private_file(draft, os.O_WRONLY | os.O_TRUNC), "wb") as file:
                file.write(_digest(record) + record)
            draft.replace(self._folder / name)  # others find all of it, or nothing
            self._prune()

    def _prune(self) -> None:
        with os.scandir(self._folder) as entries:
            records = list(entries)
        if len(records) > MOST_KEPT:
            for entry in sorted(records, key=lambda entry: entry.stat().st_mtime_ns)[: MOST_KEPT // 2]:
                os.unlink(entry)


def _read_own(path: Path) -> bytes:
    """What a file holds that nobody else could have written, or nothing: it says which code is run."""
    with suppress(OSError), open(path, "rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid == os.geteuid() and not status.st_mode & (S_IWGRP | S_IWOTH):
            return file.read()
    return b""


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=_DIGEST).digest()


def _name_of(source: PlaybookSource) -> str | None:
    reader = _reader_identity()
    return None if reader is None else _digest(msgspec.json.encode([reader, structs.astuple(source)])).hex()


@cache
def _reader_identity() -> str | None:
    """Stands for the code that reads documents: another release, or a line that was edited, is another.

    None if that lies in no files. Looking at some hundred files takes about a millisecond, and the number of
    the release is not faster to get.
    """
    package = Path(__file__).parents[2]
    try:
        # Of the libraries one file tells: whoever installs another version replaces all of them.
        others = [spec.origin for name in ("jinja2", "yaml") if (spec := find_spec(name)) and spec.origin]
        states = [*map(_file_state, [str(package / "loader.py"), *others])]
        for name in _READERS:
            states += _folder_states(str(package / name))
    except OSError:
        return None
    return _digest(repr((sys.version_info, states)).encode()).hex()


def _file_state(path: str) -> tuple[str, int, int]:
    status = os.stat(path)
    return path, status.st_mtime_ns, status.st_size


def _folder_states(folder: str) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.name.endswith(".py"):
                status = entry.stat()
                yield entry.path, status.st_mtime_ns, status.st_size
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                yield from _folder_states(entry.path)
