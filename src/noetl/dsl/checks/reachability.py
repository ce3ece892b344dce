"""Soundness of the net: steps that no token reaches, and steps from which no end is reached."""

from noetl.dsl.document.context import DocumentContext, ExpressionRole, PlaybookPart
from noetl.dsl.document.guard_verdicts import certain_events, possible_events
from noetl.dsl.document.playbook import Playbook, Step
from noetl.dsl.document.step_graph import (
    StepGraph,
    reachable_nodes,
    reverse_edges,
    step_graph_of,
    strong_components,
)


def check_reachability(playbook: Playbook, context: DocumentContext) -> None:
    """Every step but the final one can get a token."""
    net = step_graph_of(playbook)
    reached = reachable_nodes(net.successors, [net.entry])
    if any(_unclear(playbook.workflow[position], net, context) for position in reached):
        return  # an arc that cannot be read may be the one that is missing
    before = reverse_edges(net.successors)
    for position, step in enumerate(playbook.workflow):
        if position in reached or step.name == playbook.executor.final_step:
            continue
        sources = {net.names[source] for source in before[position]}
        hint = f"add an arc to it or remove it; execution starts at `{playbook.entry}`"
        if sources == {step.name}:
            hint = f"only its own arc leads to it; execution starts at `{playbook.entry}`"
        elif sources:
            hint = f"only steps that cannot be reached lead to it: {_listed(sorted(sources))}"
        context.report("unreachable-step", step.position, f"no token can reach the step `{step.name}`", hint)


def check_exits(playbook: Playbook, context: DocumentContext) -> None:
    """From every step that is reached a branch can end other than by failing."""
    net = step_graph_of(playbook)
    live = [[target for target, _ in possible_arcs(step, net)] for step in playbook.workflow]
    ends = [position for position, step in enumerate(playbook.workflow) if _can_end(step, net, context)]
    leading_out = reachable_nodes(reverse_edges(live), ends)
    trapped = reachable_nodes(live, [net.entry]) - leading_out
    for part in strong_components(live) if trapped else ():
        inside = set(part)
        if inside <= trapped and all(target in inside for node in part for target in live[node]):
            names = [net.names[node] for node in part]
            what = "only leads back to itself" if len(part) == 1 else "only lead to each other"
            context.report(
                "no-way-out",
                playbook.steps[names[0]].position,
                f"no end can be reached from here: {_listed(names)} {what}",
                "guard an arc or add one that leads out; this goes round until `executor.spec.max_step_runs`",
            )


def possible_arcs(step: Step, net: StepGraph) -> list[tuple[int, frozenset[str]]]:
    """The targets of the arcs that can be taken, with the events on which they can."""
    arcs = ((arc.step, possible_events(arc.when, step)) for arc in step.arcs if arc.step in net.number)
    return [(net.number[target], events) for target, events in arcs if events]


def _unclear(step: Step, net: StepGraph, context: DocumentContext) -> bool:
    """Whether it is not known where the step leads: its router, or the name in an arc, is wrong."""
    return PlaybookPart(ExpressionRole.ARC, step.name) in context.unreadable or any(
        arc.step not in net.number for arc in step.arcs
    )


def _can_end(step: Step, net: StepGraph, context: DocumentContext) -> bool:
    """Whether a branch can end here: a good run that no arc is sure to carry on, or a denied token."""
    if _unclear(step, net, context):
        return True
    if step.admit is not None and not step.admit.admits_all:
        return True
    return not any(step.done_event in certain_events(arc.when, step) for arc in step.arcs)


def _listed(names: list[str]) -> str:
    shown = [f"`{name}`" for name in names[:5]]
    if len(names) > 5:
        return ", ".join(shown) + f" and {len(names) - 5} more"
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + f" and {shown[-1]}"
