"""What is surely set when a join of mode `all` runs, beside what every one of its arcs brings.

Such a join runs when no token elsewhere can still reach it (semantics §5). So a step between it and
the last step that all its tokens come from has run, if its token surely comes there: it lies behind
an arc that is taken in any case, and so on down its branch. A branch that ends early, or whose token
may be kept out, counts as far as that.
"""

from collections.abc import Sequence
from typing import NamedTuple

from noetl.dsl.checks.flow.step_routes import ArcChoice, StepRoutes
from noetl.dsl.document.playbook import Step
from noetl.dsl.document.step_graph import Edges, ancestor_masks, immediate_dominators

_EVERYTHING = -1
_VISITS_PER_STEP = 20
"""Bound on the work for nets in which very many joins lie far from their forks."""


class BranchStep(NamedTuple):
    """A step as joins see it. `ends` and `writes` are what it and its arcs set."""

    step: Step
    routes: StepRoutes
    ends: tuple[int, int]
    targets: tuple[int, ...]
    writes: tuple[int, ...]


def set_before_join(steps: Sequence[BranchStep], order: Sequence[int]) -> list[int]:
    """For each join of mode `all` what it waits for; nothing for other steps. `order` runs forward."""
    successors = [
        [
            target
            for choices in branch.routes
            for choice in choices
            if (target := branch.targets[choice.arc]) >= 0
        ]
        for branch in steps
    ]
    dominators = immediate_dominators(successors, order)
    reaching = ancestor_masks(successors)
    rank = {node: index for index, node in enumerate(order)}
    sets_before = [0] * len(steps)
    visits = _VISITS_PER_STEP * (len(steps) + 50)
    for node in order[1:]:
        join = steps[node].step.join
        if join is not None and join.mode == "all":
            fork = dominators[node]
            between = _between(successors, fork, reaching[node] & ~(1 << fork | 1 << node), visits)
            visits -= len(between)
            if visits <= 0:
                # Saying nothing is better than accusing wrongly.
                sets_before[node] = _EVERYTHING
            else:
                # Backwards, as `_surely_set` asks what follows a step: so few rounds are needed.
                between.sort(key=rank.__getitem__, reverse=True)
                sets_before[node] = _sets_between(steps, fork, between)
    return sets_before


def _between(successors: Edges, fork: int, inside: int, most: int) -> list[int]:
    """The steps that can be reached from the fork on ways that stay inside; gives up at `most`."""
    reached: list[int] = []
    waiting = [fork]
    while waiting and len(reached) < most:
        for target in successors[waiting.pop()]:
            # `inside` loses what was reached: one number is both the limit and the set of those seen.
            if inside >> target & 1:
                inside &= ~(1 << target)
                reached.append(target)
                waiting.append(target)
    return reached


def _sets_between(branches: Sequence[BranchStep], fork: int, between: Sequence[int]) -> int:
    sure = {node: 0 if _may_not_run(branches[node].step) else _EVERYTHING for node in between}
    changed = True
    while changed:
        changed = False
        for node in between:
            if sure[node] and (sets := _surely_set(branches[node], sure)) != sure[node]:
                sure[node] = sets
                changed = True
    return _surely_set(branches[fork], sure)


def _surely_set(branch: BranchStep, sure: dict[int, int]) -> int:
    """What the step sets, and what follows it in any case."""
    succeeded, failed = branch.ends
    sets = succeeded | _sets_after(branch, branch.routes.succeeded, sure)
    if branch.routes.failed:
        sets &= failed | _sets_after(branch, branch.routes.failed, sure)
    return sets


def _sets_after(branch: BranchStep, choices: Sequence[ArcChoice], sure: dict[int, int]) -> int:
    outgoing = [(certain, branch.writes[arc] | sure.get(branch.targets[arc], 0)) for arc, certain in choices]
    sets = 0
    if not branch.step.is_exclusive:
        for certain, branch_sets in outgoing:
            sets |= branch_sets if certain else 0
    elif outgoing and outgoing[-1][0]:
        sets = _EVERYTHING
        for _, branch_sets in outgoing:
            sets &= branch_sets
    return sets


def _may_not_run(step: Step) -> bool:
    """Whether a token that comes here may stay outside, or wait for others that never come."""
    may_be_denied = step.admit is not None and not step.admit.admits_all
    return may_be_denied or (step.join is not None and step.join.mode == "count")
