"""Why an execution is where it is, in words."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from noetl.cli.console import visible
from noetl.cli.format import duration_text, first_line, local_time, pluralize
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
_VALUE_WIDTH = 60


def run_lines(explanation: Explanation) -> Iterator[str]:
    """The runs in the order in which they began: what brought them, what they did, where they led."""
    left = len(explanation.runs) - MOST_RUNS
    if left > 0:
        yield f"… {pluralize(left, 'earlier run')}; `-o json` has them all"
    for run in explanation.runs[-MOST_RUNS:]:
        yield f"{step_text(run.step, run.line)}: {_state_text(run)}"
        yield from (f"  {line}" for line in _run_details(run))


def cancel_text(explanation: Explanation) -> str:
    """Why it was cancelled, and by whom; empty if it was not, or nobody said."""
    cancel = explanation.cancelled
    if cancel is None:
        return ""
    return ": ".join(word for word in (cancel.by and f"by {cancel.by}", cancel.reason) if word)


def wait_lines(explanation: Explanation) -> Iterator[str]:
    """What is waited for now: by tokens at their gates, at joins, and by runs."""
    for parked in explanation.parked:
        yield from _parked_lines(parked)
    for meeting in explanation.joins:
        yield _join_text(meeting)
    for run in explanation.runs:
        for waiting in run.waits:
            yield f"{step_text(run.step, run.line)} waits for {_awaited_text(waiting)}"


def waiting_run_lines(waiting: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Steps that wait for somebody, and why, as `waiting` in the JSON has them."""
    for step in waiting:
        yield visible(f"{step['step']}: {step['reason']}")


def discarded_lines(explanation: Explanation) -> Iterator[str]:
    """The tokens that ended without a run, and the rules that denied them."""
    for lost in explanation.discarded:
        yield _discarded_text(lost)
        yield from (f"  {condition_text(rule)}" for rule in lost.rules)


def _run_details(run: RunExplanation) -> Iterator[str]:
    for arrival in run.arrivals:
        if arrival.step is not None:
            yield f"from {_origin_text(arrival)}"
    for gate in run.gates:
        times = f" when asked for the {gate.asked}. time" if gate.asked > 1 else ""
        yield f"{gate.verdict}{times}"
        yield from (f"  {condition_text(rule)}" for rule in gate.rules)
    if run.loop is not None:
        loop = run.loop
        yield f"loop: {loop.succeeded} of {loop.total} succeeded, {loop.failed} failed, {loop.open} open"
        for shard in loop.shards:
            owner = f" by {visible(shard.worker)}" if shard.worker and shard.phase == "claimed" else ""
            begun = f"{shard.begun} of {shard.last - shard.first + 1} begun"
            yield f"  iterations {shard.first} to {shard.last}: {shard.phase}{owner}, {begun}"
    for task in run.tasks:
        yield from _task_lines(task)
    if run.lost:
        yield f"its worker was lost {pluralize(run.lost, 'time')}"
    if run.routing is not None:
        yield from _routing_lines(run.routing)


def _task_lines(task: TaskExplanation) -> Iterator[str]:
    if not task.open and (not task.attempts or (task.attempts == 1 and not task.failed)):
        return
    still_open = f", {task.open} open" if task.open else ""
    attempts = pluralize(task.attempts, "attempt")
    yield f"task {visible(task.task)}: {attempts}, {task.failed} failed{still_open}"
    for rule in task.rules:
        if rule.line is not None and rule.do != "continue":
            yield f"  {rule.do} by line {rule.line}: {first_line(rule.text)}, {pluralize(rule.times, 'time')}"


def _routing_lines(routing: RoutingExplanation) -> Iterator[str]:
    for arc in routing.arcs:
        if arc.selected:
            yield f"→ {visible(arc.step)}: {condition_text(arc.condition)}"
        elif arc.condition.holds is not None or arc.condition.error:
            yield f"not {visible(arc.step)}: {condition_text(arc.condition)}"
    if routing.error is not None:
        yield f"routing failed: {_error_text(routing.error)}"
    elif not any(arc.selected for arc in routing.arcs):
        yield f"no arc was taken after {routing.event}"


def _parked_lines(parked: ParkedToken) -> Iterator[str]:
    until = f" until {local_time(parked.until)}" if parked.until is not None else ""
    where = step_text(parked.step, parked.line)
    yield f"a token from {_origin_text(parked.arrival)} is {parked.mode} before {where}{until}"
    yield from (f"  {condition_text(rule)}" for rule in parked.rules)


def _join_text(meeting: WaitingJoin) -> str:
    of = f" of {meeting.needed}" if meeting.needed is not None else ""
    came = f"{meeting.arrived}{of} {'token' if meeting.arrived == 1 and not of else 'tokens'}"
    more = ", ".join(map(_source_text, meeting.waits_for)) or "nothing"
    where = step_text(meeting.step, meeting.line)
    return f"the join ({meeting.mode}) of {where} has {came}; more can come from {more}"


def _source_text(reaching: ReachingStep) -> str:
    parts = [
        pluralize(number, noun)
        for number, noun in (
            (reaching.tokens, "token"),
            (reaching.runs, "run"),
            (reaching.failed, "failed run"),
        )
        if number
    ]
    return f"{visible(reaching.step)} ({', '.join(parts)})"


def _awaited_text(waiting: RunWait) -> str:
    awaited = {
        "retry": "its next attempt",
        "wait": "a time",
        "signal": f"the signal {visible(waiting.signal)}",
        "child": f"the execution {waiting.child}",
        "pause": "the execution to be resumed",
    }[waiting.reason]
    until = f" until {local_time(waiting.until)}" if waiting.until is not None else ""
    return awaited + until + (f" (iteration {waiting.iteration})" if waiting.iteration else "")


def _discarded_text(lost: DiscardedToken) -> str:
    return f"a token from {_origin_text(lost.arrival)} for {step_text(lost.step, lost.line)}: {lost.reason}"


def condition_text(condition: Condition) -> str:
    """`{{ … }}` (line 7) holds: ctx.a = 1."""
    if condition.text == "true":
        return f"always (line {condition.line})"
    verdict = {True: "holds", False: "does not hold", None: "was not asked"}[condition.holds]
    if condition.error:
        verdict = f"failed ({first_line(condition.error)})"
    reads = ", ".join(_reading_text(reading) for reading in condition.reads)
    return f"{first_line(condition.text)} (line {condition.line}) {verdict}" + (f": {reads}" if reads else "")


def _reading_text(reading: PathRead) -> str:
    return (
        f"{reading.path} is missing" if reading.missing else f"{reading.path} = {_value_text(reading.value)}"
    )


def _value_text(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _VALUE_WIDTH else text[: _VALUE_WIDTH - 1] + "…"


def _state_text(run: RunExplanation) -> str:
    time = duration_text(run.worked)
    if run.error is not None:
        return f"failed after {time}: {_error_text(run.error)}"
    if run.event:
        return f"done in {time}"
    return f"{'under way' if run.phase == 'claimed' else run.phase}, {time} so far"


def _origin_text(arrival: TokenArrival) -> str:
    return step_text(arrival.step, arrival.line) if arrival.step is not None else "the beginning"


def step_text(step: str, line: int | None) -> str:
    return f"{visible(step)} (line {line})" if line is not None else visible(step)


def _error_text(error: dict[str, Any]) -> str:
    return f"{error.get('kind')}: {first_line(str(error.get('message', '')))}"


def section_lines(title: str, lines: Iterable[str]) -> list[str]:
    """The lines below their title, or nothing at all."""
    indented = [f"  {line}" for line in lines]
    return ["", title, *indented] if indented else []
