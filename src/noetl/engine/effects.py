"""What events change in the facts that a store keeps about an execution."""

from collections.abc import Callable
from typing import Any

from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.codec import decode
from noetl.events.event_kind import EVENT_KINDS
from noetl.ports.store import NO_EFFECTS, Effects, Row


def effects_of(ts: int, body: EventBody) -> Effects:
    """A function of the event alone, so that a store can be rebuilt from its rows."""
    effects = _EFFECTS.get(type(body))
    return effects(ts, body) if effects is not None else NO_EFFECTS


def effects_of_row(row: Row) -> Effects:
    """The same for a stored row: what `Store.check` and `Store.rebuild` want."""
    # Most rows change no fact: their bodies are not decoded.
    if row.kind not in _EFFECT_KINDS:
        return NO_EFFECTS
    return effects_of(row.ts, decode(row.kind, row.body, row.version))


def _requested(_: int, body: of.PlaybookExecutionRequested) -> Effects:
    parent = body.parent.execution_id if body.parent is not None else ""
    return Effects(status="running", path=body.path, playbook=body.hash, labels=body.labels, parent=parent)


def _processed(ts: int, body: of.PlaybookProcessed) -> Effects:
    return Effects(status=body.status, ended_at=ts)


def _paused(_ts: int, _body: of.ExecutionPaused) -> Effects:
    return Effects(status="paused")


def _forked(ts: int, body: of.ExecutionForked) -> Effects:
    # Nobody waits for it: what was copied may have been the child of a task, this is not.
    return Effects(
        started_at=ts,
        status="running",
        ended_at=0,
        playbook=body.hash or None,
        parent="",
        forked_from=body.source,
    )


def _retried(_: int, body: of.ExecutionRetried) -> Effects:
    return Effects(status="running", ended_at=0, playbook=body.hash or None)


def _running(_ts: int, _body: EventBody) -> Effects:
    return Effects(status="running", ended_at=0)


_EFFECTS: dict[type[EventBody], Callable[[int, Any], Effects]] = {
    of.PlaybookExecutionRequested: _requested,
    of.PlaybookProcessed: _processed,
    of.ExecutionForked: _forked,
    of.ExecutionPaused: _paused,
    of.ExecutionResumed: _running,
    of.ExecutionRetried: _retried,
    of.CancelRequested: _running,
}
EFFECT_BODIES = frozenset(_EFFECTS)
"""The events that change a fact at all."""
_EFFECT_KINDS = frozenset(kind.number for kind in EVENT_KINDS if kind.body in EFFECT_BODIES)
