"""What is set when each step begins and on each of its arcs."""

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

from noetl.dsl.checks.flow.guard_verdicts import ArcChoice, StepRoutes
from noetl.dsl.checks.flow.name_reads import NameBits
from noetl.dsl.checks.flow.name_sources import argument_path
from noetl.dsl.checks.flow.pipeline_flow import NOTHING, NameEncoder, PipelineFlow, pipeline_flow
from noetl.dsl.document.playbook import Admission, Arc, Playbook, Step
from noetl.dsl.document.step_graph import Edges, ancestor_masks, forward_order, immediate_dominators

_EVERYTHING = -1
_VISITS_PER_STEP = 20
"""Bound on the work for nets in which very many joins lie far from their forks."""


class StepEnds(NamedTuple):
    """What is set when a step has ended, beside what was when it began."""

    succeeded: int
    failed: int


class StepFlow(NamedTuple):
    """One step by itself. What it sets comes on top of what was set before it."""

    step: Step
    encoder: NameEncoder
    pipeline: PipelineFlow
    routes: StepRoutes
    ends: StepEnds
    begins: int
    """What its own args and its admission set."""
    arcs: tuple[int | None, ...]
    """What is set when each arc fires, before its own writes; None if it never does."""


class ArcFlow(NamedTuple):
    """An arc that can be taken: what is set when it is, and the args that it brings."""

    source: int
    sets: int
    args: int


class PlaybookFlow(NamedTuple):
    """The whole playbook. `state` is what is set when each step begins; nothing leads to the others."""

    bits: NameBits
    number: dict[str, int]
    steps: tuple[StepFlow, ...]
    outgoing_arcs: tuple[tuple[tuple[int, ArcFlow], ...], ...]
    """The arcs out of each step, with the step they lead to."""
    join_sets: tuple[int, ...]
    """What each join waits for, whichever of its tokens comes last."""
    state: tuple[int, ...]
    entry: int


class _BranchStep(NamedTuple):
    """A step as joins see it. `ends` and `writes` are what it and its arcs set."""

    step: Step
    routes: StepRoutes
    ends: tuple[int, int]
    targets: tuple[int, ...]
    writes: tuple[int, ...]


def playbook_flow(
    playbook: Playbook, routes: Sequence[StepRoutes], bits: NameBits, *, precise: bool
) -> PlaybookFlow:
    """Solves the playbook. Without `precise` proofs and joins are left out: fewer names are set, faster."""
    encoder = NameEncoder(bits, precise)
    steps = tuple(map(_step_flow, playbook.workflow, routes, repeat(encoder)))
    number = {step.name: index for index, step in enumerate(playbook.workflow)}
    incoming_arcs: list[list[ArcFlow]] = [[] for _ in steps]
    for source, flow in enumerate(steps):
        for arc, arc_sets in zip(flow.step.arcs, flow.arcs, strict=True):
            if arc_sets is not None and arc.step in number:
                sets = arc_sets | encoder.write_bits(arc.writes)
                incoming_arcs[number[arc.step]].append(ArcFlow(source, sets, _arg_bits(arc, bits)))
    entry = number[playbook.entry]
    outgoing_arcs = _outgoing_arcs(incoming_arcs)
    order = forward_order([[target for target, _ in outgoing] for outgoing in outgoing_arcs], entry)
    join_sets = [NOTHING] * len(steps)
    if precise and any(flow.step.join is not None for flow in steps):
        join_sets = _set_before_join(_branch_steps(steps, number), order)
    state = _solve(steps, incoming_arcs, join_sets, order)
    return PlaybookFlow(bits, number, steps, outgoing_arcs, tuple(join_sets), tuple(state), entry)


def _step_flow(step: Step, routes: StepRoutes, encoder: NameEncoder) -> StepFlow:
    bits = encoder.bits
    pipeline = pipeline_flow(step, encoder)
    writes = encoder.write_bits(step.writes)
    ends = StepEnds(
        pipeline.done | writes | bits.step(step.name, succeeded=True),
        pipeline.failed | writes | bits.step(step.name, succeeded=False),
    )
    begins = _admission_proofs(step.admit, encoder)
    for key in step.args:
        begins |= bits.arg(argument_path(key))
    return StepFlow(step, encoder, pipeline, routes, ends, begins, _arc_sets(step, routes, ends, encoder))


def _arc_sets(step: Step, routes: StepRoutes, ends: StepEnds, encoder: NameEncoder) -> tuple[int | None, ...]:
    arc_sets: list[int | None] = [None] * len(step.arcs)
    for ended, choices in zip(ends, routes, strict=True):
        for choice in choices:
            other_sets = arc_sets[choice.arc]
            arc_sets[choice.arc] = ended if other_sets is None else other_sets & ended
    refuted = NOTHING
    for index, (sets, arc) in enumerate(zip(arc_sets, step.arcs, strict=True)):
        if sets is not None:
            arc_sets[index] = sets | refuted | encoder.proof_bits(arc.when, holds=True)
        if step.is_exclusive:
            refuted |= encoder.proof_bits(arc.when, holds=False)
    return tuple(arc_sets)


