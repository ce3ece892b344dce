"""Conditions, asked again to see what they read."""

from collections.abc import Iterator, Sequence

from noetl.dsl.document.playbook import AdmitRule, Arc, Guard, Step
from noetl.events.bodies import NextEvaluated
from noetl.expr import Expression
from noetl.kernel.explain.explanation_parts import ArcStory, Condition, Routing
from noetl.kernel.expression_reads import readings
from noetl.kernel.net.admission import around_token
from noetl.kernel.net.routing import around_end
from noetl.kernel.scopes import Surroundings
from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.kernel.state.run_state import RunState
from noetl.kernel.truncate import shown
from noetl.model import ExpressionError


def text_of(guard: Guard) -> str:
    return " ".join(guard.source.split()) if isinstance(guard, Expression) else str(guard).lower()


def rules_for(state: ExecutionState, token: Token, now: int) -> tuple[Condition, ...]:
    """The rules of a step's admission, in order, up to the one that decides."""
    admit = state.step_of(token).step.admit
    if admit is None:
        return ()
    return tuple(_asked(admit.rules, around_token(state, token, now)))


def _asked(rules: Sequence[AdmitRule], around: Surroundings) -> Iterator[Condition]:
    decided = False
    for rule in rules:
        if decided:
            yield Condition(text=text_of(rule.when), line=rule.place.line)
            continue
        found = _condition(rule, around)
        decided = found.holds is not False
        yield found


def _condition(rule: AdmitRule | Arc, around: Surroundings) -> Condition:
    holds, error = None, ""
    try:
        holds = around.holds(rule.when)
    except ExpressionError as fault:
        error = fault.message
    return Condition(
        text=text_of(rule.when),
        line=rule.place.line,
        holds=holds,
        reads=readings(rule.when, around.scope),
        error=error,
    )


def allowed(step: Step, rules: Sequence[Condition]) -> bool:
    """Whether a token was let in, by what its rules said."""
    if step.admit is None:
        return True
    for rule, asked in zip(step.admit.rules, rules, strict=True):
        if asked.holds:
            return rule.allow
        if asked.holds is None:
            return False
    return bool(step.admit.otherwise)


def routing_of(state: ExecutionState, run: RunState, body: NextEvaluated, seq: int, now: int) -> Routing:
    """How the arcs were judged, with what each guard that was asked has read."""
    around = around_end(state, run, now)
    arcs = run.step.step.arcs
    verdicts = body.verdicts or (None,) * len(arcs)
    asked = _asked_of(verdicts, body, exclusive=run.step.step.exclusive)
    return Routing(
        seq=seq,
        event=body.event,
        handled=body.handled,
        error=shown(body.error.as_value()) if body.error is not None else None,
        arcs=tuple(
            ArcStory(
                step=arc.step,
                selected=position in body.selected,
                condition=Condition(
                    text=text_of(arc.when),
                    line=arc.place.line,
                    holds=verdicts[position],
                    reads=readings(arc.when, around.scope) if position < asked else (),
                ),
            )
            for position, arc in enumerate(arcs)
        ),
    )


def _asked_of(verdicts: Sequence[bool | None], body: NextEvaluated, *, exclusive: bool) -> int:
    """How many arcs were asked: those with a verdict, and one more if its guard raised."""
    given = sum(verdict is not None for verdict in verdicts)
    raised = body.error is not None and body.error.kind == "expression" and bool(body.verdicts)
    return given + (raised and not (exclusive and any(verdicts)))
