"""Which tasks of registered playbooks name which credentials."""

import asyncio
from collections.abc import Iterable

from noetl.credentials.resolver import credential_uses
from noetl.loader import examine
from noetl.ports.catalog import CatalogEntry, CatalogStore
from noetl.ports.page_api import CredentialUsage, CredentialUse
from noetl.stores.credentials.encrypted_credentials import EncryptedCredentials

_NamedCredential = tuple[str, str, str]
"""A credential, and the step and task that name it."""


class CredentialUsageReader:
    """Reads the newest version of each playbook once: what it names is kept by the hash of its content."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[_NamedCredential, ...]] = {}

    async def usage(
        self, store: CatalogStore, credentials: EncryptedCredentials, allow_kinds: Iterable[str]
    ) -> list[CredentialUsage]:
        """Of each credential that is stored or named, by name; its uses in the order of paths."""
        stored = {sealed.name for sealed in await credentials.list()}
        uses: dict[str, list[CredentialUse]] = {name: [] for name in stored}
        for name, use in await self._uses(store, allow_kinds):
            uses.setdefault(name, []).append(use)
        return [CredentialUsage(name=name, stored=name in stored, uses=uses[name]) for name in sorted(uses)]

    async def _uses(self, store: CatalogStore, allow_kinds: Iterable[str]) -> list[tuple[str, CredentialUse]]:
        """A page of playbooks at a time, off the loop."""
        known: dict[str, tuple[_NamedCredential, ...]] = {}
        uses: list[tuple[str, CredentialUse]] = []
        kinds, cursor = tuple(allow_kinds), ""
        while True:
            page = await store.catalog_entries(after=cursor, limit=1_000)
            fresh = {entry.hash: entry for entry in page.entries if entry.hash not in self._known}
            if fresh:
                names = await asyncio.to_thread(_examine_all, list(fresh.values()), kinds)
                self._known.update(zip(fresh, names, strict=True))
            for entry in page.entries:
                known[entry.hash] = self._known[entry.hash]
                uses += [
                    (name, CredentialUse(path=entry.path, version=entry.version, step=step, task=task))
                    for name, step, task in known[entry.hash]
                ]
            cursor = page.next
            if not cursor:
                self._known = known  # no more than the catalog has
                return uses


def _examine_all(
    entries: Iterable[CatalogEntry], allow_kinds: tuple[str, ...]
) -> list[tuple[_NamedCredential, ...]]:
    return [_names_in(entry, allow_kinds) for entry in entries]


def _names_in(entry: CatalogEntry, allow_kinds: tuple[str, ...]) -> tuple[_NamedCredential, ...]:
    name = f"{entry.path}@{entry.version}"
    playbook = examine(entry.source, name, dialect=entry.dialect or None, allow_kinds=allow_kinds).playbook
    # None: it was registered with kinds that are not here any more.
    return () if playbook is None else tuple(credential_uses(playbook))
