"""States from the store: the newest snapshot, and what came after it."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from noetl.events.codec import decode
from noetl.events.event import Event
from noetl.kernel import ExecutionState, Plan, WrongSequence, evolve, load, new_state
from noetl.kernel.state import STATE_FORMAT
from noetl.ports.store import Row, Store

PAGE = 5_000


def event_of(row: Row) -> Event:
    return Event(row.seq, row.ts, decode(row.kind, row.body, row.version))


async def events_after(store: Store, execution_id: str, seq: int) -> AsyncIterator[Event]:
    """The events above `seq`, read in pages. Raises EventUnreadable."""
    while True:
        rows = await store.read(execution_id, after=seq, limit=PAGE)
        for row in rows:
            yield event_of(row)
        if len(rows) < PAGE:
            return
        seq = rows[-1].seq


async def read_state(store: Store, plan: Plan, execution_id: str, at: int | None = None) -> ExecutionState:
    """The state now, or after event `at`."""
    state = await _snapshot(store, plan, execution_id, at) or new_state(plan, execution_id)
    async for event in events_after(store, execution_id, state.version):
        if at is not None and event.seq > at:
            break
        evolve(state, event)
    return state


async def _snapshot(store: Store, plan: Plan, execution_id: str, at: int | None) -> ExecutionState | None:
    found = await store.snapshot(execution_id, state_format=STATE_FORMAT, at=at)
    if found is None:
        return None
    try:
        data: dict[str, Any] = msgspec.json.decode(found.body)
        return load(plan, data)
    except (WrongSequence, msgspec.DecodeError, msgspec.ValidationError, KeyError):
        return None  # of another release or playbook: folding gives the same, only later
