"""Deleting executions that ended, with everything that belongs to them."""

from collections.abc import AsyncIterator

from noetl.engine.history.expiry import DroppedBodies, ResultExpiry
from noetl.engine.task_log import TaskLog
from noetl.ports.results import ResultStore
from noetl.ports.store import ENDED_STATUSES, ExecutionQuery, ExecutionRecord, Store
from noetl.stores.home_folder import Home
from noetl.stores.ownership import Owners


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
    ownership = Owners(home.owners).acquire(record.execution_id)
    if ownership is None:
        return False
    with ownership:
        now = await store.execution(record.execution_id)
        if now is None or now.version != record.version:
            return False  # somebody retried it meanwhile
        if await _wanted(store, record):
            return False
        await results.delete(record.execution_id)
        TaskLog(home.logs).remove(record.execution_id)
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


LEFT_AFTER = 86_400
"""Seconds after which what was not finished being written is taken for left behind."""


async def drop_expired(
    home: Home, store: Store, results: ResultStore, now: int, most: int | None = None
) -> tuple[DroppedBodies, int]:
    """Drops bodies whose time is over, and what crashes left half-written; what, and how many files.

    Raises StoreError, ResultError.
    """
    expiry = ResultExpiry(store, results, Owners(home.owners))
    dropped = await expiry.drop(ended_before(store, now), now, most)
    return dropped, await results.sweep(now / 1_000_000 - LEFT_AFTER)
