"""What a store keeps beside the events: runs that are ready or leased, and the times to wake at.

A *unit* is what such rows belong to: the execution itself (an empty name), a token or a run. An append
changes the rows of the units that its events touch, and of no others.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.events.event_kind import EVENT_KINDS
from noetl.events.identifiers import run_id
from noetl.kernel.net.commands import TimerFired
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_state import RunState, Shard
from noetl.model.run_rows import LeasedRun, ReadyRun
from noetl.model.timestamp import storable_moment


class UnitRows(NamedTuple):
    """The rows of one unit. Their keys are unique in the execution."""

    ready: Mapping[str, ReadyRun] = {}
    leases: Mapping[str, LeasedRun] = {}
    timers: Mapping[str, int] = {}
    """Times in microseconds since 1970."""


NO_ROWS = UnitRows()

_TOUCHING_ALL = frozenset(
    {
        of.ExecutionPaused,
        of.ExecutionResumed,
        of.CancelRequested,
        of.ExecutionRetried,
        of.IterationsRedriven,
        of.IterationsRedriven,
        of.ExecutionForked,
        of.PlaybookProcessed,
    }
)
_TOUCHING_RUN = frozenset(kind.body for kind in EVENT_KINDS if "run" in kind.body.__struct_fields__)
_TOUCHING_TOKEN = frozenset({of.TokenParked, of.TokenAdmitted, of.TokenDiscarded})


def timer_of_key(key: str) -> TimerFired:
    """What a timer with this key says to its execution."""
    target, _, iteration = key.partition("/")
    return TimerFired(target, int(iteration or 0))


def all_rows(state: ExecutionState) -> dict[str, UnitRows]:
    """The rows of each unit that has any."""
    units = {unit: unit_rows(state, unit) for unit in ("", *state.tokens, *state.runs)}
    return {unit: rows for unit, rows in units.items() if rows is not NO_ROWS}


def touched_units(events: Iterable[Event]) -> set[str] | None:
    """The units whose rows may have changed with these events; None for all of them."""
    units: set[str] = set()
    for event in events:
        body: Any = event.body  # whose fields its type says
        kind = type(body)
        if kind in _TOUCHING_RUN:
            units.add(body.run)
        elif kind in _TOUCHING_TOKEN:
            units.add(body.token)
        elif kind is of.StepScheduled:
            units.add(run_id(event.seq))
            units.update(body.tokens)
        elif kind is of.WorkflowStarted:
            units.add("")
        elif kind in _TOUCHING_ALL:
            return None
    return units


def unit_rows(state: ExecutionState, unit: str) -> UnitRows:
    """The rows of a unit as it is now; `NO_ROWS` itself if there are none."""
    if state.over:
        return NO_ROWS
    # Nothing that is stopped wakes by time: its owners say when they are done.
    if not unit:
        due = None if state.stopping else state.deadline
        return NO_ROWS if due is None else UnitRows(timers={"": storable_moment(due)})
    if (token := state.tokens.get(unit)) is not None:
        due = None if state.stopping or token.stage != "waiting" else token.deadline
        return NO_ROWS if due is None else UnitRows(timers={unit: storable_moment(due)})
    run = state.runs.get(unit)
    return NO_ROWS if run is None or run.phase == "ended" else _run_rows(state, run)


def _run_rows(state: ExecutionState, run: RunState) -> UnitRows:
    rows = UnitRows(_ready(state, run), _leases(run), {} if state.stopping else _timers(run))
    return rows if any(rows) else NO_ROWS


def _ready(state: ExecutionState, run: RunState) -> dict[str, ReadyRun]:
    if run.id not in state.ready or state.paused or state.stopping:
        return {}
    row = ready_run(state, run)
    return {f"{run.id}/{start}": row for start in run.ready_shards} if run.sharded else {run.id: row}


def ready_run(state: ExecutionState, run: RunState) -> ReadyRun:
    """What a worker must have to get this run."""
    return ReadyRun(run.step.pool, run.step.kinds, state.priority)


def _leases(run: RunState) -> dict[str, LeasedRun]:
    """Of a run, or of each shard of it that is owned."""
    leases = {}
    for owned in run.owned_parts():
        key = f"{run.id}/{owned.start}" if isinstance(owned, Shard) else run.id
        leases[key] = LeasedRun(owned.session, owned.fence)
    return leases


def _timers(run: RunState) -> dict[str, int]:
    timers = {} if run.deadline is None else {run.id: storable_moment(run.deadline)}
    if run.suspended:
        for frame in run.frames.values():
            if frame.suspension is not None and frame.suspension.until is not None:
                timers[f"{run.id}/{frame.index}"] = storable_moment(frame.suspension.until)
    return timers
