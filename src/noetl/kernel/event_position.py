"""Where in the playbook the reason of an event stands."""

from noetl.dsl.document.playbook import Position, Step, Task
from noetl.events.bodies import (
    EventBody,
    LoopDone,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    NextEvaluated,
    RunSuspended,
    StepFailed,
    StepScheduled,
    TaskProcessed,
    TaskStarted,
    TokenAdmitted,
    TokenDiscarded,
    TokenEnqueued,
    TokenParked,
)
from noetl.kernel.state.execution_state import ExecutionState


def step_of_event(state: ExecutionState, body: EventBody) -> Step | None:
    """The step that an event is about, in the state before it."""
    token = state.tokens.get(getattr(body, "token", ""))
    if token is not None:
        return state.step_of(token).step
    run = state.runs.get(getattr(body, "run", ""))
    if run is not None:
        return run.step.step
    named = state.plan.by_name.get(getattr(body, "step", ""))
    return named.step if named is not None else None


def position_of_event(
    state: ExecutionState, body: EventBody, path: tuple[str | int, ...] = ()
) -> Position | None:
    """The closest place: an arc, a rule, a task, a join, an admission, or the step."""
    step = step_of_event(state, body)
    if step is None:
        return None
    match body:
        case NextEvaluated():
            return _of_arcs(step, path)
        case TokenEnqueued() if 0 <= body.arc < len(step.arcs):
            return step.arcs[body.arc].position
        case TokenParked() | TokenDiscarded(reason="denied" | "parked") if step.admit is not None:
            return step.admit.position
        case TokenAdmitted() | TokenDiscarded() | StepScheduled() if step.join is not None:
            return step.join.position
        case TaskStarted() | TaskProcessed() | StepFailed():
            return _of_task(step, body)
        case LoopStarted() | LoopIterationStarted() | LoopIterationCompleted() | LoopDone() if step.loop:
            return step.loop.position
        case RunSuspended() if (run := state.runs.get(body.run)) and (
            frame := run.frames.get(body.iteration)
        ):
            return run.task(frame).position if frame.at < len(step.tasks) else step.position
        case _:
            return step.position


def _of_arcs(step: Step, path: tuple[str | int, ...]) -> Position:
    match path:
        case ("verdicts", int(position)) if position < len(step.arcs):
            return step.arcs[position].position
        case _:
            return step.router.position if step.router is not None else step.position


def _of_task(step: Step, body: TaskStarted | TaskProcessed | StepFailed) -> Position:
    task = task_labelled(step, body.task)
    if task is None:
        return step.position
    rule = position_of_rule(task, body.rule) if isinstance(body, TaskProcessed) else None
    return rule or task.position


def task_labelled(step: Step, label: str) -> Task | None:
    return next((task for task in step.tasks if task.label == label), None)


def position_of_rule(task: Task, rule: int | None) -> Position | None:
    """The place of a rule by its number in `TaskProcessed`."""
    policy = task.policy
    if policy is None or rule is None:
        return None
    if rule == -1:
        return policy.otherwise.position if policy.otherwise is not None else None
    return policy.rules[rule].position if rule < len(policy.rules) else None
