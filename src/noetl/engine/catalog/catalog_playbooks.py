"""The playbooks of a server: those that tasks name by path come from its catalog."""

import os
from collections.abc import Iterable
from pathlib import Path

from noetl.engine.catalog.playbook_record import PlaybookSource, registered_file
from noetl.engine.catalog.playbooks import PlaybookDocument, PlaybookMissing, Playbooks
from noetl.engine.catalog.preflight import named_children
from noetl.ports.catalog import CatalogEntry
from noetl.ports.store import Store

LATEST_VERSION = 0


def entry_source(entry: CatalogEntry, directory: str) -> PlaybookSource:
    """A registered document. Its relative paths start in the directory."""
    name = f"{entry.path}@{entry.version}"
    file = os.path.join(
        directory, registered_file(name)
    )  # each start asks, and a `Path` takes ten times as long
    return PlaybookSource(entry.source, name, file, entry.dialect or None)


async def registered_source(store: Store, path: str, version: int, directory: str) -> PlaybookSource:
    """A version of a registered playbook. Raises PlaybookMissing."""
    entry = await store.catalog_entry(path, version)
    if entry is None:
        raise PlaybookMissing(f"no playbook `{path}@{version}` is registered", "see `noetl catalog list`")
    return entry_source(entry, directory)


class CatalogPlaybooks(Playbooks):
    """Looks for playbooks in the catalog of a store, and nowhere else."""

    def __init__(
        self, store: Store, directory: Path, allow_kinds: Iterable[str] = (), *, allow_local: bool = True
    ) -> None:
        super().__init__((), allow_kinds)
        self.allow_local = allow_local
        self._store = store
        self.directory = str(directory)
        self._fetched: dict[tuple[str, int], CatalogEntry | None] = {}

    async def fetch(self, path: str, version: object, at: int) -> object:
        number = _version_number(version)
        entry = await self._store.catalog_entry(path, number, at=at) if number is not None else None
        if entry is None:
            return version
        # Under its own number: what is the newest for one parent is not so for the next.
        self._fetched[path, entry.version] = entry
        return entry.version

    async def _fetch(self, path: str, number: int) -> CatalogEntry | None:
        entry = self._fetched[path, number] = await self._store.catalog_entry(path, number)
        return entry

    async def fetch_children(self, document: PlaybookDocument) -> None:
        """What its tasks, and theirs, name by a constant path. Raises StoreError."""
        seen: set[tuple[str, int]] = set()
        todo = [document]
        while todo:
            for _, path, version in named_children(todo.pop().playbook):
                key = path, _version_number(version) or LATEST_VERSION
                if key in seen:
                    continue
                seen.add(key)
                if (entry := await self._fetch(*key)) is not None:
                    todo.append(self.read(entry_source(entry, self.directory)))

    def find(self, path: str, version: object, folder: Path) -> PlaybookDocument:  # noqa: ARG002 - not in folders
        number = _version_number(version)
        entry = self._fetched.get((path, number)) if number is not None else None
        if entry is None:
            wanted = f"`{path}`" + (f" of version {version}" if version is not None else "")
            raise PlaybookMissing(
                f"the catalog has no playbook {wanted}", "`noetl catalog register` adds one"
            )
        return self.read(entry_source(entry, self.directory))


def _version_number(version: object) -> int | None:
    """The number of a version as tasks name it; None if it cannot be one."""
    if version is None:
        return LATEST_VERSION
    text = str(version)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 and int(text) else None
