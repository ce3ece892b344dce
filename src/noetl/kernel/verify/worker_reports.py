"""What a worker reports, derived again from the run as it was."""

from msgspec.structs import replace

from noetl.dsl.document.playbook import Task
from noetl.events.bodies import (
    EventBody,
    LoopDone,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    RunSuspended,
    StepDone,
    StepFailed,
    TaskProcessed,
    TaskStarted,
)
from noetl.expr.template import template_uses
from noetl.kernel.expression_reads import expressions_in, reads_stand_ins
from noetl.kernel.pipeline.interpreter import MOST_LOSSES, advance, advance_frame, pause_run
from noetl.kernel.pipeline.loops import start_loop
from noetl.kernel.pipeline.moves import Finish, Move, Record, RunTask
from noetl.kernel.pipeline.policy import judge_with_policy
from noetl.kernel.pipeline.task_inputs import reads_keychain
from noetl.kernel.plan import WAITING_KINDS
from noetl.kernel.references.resolve import Fetched
from noetl.kernel.scopes import loop_scope, task_scope
from noetl.kernel.state.run_state import Frame, RunState


def derive_report(run: RunState, body: EventBody, now: int, fetched: Fetched) -> EventBody | None:
    """What a worker of this run would report in place of `body`; None if it would not report now.

    Raises Unfetched where stored values are needed.
    """
    match body:
        case LoopStarted():
            starts = run.step.step.loop is not None and run.loop is None
            return _body_of_move(start_loop(run, now, fetched)) if starts else None
        case LoopIterationStarted():
            loop = run.loop if run.can_start else None
            return LoopIterationStarted(run=run.id, index=loop.next) if loop is not None else None
        case RunSuspended(reason="pause"):
            return pause_run(run)
        case StepDone() | StepFailed() | LoopDone():
            return _derive_end(run, now, fetched)
    frame = frame_of_event(run, body)
    if frame is None or frame.suspension is not None:
        return None
    match body:
        case TaskStarted() if not frame.running and reads_keychain(run.task(frame)):
            return _derive_started(run, frame, body)
        case TaskProcessed():
            return _derive_processed(run, frame, body, now, fetched)
        case _ if _in_flight(run, frame):
            return None
        case _:
            return _body_of_move(advance_frame(run, frame, now, None, fetched))


def frame_of_event(run: RunState, body: EventBody) -> Frame | None:
    """The pass through the pipeline that an event is about."""
    index = body.index if isinstance(body, LoopIterationCompleted) else getattr(body, "iteration", 0)
    return run.frames.get(index)


def _body_of_move(move: Move) -> EventBody | None:
    match move:
        case RunTask():
            return move.started
        case Record() | Finish():
            return move.body
        case _:
            return None


def _in_flight(run: RunState, frame: Frame) -> bool:
    """Whether a tool runs, and only its outcome can come."""
    return frame.running and frame.resumption is None and run.task(frame).kind not in WAITING_KINDS


def _derive_end(run: RunState, now: int, fetched: Fetched) -> EventBody | None:
    if run.step.step.loop is not None:
        if run.frames or run.can_start:
            return None
        return _body_of_move(advance(run, now, None, fetched))
    frame = run.frames.get(0)
    if frame is None or frame.suspension is not None or _in_flight(run, frame):
        return None
    return _body_of_move(advance_frame(run, frame, now, None, fetched))


def _derive_processed(
    run: RunState, frame: Frame, body: TaskProcessed, now: int, fetched: Fetched
) -> EventBody | None:
    """The verdict about the outcome: that of the tool, or the one that follows from the run itself."""
    if frame.status != "open":
        return None
    outcome = body.outcome
    if not _came_from_outside(run, frame, body):
        follows = _body_of_move(advance_frame(run, frame, now, None, fetched))
        if not isinstance(follows, TaskProcessed):
            return follows
        # Its times are the worker's, and told by it alone.
        outcome = replace(follows.outcome, meta=body.outcome.meta)
    return judge_with_policy(run, frame.index, outcome, now, None, fetched)


def _came_from_outside(run: RunState, frame: Frame, body: TaskProcessed) -> bool:
    """Whether the outcome came from outside."""
    task = run.task(frame)
    if not frame.running:
        return frame.losses >= MOST_LOSSES and reads_keychain(task) and body.outcome.status == "error"
    if frame.resumption is not None:
        return False
    return task.kind not in WAITING_KINDS or (task.kind == "playbook" and body.outcome.status == "error")


def _derive_started(run: RunState, frame: Frame, body: TaskStarted) -> TaskStarted:
    """All but the input, which is as it is recorded."""
    label = run.task(frame).label
    return TaskStarted(
        run=run.id,
        task=label,
        iteration=frame.index,
        visit=frame.visits[label],
        attempt=frame.attempt + (frame.losses == 0),
        redelivery=frame.losses,
        input=body.input,
    )


def rests_on_secrets(run: RunState, body: EventBody, now: int, fetched: Fetched) -> bool:
    """Whether the worker knew values here that are not at hand: a secret, or what is stored elsewhere."""
    step, frame = run.step.step, frame_of_event(run, body)
    if frame is None or not step.tasks:
        return reads_stand_ins(expressions_in(step.loop), loop_scope(run, now, fetched).expression_scope)
    if frame.at < len(step.tasks):
        task = run.task(frame)
        if reads_keychain(task) and (not isinstance(body, TaskProcessed) or _args_read_keychain(task)):
            return True
    is_open = frame.status == "open"
    scope = task_scope(run, frame, now, None, fetched) if is_open else loop_scope(run, now, fetched)
    if isinstance(body, TaskProcessed):
        scope.namespaces["outcome"] = scope.with_fetched(body.outcome.as_value())
    return reads_stand_ins(expressions_in((step.tasks, step.loop)), scope.expression_scope)


def _args_read_keychain(task: Task) -> bool:
    return any(
        use.path[0] == "keychain" for value in (task.args or {}).values() for use in template_uses(value)
    )
