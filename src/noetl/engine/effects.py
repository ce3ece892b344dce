"""What events change in what a store keeps about an execution: facts, and rows of runs and timers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.codec import decode
from noetl.events.event import Event
from noetl.events.event_kind import EVENT_KINDS
from noetl.kernel.derived_rows import NO_ROWS, UnitRows, all_rows, touched_units, unit_rows
from noetl.kernel.state.execution_state import ExecutionState
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
    return Effects(
        status="running",
        path=body.path,
        playbook=body.hash,
        labels=body.labels,
        parent=parent,
        priority=body.priority,
    )


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


def _retried(_: int, body: of.ExecutionRetried | of.IterationsRedriven) -> Effects:
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
    of.IterationsRedriven: _retried,
    of.CancelRequested: _running,
}
EFFECT_BODIES = frozenset(_EFFECTS)
"""The events that change a fact at all."""
_EFFECT_KINDS = frozenset(kind.number for kind in EVENT_KINDS if kind.body in EFFECT_BODIES)


def row_changes(state: ExecutionState, events: Sequence[Event], rows: dict[str, UnitRows]) -> Effects:
    """What leads from these rows, by unit, to those of the state after the events; `rows` are these then."""
    units = touched_units(events)
    if units is None:
        units = {*rows, "", *state.tokens, *state.runs}
    before: list[UnitRows] = []
    after: list[UnitRows] = []
    for unit in units:
        old, new = rows.get(unit, NO_ROWS), unit_rows(state, unit)
        if old == new:
            continue
        before.append(old)
        after.append(new)
        if new is NO_ROWS:
            del rows[unit]
        else:
            rows[unit] = new
    if not after:
        return NO_EFFECTS
    return Effects(
        ready=_changes([unit.ready for unit in before], [unit.ready for unit in after]),
        leases=_changes([unit.leases for unit in before], [unit.leases for unit in after]),
        timers=_changes([unit.timers for unit in before], [unit.timers for unit in after]),
    )


def _changes(before: Iterable[Mapping[str, Any]], after: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    old = {key: row for rows in before if rows for key, row in rows.items()}
    new = {key: row for rows in after if rows for key, row in rows.items()}
    if not old:
        return new
    return {
        **{key: None for key in old if key not in new},
        **{key: row for key, row in new.items() if old.get(key) != row},
    }


def rows_as_effects(state: ExecutionState) -> Effects:
    """All rows of an execution, as `Store.put_rows` wants them."""
    units = all_rows(state).values()
    return Effects(
        ready=_changes([], [unit.ready for unit in units]),
        leases=_changes([], [unit.leases for unit in units]),
        timers=_changes([], [unit.timers for unit in units]),
        served=True,
    )
