"""An execution, read back whole: its playbook, its events and the state that they amount to."""

import asyncio
from collections.abc import Iterable, Sequence
from functools import lru_cache
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.engine.catalog.playbook_record import PlaybookSource, decode_record, decode_source, load_record
from noetl.engine.history.lookup import (
    CHECK,
    PAGE,
    HistoryUnreadable,
    decode_rows,
    find_execution,
    read_events,
    request_event_of,
    row_pages,
)
from noetl.events.bodies import PlaybookExecutionRequested
from noetl.events.event import Event
from noetl.kernel.errors import WrongSequence
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import STATE_FORMAT, ExecutionState, new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.replay import load_state, replay
from noetl.ports.store import ExecutionRecord, Row, Store

KEPT_HISTORIES = 8
KEPT_EVENTS = 100_000
"""Events in all of them: about 100 MB."""


class RecordedHistory(Struct, frozen=True):
    """All that happened to an execution. `cuts` are the numbers of the events that end an append."""

    record: ExecutionRecord
    plan: Plan
    events: list[Event]
    cuts: list[int]
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


class History(RecordedHistory, frozen=True):
    """The same, and what it amounts to."""

    state: ExecutionState


async def read_plan(store: Store, record: ExecutionRecord, allow_kinds: Iterable[str] = ()) -> Plan:
    """The playbook that the execution runs. Raises HistoryUnreadable, PlaybookUnreadable."""
    return _plan_of(await _read_document(store, record), allow_kinds)


async def read_recorded_source(store: Store, record: ExecutionRecord) -> PlaybookSource:
    """What its playbook was read from. Raises HistoryUnreadable, PlaybookUnreadable."""
    return decode_source(await _read_document(store, record))


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
    cuts: list[int] = []

    def take_in(rows: Sequence[Row]) -> None:
        page = decode_rows(record.execution_id, rows)
        fold_events(state, page)
        events.extend(page)
        cuts.extend([row.seq for row in rows if row.last])

    async for rows in row_pages(store, record.execution_id):
        if len(rows) < PAGE and not events:
            take_in(rows)
        else:  # many: a server answers others meanwhile
            await asyncio.to_thread(take_in, rows)
    request_event_of(events)
    return History(record, plan, events, cuts, document, state)


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


class HistoryCache:
    """Reads histories, and of those that it has only what is new.

    Whoever looks at an execution asks many times: each move of a slider folds it once more, and to read and
    decode 10,000 events takes twice as long as to fold them. `replica` is asked for executions that it has as
    they are.
    """

    def __init__(self, store: Store, allow_kinds: Iterable[str] = (), replica: Store | None = None) -> None:
        self._store = store
        self._replica = replica
        self._allow_kinds = tuple(allow_kinds)
        self._histories: dict[str, RecordedHistory] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, name: str) -> RecordedHistory:
        """All of an execution, found as by `find_execution`. Raises ExecutionUnknown, HistoryUnreadable.

        Who opens an execution asks several things at once: the first reads it, the others have it then.
        """
        turn = self._turns.setdefault(name, asyncio.Lock())
        async with turn:
            return await self._read(name)

    async def _read(self, name: str) -> RecordedHistory:
        record = await find_execution(self._store, name)
        known = self._histories.pop(record.execution_id, None)
        source = await self._source_of(record)
        if known is None or known.record.playbook != record.playbook:
            document = await _read_document(source, record)
            plan = _plan_of(document, self._allow_kinds)
            events, cuts = (known.events, known.cuts) if known else ([], [])
            known = RecordedHistory(record, plan, events, cuts, document)
        history = await self._with_new_events(known, record, source)
        request_event_of(history.events)
        self._keep(history)
        return history

    async def _source_of(self, record: ExecutionRecord) -> Store:
        replica = self._replica
        if replica is not None and await replica.execution(record.execution_id) == record:
            return replica
        return self._store

    async def _with_new_events(
        self, known: RecordedHistory, record: ExecutionRecord, source: Store
    ) -> RecordedHistory:
        """Others may still look at the history that is known: it is left as it is."""
        events, cuts = known.events, known.cuts
        if record.version > len(events):
            events, cuts = events.copy(), cuts.copy()
            async for rows in row_pages(source, record.execution_id, after=len(events)):
                events += await asyncio.to_thread(decode_rows, record.execution_id, rows)
                cuts += [row.seq for row in rows if row.last]
        return RecordedHistory(record, known.plan, events, cuts, known.document)

    def _keep(self, history: RecordedHistory) -> None:
        """The one that was not looked at for the longest time goes first."""
        self._histories[history.record.execution_id] = history
        while len(self._histories) > KEPT_HISTORIES or (
            len(self._histories) > 1
            and sum(len(known.events) for known in self._histories.values()) > KEPT_EVENTS
        ):
            del self._histories[next(iter(self._histories))]
