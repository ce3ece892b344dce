"""What people, workers and time asked of an execution, told from the events it led to.

What a worker reported is derived again from the run as it was.
"""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from noetl.dsl.document.playbook import Task
from noetl.events.bodies import (
    CancelRequested,
    CtxPatched,
    EventBody,
    ExecutionForked,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    IterationsRedriven,
    LeaseExpired,
    LoopDone,
    LoopIterationCompleted,
    LoopIterationStarted,
    LoopStarted,
    PlaybookExecutionRequested,
    PlaybookProcessed,
    PlaybookRequestEvaluated,
    RunResumed,
    RunSuspended,
    SignalReceived,
    StepCompletedByHand,
    StepDone,
    StepFailed,
    StepScheduled,
    StepSkipped,
    TaskProcessed,
    TaskStarted,
    TokenClaimed,
    WorkflowStarted,
)
from noetl.events.event import Event
from noetl.expr.template import template_uses
from noetl.kernel.expression_reads import expressions_in, reads_stand_ins
from noetl.kernel.net.commands import (
    Cancel,
    ChildEnded,
    Claim,
    Command,
    CompleteStep,
    Fork,
    LeaseLost,
    PatchCtx,
    Pause,
    Redrive,
    Request,
    Resume,
    Retry,
    Signal,
    SkipStep,
    TimerFired,
)
from noetl.kernel.net.execution_request import decide_request
from noetl.kernel.pipeline.interpreter import MOST_LOSSES, advance, advance_frame, pause_run
from noetl.kernel.pipeline.loops import start_loop
from noetl.kernel.pipeline.moves import Finish, Move, Record, RunTask
from noetl.kernel.pipeline.policy import SECOND, judge_with_policy
from noetl.kernel.plan import WAITING_KINDS, reads_keychain
from noetl.kernel.references.resolve import Fetched
from noetl.kernel.scopes import loop_scope, task_scope
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_state import Frame, RunState
from noetl.kernel.state.shards import can_begin, shard_at
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import unescape

TAKEN_AS_RECORDED = (
    PlaybookExecutionRequested,
    CancelRequested,
    CtxPatched,
    ExecutionForked,
    ExecutionPaused,
    ExecutionResumed,
    SignalReceived,
    StepCompletedByHand,
    StepSkipped,
)
"""Events that say what was asked: there is nothing in them to decide again."""


def infer_commands(state: ExecutionState, tail: Sequence[Event]) -> Iterator[Command]:
    """The commands that may have led to the first event of `tail`, the likeliest first."""
    body = tail[0].body
    yield from _infer_end_by_hand(state, tail)
    match body:
        case PlaybookExecutionRequested():
            yield _infer_request(state, body, tail)
        case TokenClaimed():
            yield Claim(body.run, body.worker, body.session, body.shard)
        case LeaseExpired():
            yield LeaseLost(body.run, body.fence, body.reason, body.error)
        case ExecutionPaused():
            yield Pause(body.by)
        case ExecutionResumed():
            yield Resume(body.by)
        case SignalReceived():
            yield Signal(body.signal, body.payload, body.by, body.wait, body.by_admin)
        case ExecutionRetried():
            yield Retry(body.by, body.children, body.hash, body.file)
        case IterationsRedriven():
            yield Redrive(body.step, body.by, body.children, body.hash, body.file)
        case CtxPatched():
            yield PatchCtx(body.patches, body.by)
        case ExecutionForked():
            yield _infer_fork(body, tail)
        case RunResumed(reason="child"):
            yield from _infer_child_end(body)
        case _:
            yield from _infer_timers(state, body)


def _infer_end_by_hand(state: ExecutionState, tail: Sequence[Event]) -> Iterator[Command]:
    """A failed run is opened before somebody ends it, and a token that waits gets a run."""
    match [event.body for event in tail[:2]]:
        case [StepCompletedByHand() | StepSkipped() as end, *_]:
            run = state.runs.get(end.run)
        case [ExecutionRetried(), StepCompletedByHand() | StepSkipped() as end]:
            run = state.failed_runs.get(end.run)
        case [StepScheduled(step=step), StepCompletedByHand() | StepSkipped() as end]:
            yield _command_of_end(end, step)
            return
        case _:
            return
    if run is not None:
        yield _command_of_end(end, run.step.name)


