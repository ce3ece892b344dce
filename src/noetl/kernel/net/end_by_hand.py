"""Ending by hand what is stuck at a step or failed there: `complete` and `skip` (semantics §10)."""

from collections.abc import Sequence

from noetl.events.bodies import (
    EventBody,
    ExecutionRetried,
    StepCompletedByHand,
    StepFailed,
    StepScheduled,
    StepSkipped,
)
from noetl.events.identifiers import run_id
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import CompleteStep, SkipStep
from noetl.kernel.net.operations import require_step, runs_after_failure, take_back
from noetl.kernel.net.routing import seal_run_end
from noetl.kernel.plan import StepPlan
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_fold import EndByHand, RunEnd
from noetl.kernel.state.run_state import RunState
from noetl.model.reference import escape


def decide_end_by_hand(state: ExecutionState, command: CompleteStep | SkipStep, now: int) -> list[EventBody]:
    """The runs that failed at the step end as done; else those that are open; else its tokens that wait.

    Runs that failed elsewhere stay so. The step's own writes are evaluated on the state as it is. Raises
    Refused.
    """
    plan = _require_open_step(state, command.step)
    failed = [run for run in state.failed_runs.values() if run.step is plan and run.error is not None]
    if failed:
        return _end_failed(state, failed, command, now)
    if state.over:
        raise Refused(f"the execution is {state.status}, and no run of `{plan.name}` has failed in it")
    open_runs = [run for run in state.runs.values() if run.step is plan and run.phase != "ended"]
    if open_runs:
        return [_end_of(state, run, command, now) for run in open_runs]
    bodies: list[EventBody] = []
    for token in state.tokens.values():
        if token.step == plan.number and token.stage in ("parked", "waiting"):
            bodies.append(StepScheduled(step=plan.name, tokens=(token.id,), args=token.args))
            name = run_id(state.version + len(bodies))
            run = RunState(id=name, step=plan, inputs=state.inputs, args=token.args, ctx=state.ctx.pinned())
            bodies.append(_end_of(state, run, command, now))
    if not bodies:
        raise Refused(f"nothing runs, waits or has failed at `{plan.name}`")
    return bodies


def _require_open_step(state: ExecutionState, name: str) -> StepPlan:
    if state.status == "new":
        raise Refused("there is no such execution")
    if state.status in ("completed", "cancelled", "refused"):
        raise Refused(f"the execution is {state.status}")
    if state.stopping:
        raise Refused("the execution was cut short as a whole: only `retry` goes on with it")
    return require_step(state, name)


def _end_failed(
    state: ExecutionState, failed: Sequence[RunState], command: CompleteStep | SkipStep, now: int
) -> list[EventBody]:
    """They are opened as by a retry, which takes back what came of their failure, and end at once."""
    if state.paused:
        raise Refused("the execution is paused: resume it first")
    opened = {run.id for run in failed}
    bits = failed[0].step.bit
    retried = ExecutionRetried(
        runs=tuple(run.id for run in failed),
        keeps=tuple(name for name in state.failed_runs if name not in opened),
        by=command.by,
        superseded=tuple(name for name in state.ran_after_failure if state.plan.by_name[name].above & bits),
        ends=runs_after_failure(state, bits),
    )
    ends = [_end_of(state, run, command, now) for run in failed]
    # What came of another failure as well may go, too: that one is still to be settled, and sends it anew.
    return [retried, *ends, *take_back(state, retried, bits)]


def _end_of(
    state: ExecutionState, run: RunState, command: CompleteStep | SkipStep, now: int
) -> RunEnd | EndByHand:
    """With the writes of the step, as after any end. Raises Refused where they raise: nothing is lost."""
    end: EndByHand = (
        StepSkipped(run=run.id, by=command.by)
        if isinstance(command, SkipStep)
        else StepCompletedByHand(run=run.id, result=escape(command.result), by=command.by)
    )
    sealed = seal_run_end(state, run, end, now)
    if isinstance(sealed, StepFailed):
        raise Refused(f"the step's `set` cannot be evaluated: {sealed.error.message}")
    return sealed
