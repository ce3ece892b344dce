"""What is set when each step begins and on each of its arcs."""

from collections.abc import Sequence
from itertools import repeat
from typing import NamedTuple

from noetl.dsl.checks.flow.join_flow import BranchStep, set_before_join
from noetl.dsl.checks.flow.name_bits import NameBits
from noetl.dsl.checks.flow.name_sources import argument_path
from noetl.dsl.checks.flow.pipeline_flow import NOTHING, NameEncoder, PipelineFlow, pipeline_flow
from noetl.dsl.checks.flow.step_routes import StepRoutes
from noetl.dsl.document.playbook import Admission, Arc, Playbook, Step
from noetl.dsl.document.step_graph import forward_order


class StepEnds(NamedTuple):
    """What is set when a step has ended, beside what was when it began."""

    succeeded: int
    failed: int


class StepFlow(NamedTuple):
    """One step by itself. What it sets comes on top of what was set before it."""

    step: Step
    writer: NameEncoder
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
    leaving: tuple[tuple[tuple[int, ArcFlow], ...], ...]
    """The arcs out of each step, with the step they lead to."""
    gathered: tuple[int, ...]
    """What each join waits for, whichever of its tokens comes last."""
    state: tuple[int, ...]
    entry: int


def playbook_flow(
    playbook: Playbook, routes: Sequence[StepRoutes], bits: NameBits, *, precise: bool
) -> PlaybookFlow:
    """Solves the playbook. Without `precise` proofs and joins are left out: fewer names are set, faster."""
    writer = NameEncoder(bits, precise)
    steps = tuple(map(_step_flow, playbook.workflow, routes, repeat(writer)))
    number = {step.name: position for position, step in enumerate(playbook.workflow)}
    links: list[list[ArcFlow]] = [[] for _ in steps]
    for source, flow in enumerate(steps):
        for arc, taken in zip(flow.step.arcs, flow.arcs, strict=True):
            if taken is not None and arc.step in number:
                sets = taken | writer.write_bits(arc.writes)
                links[number[arc.step]].append(ArcFlow(source, sets, _args(arc, bits)))
    entry = number[playbook.entry]
    leaving = _leaving(links)
    order = forward_order([[target for target, _ in outgoing] for outgoing in leaving], entry)
    gathered = [NOTHING] * len(steps)
    if precise and any(flow.step.join is not None for flow in steps):
        gathered = set_before_join(_parts(steps, number), order)
    state = _solve(steps, links, gathered, order)
    return PlaybookFlow(bits, number, steps, leaving, tuple(gathered), tuple(state), entry)


def _step_flow(step: Step, routes: StepRoutes, writer: NameEncoder) -> StepFlow:
    bits = writer.bits
    pipeline = pipeline_flow(step, writer)
    writes = writer.write_bits(step.writes)
    ends = StepEnds(
        pipeline.done | writes | bits.step(step.name, succeeded=True),
        pipeline.failed | writes | bits.step(step.name, succeeded=False),
    )
    begins = _admitted(step.admit, writer)
    for key in step.args:
        begins |= bits.arg(argument_path(key))
    return StepFlow(step, writer, pipeline, routes, ends, begins, _arcs(step, routes, ends, writer))


def _arcs(step: Step, routes: StepRoutes, ends: StepEnds, writer: NameEncoder) -> tuple[int | None, ...]:
    taken: list[int | None] = [None] * len(step.arcs)
    for ended, choices in zip(ends, routes, strict=True):
        for choice in choices:
            other = taken[choice.arc]
            taken[choice.arc] = ended if other is None else other & ended
    refuted = NOTHING
    for position, (sets, arc) in enumerate(zip(taken, step.arcs, strict=True)):
        if sets is not None:
            taken[position] = sets | refuted | writer.proof_bits(arc.when, holds=True)
        if step.is_exclusive:
            refuted |= writer.proof_bits(arc.when, holds=False)
    return tuple(taken)


def _admitted(admit: Admission | None, writer: NameEncoder) -> int:
    """What is set if a token came in: one of the rules that let it in must have matched."""
    if admit is None or admit.otherwise:
        return NOTHING
    sets = writer.bits.all
    for rule in admit.rules:
        if rule.allow:
            sets &= writer.proof_bits(rule.when, holds=True)
    return sets


def _args(arc: Arc, bits: NameBits) -> int:
    sets = NOTHING
    for key in arc.args:
        sets |= bits.arg(argument_path(key))
    return sets


def _solve(
    steps: Sequence[StepFlow],
    links: Sequence[Sequence[ArcFlow]],
    gathered: Sequence[int],
    order: Sequence[int],
) -> list[int]:
    """The greatest solution; steps that nothing leads to keep everything."""
    entry = order[0]
    state = [steps[entry].writer.bits.before_step] * len(steps)
    state[entry] = steps[entry].begins
    changed = True
    while changed:
        changed = False
        for node in order[1:]:
            if (arrived := _arrived(node, steps, links, gathered, state)) != state[node]:
                state[node] = arrived
                changed = True
    return state


def _arrived(
    node: int,
    steps: Sequence[StepFlow],
    links: Sequence[Sequence[ArcFlow]],
    gathered: Sequence[int],
    state: Sequence[int],
) -> int:
    """What every arc brings; a join has the args of all of them."""
    flow = steps[node]
    bits = flow.writer.bits
    arrived, args = bits.all, NOTHING
    for link in links[node]:
        brought = bits.carry_over(state[link.source] | link.sets)
        arrived &= brought if flow.step.join is not None else brought | link.args
        args |= link.args
    if flow.step.join is not None:
        arrived |= args | bits.carry_over(gathered[node])
    return arrived | flow.begins


def _leaving(links: Sequence[Sequence[ArcFlow]]) -> tuple[tuple[tuple[int, ArcFlow], ...], ...]:
    leaving: list[list[tuple[int, ArcFlow]]] = [[] for _ in links]
    for target, incoming in enumerate(links):
        for link in incoming:
            leaving[link.source].append((target, link))
    return tuple(map(tuple, leaving))


def _parts(steps: Sequence[StepFlow], number: dict[str, int]) -> list[BranchStep]:
    parts = []
    for flow in steps:
        targets = tuple(number.get(arc.step, -1) for arc in flow.step.arcs)
        writes = tuple(flow.writer.write_bits(arc.writes) for arc in flow.step.arcs)
        parts.append(BranchStep(flow.step, flow.routes, flow.ends, targets, writes))
    return parts
