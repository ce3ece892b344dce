"""What is kept no longer: results whose `spec.result.ttl` or `scope` is over, and executions that ended."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import Struct

from noetl.engine.history.lookup import PAGE
from noetl.engine.task_log import FileLog
from noetl.model.reference import MARKER, MARKER_BYTES, stored_keys
from noetl.ports.results import ResultMissing, ResultStore
from noetl.ports.store import ENDED_STATUSES, ExecutionQuery, ExecutionRecord, Store
from noetl.stores.credentials.sealed_values import forget_sealed_values
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners, owners_in

_NEVER = float("inf")
_SECOND = 1_000_000
LEFT_AFTER = 86_400
"""Seconds after which what was not finished being written is taken for left behind."""


class DroppedBodies(Struct):
    """What was dropped, and how many bodies could not be: they are in stores that nobody names any more."""

    bodies: int = 0
    bytes: int = 0
    unreachable: int = 0


class ResultExpiry:
    """Looks for bodies whose time is over, in executions that ended."""

    def __init__(self, store: Store, results: ResultStore, owners: Owners) -> None:
        self._store = store
        self._results = results
        self._owners = owners
        self._mortal: dict[str, bool] = {}

    async def drop(
        self, records: AsyncIterator[ExecutionRecord], now: int, most: int | None = None
    ) -> DroppedBodies:
        """Drops what has expired by `now` (microseconds), in at most so many executions that may have such.

        The events stay as they are. What somebody owns is left alone. Raises StoreError, ResultError.
        """
        done, looked_at = DroppedBodies(), 0
        async for record in records:
            if not await self._has_mortals(record.playbook):
                continue
            if most is not None and looked_at >= most:
                break
            looked_at += 1
            ownership = self._owners.acquire(record.execution_id, served=record.lives_on_server)
            if ownership is None:
                continue
            with ownership:
                await self._drop(record, now, done)
        return done

    async def _drop(self, record: ExecutionRecord, now: int, done: DroppedBodies) -> None:
        current = await self._store.execution(record.execution_id)
        if current is None or current.version != record.version:
            return  # somebody retried it meanwhile
        for key, end in (await self._ends(record)).items():
            if end <= now:
                since = datetime.fromtimestamp(end / _SECOND, UTC).isoformat(timespec="seconds")
                try:
                    freed = await self._results.expire(key, since)
                except ResultMissing:  # the settings no longer name its store
                    done.unreachable += 1
                    continue
                done.bodies += freed > 0
                done.bytes += freed

    async def _ends(self, record: ExecutionRecord) -> dict[str, float]:
        """When each body expires: as late as any reference to it says."""
        ends: dict[str, float] = {}
        after = 0
        while rows := await self._store.read(record.execution_id, after=after, limit=PAGE):
            after = rows[-1].seq
            for row in rows:
                if MARKER_BYTES in row.body:
                    for reference in _references(msgspec.json.decode(row.body)):
                        end = _end_of(reference, record.ended_at)
                        for key in stored_keys(reference):
                            ends[key] = max(ends.get(key, 0), end)
        return ends

    async def _has_mortals(self, playbook: str) -> bool:
        """Whether a playbook says of anything that it is not kept as long as the execution."""
        if playbook not in self._mortal:
            document = await self._store.playbook(playbook) or b""
            self._mortal[playbook] = b"ttl" in document or b"scope" in document
        return self._mortal[playbook]


def _references(value: Any) -> Iterator[dict[str, Any]]:
    """All that stand for something stored by itself, wherever they are."""
    if isinstance(value, dict):
        # One to a part counts if it says how long that lives: then none to all of it does.
        parts = "path" in value and not ("ttl" in value or "scope" in value)
        if value.get(MARKER) in ("ref", "manifest") and not parts:
            yield value
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


def _end_of(reference: dict[str, Any], ended_at: int) -> float:
    scope, ttl = reference.get("scope"), reference.get("ttl")
    if scope == "permanent" or (ttl is None and scope != "step"):
        return _NEVER
    return ended_at + (ttl or 0) * _SECOND


async def ended_before(store: Store, moment: int) -> AsyncIterator[ExecutionRecord]:
    """The executions that ended before this time (microseconds since 1970), the newest first.

    Not those that one above them may still ask for.
    """
    cursor = ""
    while True:
        page = await store.executions(ExecutionQuery(status=ENDED_STATUSES, cursor=cursor, limit=1_000))
        for record in page.executions:
            if 0 < record.ended_at < moment and not await _wanted(store, record):
                yield record
        if not page.next:
            return
        cursor = page.next


async def delete_execution(home: Home, store: Store, results: ResultStore, record: ExecutionRecord) -> bool:
    """Deletes an execution with its results and its log.

    False if a process owns it, one above it has not ended, or it is gone. The execution goes last: what
    fails or crashes half-way is done again the next time. Raises StoreError, ResultError, OSError.
    """
    ownership = owners_in(home).acquire(record.execution_id, served=record.lives_on_server)
    if ownership is None:
        return False
    with ownership:
        now = await store.execution(record.execution_id)
        if now is None or now.version != record.version:
            return False  # somebody retried it meanwhile
        if await _wanted(store, record):
            return False
        await results.delete(record.execution_id)
        await forget_sealed_values(store, record.execution_id)
        FileLog(home.logs).remove(record.execution_id)
        return await store.delete(record.execution_id)


async def _wanted(store: Store, record: ExecutionRecord) -> bool:
    """Whether one above it has not ended, and may still ask for what it has."""
    names = {record.parent, record.root} - {"", record.execution_id}
    ancestors = [await store.execution(name) for name in names]
    return any(ancestor is not None and ancestor.status not in ENDED_STATUSES for ancestor in ancestors)


async def delete_ended(home: Home, store: Store, results: ResultStore, before: int, most: int) -> None:
    """Deletes up to so many executions that ended before this time, the oldest first. Raises as `delete`."""
    for execution_id in await store.ended(before=before, limit=most):
        record = await store.execution(execution_id)
        if record is not None:
            await delete_execution(home, store, results, record)


async def drop_expired(
    home: Home, store: Store, results: ResultStore, now: int, most: int | None = None
) -> tuple[DroppedBodies, int]:
    """Drops bodies whose time is over, and what crashes left half-written; what, and how many files.

    Raises StoreError, ResultError.
    """
    expiry = ResultExpiry(store, results, owners_in(home))
    dropped = await expiry.drop(ended_before(store, now), now, most)
    return dropped, await results.sweep(now / 1_000_000 - LEFT_AFTER)
