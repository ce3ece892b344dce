"""Executions and their events, found in a store: what needs no playbook."""

from collections.abc import AsyncIterator, Sequence

from noetl.events.bodies import PlaybookExecutionRequested
from noetl.events.codec import decode
from noetl.events.errors import EventUnreadable
from noetl.events.event import Event
from noetl.kernel.errors import Refused
from noetl.ports.store import ExecutionQuery, ExecutionRecord, ExecutionUnknown, Row, Store, StoreError

PAGE = 1_000
"""Events or executions that are read at once."""

LATEST = "latest"
"""The name of the execution that began last and is nobody's child."""

CHECK = "`noetl store check` says what else is wrong"

_SHOWN = 3


class HistoryUnreadable(StoreError):
    """What a store holds of an execution cannot be read here."""


async def find_execution(store: Store, name: str) -> ExecutionRecord:
    """The execution with this id, or whose id alone begins so, or the `latest`. Raises ExecutionUnknown."""
    if name == LATEST:
        return await _latest(store)
    if record := await store.execution(name):
        return record
    candidates = (
        (await store.executions(ExecutionQuery(execution_id=name, limit=_SHOWN + 1))).executions
        if name
        else []
    )
    match [record.execution_id for record in candidates]:
        case []:
            hint = "`noetl executions list` shows those that there are"
            raise ExecutionUnknown(f"there is no execution `{name}`", hint)
        case [_]:
            return candidates[0]
        case ids:
            listing = ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
            raise ExecutionUnknown(f"`{name}` begins the ids of several executions", f"write more: {listing}")


async def require_execution(store: Store, execution_id: str) -> ExecutionRecord:
    """The execution with this id. Raises ExecutionUnknown."""
    record = await store.execution(execution_id)
    if record is None:
        raise ExecutionUnknown(f"there is no execution `{execution_id}`")
    return record


async def may_have_given(store: Store, position: int, event_id: str) -> bool:
    """Whether this entry of a feed may be from this store: it stands there, or its execution was deleted.

    `event_id` is EXECUTION/SEQ. In a copy of a store the same events have other positions.
    """
    for entry in await store.feed(after=position - 1, limit=1):
        if entry.pos == position:
            return f"{entry.execution_id}/{entry.row.seq}" == event_id
    return await store.execution(event_id.rpartition("/")[0]) is None


async def _latest(store: Store) -> ExecutionRecord:
    newest = (await store.executions(ExecutionQuery(roots=True, limit=1))).executions
    if not newest:
        raise ExecutionUnknown("there is no execution yet")
    return newest[0]


async def list_children(store: Store, parent: str) -> list[ExecutionRecord]:
    """All that tasks of this execution started, the newest first."""
    records: list[ExecutionRecord] = []
    cursor = ""
    while True:
        page = await store.executions(ExecutionQuery(parent=parent, cursor=cursor, limit=PAGE))
        records += page.executions
        cursor = page.next
        if not cursor:
            return records


async def require_open(store: Store, record: ExecutionRecord) -> None:
    """Raises Refused if nothing of an execution is to go on with: it and all that it started have ended.

    Children that it does not wait for may outlive it.
    """
    if record.ended_at and not await _has_open_children(store, record.execution_id):
        raise Refused(f"the execution is {record.status}: there is nothing to go on with")


async def _has_open_children(store: Store, execution_id: str) -> bool:
    cursor = ""
    while True:
        page = await store.executions(ExecutionQuery(parent=execution_id, cursor=cursor))
        for child in page.executions:
            if not child.ended_at or await _has_open_children(store, child.execution_id):
                return True
        if not page.next:
            return False
        cursor = page.next


async def read_events(store: Store, execution_id: str, *, after: int = 0) -> AsyncIterator[list[Event]]:
    """The events above `after` that there are now, in order, a page at a time. Raises HistoryUnreadable."""
    async for rows in row_pages(store, execution_id, after=after):
        yield decode_rows(execution_id, rows)


async def row_pages(store: Store, execution_id: str, *, after: int = 0) -> AsyncIterator[list[Row]]:
    """The same as they are stored."""
    while True:
        rows = await store.read(execution_id, after=after, limit=PAGE)
        if rows:
            yield rows
        if len(rows) < PAGE:
            return
        after = rows[-1].seq


def decode_rows(execution_id: str, rows: Sequence[Row]) -> list[Event]:
    """The events in stored rows. Raises HistoryUnreadable."""
    events = []
    for row in rows:
        try:
            events.append(Event(row.seq, row.ts, decode(row.kind, row.body, row.version)))
        except EventUnreadable as fault:
            hint = "upgrade noetl if a newer release wrote it; otherwise restore the store from a copy"
            raise HistoryUnreadable(f"event {row.seq} of {execution_id}: {fault}", hint) from None
    return events


def request_event_of(events: Sequence[Event]) -> PlaybookExecutionRequested:
    """The request that an execution began with. Raises HistoryUnreadable."""
    first = events[0].body if events else None
    if not isinstance(first, PlaybookExecutionRequested):
        raise HistoryUnreadable("a history begins with its request, and this one does not", CHECK)
    return first
