"""How a recorded event and one that is decided again differ, and that difference as people read it."""

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import msgspec
from msgspec import Struct

from noetl.events.bodies import EventBody
from noetl.events.event import Event
from noetl.events.event_kind import kind_of_body
from noetl.kernel.event_position import position_of_event, step_of_event
from noetl.kernel.expression_reads import truncate_value
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.reference import MARKER, MARKER_BYTES, STORED_FIELDS

Path: TypeAlias = tuple[str | int, ...]

# Keys sorted, so that the order of a mapping is no difference; as bytes, 1, 1.0 and true are not equal.
_EXACT = msgspec.json.Encoder(order="sorted")
_CLOCKED = ("retry_at", "until")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


class BodyGap(NamedTuple):
    """A place in a body that says something else."""

    path: Path
    recorded: Any
    decided: Any


def same_body(recorded: EventBody, decided: EventBody | None) -> bool:
    """Whether both would be stored as the same; 1, 1.0 and true are not."""
    if type(recorded) is not type(decided):
        return False
    before, after = _EXACT.encode(recorded), _EXACT.encode(decided)
    if before == after or MARKER_BYTES not in before:
        return before == after
    return _without_stored_fields(before) == _without_stored_fields(after)


def _without_stored_fields(data: bytes) -> bytes:
    """A body whose references are as those of older releases: both fields follow from the key."""

    def strip(value: Any) -> Any:
        if isinstance(value, dict):
            apart = STORED_FIELDS if value.get(MARKER) in ("ref", "manifest") else ()
            return {key: strip(item) for key, item in value.items() if key not in apart}
        return [strip(item) for item in value] if isinstance(value, list) else value

    return _EXACT.encode(strip(msgspec.json.decode(data)))


def bodies_differ(recorded: EventBody, decided: EventBody | None) -> bool:
    """Whether they say different things, apart from what only stands for a value."""
    return type(recorded) is not type(decided) or next(body_gaps(recorded, decided), None) is not None


def body_gaps(recorded: EventBody, decided: EventBody | None) -> Iterator[BodyGap]:
    """Where two bodies of one kind differ, in the order of their fields.

    What only stands for a value, such as a reference, is not compared.
    """
    for name in recorded.__struct_fields__:
        yield from _value_gaps(_plain(getattr(recorded, name)), _plain(getattr(decided, name)), (name,))


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, str_keys=True)


def _value_gaps(recorded: Any, decided: Any, path: Path) -> Iterator[BodyGap]:
    if isinstance(recorded, dict) and isinstance(decided, dict):
        if recorded.get(MARKER) or decided.get(MARKER):
            return
        for key in dict.fromkeys((*recorded, *decided)):
            yield from _value_gaps(recorded.get(key), decided.get(key), (*path, key))
    elif _of_one_length(recorded, decided):
        for index, pair in enumerate(zip(recorded, decided, strict=True)):
            yield from _value_gaps(*pair, (*path, index))
    elif any(isinstance(value, dict) and value.get(MARKER) for value in (recorded, decided)):
        return
    elif type(recorded) is not type(decided) or recorded != decided:
        yield BodyGap(path, recorded, decided)


def _of_one_length(recorded: Any, decided: Any) -> bool:
    sequences = isinstance(recorded, list | tuple) and isinstance(decided, list | tuple)
    return sequences and len(recorded) == len(decided)


def explained_by_clock(gap: BodyGap, spread: Iterable[BodyGap]) -> bool:
    """Whether a difference is that of the clock alone.

    `spread` is what differs between the earliest and the latest time the clock may have shown. A time
    must lie between them; what else came from the clock is taken as it is recorded.
    """
    for wide in spread:
        if gap.path[: len(wide.path)] != wide.path:
            continue
        early, late = _time(wide.recorded, wide.path), _time(wide.decided, wide.path)
        moment = _time(gap.recorded, gap.path)
        return early is None or late is None or (moment is not None and early <= moment <= late)
    return False


def _time(value: Any, path: Path) -> float | None:
    """Microseconds or seconds, if this is a time: of a field that always is one, or as `now()` writes it."""
    if len(path) == 1 and path[0] in _CLOCKED:
        return value if isinstance(value, int) else None
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return datetime.fromisoformat(value).timestamp()
    return None


def _path_text(path: Path) -> str:
    """As people write it: `patches[0].value`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


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
        what=_path_text(gap.path),
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
