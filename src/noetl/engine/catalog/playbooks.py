"""The documents that executions run: as given, as stored, and those that tasks name by path."""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.dsl.document.source import Mapping, SourceError, node_value
from noetl.engine.catalog.known_playbooks import KnownPlaybooks
from noetl.engine.catalog.playbook_record import INLINE, PlaybookSource, decode_source, encode_source
from noetl.kernel.plan import Plan
from noetl.loader import MAX_BYTES, examine, looks_like_playbook
from noetl.model.errors import NoetlError
from noetl.ports.store import Store, StoreUnusable


class PlaybookMissing(NoetlError):
    """No playbook has this path, or more than one has."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class PlaybookDocument(Struct, frozen=True):
    """A source that is a valid playbook, and what follows from it."""

    source: PlaybookSource
    plan: Plan
    record: bytes = b""
    """As the store keeps it, under the hash of the canonical document; empty if it was not made yet."""

    @property
    def playbook(self) -> Playbook:
        return self.plan.playbook

    def encode(self) -> bytes:
        """Its record."""
        return self.record or encode_source(self.source, self.playbook)


LOCAL_REFUSED = "`executor.kind: local` would run users' code inside of the server"
LOCAL_HINT = "leave `kind` out, or start the server with --allow-local"


class Playbooks:
    """Reads documents, each once. `folders` are where playbooks named by path are looked for.

    `on_read` gets each document that is handed out, the first time, unless it stands in another one. `known`
    are those that other processes have read before.
    """

    def __init__(
        self,
        folders: Iterable[Path] = (),
        allow_kinds: Iterable[str] = (),
        *,
        on_read: Callable[[PlaybookDocument], None] | None = None,
        known: KnownPlaybooks | None = None,
    ) -> None:
        self._folders = list(folders)
        self.allow_kinds = tuple(allow_kinds)
        self.allow_local = True
        """Whether those with `executor.kind: local` may run here."""
        self._on_read = on_read
        self._known = known
        self._unkept: list[PlaybookDocument] = []
        self._documents: dict[PlaybookSource, PlaybookDocument] = {}
        self._handed_out: set[str] = set()
        self._indexes: dict[Path, dict[str, list[Path]]] = {}

    def read(self, source: PlaybookSource) -> PlaybookDocument:
        """Raises PlaybookInvalid."""
        return self._hand_out(self._read(source))

    def _read(self, source: PlaybookSource) -> PlaybookDocument:
        if (document := self._documents.get(source)) is None:
            document = self._documents[source] = self._recall(source) or self._examine(source)
        # Whether it can run is looked at before there is a home: a document is kept when asked for again.
        if self._unkept and self._known is not None and self._known.has_home:
            for unkept in self._unkept:
                self._known.keep(unkept.source, unkept.record, self.allow_kinds)
            self._unkept.clear()
        return document

    def _recall(self, source: PlaybookSource) -> PlaybookDocument | None:
        known = self._known.find(source) if self._known is not None else None
        return None if known is None else PlaybookDocument(source, Plan(known[0]), known[1])

    def _examine(self, source: PlaybookSource) -> PlaybookDocument:
        examined = examine(source.text, source.name, dialect=source.dialect, allow_kinds=self.allow_kinds)
        if examined.playbook is None:
            raise PlaybookInvalid(examined.problems)
        if self._known is None or source.name == INLINE:
            return PlaybookDocument(source, Plan(examined.playbook))
        record = encode_source(source, examined.playbook)
        document = PlaybookDocument(source, Plan(examined.playbook), record)
        self._unkept.append(document)
        return document

    def _hand_out(self, document: PlaybookDocument) -> PlaybookDocument:
        if document.playbook.hash not in self._handed_out:
            self._handed_out.add(document.playbook.hash)
            if self._on_read is not None and document.source.name != INLINE:
                self._on_read(document)
        return document

    async def fetch(self, path: str, version: object, at: int) -> object:  # noqa: ARG002 - files have no past
        """Has `find` see a playbook that lies where reading takes a while; the version to ask it for.

        That is the one that was current at the time `at`, unless the version says which. Raises StoreError.
        """
        return version

    async def read_stored(self, store: Store, playbook_hash: str) -> PlaybookDocument:
        """The document that an execution in this store runs. Raises StoreUnusable, PlaybookInvalid."""
        data = await store.playbook(playbook_hash)
        if data is None:
            raise StoreUnusable("the playbook of the execution is missing in the store")
        return self.read(decode_source(data))

    def find(self, path: str, version: object, folder: Path) -> PlaybookDocument:
        """The playbook with this `metadata.path`, looked for below `folder` and the catalog's folders.

        Raises PlaybookMissing, PlaybookInvalid.
        """
        matches: dict[Path, None] = {}
        for root in (*self._folders, folder):
            matches |= dict.fromkeys(self._index(root).get(path, ()))
        documents = [self._of_file(file) for file in matches]
        if version is not None:
            wanted_version = str(version)
            documents = [each for each in documents if each.playbook.metadata.version == wanted_version]
        where = " or ".join(str(root) for root in (*self._folders, folder))
        if not documents:
            wanted = f"`{path}`" + (f" of version {version}" if version is not None else "")
            hint = f"a file below {where} must have this `metadata.path`; --catalog names another folder"
            raise PlaybookMissing(f"there is no playbook {wanted}", hint)
        if len({document.playbook.hash for document in documents}) > 1:
            files = ", ".join(document.source.file for document in documents)
            raise PlaybookMissing(
                f"several files have the path `{path}`: {files}", "give each a path of its own"
            )
        return self._hand_out(documents[0])

    def _of_file(self, file: Path) -> PlaybookDocument:
        return self._read(PlaybookSource(file.read_text("utf-8-sig"), str(file), str(file)))

    def _index(self, folder: Path) -> dict[str, list[Path]]:
        if (known := self._indexes.get(folder)) is not None:
            return known
        index: dict[str, list[Path]] = {}
        for file in _candidates(folder):
            if (path := _path_of(file)) is not None:
                index.setdefault(path, []).append(file)
        self._indexes[folder] = index
        return index


_REFUSED = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: refused, path: %s}
workflow:
- step: start
  tool: {kind: noop}
"""


def refused_document(playbooks: Playbooks, path: str) -> PlaybookDocument:
    """What stands for a playbook that cannot be had, in the record of the request for it."""
    return playbooks.read(PlaybookSource(_REFUSED % json.dumps(path or "inline"), "<refused>"))


def _candidates(folder: Path) -> Iterator[Path]:
    for directory, subdirectories, names in os.walk(folder):
        subdirectories[:] = sorted(name for name in subdirectories if not name.startswith("."))
        for name in sorted(names):
            if name.endswith((".yaml", ".yml")):
                yield Path(directory).resolve() / name


def _path_of(file: Path) -> str | None:
    """The `metadata.path` of a file that says it is a playbook; version 1 has it at the root."""
    try:
        data = file.read_bytes() if file.stat().st_size <= MAX_BYTES else b""
        if not looks_like_playbook(data):
            return None
        from noetl.dsl.document.composer import compose  # noqa: PLC0415 - brings PyYAML, and few look for others

        root = compose(data.decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError, SourceError):
        return None
    if not isinstance(root, Mapping):
        return None
    document = node_value(root)
    metadata = document.get("metadata") if isinstance(document, dict) else None
    path = metadata.get("path") if isinstance(metadata, dict) else None
    if path is None and isinstance(document, dict):
        path = document.get("path")
    return path if isinstance(path, str) else None