def _admission_proofs(admit: Admission | None, encoder: NameEncoder) -> int:
    """What is set if a token came in: one of the rules that let it in must have matched."""
    if admit is None or admit.otherwise:
        return NOTHING
    sets = encoder.bits.all
    for rule in admit.rules:
        if rule.allow:
            sets &= encoder.proof_bits(rule.when, holds=True)
    return sets


def _arg_bits(arc: Arc, bits: NameBits) -> int:
    sets = NOTHING
    for key in arc.args:
        sets |= bits.arg(argument_path(key))
    return sets


def _solve(
    steps: Sequence[StepFlow],
    incoming_arcs: Sequence[Sequence[ArcFlow]],
    join_sets: Sequence[int],
    order: Sequence[int],
) -> list[int]:
    """The greatest solution; steps that nothing leads to keep everything."""
    entry = order[0]
    # From everything downwards: from nothing upwards a cycle would never learn what was set before it.
    state = [steps[entry].encoder.bits.before_step] * len(steps)
    state[entry] = steps[entry].begins
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            if (arrived := _sets_on_arrival(node, steps, incoming_arcs, join_sets, state)) != state[node]:
                state[node] = arrived
                changed = True
    return state


def _sets_on_arrival(
    node: int,
    steps: Sequence[StepFlow],
    incoming_arcs: Sequence[Sequence[ArcFlow]],
    join_sets: Sequence[int],
    state: Sequence[int],
) -> int:
    """What every arc brings; a join has the args of all of them."""
    flow = steps[node]
    bits = flow.encoder.bits
    arrived, args = bits.all, NOTHING
    for arc_flow in incoming_arcs[node]:
        brought = bits.carry_over(state[arc_flow.source] | arc_flow.sets)
        arrived &= brought if flow.step.join is not None else brought | arc_flow.args
        args |= arc_flow.args
    if flow.step.join is not None:
        arrived |= args | bits.carry_over(join_sets[node])
    return arrived | flow.begins


def _outgoing_arcs(incoming_arcs: Sequence[Sequence[ArcFlow]]) -> tuple[tuple[tuple[int, ArcFlow], ...], ...]:
    outgoing_arcs: list[list[tuple[int, ArcFlow]]] = [[] for _ in incoming_arcs]
    for target, incoming in enumerate(incoming_arcs):
        for arc_flow in incoming:
            outgoing_arcs[arc_flow.source].append((target, arc_flow))
    return tuple(map(tuple, outgoing_arcs))


def _branch_steps(steps: Sequence[StepFlow], number: dict[str, int]) -> list[_BranchStep]:
    branch_steps = []
    for flow in steps:
        targets = tuple(number.get(arc.step, -1) for arc in flow.step.arcs)
        writes = tuple(flow.encoder.write_bits(arc.writes) for arc in flow.step.arcs)
        branch_steps.append(_BranchStep(flow.step, flow.routes, flow.ends, targets, writes))
    return branch_steps


def _set_before_join(steps: Sequence[_BranchStep], order: Sequence[int]) -> list[int]:
    """For each join of mode `all` what is surely set when it runs, beside what every one of its arcs brings.

    Such a join runs when no token elsewhere can still reach it (semantics §5). So a step between it and
    the last step that all its tokens come from has run, if its token surely comes there: it lies behind
    an arc that is taken in any case, and so on down its branch. A branch that ends early, or whose token
    may be kept out, counts as far as that. Nothing for other steps. `order` runs forward.
    """
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


def _sets_between(branches: Sequence[_BranchStep], fork: int, between: Sequence[int]) -> int:
    sure = {node: 0 if _may_not_run(branches[node].step) else _EVERYTHING for node in between}
    changed = True
    while changed:
        changed = False
        for node in between:
            if sure[node] and (sets := _surely_set(branches[node], sure)) != sure[node]:
                sure[node] = sets
                changed = True
    return _surely_set(branches[fork], sure)


def _surely_set(branch: _BranchStep, sure: dict[int, int]) -> int:
    """What the step sets, and what follows it in any case."""
    succeeded, failed = branch.ends
    sets = succeeded | _sets_after(branch, branch.routes.succeeded, sure)
    if branch.routes.failed:
        sets &= failed | _sets_after(branch, branch.routes.failed, sure)
    return sets


def _sets_after(branch: _BranchStep, choices: Sequence[ArcChoice], sure: dict[int, int]) -> int:
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
