"""What events change in the facts that a store keeps about an execution."""

from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.codec import decode
from noetl.events.event_kind import EVENT_KINDS
from noetl.ports.store import NO_EFFECTS, Effects, Row


def effects_of(ts: int, body: EventBody) -> Effects:
    """A function of the event alone, so that a store can be rebuilt from its rows."""
    if type(body) not in TELLING:
        return NO_EFFECTS
    match body:
        case of.PlaybookExecutionRequested():
            parent = body.parent.execution_id if body.parent is not None else ""
            return Effects(
                status="running", path=body.path, playbook=body.hash, labels=body.labels, parent=parent
            )
        case of.PlaybookProcessed():
            return Effects(status=body.status, ended_at=ts)
        case of.ExecutionPaused():
            return Effects(status="paused")
        case of.ExecutionForked():
            return Effects(status="running", ended_at=0, playbook=body.hash or None)
        case of.ExecutionResumed() | of.ExecutionRetried() | of.CancelRequested():
            return Effects(status="running", ended_at=0)
        case _:
            return NO_EFFECTS


def effects_of_row(row: Row) -> Effects:
    """The same for a stored row: what `Store.check` and `Store.rebuild` want."""
    if row.kind not in _NUMBERS:
        return NO_EFFECTS
    return effects_of(row.ts, decode(row.kind, row.body, row.version))


TELLING: frozenset[type] = frozenset(
    {
        of.PlaybookExecutionRequested,
        of.PlaybookProcessed,
        of.ExecutionForked,
        of.ExecutionPaused,
        of.ExecutionResumed,
        of.ExecutionRetried,
        of.CancelRequested,
    }
)
_NUMBERS = frozenset(kind.number for kind in EVENT_KINDS if kind.body in TELLING)
