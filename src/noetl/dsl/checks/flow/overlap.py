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
from noetl.expr import Expression, mutually_exclusive

_COMPARED = 64
"""Arcs of one router whose guards are compared; of more, all are taken to fire together."""


class TokenFork(NamedTuple):
    """A step with arcs that may fire together: their targets, and for each arc the others as bits."""

    step: int
    targets: tuple[int, ...]
    together: tuple[int, ...]


class TokenNet(NamedTuple):
    """Steps by position; a join has a second place, where its tokens wait.

    `before` are the places that each can be reached from, as bits; forks stand in forward order.
    """

    successors: list[list[int]]
    ancestors: list[int]
    order: list[int]
    forks: tuple[TokenFork, ...]


def token_net(playbook: Playbook, *, precise: bool) -> TokenNet:
    """The net for tokens. Without `precise` guards are not compared: more arcs fire together, faster."""
    number = {step.name: position for position, step in enumerate(playbook.workflow)}
    after: list[list[int]] = [[] for _ in playbook.workflow]
    enter = dict(number)
    for step in playbook.workflow:
        if step.join is not None:
            enter[step.name] = len(after)
            after.append([number[step.name]])
    forks: dict[int, TokenFork] = {}
    for position, step in enumerate(playbook.workflow):
        arcs = _live_arcs(step, step_routes(step), enter)
        after[position] = [enter[arc.step] for arc in arcs]
        together = () if step.is_exclusive else _together(step, arcs, precise=precise)
        if any(together):
            forks[position] = TokenFork(position, tuple(after[position]), together)
    order = forward_order(after, number[playbook.entry])
    ordered = tuple(forks[place] for place in order if place in forks)
    return TokenNet(after, ancestor_masks(after) if ordered else [], order, ordered)


def _live_arcs(step: Step, routes: StepRoutes, enter: dict[str, int]) -> list[Arc]:
    taken = {choice.arc for choices in routes for choice in choices}
    return [arc for at, arc in enumerate(step.arcs) if at in taken and arc.step in enter]


def _together(step: Step, arcs: Sequence[Arc], *, precise: bool) -> tuple[int, ...]:
    """For each arc the others that may fire on the same event."""
    events = [possible_events(arc.when, step) for arc in arcs]
    on_event: dict[str, int] = {}
    for at, names in enumerate(events):
        for name in names:
            on_event[name] = on_event.get(name, 0) | 1 << at
    found = []
    for at, names in enumerate(events):
        mask = 0
        for name in names:
            mask |= on_event[name]
        found.append(mask & ~(1 << at))
    if precise and len(arcs) <= _COMPARED:
        guarded = [(at, arc.when) for at, arc in enumerate(arcs) if isinstance(arc.when, Expression)]
        for (at, one), (other, another) in combinations(guarded, 2):
            if mutually_exclusive(one, another):
                found[at] &= ~(1 << other)
                found[other] &= ~(1 << at)
    return tuple(found)


def overlapping_steps(playbook: Playbook, places: TokenNet) -> list[int]:
    """For each step the steps that may run while it does, as bits."""
    rows = [0] * len(places.successors)
    if not places.forks:
        return rows[: len(playbook.workflow)]
    for fork in places.forks:
        _start(rows, fork)
    closed = _closed_doors(playbook, places)
    while True:
        _move(rows, places, closed)
        mirrored = _transposed(rows)
        if mirrored == rows:
            break
        rows = [row | column for row, column in zip(rows, mirrored, strict=True)]
    steps = len(playbook.workflow)
    return [row & ((1 << steps) - 1) for row in rows[:steps]]


def _start(rows: list[int], fork: TokenFork) -> None:
    """Puts a token at the target of each arc, beside those of the arcs that fire with it."""
    counts: dict[int, Counter[int]] = {}
    masks: dict[int, int] = {}
    for at, target in enumerate(fork.targets):
        arcs = fork.together[at] | 1 << at
        if arcs not in counts:
            counts[arcs] = Counter(to for other, to in enumerate(fork.targets) if arcs >> other & 1)
            masks[arcs] = sum(1 << to for to in counts[arcs])
        alone = counts[arcs][target] == 1
        rows[target] |= masks[arcs] & ~(1 << target) if alone else masks[arcs]


def _closed_doors(playbook: Playbook, places: TokenNet) -> dict[int, int]:
    """For each join the places of another token that keep it from running."""
    joins = {at: step.join for at, step in enumerate(playbook.workflow) if step.join is not None}
    if not joins:
        return {}
    behind = ancestor_masks(reverse_edges(places.successors))
    return {at: places.ancestors[at] if join.mode == "all" else behind[at] for at, join in joins.items()}


def _move(rows: list[int], places: TokenNet, closed: dict[int, int]) -> None:
    """Lets one of two tokens move as far as it can while the other stays."""
    changed = True
    while changed:
        changed = False
        for place in places.order:
            if not rows[place]:
                continue
            for target in places.successors[place]:
                row = rows[target] | (rows[place] & ~closed.get(target, 0))
                if row != rows[target]:
                    rows[target] = row
                    changed = True


def _transposed(rows: Sequence[int]) -> list[int]:
    """Rows and columns exchanged, as text: far fewer steps than bit by bit."""
    lines = [format(row, f"0{len(rows)}b") for row in reversed(rows)]
    return [int("".join(column), 2) for column in zip(*lines, strict=True)][::-1]