def _command_of_end(end: StepCompletedByHand | StepSkipped, step: str) -> CompleteStep | SkipStep:
    return SkipStep(step, end.by) if isinstance(end, StepSkipped) else CompleteStep(step, end.result, end.by)


def _infer_timers(state: ExecutionState, body: EventBody) -> Iterator[Command]:
    match body:
        case CancelRequested(error=None) | CancelRequested(error=ErrorInfo(kind="credential" | "not_found")):
            yield Cancel(body.by, body.reason, body.error)
        case CancelRequested():
            yield TimerFired()
            yield from (TimerFired(name) for name in state.parked)
        case RunResumed():
            yield TimerFired(body.run, body.iteration)
        case StepFailed():
            yield TimerFired(body.run)
        case StepScheduled():
            yield from (TimerFired(name) for name in body.tokens[:1])
        case _:
            return


def _infer_request(state: ExecutionState, body: PlaybookExecutionRequested, tail: Sequence[Event]) -> Request:
    """A refusal came with the request, unless deciding again finds a reason of its own."""
    request = Request(
        version=body.version,
        workload=unescape(body.workload),  # as it was given: deciding escapes it
        ctx=unescape(body.ctx),
        labels=body.labels,
        parent=body.parent,
        idempotency_key=body.idempotency_key,
        requested_by=body.requested_by,
        trace_id=body.trace_id,
        file=body.file,
        priority=body.priority,
    )
    match tail[1:3]:
        case [Event(body=PlaybookRequestEvaluated(error=error)), Event(body=PlaybookProcessed())]:
            refused = isinstance(decide_request(state, request, tail[0].ts)[-1], PlaybookProcessed)
            return request if refused else replace(request, error=error)
        case [_, Event(body=WorkflowStarted(deadline=deadline))]:
            return _with_timeout(state, request, tail[0].ts, deadline)
        case _:
            return request


def _with_timeout(state: ExecutionState, request: Request, ts: int, deadline: int | None) -> Request:
    """The request may have had a timeout of its own, of which only the deadline is recorded."""
    decided = decide_request(state, request, ts)[2]
    if deadline is None or (isinstance(decided, WorkflowStarted) and decided.deadline == deadline):
        return request
    return replace(request, timeout=(deadline - ts) / SECOND)


def _infer_fork(body: ExecutionForked, tail: Sequence[Event]) -> Fork:
    fork = Fork(
        body.source,
        body.at,
        by=body.by,
        hash=body.hash,
        file=body.file,
        workload=unescape(body.workload or {}),
        shift=body.shift,
    )
    match tail[1:2]:
        case [Event(ts=ts, body=CtxPatched(patches=patches, by=by))] if ts == tail[0].ts and by == body.by:
            return replace(
                fork, patches=tuple(replace(patch, value=unescape(patch.value)) for patch in patches)
            )
        case _:
            return fork


def _infer_child_end(body: RunResumed) -> Iterator[Command]:
    """The error is recorded as expressions see it, so the command is told without it."""
    ended = body.payload
    if not isinstance(ended, dict):
        return
    match ended:
        case {"execution_id": str(child), "status": "completed" | "failed" | "cancelled" as status}:
            yield ChildEnded(body.run, body.iteration, child, status, ended.get("result"))


def derive_report(run: RunState, body: EventBody, now: int, fetched: Fetched) -> EventBody | None:
    """What a worker of this run would report in place of `body`; None if it would not report now.

    Raises Unfetched where stored values are needed.
    """
    match body:
        case LoopStarted():
            starts = run.step.step.loop is not None and run.loop is None
            return _body_of_move(start_loop(run, now, fetched)) if starts else None
        case LoopIterationStarted():
            return _derive_iteration(run, body)
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


def _derive_iteration(run: RunState, body: LoopIterationStarted) -> LoopIterationStarted | None:
    if run.sharded:
        shard = shard_at(run, body.index)
        return LoopIterationStarted(run=run.id, index=shard.next) if can_begin(run, shard) else None
    loop = run.loop if run.startable else None
    return LoopIterationStarted(run=run.id, index=loop.following) if loop is not None else None


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
        if run.frames or run.startable:
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
        return frame.lost_workers >= MOST_LOSSES and reads_keychain(task) and body.outcome.status == "error"
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
