"""On which endings of a step, and on which outcomes of a task, a condition may hold.

A condition is evaluated once for each ending, with the ending known and everything else unknown.
"""

from functools import cache
from typing import Final

from noetl.dsl.document.playbook import Guard, Step
from noetl.expr.analysis.partial_evaluation import AbstractValue, Facts, KnownValue, Uncertain, verdicts
from noetl.expr.expression import Expression
from noetl.expr.template import Template, template_expressions
from noetl.expr.use import Path

DONE: Final = "step.done"
LOOP_DONE: Final = "loop.done"
FAILED: Final = "step.failed"

_WITHOUT_FAILURE: Final = {event: frozenset({event}) for event in (DONE, LOOP_DONE)}
_WITH_FAILURE: Final = {event: frozenset({event, FAILED}) for event in (DONE, LOOP_DONE)}

OK: Final = "ok"
ERROR: Final = "error"


def possible_events(guard: Guard, step: Step) -> frozenset[str]:
    """The events that may end this step and on which the guard may hold."""
    return frozenset(event for event in terminal_events(step) if holds_on(guard, event) is not False)


def certain_events(guard: Guard, step: Step) -> frozenset[str]:
    """The events that may end this step and on which the guard holds whatever else is true."""
    return frozenset(event for event in terminal_events(step) if holds_on(guard, event) is True)


def holds_on(guard: Guard, event: str) -> bool | None:
    """Whether the guard holds on this event; None if that depends on more than the event."""
    if isinstance(guard, bool):
        return guard
    return _on_events(guard)[event]


def matches_on(guard: Guard, status: str) -> bool | None:
    """Whether a rule's condition holds on this outcome; None if that depends on more than its status."""
    if isinstance(guard, bool):
        return guard
    return _on_outcomes(guard)[status]


def terminal_events(step: Step) -> frozenset[str]:
    """The events that can end a run of this step."""
    # Made once: every arc of a step asks, and there may be a hundred thousand.
    return (_WITH_FAILURE if can_fail(step) else _WITHOUT_FAILURE)[step.done_event]


def can_fail(step: Step) -> bool:
    """Whether a run could fail at all: one that a worker runs always can, one that only routes seldom."""
    if step.tasks or step.timeout is not None or step.loop is not None:
        return True
    if step.admit is not None and step.admit.may_fail:
        return True
    if not (step.writes or step.args):  # nearly always, and cheaper to ask than what follows
        return False
    return any(_reads(write.value) for write in step.writes) or any(map(_reads, step.args.values()))


def forget_verdicts() -> None:
    """To be called when a document is checked: nothing of it shall stay in memory."""
    _on_events.cache_clear()
    _on_outcomes.cache_clear()


def _reads(data: Template) -> bool:
    return next(template_expressions(data), None) is not None


def _event_facts(name: str) -> Facts:
    failed = name == FAILED
    facts: dict[Path, AbstractValue] = {
        ("event",): Uncertain.TRUE,
        ("event", "name"): KnownValue(name),
        ("event", "status"): KnownValue("error" if failed else "success"),
        ("event", "error"): Uncertain.TRUE if failed else Uncertain.FALSE,
    }
    if failed:
        facts["event", "result"] = Uncertain.FALSE
    return facts


def _outcome_facts(status: str) -> Facts:
    facts: dict[Path, AbstractValue] = {}
    for alias in ("outcome", "output"):
        facts[(alias,)] = Uncertain.TRUE
        facts[alias, "status"] = KnownValue(status)
        facts[alias, "error"] = Uncertain.TRUE if status == ERROR else Uncertain.FALSE
        if status == ERROR:
            facts[alias, "result"] = facts[alias, "data"] = Uncertain.FALSE
    return facts


_EVENTS = {name: _event_facts(name) for name in (DONE, LOOP_DONE, FAILED)}
_OUTCOMES = {status: _outcome_facts(status) for status in (OK, ERROR)}


# Several checks ask about each guard, and many steps share few different ones. Expressions with one source
# are equal, and a verdict depends on nothing else. Without a bound, because a document with more guards than
# the bound would have each of them read again by each check; `forget_verdicts` sees to the end of it.
@cache
def _on_events(guard: Expression) -> dict[str, bool | None]:
    return verdicts(guard, _EVENTS)


@cache
def _on_outcomes(guard: Expression) -> dict[str, bool | None]:
    return verdicts(guard, _OUTCOMES)
