"""Steps that write one path of `ctx` and may run at the same time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from noetl.dsl.checks.flow.overlap import Fork, Places, overlaps, places_of
from noetl.dsl.checks.flow.path_sets import Path, Wanted
from noetl.dsl.checks.flow.rule_effects import writes_of
from noetl.dsl.checks.unset_names import LIMIT, is_incomplete
from noetl.dsl.document.playbook import Place, Playbook, Step
from noetl.dsl.reader.reader_context import Context

_ORDER_FREE = frozenset({"count", "max", "min", "sum", "union"})
"""Reducers that give the same whichever contribution comes first."""


class Written(NamedTuple):
    """The first write of a path in a step. `reducer` is set if it does not mind company of its kind."""

    path: Path
    place: Place
    reducer: str


class Meeting(NamedTuple):
    """Two steps by position that may write at once; the same one twice if several runs of it may."""

    write: Written
    one: int
    other: int


def check_concurrent_writes(playbook: Playbook, context: Context) -> None:
    """Each step whose writes may meet those of another, or of another run of its own."""
    if is_incomplete(context) or all(step.exclusive for step in playbook.workflow):
        return
    written = [tuple(_written(step)) for step in playbook.workflow]
    if not any(written):
        return
    places = places_of(playbook, precise=False)
    meetings = _meetings(playbook, places, written)
    if meetings and (precise := places_of(playbook, precise=True)) != places:
        places = precise
        meetings = _meetings(playbook, places, written)
    for meeting in meetings:
        message, hint = _explained(playbook, places, meeting)
        context.report("concurrent-write", meeting.write.place, message, hint)


def _meetings(playbook: Playbook, places: Places, written: Sequence[Sequence[Written]]) -> list[Meeting]:
    """For each write the first step before it in the document, or itself, that may write at once."""
    if not places.forks:
        return []
    found: list[Meeting] = []
    writers = _writers(written)
    rows = overlaps(playbook, places)
    for at, writes in enumerate(written):
        for write in writes:
            meeting = rows[at] & _overlapping(write, writers) & ((2 << at) - 1)
            if meeting:
                others = meeting & ~(1 << at)
                found.append(Meeting(write, (others & -others).bit_length() - 1 if others else at, at))
    return found[:LIMIT]


def _written(step: Step) -> Iterator[Written]:
    seen: set[Path] = set()
    for write in writes_of(step):
        if write.scope == "ctx" and write.path not in seen:
            seen.add(write.path)
            reducer = step.loop.reduce.get(f"ctx.{write.path[0]}", "") if step.loop else ""
            yield Written(write.path, write.place, reducer if reducer in _ORDER_FREE else "")


def _writers(written: Sequence[Sequence[Written]]) -> dict[str, Wanted]:
    """The steps that write each path, by reducer."""
    writers: dict[str, Wanted] = {}
    for at, writes in enumerate(written):
        for write in writes:
            writers.setdefault(write.reducer, Wanted()).add(write.path, 1 << at)
    return writers


def _overlapping(write: Written, writers: dict[str, Wanted]) -> int:
    mask = 0
    for reducer, paths in writers.items():
        if not reducer or reducer != write.reducer:
            mask |= paths.set_by(write.path)
    return mask


def _explained(playbook: Playbook, places: Places, meeting: Meeting) -> tuple[str, str]:
    one, other = playbook.workflow[meeting.one], playbook.workflow[meeting.other]
    path = ".".join(("ctx", *meeting.write.path))
    fork = _common_fork(places, meeting)
    origin = f" after `{playbook.workflow[fork.step].name}`" if fork else ""
    if one is other:
        message = f"`{path}` is written by several runs of `{one.name}` at once{origin}"
        return message, f"give `{one.name}` `spec.policy.join: all`, or write it elsewhere"
    message = (
        f"`{path}` is written by `{one.name}` and `{other.name}`, which may run at the same time{origin}"
    )
    return message, "write different paths, or one step after the other"


def _common_fork(places: Places, meeting: Meeting) -> Fork | None:
    """The last fork that both come from."""
    one, other = places.before[meeting.one], places.before[meeting.other]
    for fork in reversed(places.forks):
        to_other = 0
        for at, target in enumerate(fork.targets):
            to_other |= (other >> target & 1) << at
        for target, together in zip(fork.targets, fork.together, strict=True):
            if one >> target & 1 and together & to_other:
                return fork
    return None
