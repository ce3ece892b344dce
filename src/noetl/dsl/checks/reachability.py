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
    graph = step_graph_of(playbook)
    reached = reachable_nodes(graph.successors, [graph.entry])
    if any(_is_unclear(playbook.workflow[index], graph, context) for index in reached):
        return  # an arc that cannot be read may be the one that is missing
    predecessors = reverse_edges(graph.successors)
    for index, step in enumerate(playbook.workflow):
        if index in reached or step.name == playbook.executor.final_step:
            continue
        sources = {graph.names[source] for source in predecessors[index]}
        hint = f"add an arc to it or remove it; execution starts at `{playbook.entry}`"
        if sources == {step.name}:
            hint = f"only its own arc leads to it; execution starts at `{playbook.entry}`"
        elif sources:
            hint = f"only steps that cannot be reached lead to it: {_list_names(sorted(sources))}"
        context.report("unreachable-step", step.position, f"no token can reach the step `{step.name}`", hint)


def check_exits(playbook: Playbook, context: DocumentContext) -> None:
    """From every step that is reached a branch can end other than by failing."""
    graph = step_graph_of(playbook)
    possible = _possible_edges(playbook, graph)
    trapped = steps_without_end(playbook, context)
    for component in strong_components(possible) if trapped else ():
        inside = set(component)
        if inside <= trapped and all(target in inside for node in component for target in possible[node]):
            names = [graph.names[node] for node in component]
            verb_phrase = "only leads back to itself" if len(component) == 1 else "only lead to each other"
            context.report(
                "no-way-out",
                playbook.steps[names[0]].position,
                f"no end can be reached from here: {_list_names(names)} {verb_phrase}",
                "guard an arc or add one that leads out; this goes round until `executor.spec.max_step_runs`",
            )


def steps_without_end(playbook: Playbook, context: DocumentContext) -> set[int]:
    """The steps that are reached and from which no branch can end other than by failing."""
    graph = step_graph_of(playbook)
    possible = _possible_edges(playbook, graph)
    ends = [index for index, step in enumerate(playbook.workflow) if _can_end(step, graph, context)]
    leading_out = reachable_nodes(reverse_edges(possible), ends)
    return reachable_nodes(possible, [graph.entry]) - leading_out


def _possible_edges(playbook: Playbook, graph: StepGraph) -> list[list[int]]:
    return [[target for target, _ in possible_arcs(step, graph)] for step in playbook.workflow]


def possible_arcs(step: Step, graph: StepGraph) -> list[tuple[int, frozenset[str]]]:
    """The targets of the arcs that can be taken, with the events on which they can."""
    arcs = ((arc.step, possible_events(arc.when, step)) for arc in step.arcs if arc.step in graph.number)
    return [(graph.number[target], events) for target, events in arcs if events]


def _is_unclear(step: Step, graph: StepGraph, context: DocumentContext) -> bool:
    """Whether it is not known where the step leads: its router, or the name in an arc, is wrong."""
    return PlaybookPart(ExpressionRole.ARC, step.name) in context.unreadable or any(
        arc.step not in graph.number for arc in step.arcs
    )


def _can_end(step: Step, graph: StepGraph, context: DocumentContext) -> bool:
    """Whether a branch can end here: a good run that no arc is sure to carry on, or a denied token."""
    if _is_unclear(step, graph, context):
        return True
    if step.admit is not None and not step.admit.admits_all:
        return True
    return not any(step.done_event in certain_events(arc.when, step) for arc in step.arcs)


def _list_names(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names[:5]]
    if len(names) > 5:
        return ", ".join(quoted) + f" and {len(names) - 5} more"
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + f" and {quoted[-1]}"
