"""Arcs that carry on after a failure without saying so.

A failed step takes its unguarded arcs, too (000 §8.1). That is worth a warning where it does harm:
a sibling arc handles the failure and this one fires as well, or the next step that does something
needs nothing of the failed one, so that nothing would stop it. If the arc leads back, it never ends.
"""

from collections.abc import Iterator, Mapping

from noetl.dsl.checks.flow.guard_verdicts import FAILED, holds_on, step_may_fail
from noetl.dsl.checks.flow.name_reads import uses_beside_item
from noetl.dsl.checks.flow.name_sources import run_writes, step_writes
from noetl.dsl.checks.soundness import arc_guards, guard_position, steps_without_end
from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, ExpressionRole, PlaybookPart
from noetl.dsl.document.playbook import Arc, Playbook, Step
from noetl.dsl.document.step_graph import step_graph_of, strong_components
from noetl.expr.expression import Expression
from noetl.expr.template import template_uses
from noetl.expr.use import Use


def check_swallowed_failures(playbook: Playbook, context: DocumentContext) -> None:
    """No arc is taken after a failure unseen, where that matters."""
    suspects = list(_suspects(playbook, context))
    if not suspects:
        return
    guards = arc_guards(context)
    work = _WorkingSteps(playbook, context)
    cycles = _EndlessCycles(playbook, context)
    for step, index in suspects:
        arc = step.arcs[index]
        code, message = "swallowed-failure", _beside_handler(step, index)
        if not message and (next_step := work.runs_after(step, arc)):
            message = f"`{next_step}` runs even if `{step.name}` failed, and needs nothing of it"
            if cycles.lead_back(step, arc):
                code, message = (
                    "failure-loop",
                    f"while `{step.name}` fails, this arc leads back to it again and again",
                )
            elif next_step == step.name:
                continue
        if message:
            condition = f"event.name == '{step.done_event}'"
            hint = (
                f'add `when: "{{{{ {condition} }}}}"`'
                if not arc.is_guarded
                else f"add `{condition} and` to the guard"
            )
            context.report(code, guard_position(guards, step, index), message, hint)


def _suspects(playbook: Playbook, context: DocumentContext) -> Iterator[tuple[Step, int]]:
    """Arcs that may be taken after a failure and do not look at how the step ended."""
    for step in playbook.workflow:
        if (
            not step.arcs
            or not step_may_fail(step)
            or PlaybookPart(ExpressionRole.ARC, step.name) in context.unreadable
        ):
            continue
        for index, arc in enumerate(step.arcs):
            verdict = holds_on(arc.when, FAILED)
            if verdict is not False and not arc.handles_failure:
                yield step, index
            if verdict and step.is_exclusive:
                break


def _beside_handler(step: Step, index: int) -> str:
    """An arc for failures that this one fires beside, or may fire instead of."""
    arc = step.arcs[index]
    rival_arcs = step.arcs[index + 1 :] if step.is_exclusive else step.arcs
    if step.is_exclusive and holds_on(arc.when, FAILED):
        return ""  # the handler is dead then, and reported as such
    for rival in rival_arcs:
        if rival is not arc and rival.handles_failure and holds_on(rival.when, FAILED) is not False:
            how = "may be taken instead of" if step.is_exclusive else "is taken beside"
            return f"the arc to `{arc.step}` {how} the one to `{rival.step}` when `{step.name}` fails"
    return ""


