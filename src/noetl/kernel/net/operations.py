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
    IterationsRedriven,
    LeaseExpired,
    LoopIterationCompleted,
    Patch,
    RunResumed,
    RunSuspended,
    StepFailed,
    TokenClaimed,
    TokenDiscarded,
)
from noetl.expr.expression import Expression
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
    Redrive,
    Report,
    Resume,
    Retry,
    TimerFired,
)
from noetl.kernel.net.execution_request import deadline_after, merge_mappings
from noetl.kernel.pipeline.interpreter import MOST_LOSSES, cancel_run
from noetl.kernel.plan import StepPlan
from noetl.kernel.references.resolve import Unfetched
from noetl.kernel.scopes import CTX_BYTES, EvaluationScope, inline_stand_in, loop_scope, state_scope
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.report_trial import require_foldable
from noetl.kernel.state.run_fold import RUN_FOLDS, RunEnd, iteration_of, kept_frames
from noetl.kernel.state.run_state import COUNTING_LOSSES, RunState, Shard
from noetl.kernel.state.variables import size_growth
from noetl.model.errors import ExpressionError
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
    run = state.runs[command.run]
    sharded = run.sharded
    if sharded != (command.shard >= 0) or (sharded and str(command.shard) not in run.ready_shards):
        raise Refused(f"shard {command.shard} of {run.id} is not ready to be claimed")
    return [
        TokenClaimed(
            run=run.id,
            worker=command.worker,
            token=run.token,
            session=command.session,
            shard=command.shard,
        )
    ]


def decide_lease_lost(state: ExecutionState, command: LeaseLost) -> list[EventBody]:
    run = state.runs.get(command.run)
    owned = run.owned_under(command.fence) if run is not None else None
    if run is None or owned is None:
        return []
    shard = owned.start if isinstance(owned, Shard) else -1
    expired = LeaseExpired(
        run=run.id, fence=command.fence, reason=command.reason, shard=shard, error=command.error
    )
    if state.stopping:
        # Owners of other shards are waited for.
        return [expired, cancel_run(run, source="server")] if len(run.owned_parts()) == 1 else [expired]
    if command.error is not None:
        return [expired, StepFailed(run=run.id, error=command.error, source="server")]
    lost = owned.losses + (command.reason == "expired")
    if lost < MOST_LOSSES or command.reason != "expired" or state.decider < COUNTING_LOSSES:
        return [expired]
    # Nobody renders it again: what it does to its owners it would do to the next one.
    part = f"iterations {shard} to {owned.end - 1} of this run" if isinstance(owned, Shard) else "this run"
    message = f"{lost} workers in a row were lost with {part} before they had reported anything"
    error = ErrorInfo(kind="worker_lost", message=message, retryable=True)
    return [expired, StepFailed(run=run.id, error=error, source="server")]


def decide_cancel(state: ExecutionState, command: Cancel) -> list[EventBody]:
    require_active(state)
    if state.stopping:
        return []
    return [CancelRequested(by=command.by, reason=command.reason, error=command.error)]


def decide_pause(state: ExecutionState, command: Pause) -> list[EventBody]:
    require_active(state)
    return [] if state.paused or state.stopping else [ExecutionPaused(by=command.by)]


def decide_resume(state: ExecutionState, command: Resume) -> list[EventBody]:
    require_active(state)
    if not state.paused:
        return []
    paused = [run for run in state.runs.values() if run.paused]
    return [ExecutionResumed(by=command.by), *(RunResumed(run=run.id, reason="resume") for run in paused)]


