"""Steps that write one path of `ctx` and may run at the same time."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from noetl.dsl.checks.flow.overlap import TokenFork, TokenNet, overlapping_steps, token_net
from noetl.dsl.checks.flow.path_sets import Path, PathBits
from noetl.dsl.checks.flow.rule_effects import step_writes
from noetl.dsl.checks.unset_names import LIMIT, is_incomplete
from noetl.dsl.document.context import DocumentContext
from noetl.dsl.document.playbook import Playbook, Position, Step

_ORDER_FREE = frozenset({"count", "max", "min", "sum", "union"})
"""Reducers that give the same whichever contribution comes first."""


class ContextWrite(NamedTuple):
    """The first write of a path in a step. `reducer` is set if it does not mind company of its kind."""

    path: Path
    place: Position
    reducer: str


class ConcurrentWrite(NamedTuple):
    """Two steps by position that may write at once; the same one twice if several runs of it may."""

    write: ContextWrite
    one: int
    other: int


def check_concurrent_writes(playbook: Playbook, context: DocumentContext) -> None:
    """Each step whose writes may meet those of another, or of another run of its own."""
    if is_incomplete(context) or all(step.is_exclusive for step in playbook.workflow):
        return
    written = [tuple(_written(step)) for step in playbook.workflow]
    if not any(written):
        return
    places = token_net(playbook, precise=False)
    meetings = _meetings(playbook, places, written)
    if meetings and (precise := token_net(playbook, precise=True)) != places:
        places = precise
        meetings = _meetings(playbook, places, written)
    for meeting in meetings:
        message, hint = _explained(playbook, places, meeting)
        context.report("concurrent-write", meeting.write.place, message, hint)


def _meetings(
    playbook: Playbook, places: TokenNet, written: Sequence[Sequence[ContextWrite]]
) -> list[ConcurrentWrite]:
    """For each write the first step before it in the document, or itself, that may write at once."""
    if not places.forks:
        return []
    found: list[ConcurrentWrite] = []
    writers = _writers(written)
    rows = overlapping_steps(playbook, places)
    for at, writes in enumerate(written):
        for write in writes:
            meeting = rows[at] & _overlapping(write, writers) & ((2 << at) - 1)
            if meeting:
                others = meeting & ~(1 << at)
                found.append(
                    ConcurrentWrite(write, (others & -others).bit_length() - 1 if others else at, at)
                )
    return found[:LIMIT]


def _written(step: Step) -> Iterator[ContextWrite]:
    seen: set[Path] = set()
    for write in step_writes(step):
        if write.scope == "ctx" and write.path not in seen:
            seen.add(write.path)
            reducer = step.loop.reduce.get(f"ctx.{write.path[0]}", "") if step.loop else ""
            yield ContextWrite(write.path, write.position, reducer if reducer in _ORDER_FREE else "")


def _writers(written: Sequence[Sequence[ContextWrite]]) -> dict[str, PathBits]:
    """The steps that write each path, by reducer."""
    writers: dict[str, PathBits] = {}
    for at, writes in enumerate(written):
        for write in writes:
            writers.setdefault(write.reducer, PathBits()).add(write.path, 1 << at)
    return writers


def _overlapping(write: ContextWrite, writers: dict[str, PathBits]) -> int:
    mask = 0
    for reducer, paths in writers.items():
        if not reducer or reducer != write.reducer:
            mask |= paths.set_by(write.path)
    return mask


def _explained(playbook: Playbook, places: TokenNet, meeting: ConcurrentWrite) -> tuple[str, str]:
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


def _common_fork(places: TokenNet, meeting: ConcurrentWrite) -> TokenFork | None:
    """The last fork that both come from."""
    one, other = places.ancestors[meeting.one], places.ancestors[meeting.other]
    for fork in reversed(places.forks):
        to_other = 0
        for at, target in enumerate(fork.targets):
            to_other |= (other >> target & 1) << at
        for target, together in zip(fork.targets, fork.together, strict=True):
            if one >> target & 1 and together & to_other:
                return fork
    return None
