"""On which endings of a step and outcomes of a task a condition may hold, and which rules and arcs so follow.

A condition is evaluated once for each ending, with the ending known and everything else unknown.
"""

from collections.abc import Iterator
from functools import cache
from typing import Final, NamedTuple

from noetl.dsl.document.playbook import Fail, Guard, Policy, RetryTask, Step, Task, Then
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


class ArcChoice(NamedTuple):
    """An arc by its position. `certain`: if the router comes to it, it is taken."""

    arc: int
    certain: bool


class StepRoutes(NamedTuple):
    """The arcs that may be taken after a success and after a failure.

    An arc that does not ask how the step ended is taken to follow a success: whoever writes one step
    after the other means that. A failure that no arc asks for leads nowhere.
    """

    succeeded: tuple[ArcChoice, ...]
    failed: tuple[ArcChoice, ...]


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


def possible_thens(policy: Policy, status: str) -> Iterator[Then | None]:
    """What may follow an outcome of this status; None stands for no rule matching, and comes last."""
    for rule in policy.rules:
        verdict = matches_on(rule.when, status)
        if verdict is not False:
            yield rule.then
        if verdict:
            return
    yield policy.otherwise


def possible_statuses(task: Task) -> tuple[str, ...]:
    """The statuses its tool can give; `noop` has no errors of its own."""
    return (OK,) if task.kind == "noop" else (OK, ERROR)


def step_may_fail(step: Step) -> bool:
    """Whether a run may fail in the ordinary way: a tool's error, a rule, a gate that says so."""
    if step.admit is not None and step.admit.may_fail:
        return True
    if step.loop is not None and step.loop.failure == "best_effort":
        return False
    return any(_may_fail(task) for task in step.tasks)


def _may_fail(task: Task) -> bool:
    if task.policy is None:
        return task.kind != "noop"
    for status in possible_statuses(task):
        for then in possible_thens(task.policy, status):
            if then is None:
                if status == ERROR and task.policy.on_unmatched == "fail":
                    return True
            elif isinstance(then.do, Fail | RetryTask):
                return True
    return False


def step_routes(step: Step) -> StepRoutes:
    """Which arcs a step may take when it ends."""
    succeeded: list[ArcChoice] = []
    failed: list[ArcChoice] = []
    ends = terminal_events(step)
    open_events = set(ends)
    for index, arc in enumerate(step.arcs):
        arc_verdicts = {event: holds_on(arc.when, event) for event in open_events}
        on_success = arc_verdicts.get(step.done_event, False)
        on_failure = arc_verdicts.get(FAILED, False)
        if on_success is not False:
            succeeded.append(ArcChoice(index, on_success is True))
        if on_failure is not False and (on_success is False or arc.handles_failure):
            failed.append(ArcChoice(index, on_failure is True))
        if step.is_exclusive:
            open_events -= {event for event, verdict in arc_verdicts.items() if verdict is True}
    return StepRoutes(tuple(succeeded), tuple(failed))


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