class _WorkingSteps:
    """The steps that do something, and what they need for it."""

    def __init__(self, playbook: Playbook, context: DocumentContext) -> None:
        self.playbook = playbook
        self.kinds = context.kinds
        self.occurrences: dict[str, list[ExpressionOccurrence]] = {}
        for occurrence in context.occurrences:
            self.occurrences.setdefault(occurrence.part.step, []).append(occurrence)
        self.nearest = self._nearest()

    def runs_after(self, step: Step, arc: Arc) -> str:
        """The step that would do something after this one failed; empty if none, or if it could not."""
        name = self.nearest.get(arc.step)
        if name is None:
            return ""
        results = _StepResults(step)
        if any(results.needed_by(use) for data in arc.args.values() for use in template_uses(data)):
            return ""
        target = self.playbook.steps[name]
        if any(results.needed_by(use) for use in self._first_uses(target)):
            return ""
        return name

    def _nearest(self) -> dict[str, str]:
        """For each step the first that does something on the way from it, itself included."""
        graph = step_graph_of(self.playbook)
        predecessors: list[list[int]] = [[] for _ in graph.names]
        for node, targets in enumerate(graph.successors):
            if self.playbook.workflow[node].admit is None:
                for target in targets:
                    predecessors[target].append(node)
        working = [
            node
            for node, step in enumerate(self.playbook.workflow)
            if step.admit is None and self._first_task(step) is not None
        ]
        nearest = {node: node for node in working}
        for node in working:  # grows while it is read: breadth first, so the nearest wins
            for source in predecessors[node]:
                if source not in nearest:
                    nearest[source] = nearest[node]
                    working.append(source)
        return {graph.names[node]: graph.names[target] for node, target in nearest.items()}

    def _first_task(self, step: Step) -> int | None:
        for index, task in enumerate(step.tasks):
            kind = self.kinds.get(task.kind)
            if kind is None or kind.effect != "pure":
                return index
        return None

    def _first_uses(self, step: Step) -> Iterator[Use]:
        """What must be there before the step does anything."""
        first = self._first_task(step)
        for occurrence in self.occurrences.get(step.name, ()):
            role, task = occurrence.part.role, occurrence.part.task
            if role in (ExpressionRole.STEP_ARGS, ExpressionRole.LOOP) or (
                role in (ExpressionRole.INPUT, ExpressionRole.TASK_ARGS)
                and first is not None
                and task <= first
            ):
                yield from uses_beside_item(occurrence, step)


class _EndlessCycles:
    """The cycles on which no guard reads what changes on the way, where a success would lead out of them."""

    def __init__(self, playbook: Playbook, context: DocumentContext) -> None:
        graph = step_graph_of(playbook)
        self._trapped = steps_without_end(playbook, context)  # reported as such
        writers: dict[str, set[str]] = {}
        for step in playbook.workflow:
            for write in step_writes(step):
                if write.scope == "ctx":
                    writers.setdefault(write.path[0], set()).add(step.name)
        successors = [
            [
                graph.number[arc.step]
                for arc in playbook.steps[name].arcs
                if arc.step in graph.number and not _is_bounded(playbook.steps[name], arc, writers)
            ]
            for name in graph.names
        ]
        self._targets = dict(zip(graph.names, map(frozenset, successors), strict=True))
        self._number = graph.number
        self._component: dict[int, int] = {}
        for position, nodes in enumerate(strong_components(successors)):
            self._component |= dict.fromkeys(nodes, position)

    def lead_back(self, step: Step, arc: Arc) -> bool:
        node, target = self._number[step.name], self._number.get(arc.step)
        if target is None or target not in self._targets[step.name] or node in self._trapped:
            return False
        return self._component[target] == self._component[node]


def _is_bounded(step: Step, arc: Arc, writers: Mapping[str, set[str]]) -> bool:
    """Whether the arc's guard reads something that changes also while the step fails.

    That is what the arc and the step's own `set` write, and what other steps do; what its tasks write is not.
    """
    if not isinstance(arc.when, Expression):
        return False
    written = {write.path[0] for write in (*step.writes, *arc.writes) if write.scope == "ctx"}
    for use in arc.when.uses:
        key = use.path[1] if use.path[0] == "ctx" and len(use.path) > 1 else use.path[0]
        if key in written or writers.get(key, set()) - {step.name}:
            return True
    return False


class _StepResults:
    """What a step gives when it succeeds."""

    def __init__(self, step: Step) -> None:
        self.name = step.name
        self.written = {write.path[0] for write in run_writes(step) if write.scope == "ctx"}

    def needed_by(self, use: Use) -> bool:
        """Whether the use is of something that is not there if the step failed."""
        if use.optional:
            return False
        path = use.path
        match path[0]:
            case "event":
                return path[1:2] == ("result",)
            case "steps":
                return path[1:2] == (self.name,)
            case "ctx":
                return path[1:2] != () and path[1] in self.written
            case name:
                return name == self.name or name in self.written
