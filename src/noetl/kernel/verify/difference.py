"""A difference between a history and what is decided now, as people read it."""

from typing import Any

from msgspec import Struct

from noetl.events.bodies import EventBody
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.event_position import position_of_event, step_of_event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.truncate import truncate_value
from noetl.kernel.verify.comparison import BodyGap, body_gaps, path_text


class Difference(Struct, frozen=True, kw_only=True):
    """An event that would not be recorded like this. `what` is the place in it, empty for all of it.

    `decided` is what stands there now; where `what` is empty, the event that belongs there, or None.
    """

    seq: int
    event: str
    what: str = ""
    recorded: Any = None
    decided: Any = None
    why: str
    step: str = ""
    line: int | None = None
    column: int | None = None


def difference_in_gap(state: ExecutionState, event: Event, gap: BodyGap, why: str) -> Difference:
    """One place in an event says something else."""
    step = step_of_event(state, event.body)
    position = position_of_event(state, event.body, gap.path)
    return Difference(
        seq=event.seq,
        event=kind_of_body(event.body).name,
        what=path_text(gap.path),
        recorded=truncate_value(gap.recorded),
        decided=truncate_value(gap.decided),
        why=why,
        step=step.name if step is not None else "",
        line=position.line if position is not None else None,
        column=position.column if position is not None else None,
    )


def difference_of_event(
    state: ExecutionState, event: Event, why: str, instead: EventBody | None = None
) -> Difference:
    """The whole event does not belong here."""
    name = kind_of_body(event.body).name
    gap = BodyGap((), name, kind_of_body(instead).name if instead is not None else None)
    return difference_in_gap(state, event, gap, why)


def first_difference(state: ExecutionState, event: Event, decided: EventBody, why: str) -> Difference | None:
    """The first place in which they differ; None if what is left only stands for values."""
    if type(event.body) is not type(decided):
        return difference_of_event(state, event, why, decided)
    gap = next(body_gaps(event.body, decided), None)
    return difference_in_gap(state, event, gap, why) if gap is not None else None
