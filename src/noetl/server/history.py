"""Executions, read back from a store: by name, as events, as a state."""

from collections.abc import AsyncIterator, Iterable, Sequence

import msgspec
from msgspec import Struct

from noetl.dsl.playbook import Playbook
from noetl.events.bodies import PlaybookExecutionRequested
from noetl.events.codec import decode
from noetl.events.errors import EventUnreadable
from noetl.events.event import Event
from noetl.kernel.errors import WrongSequence
from noetl.kernel.fold import evolve
from noetl.kernel.plan import Plan
from noetl.kernel.replay import load, replay
from noetl.kernel.state import STATE_FORMAT, ExecutionState, new_state
from noetl.ports.store import ExecutionRecord, ExecutionUnknown, Query, Row, Store, StoreError
from noetl.server.stored import playbook_in

PAGE = 1_000
"""Events that are read at once."""

LATEST = "latest"
"""The name of the execution that began last and is nobody's child."""

_SHOWN = 3
_CHECK = "`noetl store check` says what else is wrong"


class HistoryUnreadable(StoreError):
    """What a store holds of an execution cannot be read here."""


class History(Struct, frozen=True):
    """All that happened to an execution, and what it amounts to."""

    record: ExecutionRecord
    plan: Plan
    events: list[Event]
    state: ExecutionState

    @property
    def playbook(self) -> Playbook:
        return self.plan.playbook

    @property
    def request(self) -> PlaybookExecutionRequested:
        return request_in(self.events)

    def state_at(self, seq: int) -> ExecutionState:
        """The state after that event. Raises ValueError if there is none."""
        if not 0 <= seq <= len(self.events):
            raise ValueError(f"event {seq} is not one of 1 to {len(self.events)}")
        return replay(self.plan, self.record.execution_id, self.events[:seq])


async def find_execution(store: Store, name: str) -> ExecutionRecord:
    """The execution with this id, or whose id alone begins so, or the `latest`. Raises ExecutionUnknown."""
    if name == LATEST:
        return await _latest(store)
    if record := await store.execution(name):
        return record
    found = (await store.executions(Query(execution_id=name, limit=_SHOWN + 1))).executions if name else []
    match [record.execution_id for record in found]:
        case []:
            hint = "`noetl executions list` shows those that there are"
            raise ExecutionUnknown(f"there is no execution `{name}`", hint)
        case [_]:
            return found[0]
        case ids:
            shown = ", ".join(ids[:_SHOWN]) + (", …" if len(ids) > _SHOWN else "")
            raise ExecutionUnknown(f"`{name}` begins the ids of several executions", f"write more: {shown}")


async def _latest(store: Store) -> ExecutionRecord:
    cursor = ""
    while True:
        page = await store.executions(Query(cursor=cursor))
        for record in page.executions:
            if not record.parent:
                return record
        if not page.next:
            raise ExecutionUnknown("there is no execution yet")
        cursor = page.next


async def read_plan(store: Store, record: ExecutionRecord, allow_kinds: Iterable[str] = ()) -> Plan:
    """The playbook that the execution runs. Raises HistoryUnreadable, PlaybookUnreadable."""
    data = await store.playbook(record.playbook)
    if data is None:
        raise HistoryUnreadable(f"the playbook of {record.execution_id} is missing in the store", _CHECK)
    return Plan(playbook_in(data, allow_kinds))


async def read_events(store: Store, execution_id: str, *, after: int = 0) -> AsyncIterator[list[Event]]:
    """The events above `after` that there are now, in order, a page at a time. Raises HistoryUnreadable."""
    while True:
        rows = await store.read(execution_id, after=after, limit=PAGE)
        if rows:
            yield decoded(execution_id, rows)
        if len(rows) < PAGE:
            return
        after = rows[-1].seq


def decoded(execution_id: str, rows: Sequence[Row]) -> list[Event]:
    """The events in stored rows. Raises HistoryUnreadable."""
    events = []
    for row in rows:
        try:
            events.append(Event(row.seq, row.ts, decode(row.kind, row.body, row.version)))
        except EventUnreadable as fault:
            hint = "upgrade noetl if a newer release wrote it; otherwise restore the store from a copy"
            raise HistoryUnreadable(f"event {row.seq} of {execution_id}: {fault}", hint) from None
    return events


def request_in(events: Sequence[Event]) -> PlaybookExecutionRequested:
    """The request that an execution began with. Raises HistoryUnreadable."""
    first = events[0].body if events else None
    if not isinstance(first, PlaybookExecutionRequested):
        raise HistoryUnreadable("a history begins with its request, and this one does not", _CHECK)
    return first


async def read_history(store: Store, name: str, allow_kinds: Iterable[str] = ()) -> History:
    """All of an execution, found as by `find_execution`. Raises ExecutionUnknown, HistoryUnreadable."""
    record = await find_execution(store, name)
    plan = await read_plan(store, record, allow_kinds)
    state = new_state(plan, record.execution_id)
    events: list[Event] = []
    async for page in read_events(store, record.execution_id):
        events += page
        _fold(state, page)
    request_in(events)
    return History(record, plan, events, state)


async def read_state(store: Store, plan: Plan, execution_id: str) -> ExecutionState:
    """What has become of an execution: the newest snapshot and the events since. Raises HistoryUnreadable."""
    state = await _remembered(store, plan, execution_id) or new_state(plan, execution_id)
    async for page in read_events(store, execution_id, after=state.version):
        _fold(state, page)
    return state


async def _remembered(store: Store, plan: Plan, execution_id: str) -> ExecutionState | None:
    snapshot = await store.snapshot(execution_id, state_format=STATE_FORMAT)
    if snapshot is None:
        return None
    try:
        return load(plan, msgspec.json.decode(snapshot.body))
    except (WrongSequence, msgspec.DecodeError, msgspec.ValidationError, KeyError):
        return None  # of another release or document: the events tell it all


def _fold(state: ExecutionState, events: Iterable[Event]) -> None:
    for event in events:
        try:
            evolve(state, event)
        except (WrongSequence, KeyError) as fault:
            message = f"event {event.seq} of {state.execution_id} does not fit what came before: {fault}"
            raise HistoryUnreadable(message, _CHECK) from None