def decide_retry(state: ExecutionState, command: Retry, now: int) -> list[EventBody]:
    """What failed is open again, also while other branches run; what came of the failure is taken back."""
    _require_retriable(state)
    runs = list(state.failed_runs.values())
    if state.holds_back and (state.tokens or not all(run.final for run in runs)):
        runs = [run for run in runs if not run.final]  # it runs at the next end, with what is so then
    retried = ExecutionRetried(
        runs=tuple(run.id for run in runs),
        by=command.by,
        steps=tuple(dict.fromkeys(run.step.name for run in runs if run.error and state.holds_back)),
        superseded=tuple(state.ran_after_failure),
        ends=runs_after_failure(state),
        children=command.children,
        hash=command.hash,
        file=command.file,
        deadlines=_new_deadlines(state, runs, now) if command.hash else {},
    )
    return [retried, *take_back(state, retried)]


def _new_deadlines(state: ExecutionState, runs: list[RunState], now: int) -> dict[str, int | None]:
    """Those that a repaired document gives: a timeout may be what was wrong with the old one.

    Where it names none for the execution, the request may have: that one stays.
    """
    timeouts: dict[str, tuple[float | Expression | None, EvaluationScope]] = {
        run.id: (run.step.step.timeout, loop_scope(run, now)) for run in runs if not run.final
    }
    if state.over and state.plan.playbook.executor.timeout is not None:
        scope = state_scope(state.inputs, state.ctx.values, state.outcomes, now)
        timeouts[""] = state.plan.playbook.executor.timeout, scope
    deadlines = {}
    for unit, (timeout, scope) in timeouts.items():
        try:
            seconds = scope.value(timeout) if isinstance(timeout, Expression) else timeout
            deadlines[unit] = deadline_after(seconds, now)
        except (ExpressionError, Unfetched):
            continue  # it has the time that it had
    return deadlines


def runs_after_failure(state: ExecutionState, behind: int = -1) -> tuple[str, ...]:
    """The runs that came of an unhandled failure; with `behind`, those behind steps with these bits."""
    return tuple(run.id for run in state.runs.values() if run.after_failure and run.step.above & behind)


def take_back(state: ExecutionState, retried: ExecutionRetried, behind: int = -1) -> list[EventBody]:
    """The ends of what came of failures that are retried: runs are cancelled, tokens go."""
    runs = [state.runs[name] for name in retried.ends]
    tokens = [token for token in state.tokens.values() if token.after_failure]
    return [
        *(cancel_run(run, "what it came of is retried", "server") for run in runs if run.phase != "ended"),
        *(
            TokenDiscarded(token=token.id, reason="retried")
            for token in tokens
            if state.step_of(token).above & behind
        ),
    ]


def _require_retriable(state: ExecutionState) -> None:
    """Raises Refused."""
    if state.status == "failed":
        if not state.retriable:
            raise Refused("no step of this execution can be opened again")
        return
    if state.status not in ("running", "paused"):
        raise Refused(f"only a failed execution can be retried, this one is {state.status}")
    if state.stopping:
        raise Refused("the execution is about to end: retry it then")
    if not state.failed_runs:
        raise Refused(
            f"only a failed execution can be retried, this one is {state.status}: nothing has failed"
        )
    if state.paused:
        raise Refused("the execution is paused: resume it first")
    if state.final or not state.holds_back:
        # The final step has heard how all else ended. Under the first rules, joins did not wait for a retry.
        raise Refused("what failed can be retried when the execution has ended")


def decide_redrive(state: ExecutionState, command: Redrive, now: int) -> list[EventBody]:
    runs = redrivable_runs(state, command.step)
    bits = 0
    for run in runs:
        bits |= run.step.bit
        if run.step.selections and run.loop is not None and run.loop.chunks:
            # What was selected of a chunk has no place between two halves of it.
            raise Refused(
                f"the results of `{run.step.name}` are stored in parts, and `spec.result.select` reads them"
            )
    behind = [name for name, summary in state.summaries.items() if summary.runs]
    return [
        IterationsRedriven(
            runs=tuple(run.id for run in runs),
            iterations=sum(len(kept_frames(run)) for run in runs),
            step=command.step,
            by=command.by,
            steps=tuple(
                step.name for step in state.plan.by_number if step.name in behind and step.above & bits
            ),
            children=command.children,
            hash=command.hash,
            file=command.file,
            deadlines=_new_deadlines(state, runs, now) if command.hash else {},
        )
    ]


