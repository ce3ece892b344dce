"""The store as a server uses it: histories in, states out."""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from noetl.events.bodies import ParentTask, PlaybookExecutionRequested
from noetl.events.codec import FORMAT, decode, encode
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import STATE_FORMAT, ExecutionState, new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.replay import dump_state, load_state
from noetl.ports.store import Append, Committed, Effects, ExecutionQuery, OutboxMessage, Row, Snapshot, Store
from noetl.testing.simulator.simulated_effects import ExecutionMessage

T = TypeVar("T")


def call_inline(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a call that never waits, as those of a store in memory.

    No event loop: it would cost more than the call, and the order of things is the seed's alone.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]  # StopIteration is not generic
    raise AssertionError("a store in memory made its caller wait")


def event_of_row(row: Row) -> Event:
    return Event(row.seq, row.ts, decode(row.kind, row.body, row.version))


def event_rows(events: Sequence[Event]) -> list[Row]:
    last = events[-1].seq
    return [
        Row(
            event.seq,
            event.ts,
            kind_of_body(event.body).number,
            FORMAT,
            encode(event.body),
            event.seq == last,
        )
        for event in events
    ]


class Archive:
    """`plans` are those of the playbooks that the store holds, by hash."""

    def __init__(self, store: Store, plans: Mapping[str, Plan]) -> None:
        self.store = store
        self.plans = plans

    def events(self, execution_id: str, after: int = 0) -> list[Event]:
        events: list[Event] = []
        while rows := call_inline(self.store.read(execution_id, after=after)):
            events += map(event_of_row, rows)
            after = rows[-1].seq
        return events

    def load(self, execution_id: str) -> ExecutionState | None:
        """The state from the last snapshot and the events after it; None if there is no such execution."""
        record = call_inline(self.store.execution(execution_id))
        if record is None:
            return None
        plan = self.plans[record.playbook]
        snapshot = call_inline(self.store.snapshot(execution_id, state_format=STATE_FORMAT))
        if snapshot is None:
            return self.catch_up(new_state(plan, execution_id))
        state = load_state(plan, msgspec.json.decode(snapshot.body))
        for event in self.events(execution_id, snapshot.seq):
            evolve(state, event)
        return state

    def catch_up(self, state: ExecutionState) -> ExecutionState:
        """Fold what others have written meanwhile."""
        for event in self.events(state.execution_id, state.version):
            evolve(state, event)
        return state

    def commit(self, execution_id: str, events: Sequence[Event], effects: Effects) -> bool:
        """False if somebody else was faster."""
        append = Append(
            execution_id=execution_id,
            expected_version=events[0].seq - 1,
            rows=event_rows(events),
            effects=effects,
        )
        (verdict,) = call_inline(self.store.commit([append]))
        return isinstance(verdict, Committed)

    def save_snapshot(self, state: ExecutionState) -> None:
        body = msgspec.json.encode(dump_state(state))
        call_inline(self.store.put_snapshot(state.execution_id, Snapshot(state.version, STATE_FORMAT, body)))

    def parent(self, execution_id: str) -> ParentTask | None:
        """Who started this execution, as its first event says."""
        rows = call_inline(self.store.read(execution_id, limit=1))
        body = event_of_row(rows[0]).body if rows else None
        return body.parent if isinstance(body, PlaybookExecutionRequested) else None

    def open_executions(self) -> list[str]:
        page = call_inline(self.store.executions(ExecutionQuery(status=("running", "paused"))))
        return [record.execution_id for record in page.executions]

    def outbox(self) -> list[tuple[ExecutionMessage, OutboxMessage]]:
        """What executions want of each other, with the message to mark as sent."""
        messages = call_inline(self.store.outbox())
        return [(msgspec.json.decode(message.body, type=ExecutionMessage), message) for message in messages]
