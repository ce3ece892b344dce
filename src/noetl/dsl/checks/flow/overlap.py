"""Which steps may run at the same time.

Two tokens of one fork move independently, until a join takes both. A join of mode `all` runs only
when no other token can still reach it; one of another mode absorbs a token that comes after it ran.
The pairs of places that two tokens can be at are found row by row: a row is a set of places as bits.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from noetl.dsl.checks.flow.step_routes import StepRoutes, step_routes
from noetl.dsl.document.guard_verdicts import possible_events
from noetl.dsl.document.playbook import Arc, Playbook, Step
from noetl.dsl.document.step_graph import ancestor_masks, forward_order, reverse_edges
from noetl.expr.analysis.exclusion import mutually_exclusive
from noetl.expr.expression import Expression

_COMPARED = 64
"""Arcs of one router whose guards are compared; of more, all are taken to fire together."""


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
