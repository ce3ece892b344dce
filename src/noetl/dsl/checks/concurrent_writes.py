"""Steps that write one path of `ctx` and may run at the same time.

Two tokens of one fork move independently, until a join takes both. A join of mode `all` runs only
when no other token can still reach it; one of another mode absorbs a token that comes after it ran.
The pairs of places that two tokens can be at are found row by row: a row is a set of places as bits.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from noetl.dsl.checks.flow.guard_verdicts import StepRoutes, possible_events, step_routes
from noetl.dsl.checks.flow.name_sources import PathBits, step_writes
from noetl.dsl.checks.unset_names import LIMIT, is_incomplete
from noetl.dsl.document.context import DocumentContext
from noetl.dsl.document.playbook import Arc, Playbook, Position, Step
from noetl.dsl.document.step_graph import ancestor_masks, forward_order, reverse_edges
from noetl.expr.analysis.exclusion import mutually_exclusive
from noetl.expr.expression import Expression
from noetl.expr.use import Path

_ORDER_FREE = frozenset({"count", "max", "min", "sum", "union"})
"""Reducers that give the same whichever contribution comes first."""

_COMPARED = 64
"""Arcs of one router whose guards are compared; of more, all are taken to fire together."""


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


class TokenFork(NamedTuple):
    """A step with arcs that may fire together: their targets, and for each arc the others as bits."""

    step: int
    targets: tuple[int, ...]
    together: tuple[int, ...]


class TokenNet(NamedTuple):
    """Steps by index; a join has a second place, where its tokens wait.

    `ancestors` are the places that each can be reached from, as bits; forks stand in forward order.
    """

    successors: list[list[int]]
    ancestors: list[int]
    order: list[int]
    forks: tuple[TokenFork, ...]


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


def token_net(playbook: Playbook, *, precise: bool) -> TokenNet:
    """The net for tokens. Without `precise` guards are not compared: more arcs fire together, faster."""
    number = {step.name: index for index, step in enumerate(playbook.workflow)}
    successors: list[list[int]] = [[] for _ in playbook.workflow]
    enter = dict(number)
    for step in playbook.workflow:
        if step.join is not None:
            enter[step.name] = len(successors)
            successors.append([number[step.name]])
    forks: dict[int, TokenFork] = {}
    for index, step in enumerate(playbook.workflow):
        arcs = _possible_arcs(step, step_routes(step), enter)
        successors[index] = [enter[arc.step] for arc in arcs]
        together = () if step.is_exclusive else _together(step, arcs, precise=precise)
        if any(together):
            forks[index] = TokenFork(index, tuple(successors[index]), together)
    order = forward_order(successors, number[playbook.entry])
    ordered = tuple(forks[node] for node in order if node in forks)
    return TokenNet(successors, ancestor_masks(successors) if ordered else [], order, ordered)


def _possible_arcs(step: Step, routes: StepRoutes, enter: dict[str, int]) -> list[Arc]:
    taken = {choice.arc for choices in routes for choice in choices}
    return [arc for index, arc in enumerate(step.arcs) if index in taken and arc.step in enter]


def _together(step: Step, arcs: Sequence[Arc], *, precise: bool) -> tuple[int, ...]:
    """For each arc the others that may fire on the same event."""
    events = [possible_events(arc.when, step) for arc in arcs]
    on_event: dict[str, int] = {}
    for index, names in enumerate(events):
        for name in names:
            on_event[name] = on_event.get(name, 0) | 1 << index
    masks = []
    for index, names in enumerate(events):
        mask = 0
        for name in names:
            mask |= on_event[name]
        masks.append(mask & ~(1 << index))
    # Comparing guards in pairs is the costly part, and only makes the masks smaller.
    if precise and len(arcs) <= _COMPARED:
        guarded = [(index, arc.when) for index, arc in enumerate(arcs) if isinstance(arc.when, Expression)]
        for (index, guard), (other_index, other_guard) in combinations(guarded, 2):
            if mutually_exclusive(guard, other_guard):
                masks[index] &= ~(1 << other_index)
                masks[other_index] &= ~(1 << index)
    return tuple(masks)


def overlapping_steps(playbook: Playbook, net: TokenNet) -> list[int]:
    """For each step the steps that may run while it does, as bits."""
    rows = [0] * len(net.successors)
    if not net.forks:
        return rows[: len(playbook.workflow)]
    for fork in net.forks:
        _place_tokens(rows, fork)
    blocked = _blocking_nodes(playbook, net)
    # `_move_tokens` moves the token of the row alone; mirrored, the pairs let the other one move.
    while True:
        _move_tokens(rows, net, blocked)
        mirrored = _transpose(rows)
        if mirrored == rows:
            break
        rows = [row | column for row, column in zip(rows, mirrored, strict=True)]
    steps = len(playbook.workflow)
    return [row & ((1 << steps) - 1) for row in rows[:steps]]


def _place_tokens(rows: list[int], fork: TokenFork) -> None:
    """Puts a token at the target of each arc, beside those of the arcs that fire with it."""
    counts: dict[int, Counter[int]] = {}
    masks: dict[int, int] = {}
    for index, target in enumerate(fork.targets):
        arcs = fork.together[index] | 1 << index
        if arcs not in counts:
            counts[arcs] = Counter(
                to for other_index, to in enumerate(fork.targets) if arcs >> other_index & 1
            )
            masks[arcs] = sum(1 << to for to in counts[arcs])
        alone = counts[arcs][target] == 1
        rows[target] |= masks[arcs] & ~(1 << target) if alone else masks[arcs]


def _blocking_nodes(playbook: Playbook, net: TokenNet) -> dict[int, int]:
    """For each join the places of another token that keep it from running."""
    joins = {index: step.join for index, step in enumerate(playbook.workflow) if step.join is not None}
    if not joins:
        return {}
    behind = ancestor_masks(reverse_edges(net.successors))
    return {
        index: net.ancestors[index] if join.mode == "all" else behind[index] for index, join in joins.items()
    }


def _move_tokens(rows: list[int], net: TokenNet, blocked: dict[int, int]) -> None:
    """Lets one of two tokens move as far as it can while the other stays."""
    changed = True
    while changed:
        changed = False
        # In forward order one round does for a net without cycles, and the second finds nothing to do.
        for node in net.order:
            if not rows[node]:
                continue
            for target in net.successors[node]:
                row = rows[target] | (rows[node] & ~blocked.get(target, 0))
                if row != rows[target]:
                    rows[target] = row
                    changed = True


def _transpose(rows: Sequence[int]) -> list[int]:
    """Rows and columns exchanged."""
    # As text, where `zip` and `int` do the work in C: equal to setting each bit by itself, in a twentieth
    # of the time at 2,000 steps.
    lines = [format(row, f"0{len(rows)}b") for row in reversed(rows)]
    return [int("".join(column), 2) for column in zip(*lines, strict=True)][::-1]
