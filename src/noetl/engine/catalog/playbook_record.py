"""The documents that executions run, as a store keeps them."""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct, structs

from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.playbook_codec import PLAYBOOK_FORMAT, decode_playbook, encode_playbook
from noetl.model.json import Json
from noetl.ports.store import StoreError

if TYPE_CHECKING:
    from noetl.dsl.compiler import CompiledPlaybook

INLINE = "<inline>"
"""The name of a document that stands in another one, and was checked with it."""


class PlaybookUnreadable(StoreError):
    """A stored document cannot be read as the playbook that it was."""


class PlaybookSource(Struct, frozen=True):
    """A document as its author wrote it. `name` is what problems call it, `file` where it was read, if so."""

    text: str
    name: str
    file: str = ""
    dialect: str | None = None


def registered_file(name: str) -> str:
    """The file that a document of a catalog counts as: who asks for its folder gets its directory."""
    return f"{name.replace('/', ':')}.yaml"


def registered_name(path: str, file: str) -> str:
    """`PATH@VERSION` of a document of a catalog, by the file that it counts as; empty for others."""
    version = os.path.basename(file).removeprefix(f"{path.replace('/', ':')}@").removesuffix(".yaml")
    name = f"{path}@{version}"
    return name if version.isdecimal() and os.path.basename(file) == registered_file(name) else ""


class _PlaybookRecord(PlaybookSource, frozen=True):
    """A document and what it was read as, which spares who only looks at an execution to read it again.

    `playbook` is derived: where it is of another format or, as in older stores, missing, the text is read.
    """

    playbook: Raw = Raw(b"")
    format: int = 0


def encode_source(document: PlaybookSource, playbook: Playbook) -> bytes:
    """What `Store.put_playbook` gets."""
    fields = structs.asdict(document)
    record = _PlaybookRecord(**fields, playbook=Raw(encode_playbook(playbook)), format=PLAYBOOK_FORMAT)
    return msgspec.json.encode(record)


def decode_source(data: bytes) -> PlaybookSource:
    """Raises PlaybookUnreadable."""
    try:
        return msgspec.json.decode(data, type=PlaybookSource)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise PlaybookUnreadable(f"the stored playbook is damaged: {fault}", _DAMAGED) from None


def load_record(data: bytes, allow_kinds: Iterable[str] = ()) -> Playbook:
    """The playbook of a stored document, also where kinds of tools that it uses are not installed.

    Raises PlaybookUnreadable.
    """
    return decode_record(data) or _read_source(decode_source(data), allow_kinds)


def decode_record(data: bytes) -> Playbook | None:
    """The playbook that a document was read as; None if the record has none that this release reads."""
    try:
        record = msgspec.json.decode(data, type=_PlaybookRecord)
        if record.format == PLAYBOOK_FORMAT:
            return decode_playbook(bytes(record.playbook))
    except ValueError:
        pass
    return None


def _read_source(document: PlaybookSource, allow_kinds: Iterable[str]) -> Playbook:
    """The slow path of `decode_record`, which gives an equal playbook."""
    loaded = _load(document, allow_kinds)
    if loaded.playbook is None:
        # Looking at what happened needs no tools.
        loaded = _load(document, {*allow_kinds, *_kinds(loaded.document)})
    if loaded.playbook is None:
        worst = next(problem for problem in loaded.problems if problem.severity == "error")
        message = f"{document.name}: this release does not accept the playbook that ran: {worst.message}"
        raise PlaybookUnreadable(message, "use the release of noetl that ran it")
    return loaded.playbook


_DAMAGED = "`noetl store check` says what else is wrong"


def _load(document: PlaybookSource, allow_kinds: Iterable[str]) -> "CompiledPlaybook":
    from noetl.loader import examine  # noqa: PLC0415 - most records need no reader, and it is slow to import

    return examine(document.text, document.name, dialect=document.dialect, allow_kinds=allow_kinds)


def _kinds(value: Json) -> Iterator[str]:
    """Everything in a canonical document that may be the kind of a tool."""
    if isinstance(value, dict):
        if isinstance(kind := value.get("kind"), str):
            yield kind
        for item in value.values():
            yield from _kinds(item)
    elif isinstance(value, list):
        for item in value:
            yield from _kinds(item)
