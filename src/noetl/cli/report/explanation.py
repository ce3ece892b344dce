"""Why an execution is where it is, in words."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from noetl.cli.console import visible
from noetl.cli.report.format import first_line, pluralize
from noetl.cli.timestamps import local_time
from noetl.kernel.explain.explanation_parts import (
    Condition,
    DiscardedToken,
    Explanation,
    ParkedToken,
    ReachingStep,
    RoutingExplanation,
    RunExplanation,
    RunWait,
    TaskExplanation,
    TokenArrival,
    WaitingJoin,
)
from noetl.kernel.expression_reads import PathRead

MOST_RUNS = 40
_VALUE = 60


def run_lines(explanation: Explanation) -> Iterator[str]:
    """The runs in the order in which they began: what brought them, what they did, where they led."""
    left = len(explanation.runs) - MOST_RUNS
    if left > 0:
        yield f"… {pluralize(left, 'earlier run')}; `-o json` has them all"
    for run in explanation.runs[-MOST_RUNS:]:
        yield f"{_called(run.step, run.line)}: {_state(run)}"
        yield from (f"  {line}" for line in _run(run))


def cancel_text(explanation: Explanation) -> str:
    """Why it was cancelled, and by whom; empty if it was not, or nobody said."""
    said = explanation.cancelled
    if said is None:
        return ""
    return ": ".join(word for word in (said.by and f"by {said.by}", said.reason) if word)


def wait_lines(explanation: Explanation) -> Iterator[str]:
    """What is waited for now: by tokens at their gates, at joins, and by runs."""
    for parked in explanation.parked:
        yield from _parked(parked)
    for meeting in explanation.joins:
        yield _meeting(meeting)
    for run in explanation.runs:
        for waiting in run.waits:
            yield f"{_called(run.step, run.line)} waits for {_waiting(waiting)}"


def discarded_lines(explanation: Explanation) -> Iterator[str]:
    """The tokens that ended without a run, and the rules that denied them."""
    for lost in explanation.discarded:
        yield _lost(lost)
        yield from (f"  {_condition(rule)}" for rule in lost.rules)


def _run(run: RunExplanation) -> Iterator[str]:
    for arrival in run.arrivals:
        if arrival.step is not None:
            yield f"from {_origin(arrival)}"
    for gate in run.gates:
        asked = f" when asked for the {gate.asked}. time" if gate.asked > 1 else ""
        yield f"{gate.verdict}{asked}"
        yield from (f"  {_condition(rule)}" for rule in gate.rules)
    if run.loop is not None:
        loop = run.loop
        yield f"loop: {loop.succeeded} of {loop.total} succeeded, {loop.failed} failed, {loop.open} open"
    for task in run.tasks:
        yield from _task(task)
    if run.lost:
        yield f"its worker was lost {pluralize(run.lost, 'time')}"
    if run.routing is not None:
        yield from _routing(run.routing)


def _task(task: TaskExplanation) -> Iterator[str]:
    if not task.open and (not task.attempts or (task.attempts == 1 and not task.failed)):
        return
    still_open = f", {task.open} open" if task.open else ""
    attempts = pluralize(task.attempts, "attempt")
    yield f"task {visible(task.task)}: {attempts}, {task.failed} failed{still_open}"
    for rule in task.rules:
        if rule.line is not None and rule.do != "continue":
            yield f"  {rule.do} by line {rule.line}: {first_line(rule.text)}, {pluralize(rule.times, 'time')}"


def _routing(routing: RoutingExplanation) -> Iterator[str]:
    for arc in routing.arcs:
        if arc.selected:
            yield f"→ {visible(arc.step)}: {_condition(arc.condition)}"
        elif arc.condition.holds is not None or arc.condition.error:
            yield f"not {visible(arc.step)}: {_condition(arc.condition)}"
    if routing.error is not None:
        yield f"routing failed: {_error(routing.error)}"
    elif not any(arc.selected for arc in routing.arcs):
        yield f"no arc was taken after {routing.event}"


def _parked(parked: ParkedToken) -> Iterator[str]:
    until = f" until {local_time(parked.until)}" if parked.until is not None else ""
    where = _called(parked.step, parked.line)
    yield f"a token from {_origin(parked.arrival)} is {parked.mode} before {where}{until}"
    yield from (f"  {_condition(rule)}" for rule in parked.rules)


def _meeting(meeting: WaitingJoin) -> str:
    of = f" of {meeting.needed}" if meeting.needed is not None else ""
    came = f"{meeting.arrived}{of} {'token' if meeting.arrived == 1 and not of else 'tokens'}"
    more = ", ".join(map(_reaching, meeting.waits_for)) or "nothing"
    where = _called(meeting.step, meeting.line)
    return f"the join ({meeting.mode}) of {where} has {came}; more can come from {more}"


def _reaching(reaching: ReachingStep) -> str:
    parts = [
        pluralize(number, noun)
        for number, noun in ((reaching.tokens, "token"), (reaching.runs, "run"))
        if number
    ]
    return f"{visible(reaching.step)} ({', '.join(parts)})"


def _waiting(waiting: RunWait) -> str:
    what = {
        "retry": "its next attempt",
        "wait": "a time",
        "signal": f"the signal {visible(waiting.signal)}",
        "child": f"the execution {waiting.child}",
        "pause": "the execution to be resumed",
    }[waiting.reason]
    until = f" until {local_time(waiting.until)}" if waiting.until is not None else ""
    return what + until + (f" (iteration {waiting.iteration})" if waiting.iteration else "")


def _lost(lost: DiscardedToken) -> str:
    return f"a token from {_origin(lost.arrival)} for {_called(lost.step, lost.line)}: {lost.reason}"


def _condition(condition: Condition) -> str:
    """`{{ … }}` (line 7) holds: ctx.a = 1."""
    if condition.text == "true":
        return f"always (line {condition.line})"
    verdict = {True: "holds", False: "does not hold", None: "was not asked"}[condition.holds]
    if condition.error:
        verdict = f"failed ({first_line(condition.error)})"
    reads = ", ".join(_reading(reading) for reading in condition.reads)
    return f"{first_line(condition.text)} (line {condition.line}) {verdict}" + (f": {reads}" if reads else "")


def _reading(reading: PathRead) -> str:
    return f"{reading.path} is missing" if reading.missing else f"{reading.path} = {_value(reading.value)}"


def _value(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _VALUE else text[: _VALUE - 1] + "…"


def _state(run: RunExplanation) -> str:
    if run.error is not None:
        return f"failed: {_error(run.error)}"
    if run.event:
        return "done"
    return "under way" if run.phase == "claimed" else run.phase


def _origin(arrival: TokenArrival) -> str:
    return _called(arrival.step, arrival.line) if arrival.step is not None else "the beginning"


def _called(step: str, line: int | None) -> str:
    return f"{visible(step)} (line {line})" if line is not None else visible(step)


def _error(error: dict[str, Any]) -> str:
    return f"{error.get('kind')}: {first_line(str(error.get('message', '')))}"


def section_lines(title: str, lines: Iterable[str]) -> list[str]:
    """The lines below their title, or nothing at all."""
    found = [f"  {line}" for line in lines]
    return ["", title, *found] if found else []
