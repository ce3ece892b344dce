"""Where playbooks come in: files, text and the tool kinds that are installed."""

import gc
import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from importlib.machinery import PathFinder
from pkgutil import resolve_name
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeAlias

from noetl.dsl.document.kinds import Kind, Kinds, KindTaken
from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.problem import PlaybookInvalid, Problem
from noetl.dsl.document.source import MAX_CHARACTERS
from noetl.model.errors import NoetlError
from noetl.model.json import Json
from noetl.tools.kind_registry import BUILTIN, declared_kinds

if TYPE_CHECKING:
    from noetl.dsl.compiler import CompiledPlaybook

TextOrPath: TypeAlias = str | os.PathLike[str]

MAX_BYTES = 4 * MAX_CHARACTERS
"""No playbook has more: a character of UTF-8 takes four at most."""


# In column 1, or in a document written as JSON; looked for in bytes, because the file may be broken.
_PLAYBOOK = re.compile(
    rb"""^(?:\xef\xbb\xbf)?(?:\{\s*)?["']?apiVersion["']?\s*:\s*["']?noetl\.io\b""", re.MULTILINE
)


def looks_like_playbook(data: bytes) -> bool:
    """Whether a file says that it is one, valid or not."""
    return _PLAYBOOK.search(data) is not None


class SourceUnreadable(NoetlError):
    """A file that should hold a playbook cannot be read."""


class PluginBroken(NoetlError):
    """An installed tool package cannot be loaded or brings no kind."""


def load(source: TextOrPath, *, dialect: str | None = None, allow_kinds: Iterable[str] = ()) -> Playbook:
    """The playbook in a file, or in text of more than one line. Raises PlaybookInvalid with all problems."""
    name, text = read_source(source)
    loaded = examine(text, name, dialect=dialect, allow_kinds=allow_kinds)
    if loaded.playbook is None:
        raise PlaybookInvalid(loaded.problems)
    return loaded.playbook


def validate(
    source: TextOrPath, *, dialect: str | None = None, allow_kinds: Iterable[str] = ()
) -> list[Problem]:
    """All problems of a playbook, warnings too, in document order."""
    name, text = read_source(source)
    return list(examine(text, name, dialect=dialect, allow_kinds=allow_kinds).problems)


def examine(
    text: str, name: str, *, dialect: str | None = None, allow_kinds: Iterable[str] = ()
) -> "CompiledPlaybook":
    """The playbook and its problems; `name` is what problems call the file."""
    from noetl.dsl.compiler import compile_playbook  # noqa: PLC0415 - a known document needs no reader

    kinds = installed_kinds().with_allowed(allow_kinds)
    # Loading makes many objects and drops few: looking for garbage meanwhile costs a sixth of the time.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return compile_playbook(text, name, kinds, dialect)
    finally:
        if collecting:
            gc.enable()


def upgrade(text: str, name: str, *, dialect: str | None = None, allow_kinds: Iterable[str] = ()) -> str:
    """The document as canonical YAML. Raises PlaybookInvalid if that would not be a valid playbook."""
    loaded = examine(text, name, dialect=dialect, allow_kinds=allow_kinds)
    if loaded.playbook is None:
        raise PlaybookInvalid(loaded.problems)
    # Only this needs the writer, and what it brings takes a while to import.
    written: str = resolve_name("noetl.dsl.dialects.yaml_writer:to_yaml")(loaded.document)
    return written


def schema() -> dict[str, Json]:
    """JSON Schema 2020-12 of the canonical document, with the kinds that are installed."""
    made: dict[str, Json] = resolve_name("noetl.dsl.document.schema:document_schema")(installed_kinds())
    return made


def read_source(source: TextOrPath) -> tuple[str, str]:
    """A name for messages, and the text. Text of more than one line is taken as it is."""
    if isinstance(source, str) and ("\n" in source or "\r" in source):
        return "<text>", source
    if not os.fspath(source):
        raise SourceUnreadable("the name of the file is empty")
    try:
        with open(source, "rb") as file:
            return str(source), read_text(file, str(source))
    except FileNotFoundError:
        raise SourceUnreadable(f"there is no file {source}") from None
    except OSError as error:
        raise SourceUnreadable(f"{source} cannot be read: {error.strerror}") from None


def read_text(stream: BinaryIO, name: str) -> str:
    """What a stream holds, read no further than a playbook can be long. Raises SourceUnreadable, OSError."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SourceUnreadable(f"{name} is longer than a playbook may be: {MAX_CHARACTERS:,} characters")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SourceUnreadable(f"{name} is not UTF-8 text (byte {error.start})") from None


def installed_kinds() -> Kinds:
    """The built-in kinds, those of installed packages, and those declared in this process."""
    kinds = Kinds(BUILTIN)
    for kind, package in _packaged():
        try:
            kinds.register(kind)
        except KindTaken as error:
            raise KindTaken(f"{error}, the second time by the package {package}") from None
    for kind in declared_kinds():
        kinds.register(kind)
    return kinds


def package_of(kind: Kind) -> str:
    """The installed package that brings a kind, with its version; empty for all others."""
    return next((packaged.package for packaged in _packaged() if packaged.kind is kind), "")


class _Packaged(NamedTuple):
    kind: Kind
    package: str


_GROUP = "noetl.tools"
"""The entry points by which installed packages bring kinds."""


@cache
def _packaged() -> tuple[_Packaged, ...]:
    """The kinds that installed packages bring."""
    if not _may_be_packaged():
        return ()
    from importlib.metadata import entry_points  # noqa: PLC0415 - see `_may_be_packaged`

    from noetl.tools.declaration import kind_from_entry_point  # noqa: PLC0415 - likewise

    kinds = []
    for point in entry_points(group=_GROUP):
        try:
            kind = kind_from_entry_point(point.load(), point.name)
        except Exception as error:  # packages of others may raise anything on import
            raise PluginBroken(f"the tool package `{point.value}` cannot be loaded: {error}") from error
        if kind is None:
            raise PluginBroken(f"the entry point `{point.name}` ({point.value}) is no tool kind")
        package = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
        kinds.append(_Packaged(kind, package))
    return tuple(kinds)


def _may_be_packaged() -> bool:
    """Whether some package may have such an entry point. `entry_points` tells which, and never others.

    To import what reads them takes a twentieth of a short command, and hardly anybody has such a package.
    """
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    return any(map(_folder_may_hold_entry_point, sys.path))


def _folder_may_hold_entry_point(folder: str) -> bool:
    try:
        names = os.listdir(folder or ".")
    except FileNotFoundError:
        return False
    except OSError:
        return True  # an archive, or something else that only `importlib` looks into
    for name in names:
        if name.endswith(".egg"):
            return True
        if name.endswith((".dist-info", ".egg-info")):
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:
                    if _GROUP.encode() in file.read():
                        return True
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError:
                return True
    return False
