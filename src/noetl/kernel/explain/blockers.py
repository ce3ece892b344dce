"""What an execution waits for as it stands, and what went wrong first."""

from collections.abc import Iterator, Mapping

from noetl.dsl.document.playbook import Place, Step
from noetl.kernel.event_position import task_labelled
from noetl.kernel.explain.conditions import rules_for
from noetl.kernel.explain.explanation_parts import Arrival, Gate, Meeting, Parked, Reaching, Unhandled
from noetl.kernel.explain.run_notes import RunNotes
from noetl.kernel.state.execution_state import ExecutionState, JoinState
from noetl.kernel.truncate import shown


def parked_of(
    state: ExecutionState, arrivals: Mapping[str, Arrival], gates: Mapping[str, Gate], now: int
) -> Iterator[Parked]:
    """The tokens that are kept before their steps, longest first."""
    for name in state.parked:
        token = state.tokens[name]
        step = state.step_of(token).step
        yield Parked(
            arrival=arrivals[name],
            step=step.name,
            line=step.admit.place.line if step.admit is not None else step.place.line,
            mode="waiting" if token.place == "waiting" else "parked",
            seq=gates[name].seq if name in gates else 0,
            until=token.deadline,
            rules=rules_for(state, token, now),
        )


def meetings_of(state: ExecutionState, arrivals: Mapping[str, Arrival]) -> Iterator[Meeting]:
    """The joins that hold tokens, or take in late ones."""
    for number, join in state.joins.items():
        step = state.plan.by_number[number].step
        if step.join is None:
            continue
        yield Meeting(
            step=step.name,
            line=step.join.place.line,
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


def _reaching(state: ExecutionState, number: int) -> Iterator[Reaching]:
    """The steps whose tokens and runs may still bring a token to this one."""
    target = state.plan.by_number[number]
    for other, here in sorted(state.occupancy.items()):
        plan = state.plan.by_number[other]
        if other == number:
            runs = here.runs if target.above & target.bit else 0
            tokens = here.pending
        elif target.above & plan.bit:
            runs, tokens = here.runs, here.pending + here.joined
        else:
            continue
        if runs or tokens:
            yield Reaching(step=plan.name, tokens=tokens, runs=runs)


def failure_of(state: ExecutionState, runs: Mapping[str, RunNotes]) -> Unhandled | None:
    """The first failure that no arc handled, with the attempt that failed."""
    if not state.failures:
        return None
    failure = state.failures[0]
    notes = runs[failure.run]
    run, step = notes.run, notes.plan.step
    index = failure.error.details.get("index", 0) if run.loop is not None else 0
    begun = notes.failing.get(index)
    return Unhandled(
        run=failure.run,
        step=step.name,
        task=run.failed_task,
        iteration=index if run.loop is not None and run.failed_task else None,
        attempt=run.failed_attempt,
        **_place(step, run.failed_task, guard=run.error is None),
        input=shown(begun.input) if begun is not None and begun.task == run.failed_task else None,
        error=shown(failure.error.as_value()),
    )


def _place(step: Step, task: str, *, guard: bool) -> dict[str, int]:
    found = task_labelled(step, task)
    place: Place = found.place if found is not None else step.place
    if guard and step.router is not None:
        place = step.router.place
    return {"line": place.line, "column": place.column}
