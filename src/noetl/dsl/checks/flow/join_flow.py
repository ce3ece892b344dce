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


def set_before_join(parts: Sequence[BranchStep], order: Sequence[int]) -> list[int]:
    """For each join of mode `all` what it waits for; nothing for other steps. `order` runs forward."""
    after = [
        [target for choices in part.routes for choice in choices if (target := part.targets[choice.arc]) >= 0]
        for part in parts
    ]
    dominators = immediate_dominators(after, order)
    reaching = ancestor_masks(after)
    rank = {node: position for position, node in enumerate(order)}
    gathered = [0] * len(parts)
    visits = _VISITS_PER_STEP * (len(parts) + 50)
    for join in order[1:]:
        kind = parts[join].step.join
        if kind is not None and kind.mode == "all":
            fork = dominators[join]
            between = _between(after, fork, reaching[join] & ~(1 << fork | 1 << join), visits)
            visits -= len(between)
            if visits <= 0:
                # Saying nothing is better than accusing wrongly.
                gathered[join] = _EVERYTHING
            else:
                between.sort(key=rank.__getitem__, reverse=True)
                gathered[join] = _gathered(parts, fork, between)
    return gathered


def _between(after: Edges, fork: int, inside: int, most: int) -> list[int]:
    """The steps that can be reached from the fork on ways that stay inside; gives up at `most`."""
    found: list[int] = []
    waiting = [fork]
    while waiting and len(found) < most:
        for target in after[waiting.pop()]:
            if inside >> target & 1:
                inside &= ~(1 << target)
                found.append(target)
                waiting.append(target)
    return found


def _gathered(parts: Sequence[BranchStep], fork: int, between: Sequence[int]) -> int:
    sure = {node: 0 if _may_not_run(parts[node].step) else _EVERYTHING for node in between}
    changed = True
    while changed:
        changed = False
        for node in between:
            if sure[node] and (value := _surely_set(parts[node], sure)) != sure[node]:
                sure[node] = value
                changed = True
    return _surely_set(parts[fork], sure)


def _surely_set(part: BranchStep, sure: dict[int, int]) -> int:
    """What the step sets, and what follows it in any case."""
    succeeded, failed = part.ends
    found = succeeded | _follows(part, part.routes.succeeded, sure)
    if part.routes.failed:
        found &= failed | _follows(part, part.routes.failed, sure)
    return found


def _follows(part: BranchStep, choices: Sequence[ArcChoice], sure: dict[int, int]) -> int:
    branches = [(certain, part.writes[arc] | sure.get(part.targets[arc], 0)) for arc, certain in choices]
    found = 0
    if not part.step.is_exclusive:
        for certain, branch in branches:
            found |= branch if certain else 0
    elif branches and branches[-1][0]:
        found = _EVERYTHING
        for _, branch in branches:
            found &= branch
    return found


def _may_not_run(step: Step) -> bool:
    """Whether a token that comes here may stay outside, or wait for others that never come."""
    kept_out = step.admit is not None and not step.admit.admits_all
    return kept_out or (step.join is not None and step.join.mode == "count")
