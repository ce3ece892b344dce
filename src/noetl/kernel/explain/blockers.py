"""What an execution waits for as it stands, and what went wrong first."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from noetl.dsl.document.playbook import Position, Step
from noetl.kernel.event_position import task_labelled
from noetl.kernel.explain.conditions import admission_conditions
from noetl.kernel.explain.explanation_parts import (
    AdmissionCheck,
    FirstFailure,
    ParkedToken,
    ReachingStep,
    TokenArrival,
    WaitingJoin,
)
from noetl.kernel.explain.run_notes import RunNotes
from noetl.kernel.state.execution_state import ExecutionState, JoinState, Occupancy
from noetl.kernel.truncate import truncate_value
from noetl.model.outcome import ErrorInfo


def parked_tokens(
    state: ExecutionState, arrivals: Mapping[str, TokenArrival], gates: Mapping[str, AdmissionCheck], now: int
) -> Iterator[ParkedToken]:
    """The tokens that are kept before their steps, longest first."""
    for name in state.parked:
        token = state.tokens[name]
        step = state.step_of(token).step
        yield ParkedToken(
            arrival=arrivals[name],
            step=step.name,
            line=step.admit.position.line if step.admit is not None else step.position.line,
            mode="waiting" if token.stage == "waiting" else "parked",
            seq=gates[name].seq if name in gates else 0,
            until=token.deadline,
            rules=admission_conditions(state, token, now),
        )


def waiting_joins(state: ExecutionState, arrivals: Mapping[str, TokenArrival]) -> Iterator[WaitingJoin]:
    """The joins that hold tokens, or take in late ones."""
    for number, join in state.joins.items():
        step = state.plan.by_number[number].step
        if step.join is None:
            continue
        yield WaitingJoin(
            step=step.name,
            line=step.join.position.line,
            mode=step.join.mode,
            arrived=len(join.arrivals),
            needed=_needed(step, join),
            absorbing=join.absorbing,
            arrivals=tuple(arrivals[name] for name in join.arrivals),
            waits_for=tuple(_reaching(state, number)),
        )


def _needed(step: Step, join: JoinState) -> int | None:
    if step.join is None or step.join.mode == "all":
        return None
    return step.join.count if step.join.mode == "count" else int(not join.absorbing)


def _reaching(state: ExecutionState, number: int) -> Iterator[ReachingStep]:
    """The steps whose tokens and runs may still bring a token to this one, some only if they are retried."""
    target = state.plan.by_number[number]
    failures = Counter(run.step.number for run in state.failed_runs.values() if state.holds_back)
    for step_number in sorted({*state.occupancy, *failures}):
        plan = state.plan.by_number[step_number]
        occupancy = state.occupancy.get(step_number, Occupancy())
        runs = failed = 0
        if target.above & plan.bit:
            runs, failed = occupancy.runs, failures[step_number]
        tokens = occupancy.pending
        if step_number != number:
            tokens = tokens + occupancy.joined if target.above & plan.bit else 0
        if runs or tokens or failed:
            yield ReachingStep(step=plan.name, tokens=tokens, runs=runs, failed=failed)


def first_unhandled_failure(state: ExecutionState, runs: Mapping[str, RunNotes]) -> FirstFailure | None:
    """The first failure that no arc handled, with the attempt that failed."""
    if not state.failures:
        return None
    failure = state.failures[0]
    notes = runs[failure.run]
    run, step = notes.run, notes.plan.step
    index = failure.error.details.get("index", 0) if run.loop is not None else 0
    begun = notes.failing.get(index)
    return FirstFailure(
        run=failure.run,
        step=step.name,
        task=run.failed_task,
        iteration=index if run.loop is not None and run.failed_task else None,
        attempt=run.failed_attempt,
        **_line_and_column(step, run.failed_task, guard=run.error is None),
        input=truncate_value(begun.input) if begun is not None and begun.task == run.failed_task else None,
        error=failure_value(failure.error),
    )


def failure_value(error: ErrorInfo) -> dict[str, Any]:
    """The error, without the number of an attempt where none had begun."""
    parts = {name: part for name, part in error.as_value().items() if (name, part) != ("attempt", 0)}
    value: dict[str, Any] = truncate_value(parts)
    return value


def _line_and_column(step: Step, task: str, *, guard: bool) -> dict[str, int]:
    failed_task = task_labelled(step, task)
    position: Position = failed_task.position if failed_task is not None else step.position
    if guard and step.router is not None:
        position = step.router.position
    return {"line": position.line, "column": position.column}
