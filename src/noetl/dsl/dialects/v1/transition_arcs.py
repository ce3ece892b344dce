"""Transitions as arcs (004 §4.3, §6): the first that holds fires all its steps, errors go their own way."""

from noetl.dsl.dialects.expression_text import as_conjunct, as_template, inner_expression, negate_guard
from noetl.dsl.dialects.nodes import new_entry, new_mapping, new_sequence, new_text
from noetl.dsl.dialects.v1.name_scope import V1NameScope
from noetl.dsl.dialects.v1.v1_steps import ERROR_HANDLER, Transition, TransitionTarget, V1Step
from noetl.dsl.document.shape_check import ProblemReporter
from noetl.dsl.document.source import Mapping, Node, Scalar, node_of

# Not `== 'step.done'`: a step with a loop succeeds with `loop.done`.
_DONE = "event.name != 'step.failed'"
_FAILED = "event.name == 'step.failed'"


def upgrade_transitions(
    step: V1Step, scope: V1NameScope, *, handled: bool, report: ProblemReporter
) -> Mapping | None:
    """The step's `next`. `handled`: its failures go to the error handler without being told to."""
    routing = _Routing(step, scope, report)
    arcs = routing.done() + routing.failed()
    if handled and not any(_is_always(transition.when) for transition in routing.errors):
        guard = routing.guard(_FAILED) or _FAILED
        arcs.append(node_of({"step": ERROR_HANDLER, "when": as_template(guard)}, step.node))
    if not arcs:
        return None
    at = step.node.entries.get("next") or step.node
    mode = "inclusive" if routing.fans_out else "exclusive"
    spec = new_mapping([new_entry("mode", new_text(mode, at))], at)
    return new_mapping([new_entry("spec", spec), new_entry("arcs", new_sequence(arcs, at))], at)


class _Routing:
    """The transitions of one step. `before` are the conditions that must not have held."""

    def __init__(self, step: V1Step, scope: V1NameScope, report: ProblemReporter) -> None:
        self._transitions = step.transitions
        self._scope = scope
        self._report = report
        self._before: list[str] = []
        self._can_fail = step.can_fail
        self.errors = [transition for transition in step.transitions if _to(transition, handler=True)]
        self.fans_out = any(
            len(_to(transition, handler=handler)) > 1
            for transition in step.transitions
            for handler in (True, False)
        )

    def done(self) -> list[Node]:
        """The arcs that fire when the step succeeded."""
        self._before = []
        arcs: list[Node] = []
        ended = False
        for transition in self._transitions:
            targets = _to(transition, handler=False)
            if ended and targets:
                self._report(
                    "dead-arc",
                    transition.node,
                    "the transition before it always holds, so this one never fires",
                    "put the transition without `when` last",
                )
                continue
            arcs += self._arcs(transition, targets, _DONE if self._can_fail else None)
            # One that leads to the error handler alone takes no part: it must not stop those after it.
            ended = ended or (bool(targets) and _is_always(transition.when))
        return arcs

    def failed(self) -> list[Node]:
        """The arcs that fire when it failed: those that lead to the error handler."""
        self._before = []
        arcs: list[Node] = []
        for transition in self.errors:
            if not _is_always(transition.when):
                self._report(
                    "v1-error-condition",
                    transition.node,
                    f"a transition to `{ERROR_HANDLER}` fires only after a failure, if its condition holds",
                    "let the task fail, or name another step",
                )
            arcs += self._arcs(transition, _to(transition, handler=True), _FAILED)
        return arcs

    def guard(self, head: str | None, condition: str | None = None) -> str | None:
        """The event, none of the conditions before, and this one; None where nothing is asked for."""
        parts = [negate_guard(earlier) for earlier in self._before]
        if head is not None:
            parts.insert(0, head)
        if condition is not None:
            parts.append(as_conjunct(condition) if parts else condition)
        return " and ".join(parts) or None

    def _arcs(self, transition: Transition, targets: list[TransitionTarget], head: str | None) -> list[Node]:
        condition = self._condition(transition.when)
        guard = self.guard(head, condition)
        when: Node | None
        if condition is None and transition.when is not None and not _is_always(transition.when):
            # No single expression: the canonical reader says what is wrong with it.
            when = transition.when
        else:
            when = new_text(as_template(guard), transition.when or transition.node) if guard else None
        arcs = [self._arc(target, when) for target in targets]
        # Exclusive arcs are tried in order, so only inclusive ones must exclude each other.
        if arcs and condition is not None and self.fans_out:
            self._before.append(condition)
        return arcs

    def _arc(self, target: TransitionTarget, when: Node | None) -> Node:
        entries = [new_entry("step", target.node)]
        if when is not None:
            entries.append(new_entry("when", when))
        if target.inputs is not None:
            entries.append(new_entry("args", self._scope.rewrite_value(target.inputs.value), target.inputs))
        return new_mapping(entries, target.node)

    def _condition(self, when: Node | None) -> str | None:
        """The condition as an expression; None where there is none, or none that can be combined."""
        if not isinstance(when, Scalar) or _is_always(when):
            return None
        if when.value is False:
            return "false"
        if not isinstance(when.value, str):
            return None
        rewritten = self._scope.rewrite_guard(when)
        return inner_expression(str(rewritten.value)) if isinstance(rewritten, Scalar) else None


def _to(transition: Transition, *, handler: bool) -> list[TransitionTarget]:
    """The targets that are the error handler, or those that are not."""
    return [target for target in transition.targets if (target.name == ERROR_HANDLER) is handler]


def _is_always(when: Node | None) -> bool:
    return when is None or (isinstance(when, Scalar) and when.value is True)
