"""What an unhandled failure holds back: whatever a retry of it could still change (semantics §5)."""

from noetl.kernel.state.execution_state import ExecutionState


def is_held_back(state: ExecutionState, number: int) -> bool:
    """Whether a retry could still bring a token to this step, where nothing else moves any more.

    A parked token counts wherever it is: what a retried run writes may admit it.
    """
    if not state.failing:
        return False
    target = state.plan.by_number[number]
    parked = 0
    for step, occupancy in state.occupancy.items():
        parked |= (occupancy.pending > 0) << step
    return bool(state.failing & target.above or parked & (target.above | target.bit))


def waiting_steps(state: ExecutionState) -> list[dict[str, str]]:
    """The steps where tokens wait for a retry, in the order of the document, and why they do."""
    if not (state.failing or state.cut_short):
        return []
    numbers = sorted({token.step for token in state.tokens.values()})
    return [
        {"step": state.plan.by_number[number].name, "reason": _reason(state, number)} for number in numbers
    ]


def _reason(state: ExecutionState, number: int) -> str:
    target = state.plan.by_number[number]
    failed = {run.step.number: run.step for run in state.failed_runs.values() if run.unhandled}
    reaching = [plan for plan in failed.values() if target.above & plan.bit]
    if not reaching and state.stop_error is not None:
        return state.stop_error.message
    names = [f"`{plan.name}`" for plan in sorted(reaching or failed.values(), key=lambda plan: plan.number)]
    if len(names) == 1:
        return f"the branch {names[0]} failed"
    return f"the branches {', '.join(names[:-1])} and {names[-1]} failed"
