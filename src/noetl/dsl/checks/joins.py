"""Joins that have nothing to join, and joins that could never let go."""

from collections.abc import Iterator

from noetl.dsl.checks.reachability import possible_arcs
from noetl.dsl.document.context import DocumentContext
from noetl.dsl.document.playbook import Join, Playbook
from noetl.dsl.document.step_graph import (
    StepGraph,
    ancestor_masks,
    is_cycle,
    nodes_on_cycles,
    reachable_nodes,
    step_graph_of,
    strong_components,
)


def check_any_on_cycles(playbook: Playbook, context: DocumentContext) -> None:
    """A join `any` absorbs what comes later: on a cycle that would be its own token (semantics §5)."""
    joins = [step for step in playbook.workflow if step.join is not None and step.join.mode == "any"]
    if not joins:
        return
    graph = step_graph_of(playbook)
    cyclic = nodes_on_cycles(graph.successors)
    for step in joins:
        if step.join is not None and graph.number[step.name] in cyclic:
            context.report(
                "join-any-cycle",
                step.join.position,
                f"`{step.name}` is on a cycle, where `join: any` would absorb its own token",
                "use `join: all`, or put the join outside of the cycle",
            )


def check_joins(playbook: Playbook, context: DocumentContext) -> None:
    """A join gets more than one token: one of one token does nothing, or waits in vain for its count."""
    if all(step.join is None for step in playbook.workflow):
        return
    graph = step_graph_of(playbook)
    counts = _TokenCounts(playbook, graph)
    for index, step in enumerate(playbook.workflow):
        if step.join is None or index not in counts.reached or counts.many[index]:
            continue
        waits = f", and `count: {step.join.count}` is never reached" if (step.join.count or 0) > 1 else ""
        if len(counts.sources[index]) <= 1:
            message = f"at most one token ever comes to `{step.name}`{waits}"
            context.report("join-single", step.join.position, message, _hint(step.join))
        else:
            message = f"only one of the arcs to `{step.name}` is ever taken, so one token comes{waits}"
            context.report("join-exclusive", step.join.position, message, _hint(step.join))


def _hint(join: Join) -> str:
    return f"remove `join: {join.mode}`, or send several tokens with `next.spec.mode: inclusive`"


class _TokenCounts:
    """How many tokens can come to each step: `many[step]` if more than one in the life of an execution.

    There is one token at the start. It becomes several only at an inclusive router, and comes again
    only on a cycle.
    """

    def __init__(self, playbook: Playbook, graph: StepGraph) -> None:
        self.arcs_of = [possible_arcs(step, graph) for step in playbook.workflow]
        successors = [[target for target, _ in arcs] for arcs in self.arcs_of]
        self.reached = reachable_nodes(successors, [graph.entry])
        self.sources: list[list[int]] = [[] for _ in successors]
        for node in self.reached:
            for target in successors[node]:
                self.sources[target].append(node)
        self.ancestors = ancestor_masks(successors)
        self.forks = [
            fork
            for node, step in enumerate(playbook.workflow)
            if node in self.reached and not step.is_exclusive
            for fork in _forks(self.arcs_of[node])
        ]
        # Components come last first, so reversed each step is asked after those that lead to it.
        self.many = [False] * len(successors)
        runs_often = [False] * len(successors)
        for component in reversed(strong_components(successors)):
            cycle = is_cycle(successors, component)
            for node in component:
                self.many[node] = cycle or self._gets_many(node, runs_often)
                join = playbook.workflow[node].join
                runs_often[node] = cycle or (self.many[node] and (join is None or join.mode == "count"))

    def _gets_many(self, node: int, runs_often: list[bool]) -> bool:
        """Asked in the order of the net, so that what comes before is known."""
        if any(runs_often[source] for source in self.sources[node]):
            return True
        if len(self.sources[node]) <= 1:
            return False
        ancestors = self.ancestors[node]
        # Forks that stand last first: in most documents those are nearest to the join, and the search ends.
        return any(
            (targets & ancestors).bit_count() > 1 or twice & ancestors
            for targets, twice in reversed(self.forks)
        )


def _forks(arcs: list[tuple[int, frozenset[str]]]) -> Iterator[tuple[int, int]]:
    """For each event that sends several tokens: the targets, and those among them that get two, as bits."""
    for event in {event for _, events in arcs for event in events}:
        targets = twice = 0
        for target, events in arcs:
            if event in events:
                twice |= targets & 1 << target
                targets |= 1 << target
        if targets.bit_count() > 1 or twice:
            yield targets, twice
