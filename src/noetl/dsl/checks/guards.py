"""On which endings of a step, and on which outcomes of a task, a condition may hold.

A condition is evaluated once for each ending, with the ending known and everything else unknown.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from noetl.dsl.checks.partial import Facts, Hazy, Known, Value, evaluate, truth
from noetl.dsl.playbook import Guard, Policy, Step, Then
from noetl.expr import Data, expressions_in
from noetl.expr.parsing import parse_syntax

DONE: Final = "step.done"
LOOP_DONE: Final = "loop.done"
FAILED: Final = "step.failed"

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
    return _on_events(guard.source)[event]


def reads_failure(guard: Guard) -> bool:
    """Whether the guard looks at how the step ended: its arc then handles a failure (semantics §6)."""
    if isinstance(guard, bool):
        return False
    return any(
        use.path == ("event",) or (use.path[0] == "event" and use.path[1] in ("name", "status", "error"))
        for use in guard.uses
    )


def possible_outcomes(guard: Guard) -> frozenset[str]:
    """The outcome statuses on which a rule with this condition may match."""
    return frozenset(status for status in (OK, ERROR) if matches_on(guard, status) is not False)


def matches_on(guard: Guard, status: str) -> bool | None:
    """Whether a rule's condition holds on this outcome; None if that depends on more than its status."""
    if isinstance(guard, bool):
        return guard
    return _on_outcomes(guard.source)[status]


def terminal_events(step: Step) -> frozenset[str]:
    """The events that can end a run of this step."""
    return frozenset({step.done_event, FAILED} if can_fail(step) else {step.done_event})


def can_fail(step: Step) -> bool:
    """Whether a run could fail at all: one that a worker runs always can, one that only routes seldom."""
    if step.tasks or step.timeout is not None or step.loop is not None:
        return True
    if step.admit is not None and (step.admit.on_deny == "fail" or step.admit.timeout is not None):
        return True
    return any(_reads(write.value) for write in step.writes) or any(map(_reads, step.args.values()))


def thens(policy: Policy) -> Iterator[Then]:
    """What the rules do, in order, the `else` last."""
    for rule in policy.rules:
        yield rule.then
    if policy.otherwise is not None:
        yield policy.otherwise


def _reads(data: Data) -> bool:
    return next(expressions_in(data), None) is not None


def _event_facts(name: str) -> Facts:
    failed = name == FAILED
    values: dict[tuple[str, ...], Value] = {
        ("event",): Hazy.TRUE,
        ("event", "name"): Known(name),
        ("event", "status"): Known("error" if failed else "success"),
        ("event", "error"): Hazy.TRUE if failed else Hazy.FALSE,
    }
    if failed:
        values["event", "result"] = Hazy.FALSE
    done = DONE if failed else name
    return Facts(values, {"call.done": done, "call.error": FAILED})


def _outcome_facts(status: str) -> Facts:
    values: dict[tuple[str, ...], Value] = {}
    for alias, result in (("outcome", "result"), ("output", "result"), ("output", "data")):
        values[(alias,)] = Hazy.TRUE
        values[alias, "status"] = Known(status)
        values[alias, "error"] = Hazy.TRUE if status == ERROR else Hazy.FALSE
        if status == ERROR:
            values[alias, result] = Hazy.FALSE
    return Facts(values)


_EVENTS = MappingProxyType({name: _event_facts(name) for name in (DONE, LOOP_DONE, FAILED)})
_OUTCOMES = MappingProxyType({status: _outcome_facts(status) for status in (OK, ERROR)})


@lru_cache(4096)
def _on_events(source: str) -> dict[str, bool | None]:
    return _verdicts(source, _EVENTS)


@lru_cache(4096)
def _on_outcomes(source: str) -> dict[str, bool | None]:
    return _verdicts(source, _OUTCOMES)


_USUAL = re.compile(
    r"\s*\{\{\s*(\w+)\.(\w+)\s*(==|!=)\s*'([^'\\]*)'\s*(and\b(?!.*\b(?:or|if)\b).*)?\}\}\s*", re.DOTALL
)
"""One comparison, perhaps with more conditions after it. Most guards: parsing them again takes longer."""


def _verdicts(source: str, facts: MappingProxyType[str, Facts]) -> dict[str, bool | None]:
    if usual := _USUAL.fullmatch(source):
        first, second, operator, text, rest = usual.groups()
        values = {name: known.values.get((first, second)) for name, known in facts.items()}
        holds = {
            name: (value.value == facts[name].spellings.get(text, text)) == (operator == "==")
            for name, value in values.items()
            if isinstance(value, Known)
        }
        if len(holds) == len(facts):
            return {name: (None if rest else True) if held else False for name, held in holds.items()}
    expression = parse_syntax(source).expression
    if expression is None:
        return dict.fromkeys(facts)
    return {name: truth(evaluate(expression, known)) for name, known in facts.items()}
