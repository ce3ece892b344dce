"""Stored bodies that nothing names: left behind by a crash between a body and its event, or its entry."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from noetl.engine.history.lookup import PAGE
from noetl.model.reference import MARKER, MARKER_BYTES, stored_keys
from noetl.model.table_reader import split_row_key
from noetl.ports.results import ResultStore, StoredBody
from noetl.ports.store import ExecutionQuery, Store
from noetl.stores.ownership import Owners
from noetl.stores.results.result_key import key_in_store
from noetl.stores.results.result_store_objects import ARTIFACT_OWNER, artifact_owners

ORPHAN_AGE = 86_400.0
"""Seconds for which a body may be without a name: whoever wrote it may be about to write that."""
_FAMILY = len("01939d2e-0000")
"""Characters with which the ids of an execution and of all that it starts begin."""


class Orphans(Struct):
    """Bodies that nothing names, segments of unknown logs among them.

    `unknown` is how many were left, as they may be those of another store.
    """

    bodies: int = 0
    bytes: int = 0
    unknown: int = 0


class OrphanSearch:
    """Looks through result stores for what no event in `store` names, and no entry of an artifact.

    What somebody owns is left alone: what was left behind may be just what is written next. In the stores
    `exclusive` nobody else keeps anything; elsewhere executions that are not known here may be those of
    others. With `dry` nothing is removed.
    """

    def __init__(
        self,
        store: Store,
        owners: Owners,
        now: float,
        *,
        dry: bool = False,
        exclusive: frozenset[str] = frozenset(),
    ) -> None:
        self._store = store
        self._owners = owners
        self._before = now - ORPHAN_AGE
        self._dry = dry
        self._exclusive = exclusive

    async def drop(self, stores: Mapping[str, ResultStore]) -> Orphans:
        """Removes the orphans of these stores, given by name. Raises StoreError, ResultError."""
        dropped = Orphans()
        for name, results in stores.items():
            published = await artifact_owners(results)
            for owner in await results.owners():
                if not owner.startswith(ARTIFACT_OWNER):
                    await self._drop_of_execution(name, results, owner, dropped)
                elif owner not in published:
                    await self._remove(results, self._old(await results.bodies(owner)), dropped)
        return dropped

    async def _drop_of_execution(
        self, store_name: str, results: ResultStore, execution_id: str, dropped: Orphans
    ) -> None:
        record = await self._store.execution(execution_id)
        if record is None:
            if await self._family_lives(execution_id):
                return
            untimed = self._began_long_ago(execution_id)
            bodies = self._old(await results.bodies(execution_id), untimed=untimed)
            segments = await results.log_segments(execution_id)
            log = segments if len(self._old(segments, untimed=untimed)) == len(segments) else []
            if store_name in self._exclusive:
                await self._remove(results, bodies, dropped)
                await self._remove_log(results, execution_id, log, dropped)
            else:
                dropped.unknown += len(bodies) + len(log)
            return
        ended_long_ago = 0 < record.ended_at < self._before * 1_000_000
        bodies = self._old(await results.bodies(execution_id), untimed=ended_long_ago)
        ownership = self._owners.acquire(execution_id, served=record.lives_on_server) if bodies else None
        if ownership is None:
            return
        with ownership:
            named = await self._named_keys(execution_id)
            current = await self._store.execution(execution_id)
            if current is None or current.version != record.version:
                return  # somebody retried it meanwhile
            orphans = [body for body in bodies if key_in_store(store_name, body.key) not in named]
            await self._remove(results, orphans, dropped)

    async def _remove(self, results: ResultStore, orphans: list[StoredBody], dropped: Orphans) -> None:
        dropped.bodies += len(orphans)
        dropped.bytes += sum(body.size for body in orphans)
        if orphans and not self._dry:
            await results.remove([body.key for body in orphans])

    async def _remove_log(
        self, results: ResultStore, execution_id: str, segments: list[StoredBody], dropped: Orphans
    ) -> None:
        dropped.bodies += len(segments)
        dropped.bytes += sum(segment.size for segment in segments)
        if segments and not self._dry:
            await results.delete_log(execution_id)

    def _old(self, bodies: list[StoredBody], *, untimed: bool = False) -> list[StoredBody]:
        """Those that were written long enough ago; `untimed` says it where a store does not know when."""
        return [
            body
            for body in bodies
            if (untimed if body.written_at is None else body.written_at < self._before)
        ]

    async def _family_lives(self, execution_id: str) -> bool:
        """Whether something may be about to start it: a child is given its values before it exists."""
        query = ExecutionQuery(execution_id=execution_id[:_FAMILY], limit=PAGE)
        page = await self._store.executions(query)
        return bool(page.next) or any(not relative.ended_at for relative in page.executions)

    def _began_long_ago(self, execution_id: str) -> bool:
        """What the id says, which begins with a time in milliseconds."""
        try:
            return int(execution_id[:_FAMILY].replace("-", ""), 16) / 1_000 < self._before
        except ValueError:
            return False

    async def _named_keys(self, execution_id: str) -> set[str]:
        named: set[str] = set()
        after = 0
        while rows := await self._store.read(execution_id, after=after, limit=PAGE):
            after = rows[-1].seq
            for row in rows:
                if MARKER_BYTES in row.body:
                    named.update(_keys_in(msgspec.json.decode(row.body)))
        return named


def _keys_in(value: Any) -> Iterator[str]:
    """The keys of all that stands for something stored, wherever it is, and of parts of that."""
    if isinstance(value, dict):
        if value.get(MARKER) in ("ref", "manifest"):
            for key in stored_keys(value):
                yield split_row_key(key)[0]
        for item in value.values():
            yield from _keys_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _keys_in(item)
