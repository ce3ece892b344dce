"""Arcs: those that are never taken, and those that wait for an event that never comes."""

from noetl.dsl.checks.known_shapes import impossible_values
from noetl.dsl.document.context import DocumentContext, ExpressionOccurrence, ExpressionRole, PlaybookPart
from noetl.dsl.document.guard_verdicts import (
    DONE,
    FAILED,
    LOOP_DONE,
    certain_events,
    holds_on,
    possible_events,
    terminal_events,
)
from noetl.dsl.document.playbook import Arc, Guard, Playbook, Position, Step
from noetl.dsl.document.source import Scalar
from noetl.expr.expression import Expression


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
