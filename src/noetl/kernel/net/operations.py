"""What people, workers and time ask of an execution (semantics §10)."""

from typing import get_args

from msgspec import structs

from noetl.events.bodies import (
    CancelRequested,
    CtxPatched,
    EventBody,
    ExecutionForked,
    ExecutionPaused,
    ExecutionResumed,
    ExecutionRetried,
    LeaseExpired,
    Patch,
    RunResumed,
    RunSuspended,
    SignalReceived,
    StepFailed,
    TokenClaimed,
    TokenDiscarded,
)
from noetl.kernel.errors import NotOwner, Refused, ReportEarly, WrongSequence
from noetl.kernel.net.admission import fail_at_admission
from noetl.kernel.net.commands import (
    Cancel,
    ChildEnded,
    Claim,
    Fork,
    LeaseLost,
    PatchCtx,
    Pause,
    Report,
    Resume,
    Retry,
    Signal,
    TimerFired,
)
from noetl.kernel.net.execution_request import merge_mappings
from noetl.kernel.pipeline.interpreter import MOST_LOSSES, cancel_run
from noetl.kernel.scopes import CTX_BYTES, inline_stand_in
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.run_fold import RUN_FOLDS, RunEnd, require_foldable
from noetl.kernel.state.run_state import COUNTING_LOSSES, RunState
from noetl.kernel.state.variables import size_growth
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import escape

RUN_ENDS: frozenset[type] = frozenset(get_args(RunEnd))
REPORTED_INSIDE = frozenset(RUN_FOLDS) - {RunResumed}
"""What a worker reports of a run that goes on. That it is resumed is for the server to say."""
REPORTABLE = REPORTED_INSIDE | RUN_ENDS


def require_active(state: ExecutionState) -> None:
    """Raises Refused unless the execution has begun and is not over."""
    if state.status == "new":
        raise Refused("there is no such execution")
    if state.over:
        raise Refused(f"the execution is {state.status}")


def decide_claim(state: ExecutionState, command: Claim) -> list[EventBody]:
    require_active(state)
    if state.paused or state.stopping:
        raise Refused("nothing new begins in this execution now")
    if command.run not in state.ready:
        raise Refused(f"{command.run} is not ready to be claimed")
    token = state.runs[command.run].token
    return [TokenClaimed(run=command.run, worker=command.worker, token=token, session=command.session)]


def decide_lease_lost(state: ExecutionState, command: LeaseLost) -> list[EventBody]:
    run = state.runs.get(command.run)
    if run is None or run.phase != "claimed" or run.fence != command.fence:
        return []
    expired = LeaseExpired(run=run.id, fence=run.fence, reason=command.reason)
    if state.stopping:
        return [expired, cancel_run(run, source="server")]
    lost = run.losses + (command.reason == "expired")
    if lost < MOST_LOSSES or command.reason != "expired" or state.decider < COUNTING_LOSSES:
        return [expired]
    # Nobody renders it again: what it does to its owners it would do to the next one.
    message = f"{lost} workers in a row were lost with this run before they had reported anything"
    error = ErrorInfo(kind="worker_lost", message=message, retryable=True)
    return [expired, StepFailed(run=run.id, error=error, source="server")]


def decide_cancel(state: ExecutionState, command: Cancel) -> list[EventBody]:
    require_active(state)
    if state.stopping:
        return []
    return [CancelRequested(by=command.by, reason=command.reason)]


def decide_pause(state: ExecutionState, command: Pause) -> list[EventBody]:
    require_active(state)
    return [] if state.paused or state.stopping else [ExecutionPaused(by=command.by)]


def decide_resume(state: ExecutionState, command: Resume) -> list[EventBody]:
    require_active(state)
    if not state.paused:
        return []
    paused = [run for run in state.runs.values() if run.paused]
    return [ExecutionResumed(by=command.by), *(RunResumed(run=run.id, reason="resume") for run in paused)]


def decide_signal(state: ExecutionState, command: Signal) -> list[EventBody]:
    require_active(state)
    payload = escape(command.payload)
    _must_fit(state, Patch(scope="ctx", path=("signals", command.signal), value=payload))
    return [SignalReceived(signal=command.signal, payload=payload, by=command.by)]


def decide_retry(state: ExecutionState, command: Retry) -> list[EventBody]:
    if state.status != "failed":
        raise Refused(f"only a failed execution can be retried, this one is {state.status}")
    if not state.retriable:
        raise Refused("no step of this execution can be opened again")
    runs = list(state.failed_runs.values())
    if state.holds_back and (state.tokens or not all(run.final for run in runs)):
        runs = [run for run in runs if not run.final]  # it runs at the next end, with what is so then
    retried = ExecutionRetried(
        runs=tuple(run.id for run in runs),
        by=command.by,
        steps=tuple(dict.fromkeys(run.step.name for run in runs if run.error and state.holds_back)),
        superseded=tuple(state.ran_after_failure),
        children=command.children,
        hash=command.hash,
        file=command.file,
    )
    born_of_failure = [token.id for token in state.tokens.values() if token.after_failure]
    return [retried, *(TokenDiscarded(token=token, reason="retried") for token in born_of_failure)]


