"""Conditions, asked again to see what they read."""

from collections.abc import Iterator, Sequence

from noetl.dsl.document.playbook import AdmitRule, Arc, Guard, Step
from noetl.events.bodies import NextEvaluated
from noetl.expr.expression import Expression
from noetl.kernel.explain.explanation_parts import ArcExplanation, Condition, RoutingExplanation
from noetl.kernel.expression_reads import paths_read
from noetl.kernel.net.admission import admission_scope
from noetl.kernel.net.routing import run_end_scope
from noetl.kernel.scopes import EvaluationScope
from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.kernel.state.run_state import RunState
from noetl.kernel.truncate import truncate_value
from noetl.model.errors import ExpressionError


def condition_text(guard: Guard) -> str:
    return " ".join(guard.source.split()) if isinstance(guard, Expression) else str(guard).lower()


def admission_conditions(state: ExecutionState, token: Token, now: int) -> tuple[Condition, ...]:
    """The rules of a step's admission, in order, up to the one that decides."""
    admit = state.step_of(token).step.admit
    if admit is None:
        return ()
    return tuple(_ask_rules(admit.rules, admission_scope(state, token, now)))


def _ask_rules(rules: Sequence[AdmitRule], scope: EvaluationScope) -> Iterator[Condition]:
    decided = False
    for rule in rules:
        if decided:
            yield Condition(text=condition_text(rule.when), line=rule.position.line)
            continue
        condition = _condition(rule, scope)
        decided = condition.holds is not False
        yield condition


def _condition(rule: AdmitRule | Arc, scope: EvaluationScope) -> Condition:
    holds, error = None, ""
    try:
        holds = scope.holds(rule.when)
    except ExpressionError as fault:
        error = fault.message
    return Condition(
        text=condition_text(rule.when),
        line=rule.position.line,
        holds=holds,
        reads=paths_read(rule.when, scope.expression_scope),
        error=error,
    )


def was_admitted(step: Step, rules: Sequence[Condition]) -> bool:
    """Whether a token was let in, by what its rules said."""
    if step.admit is None:
        return True
    for rule, condition in zip(step.admit.rules, rules, strict=True):
        if condition.holds:
            return rule.allow
        if condition.holds is None:
            return False
    return bool(step.admit.otherwise)


def explain_routing(
    state: ExecutionState, run: RunState, body: NextEvaluated, seq: int, now: int
) -> RoutingExplanation:
    """How the arcs were judged, with what each guard that was asked has read."""
    scope = run_end_scope(state, run, now)
    arcs = run.step.step.arcs
    verdicts = body.verdicts or (None,) * len(arcs)
    asked_arcs = _asked_arcs(verdicts, body, exclusive=run.step.step.is_exclusive)
    return RoutingExplanation(
        seq=seq,
        event=body.event,
        handled=body.handled,
        error=truncate_value(body.error.as_value()) if body.error is not None else None,
        arcs=tuple(
            ArcExplanation(
                step=arc.step,
                selected=position in body.selected,
                condition=Condition(
                    text=condition_text(arc.when),
                    line=arc.position.line,
                    holds=verdicts[position],
                    reads=paths_read(arc.when, scope.expression_scope) if position < asked_arcs else (),
                ),
            )
            for position, arc in enumerate(arcs)
        ),
    )


def _asked_arcs(verdicts: Sequence[bool | None], body: NextEvaluated, *, exclusive: bool) -> int:
    """How many arcs were asked: those with a verdict, and one more if its guard raised."""
    verdict_count = sum(verdict is not None for verdict in verdicts)
    raised = body.error is not None and body.error.kind == "expression" and bool(body.verdicts)
    return verdict_count + (raised and not (exclusive and any(verdicts)))
