"""The documents that executions ran, read to look at what happened."""

from collections.abc import Iterable, Iterator

import msgspec

from noetl.dsl.loader import Loaded
from noetl.dsl.playbook import Playbook
from noetl.loading import examine
from noetl.model import Json
from noetl.ports.store import StoreError
from noetl.server.playbooks import Source
from noetl.server.records import CHECK


class PlaybookUnreadable(StoreError):
    """A stored document cannot be read as the playbook that it was."""


def source_in(data: bytes) -> Source:
    """The document as its author wrote it. Raises PlaybookUnreadable."""
    try:
        return msgspec.json.decode(data, type=Source)
    except (msgspec.DecodeError, UnicodeDecodeError) as fault:
        raise PlaybookUnreadable(f"the stored playbook is damaged: {fault}", CHECK) from None


def playbook_of(source: Source, allow_kinds: Iterable[str] = ()) -> Playbook:
    """The playbook in a document, also where kinds of tools that it uses are not installed.

    Raises PlaybookUnreadable.
    """
    loaded = _load(source, allow_kinds)
    if loaded.playbook is None:
        # Looking at what happened needs no tools.
        loaded = _load(source, {*allow_kinds, *_kinds(loaded.document)})
    if loaded.playbook is None:
        worst = next(problem for problem in loaded.problems if problem.severity == "error")
        message = f"{source.name}: this release does not accept the playbook that ran: {worst.message}"
        raise PlaybookUnreadable(message, "use the release of noetl that ran it")
    return loaded.playbook


def _load(source: Source, allow_kinds: Iterable[str]) -> Loaded:
    return examine(source.text, source.name, dialect=source.dialect, allow_kinds=allow_kinds)


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
