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
    position: Position
    reducer: str


class ConcurrentWrite(NamedTuple):
    """Two steps by index that may write at once; the same one twice if several runs of it may."""

    write: ContextWrite
    first: int
    second: int


def check_concurrent_writes(playbook: Playbook, context: DocumentContext) -> None:
    """Each step whose writes may meet those of another, or of another run of its own."""
    if is_incomplete(context) or all(step.is_exclusive for step in playbook.workflow):
        return
    written = [tuple(_context_writes(step)) for step in playbook.workflow]
    if not any(written):
        return
    # Without `precise` more arcs fire together, never fewer: where the quick look finds no conflict there
    # is none, and no two guards need be compared.
    net = token_net(playbook, precise=False)
    conflicts = _concurrent_writes(playbook, net, written)
    if conflicts and (precise_net := token_net(playbook, precise=True)) != net:
        net = precise_net
        conflicts = _concurrent_writes(playbook, net, written)
    for conflict in conflicts:
        message, hint = _describe_conflict(playbook, net, conflict)
        context.report("concurrent-write", conflict.write.position, message, hint)


def _concurrent_writes(
    playbook: Playbook, net: TokenNet, written: Sequence[Sequence[ContextWrite]]
) -> list[ConcurrentWrite]:
    """For each write the first step before it in the document, or itself, that may write at once."""
    if not net.forks:
        return []
    conflicts: list[ConcurrentWrite] = []
    writers = _writers(written)
    overlaps = overlapping_steps(playbook, net)
    for index, writes in enumerate(written):
        for write in writes:
            overlapping = overlaps[index] & _writers_of(write, writers) & ((2 << index) - 1)
            if overlapping:
                other_writers = overlapping & ~(1 << index)
                conflicts.append(
                    ConcurrentWrite(
                        write,
                        (other_writers & -other_writers).bit_length() - 1 if other_writers else index,
                        index,
                    )
                )
    return conflicts[:LIMIT]


def _context_writes(step: Step) -> Iterator[ContextWrite]:
    seen_paths: set[Path] = set()
    for write in step_writes(step):
        if write.scope == "ctx" and write.path not in seen_paths:
            seen_paths.add(write.path)
            reducer = step.loop.reduce.get(f"ctx.{write.path[0]}", "") if step.loop else ""
            yield ContextWrite(write.path, write.position, reducer if reducer in _ORDER_FREE else "")


def _writers(written: Sequence[Sequence[ContextWrite]]) -> dict[str, PathBits]:
    """The steps that write each path, by reducer."""
    writers: dict[str, PathBits] = {}
    for index, writes in enumerate(written):
        for write in writes:
            writers.setdefault(write.reducer, PathBits()).add(write.path, 1 << index)
    return writers


def _writers_of(write: ContextWrite, writers: dict[str, PathBits]) -> int:
    mask = 0
    for reducer, paths in writers.items():
        if not reducer or reducer != write.reducer:
            mask |= paths.set_by(write.path)
    return mask


def _describe_conflict(playbook: Playbook, net: TokenNet, conflict: ConcurrentWrite) -> tuple[str, str]:
    first, second = playbook.workflow[conflict.first], playbook.workflow[conflict.second]
    path = ".".join(("ctx", *conflict.write.path))
    fork = _common_fork(net, conflict)
    origin = f" after `{playbook.workflow[fork.step].name}`" if fork else ""
    if first is second:
        message = f"`{path}` is written by several runs of `{first.name}` at once{origin}"
        return message, f"give `{first.name}` `spec.policy.join: all`, or write it elsewhere"
    message = (
        f"`{path}` is written by `{first.name}` and `{second.name}`, which may run at the same time{origin}"
    )
    return message, "write different paths, or one step after the other"


def _common_fork(net: TokenNet, conflict: ConcurrentWrite) -> TokenFork | None:
    """The last fork that both come from."""
    first_ancestors, second_ancestors = net.ancestors[conflict.first], net.ancestors[conflict.second]
    for fork in reversed(net.forks):
        to_second = 0
        for index, target in enumerate(fork.targets):
            to_second |= (second_ancestors >> target & 1) << index
        for target, together in zip(fork.targets, fork.together, strict=True):
            if first_ancestors >> target & 1 and together & to_second:
                return fork
    return None