def decide_patch_ctx(state: ExecutionState, command: PatchCtx) -> list[EventBody]:
    require_active(state)
    patches = _escape_patches(command.patches)
    _must_fit(state, *patches)
    return [CtxPatched(patches=patches, by=command.by)]


def _escape_patches(patches: tuple[Patch, ...]) -> tuple[Patch, ...]:
    return tuple(structs.replace(patch, value=escape(patch.value)) for patch in patches)


def _must_fit(state: ExecutionState, *patches: Patch) -> None:
    size = state.ctx.size
    for patch in patches:
        size += size_growth(state.ctx.values, patch.path, inline_stand_in(patch.value))
        if size > CTX_BYTES:
            path = ".".join(patch.path)
            raise Refused(f"with `ctx.{path}`, ctx would be larger than {CTX_BYTES:,} bytes")


def decide_fork(state: ExecutionState, command: Fork) -> list[EventBody]:
    workload = None
    if command.workload:
        overrides = {key: escape(value) for key, value in command.workload.items()}
        workload = merge_mappings(state.inputs.workload, overrides)
    forked = ExecutionForked(
        source=command.source,
        at=command.at,
        by=command.by,
        hash=command.hash,
        file=command.file,
        workload=workload,
        shift=command.shift,
    )
    patches = _escape_patches(command.patches)
    return [forked, CtxPatched(patches=patches, by=command.by)] if patches else [forked]


def decide_child_ended(state: ExecutionState, command: ChildEnded) -> list[EventBody]:
    run = state.runs.get(command.run)
    frame = run.frames.get(command.iteration) if run is not None else None
    if state.over or frame is None or frame.suspension is None or frame.suspension.child != command.child:
        return []
    payload = {
        "execution_id": command.child,
        "status": command.status,
        "result": command.result,
        "error": command.error.as_value() if command.error is not None else None,
    }
    return [RunResumed(run=command.run, reason="child", iteration=command.iteration, payload=payload)]


def decide_timer_fired(state: ExecutionState, command: TimerFired, now: int) -> list[EventBody]:
    if state.over or state.stopping:
        return []
    if not command.target:
        return _execution_timeout(state, now)
    if command.target.startswith("t"):
        return _token_timeout(state, command.target, now)
    run = state.runs.get(command.target)
    if run is None or run.phase == "ended":
        return []
    if run.deadline is not None and run.deadline <= now:
        error = ErrorInfo(kind="timeout", message=f"`{run.step.name}` took too long", retryable=True)
        return [StepFailed(run=run.id, error=error, source="server")]
    return _frame_timer(run, command.iteration, now)


def _frame_timer(run: RunState, iteration: int, now: int) -> list[EventBody]:
    frame = run.frames.get(iteration)
    waits = frame.suspension if frame is not None else None
    if waits is None or waits.until is None or waits.until > now:
        return []
    reason = "timer" if waits.reason in ("retry", "wait") else "timeout"
    return [RunResumed(run=run.id, reason=reason, iteration=iteration)]  # type: ignore[arg-type]  # one of two texts


def _token_timeout(state: ExecutionState, name: str, now: int) -> list[EventBody]:
    token = state.tokens.get(name)
    if token is None or token.stage != "waiting" or token.deadline is None or token.deadline > now:
        return []
    step = state.step_of(token).name
    return fail_at_admission(
        state, [token], ErrorInfo(kind="timeout", message=f"`{step}` was not admitted in time")
    )


def _execution_timeout(state: ExecutionState, now: int) -> list[EventBody]:
    if state.deadline is None or state.deadline > now:
        return []
    error = ErrorInfo(kind="timeout", message="the execution took too long")
    return [CancelRequested(reason="timeout", error=error)]


def decide_report(state: ExecutionState, command: Report) -> list[EventBody]:
    """The report's events but for those that are recorded already. Only the last may end the run.

    A run that is paused too late is resumed at once.
    """
    run = state.runs.get(command.run)
    if run is None or run.phase != "claimed" or run.fence != command.fence:
        raise NotOwner(f"{command.run} is not owned under fence {command.fence}")
    if command.report_no + len(command.bodies) <= run.reported:
        return []
    if command.report_no > run.reported:
        raise ReportEarly(f"report {command.report_no} of {run.id} came before report {run.reported}")
    last = command.bodies[-1]
    for body in command.bodies:
        kind = type(body)
        if kind not in REPORTED_INSIDE and not (body is last and kind in RUN_ENDS):
            raise Refused(f"a worker does not report {kind.__name__} here")
        if body.run != run.id:  # type: ignore[union-attr]  # all of these have it
            raise Refused(f"{kind.__name__} is not about {run.id}")
    bodies: list[EventBody] = list(command.bodies[run.reported - command.report_no :])
    if command.data:
        try:
            require_foldable(run, bodies)
        except WrongSequence as error:
            raise Refused(f"the report of {run.id} cannot follow: {error}") from error
    match bodies[-1]:
        case RunSuspended(reason="pause") if not state.paused:
            # The execution went on before this came, and nobody would wake the run.
            bodies.append(RunResumed(run=run.id, reason="resume"))
        case _:
            pass
    return bodies
