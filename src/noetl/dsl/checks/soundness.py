"""Soundness of the net: steps without a way in or out, arcs never taken, joins with nothing to join."""

from collections.abc import Iterator

from noetl.dsl.checks.flow.guard_verdicts import (
    DONE,
    FAILED,
    LOOP_DONE,
    certain_events,
    holds_on,
    possible_events,
    terminal_events,
)
from noetl.dsl.checks.known_shapes import impossible_values
from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, ExpressionRole, PlaybookPart
from noetl.dsl.document.playbook import Arc, Guard, Join, Playbook, Position, Step
from noetl.dsl.document.source import Scalar
from noetl.dsl.document.step_graph import (
    StepGraph,
    ancestor_masks,
    is_cycle,
    nodes_on_cycles,
    reachable_nodes,
    reverse_edges,
    step_graph_of,
    strong_components,
)
from noetl.expr.expression import Expression


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
    return [[target for target, _ in _possible_arcs(step, graph)] for step in playbook.workflow]


def _possible_arcs(step: Step, graph: StepGraph) -> list[tuple[int, frozenset[str]]]:
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
        self.arcs_of = [_possible_arcs(step, graph) for step in playbook.workflow]
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


def check_arcs(playbook: Playbook, context: DocumentContext) -> None:
    """Every arc can be taken."""
    guards = arc_guards(context)
    for step in playbook.workflow:
        if step.arcs and PlaybookPart(ExpressionRole.ARC, step.name) not in context.unreadable:
            _RouterCheck(step, guards, playbook, context).check()


def arc_guards(context: DocumentContext) -> dict[tuple[str, int], ExpressionOccurrence]:
    """The guards of arcs by step and position; of two steps with one name, the first's."""
    guards: dict[tuple[str, int], ExpressionOccurrence] = {}
    for occurrence in context.occurrences:
        if occurrence.part.role is ExpressionRole.ARC:
            guards.setdefault((occurrence.part.step, occurrence.part.arc), occurrence)
    return guards


def guard_position(
    guards: dict[tuple[str, int], ExpressionOccurrence], step: Step, index: int
) -> Scalar | Position:
    """Where an arc's guard stands; an arc without one, where its target stands."""
    occurrence = guards.get((step.name, index))
    return occurrence.scalar if occurrence is not None else step.arcs[index].position


class _RouterCheck:
    """The arcs of one step, in order."""

    def __init__(
        self,
        step: Step,
        guards: dict[tuple[str, int], ExpressionOccurrence],
        playbook: Playbook,
        context: DocumentContext,
    ) -> None:
        self.step = step
        self.playbook = playbook
        self.guards = guards
        self.context = context
        self.first_taken: dict[str, Arc] = {}
        self.first_with: dict[Guard, Arc] = {}

    def check(self) -> None:
        for index, arc in enumerate(self.step.arcs):
            if self._waits_in_vain(index, arc):
                continue
            self._check_dead(index, arc)
            if self.step.is_exclusive:
                self.first_with.setdefault(arc.when, arc)
                for event in certain_events(arc.when, self.step):
                    self.first_taken.setdefault(event, arc)

    def _waits_in_vain(self, index: int, arc: Arc) -> bool:
        """Whether the guard names the event that ends loops on a step that is none, or the reverse."""
        own_event = self.step.done_event
        other_event = DONE if own_event == LOOP_DONE else LOOP_DONE
        occurrence = self.guards.get((self.step.name, index))
        if occurrence is None or (offset := occurrence.expression.source.find(other_event)) < 0:
            return False
        verdicts = (holds_on(arc.when, own_event), holds_on(arc.when, other_event))
        if verdicts[0] is verdicts[1] or False not in verdicts:
            return False
        described = "a loop" if self.step.loop else "no loop"
        self.context.report_inside(
            "loop-step-done",
            occurrence.scalar,
            offset,
            f"`{self.step.name}` is {described}: it never ends with `{other_event}`",
            f"compare with `{own_event}`",
        )
        return True

    def _check_dead(self, index: int, arc: Arc) -> None:
        possible = possible_events(arc.when, self.step)
        at = guard_position(self.guards, self.step, index)
        if not possible:
            self._report_impossible(index, at, arc)
        elif possible <= self.first_taken.keys():
            earlier = self.first_taken[sorted(possible)[0]]
            self.context.report(
                "dead-arc",
                at,
                f"the arc to `{arc.step}` is never taken: the one to `{earlier.step}` always comes first",
                f"move it above line {earlier.position.line}, or set `next.spec.mode: inclusive`",
            )
        elif (twin := self.first_with.get(arc.when)) is not None and isinstance(arc.when, Expression):
            self.context.report(
                "dead-arc",
                at,
                f"the arc to `{arc.step}` is never taken: the one to `{twin.step}` has the same guard",
                f"change one of the guards, or set `next.spec.mode: inclusive`; line {twin.position.line}",
            )

    def _report_impossible(self, index: int, at: Scalar | Position, arc: Arc) -> None:
        name = self.step.name
        ends = " or ".join(f"`{event}`" for event in sorted(terminal_events(self.step)))
        message = f"the arc to `{arc.step}` is never taken: its guard holds on no event that ends `{name}`"
        hint = f"`event.name` is {ends} here, `event.status` `success` or `error`"
        if all(holds_on(arc.when, event) is False for event in (DONE, LOOP_DONE, FAILED)):
            if not isinstance(arc.when, Expression) or not arc.when.uses:
                message = f"the arc to `{arc.step}` is never taken: its guard is always false"
                hint = "remove the arc or change its guard"
        elif holds_on(arc.when, FAILED) is not False:
            message = f"the arc to `{arc.step}` is never taken: nothing in `{name}` can fail"
            hint = "remove it"
        occurrence = self.guards.get((name, index))
        if occurrence is not None:
            for value in impossible_values(occurrence, self.playbook):
                hint = f"`{'.'.join(value.path)}` is never `{value.text}`: {value.hint}"
        self.context.report("dead-arc", at, message, hint)
