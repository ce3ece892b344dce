"""An execution, read back whole: its playbook, its events and the state that they amount to."""

from collections.abc import Iterable
from functools import lru_cache

import msgspec
from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.engine.catalog.playbook_record import PlaybookSource, decode_record, decode_source, load_record
from noetl.engine.history.lookup import (
    CHECK,
    HistoryUnreadable,
    find_execution,
    read_events,
    request_event_of,
)
from noetl.events.bodies import PlaybookExecutionRequested
from noetl.events.event import Event
from noetl.kernel.errors import WrongSequence
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import STATE_FORMAT, ExecutionState, new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.replay import load_state, replay
from noetl.ports.store import ExecutionRecord, Store


class History(Struct, frozen=True):
    """All that happened to an execution, and what it amounts to."""

    record: ExecutionRecord
    plan: Plan
    events: list[Event]
    state: ExecutionState
    document: bytes
    """Its playbook as the store keeps it."""

    @property
    def source(self) -> PlaybookSource:
        """What its playbook was read from. Raises PlaybookUnreadable."""
        return decode_source(self.document)

    @property
    def playbook(self) -> Playbook:
        return self.plan.playbook

    @property
    def request(self) -> PlaybookExecutionRequested:
        return request_event_of(self.events)

    def state_at(self, seq: int) -> ExecutionState:
        """The state after that event. Raises ValueError if there is none."""
        if not 0 <= seq <= len(self.events):
            raise ValueError(f"event {seq} is not one of 1 to {len(self.events)}")
        return replay(self.plan, self.record.execution_id, self.events[:seq])


async def read_plan(store: Store, record: ExecutionRecord, allow_kinds: Iterable[str] = ()) -> Plan:
    """The playbook that the execution runs. Raises HistoryUnreadable, PlaybookUnreadable."""
    return _plan_of(await _read_document(store, record), allow_kinds)


async def _read_document(store: Store, record: ExecutionRecord) -> bytes:
    data = await store.playbook(record.playbook)
    if data is None:
        raise HistoryUnreadable(f"the playbook of {record.execution_id} is missing in the store", CHECK)
    return data


def _plan_of(document: bytes, allow_kinds: Iterable[str]) -> Plan:
    return _recorded_plan(document) or Plan(load_record(document, allow_kinds))


@lru_cache(maxsize=16)
def _recorded_plan(data: bytes) -> Plan | None:
    """That of `Plan(load_record(data))`, where the record has what its document was read as.

    Whoever asks for executions asks for many of one playbook, and planning takes longer than to read a short
    history. A plan never changes, so they share it.
    """
    playbook = decode_record(data)
    return Plan(playbook) if playbook is not None else None


async def read_history(store: Store, name: str, allow_kinds: Iterable[str] = ()) -> History:
    """All of an execution, found as by `find_execution`. Raises ExecutionUnknown, HistoryUnreadable."""
    record = await find_execution(store, name)
    document = await _read_document(store, record)
    plan = _plan_of(document, allow_kinds)
    state = new_state(plan, record.execution_id)
    events: list[Event] = []
    async for page in read_events(store, record.execution_id):
        events += page
        fold_events(state, page)
    request_event_of(events)
    return History(record, plan, events, state, document)


async def read_state(store: Store, plan: Plan, execution_id: str) -> ExecutionState:
    """What has become of an execution: the newest snapshot and the events since. Raises HistoryUnreadable."""
    return await _fold_rest(
        store, await _remembered(store, plan, execution_id) or new_state(plan, execution_id)
    )


async def fold_history(store: Store, plan: Plan, execution_id: str) -> ExecutionState:
    """The same from the events alone. Raises HistoryUnreadable."""
    return await _fold_rest(store, new_state(plan, execution_id))


async def _fold_rest(store: Store, state: ExecutionState) -> ExecutionState:
    async for page in read_events(store, state.execution_id, after=state.version):
        fold_events(state, page)
    return state


async def _remembered(store: Store, plan: Plan, execution_id: str) -> ExecutionState | None:
    snapshot = await store.snapshot(execution_id, state_format=STATE_FORMAT)
    if snapshot is None:
        return None
    try:
        return load_state(plan, msgspec.json.decode(snapshot.body))
    except (WrongSequence, msgspec.DecodeError, msgspec.ValidationError, KeyError):
        return None  # of another release or document: the events tell it all


def fold_events(state: ExecutionState, events: Iterable[Event]) -> None:
    """Takes in the events that come next. Raises HistoryUnreadable."""
    for event in events:
        try:
            evolve(state, event)
        except (WrongSequence, KeyError) as fault:
            message = f"event {event.seq} of {state.execution_id} does not fit what came before: {fault}"
            # The cause stays: a KeyError may as well be a bug of the fold as a damaged history.
            raise HistoryUnreadable(message, CHECK) from fault
