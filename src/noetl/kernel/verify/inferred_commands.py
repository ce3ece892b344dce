"""What people, workers and time asked of an execution, told from the events it led to."""

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from noetl.events.bodies import (
    CancelRequested,
    CtxPatched,
    EventBody,
    ExecutionForked,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    LeaseExpired,
    PlaybookExecutionRequested,
    PlaybookProcessed,
    PlaybookRequestEvaluated,
    RunResumed,
    SignalReceived,
    StepFailed,
    StepScheduled,
    TokenClaimed,
    WorkflowStarted,
)
from noetl.events.event import Event
from noetl.kernel.net.commands import (
    Cancel,
    ChildEnded,
    Claim,
    Command,
    Fork,
    LeaseLost,
    PatchCtx,
    Pause,
    Request,
    Resume,
    Retry,
    Signal,
    TimerFired,
)
from noetl.kernel.net.execution_request import decide_request
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.state.execution_state import ExecutionState

TAKEN_AS_RECORDED = (
    PlaybookExecutionRequested,
    CancelRequested,
    CtxPatched,
    ExecutionForked,
    ExecutionPaused,
    ExecutionResumed,
    SignalReceived,
)
"""Events that say what was asked: there is nothing in them to decide again."""


def infer_commands(state: ExecutionState, tail: Sequence[Event]) -> Iterator[Command]:
    """The commands that may have led to the first event of `tail`, the likeliest first."""
    body = tail[0].body
    match body:
        case PlaybookExecutionRequested():
            yield _infer_request(state, body, tail)
        case TokenClaimed():
            yield Claim(body.run, body.worker)
        case LeaseExpired():
            yield LeaseLost(body.run, body.fence, body.reason)
        case ExecutionPaused():
            yield Pause(body.by)
        case ExecutionResumed():
            yield Resume(body.by)
        case SignalReceived():
            yield Signal(body.signal, body.payload, body.by)
        case ExecutionRetried():
            yield Retry(body.by, body.children, body.hash, body.file)
        case CtxPatched():
            yield PatchCtx(body.patches, body.by)
        case ExecutionForked():
            yield _infer_fork(body, tail)
        case RunResumed(reason="child"):
            yield from _infer_child_end(body)
        case _:
            yield from _infer_timers(state, body)


def _infer_timers(state: ExecutionState, body: EventBody) -> Iterator[Command]:
    match body:
        case CancelRequested(error=None):
            yield Cancel(body.by, body.reason)
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
        workload=body.workload,
        ctx=body.ctx,
        labels=body.labels,
        parent=body.parent,
        idempotency_key=body.idempotency_key,
        requested_by=body.requested_by,
        trace_id=body.trace_id,
        file=body.file,
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
        workload=body.workload or {},
        shift=body.shift,
    )
    match tail[1:2]:
        case [Event(ts=ts, body=CtxPatched(patches=patches, by=by))] if ts == tail[0].ts and by == body.by:
            return replace(fork, patches=patches)
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