def redrivable_runs(state: ExecutionState, step: str = "") -> list[RunState]:
    """The ended loops whose failed iterations can run again; with `step`, those at it. Raises Refused."""
    if step:
        require_step(state, step)
    if state.status in ("new", "refused", "cancelled"):
        raise Refused(f"the execution is {state.status}")
    if state.stopping:
        raise Refused("the execution was cut short as a whole: only `retry` goes on with it")
    if state.paused:
        raise Refused("the execution is paused: resume it first")
    runs = [run for run in state.redrivable.values() if step in ("", run.step.name)]
    if not runs:
        where = f" at `{step}`" if step else ""
        raise Refused(f"no loop{where} has ended with failed iterations (`failure: {{mode: best_effort}}`)")
    return runs


def require_step(state: ExecutionState, name: str) -> StepPlan:
    """Raises Refused."""
    plan = state.plan.by_name.get(name)
    if plan is None:
        from noetl.dsl.document.shape_check import did_you_mean  # noqa: PLC0415 - brings Jinja2, and few are wrong

        near = did_you_mean(name, state.plan.by_name)
        raise Refused(f"there is no step `{name}`" + (f"; {near}" if near else ""))
    return plan


def decide_patch_ctx(state: ExecutionState, command: PatchCtx) -> list[EventBody]:
    require_active(state)
    patches = _escape_patches(command.patches)
    require_room_in_ctx(state, *patches)
    return [CtxPatched(patches=patches, by=command.by)]


def _escape_patches(patches: tuple[Patch, ...]) -> tuple[Patch, ...]:
    return tuple(structs.replace(patch, value=escape(patch.value)) for patch in patches)


def require_room_in_ctx(state: ExecutionState, *patches: Patch) -> None:
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
    owned = run.owned_under(command.fence) if run is not None else None
    if run is None or owned is None:
        raise NotOwner(f"{command.run} is not owned under fence {command.fence}")
    reported, name = command.bodies, run.id
    recorded = owned.reported - command.report_no
    if recorded >= len(reported):
        return []
    if recorded < 0:
        raise ReportEarly(f"report {command.report_no} of {name} came before report {owned.reported}")
    last = reported[-1]
    for body in reported:
        kind = type(body)
        if kind not in REPORTED_INSIDE and not (body is last and kind in RUN_ENDS):
            raise Refused(f"a worker does not report {kind.__name__} here")
        if body.run != name:  # type: ignore[union-attr]  # all of these have it
            raise Refused(f"{kind.__name__} is not about {name}")
    bodies: list[EventBody] = [*reported[recorded:]]
    if isinstance(owned, Shard):
        bodies = _of_shard(run, owned, bodies)
    if command.data:
        try:
            require_foldable(run, bodies)
        except WrongSequence as error:
            raise Refused(f"the report of {run.id} cannot follow: {error}") from error
    last = bodies[-1]
    if type(last) is RunSuspended and last.reason == "pause" and not state.paused:
        # The execution went on before this came, and nobody would wake the run.
        bodies.append(RunResumed(run=name, reason="resume"))
    return bodies


def _of_shard(run: RunState, shard: Shard, bodies: list[EventBody]) -> list[EventBody]:
    """What is recorded of a report about a shard. The server ends the step, also where a worker cannot go on.

    What began after the loop had failed elsewhere is left out: its worker did not know yet. Raises Refused.
    """
    accepted: list[EventBody] = []
    for body in bodies:
        if isinstance(body, StepFailed):
            return [*accepted, structs.replace(body, source="server")]
        if type(body) in RUN_ENDS or not shard.start <= iteration_of(body) < shard.end:
            raise Refused(f"{type(body).__name__} is not for the worker of shard {shard.start} of {run.id}")
        accepted.append(body)
        if isinstance(body, LoopIterationCompleted) and run.loop is not None and run.loop.broken >= 0:
            break
    return accepted
