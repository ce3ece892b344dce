"""What happens when nothing moves any more: joins fire, what is left is discarded, the end (semantics §3)."""

from typing import Any, Literal

from noetl.events.bodies import (
    EventBody,
    PlaybookProcessed,
    StepScheduled,
    TokenDiscarded,
    WorkflowFinished,
)
from noetl.kernel.net.admission import schedule_run
from noetl.kernel.pipeline.policy import expression_error_info
from noetl.kernel.scopes import state_scope
from noetl.kernel.state.execution_state import ExecutionState, is_held_back, waiting_steps
from noetl.model.errors import ExpressionError
from noetl.model.outcome import ErrorInfo


def decide_quiescence(state: ExecutionState, now: int) -> list[EventBody]:
    """The next thing that quiescence brings; empty while something can still happen by itself."""
    if state.runs or state.finished:
        return []
    if not state.cut_short:
        if state.agenda or state.waiting:
            return []
        if (number := _earliest_join(state)) is not None:
            return decide_join(state, number, now)
        if left := _leftovers(state):
            return left
    if _wants_final(state):
        final = state.plan.playbook.executor.final_step or ""
        return [StepScheduled(step=final, args=_summary(state), final=True)]
    return _finish(state, now)


def _leftovers(state: ExecutionState) -> list[EventBody]:
    """The end of tokens that nothing can help any more, not even a retry of what failed."""
    left: list[EventBody] = []
    if not state.failing:
        left += [TokenDiscarded(token=token, reason="parked") for token in state.parked]
    for number, join in state.joins.items():
        if not is_held_back(state, number):
            left += [TokenDiscarded(token=token, reason="remainder") for token in join.arrivals]
    return left


def decide_join(state: ExecutionState, number: int, now: int) -> list[EventBody]:
    """A join lets go: one run for its tokens, or a late token is absorbed."""
    join = state.joins[number]
    policy = state.plan.by_number[number].step.join
    assert policy is not None  # noqa: S101 - only steps with a join have one in the state
    match policy.mode:
        case "all":
            names = join.arrivals
        case "count":
            names = join.arrivals[: policy.count or 1]
        case "any":
            if join.absorbing:
                return [TokenDiscarded(token=join.arrivals[0], reason="absorbed")]
            names = join.arrivals[:1]
    return schedule_run(state, [state.tokens[name] for name in names], now)


def _earliest_join(state: ExecutionState) -> int | None:
    """Of the joins that wait for all and that nothing holds back, the one whose first token came first."""
    # A token is named by the number of the event that brought it, so names tell the order of arrival.
    waiting = [
        (int(join.arrivals[0][1:]), number)
        for number, join in state.joins.items()
        if join.arrivals and _waits_for_all(state, number) and not is_held_back(state, number)
    ]
    return min(waiting)[1] if waiting else None


def _waits_for_all(state: ExecutionState, number: int) -> bool:
    policy = state.plan.by_number[number].step.join
    return policy is not None and policy.mode == "all"


def _wants_final(state: ExecutionState) -> bool:
    return (
        state.plan.playbook.executor.final_step is not None
        and not state.final
        and state.stopping != "cancelled"
    )


def _summary(state: ExecutionState) -> dict[str, Any]:
    """What the final step gets to know."""
    status, error = _status(state)
    return {
        "status": status,
        "error": error.as_value() if error is not None else None,
        "result": state.branch_result,
        "steps": {
            name: {"status": summary.status, "runs": summary.runs}
            for name, summary in state.summaries.items()
        },
        "discarded": [{"step": token["step"], "reason": token["reason"]} for token in state.discarded],
        **({"waiting": waiting_steps(state)} if state.holds_back else {}),
    }


def _status(
    state: ExecutionState,
) -> tuple[Literal["completed", "failed", "cancelled"], ErrorInfo | None]:
    if state.stopping:
        return state.stopping, state.stop_error
    if state.failures:
        return "failed", state.failures[0].error
    return "completed", None


def _finish(state: ExecutionState, now: int) -> list[EventBody]:
    status, error = _status(state)
    result = state.branch_result
    output = state.plan.playbook.executor.output
    if output is not None:
        result = None
        if status == "completed":
            try:
                result = state_scope(state.inputs, state.ctx.values, state.outcomes, now).value(output)
            except ExpressionError as fault:
                status, error = "failed", expression_error_info(fault)
    return [
        WorkflowFinished(status=status),
        PlaybookProcessed(status=status, result=result, error=error),
    ]
