"""What a run wants next: an interpreter of pipelines without input or output."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from noetl.events.bodies import (
    EventSource,
    LoopIterationCompleted,
    LoopIterationStarted,
    RunSuspended,
    StepDone,
    StepFailed,
)
from noetl.kernel.errors import Refused
from noetl.kernel.pipeline.loops import end_loop, start_loop
from noetl.kernel.pipeline.moves import Fetch, Finish, Move, Record, Suspend, Wait
from noetl.kernel.pipeline.policy import SECOND, expression_error_info, judge_with_policy
from noetl.kernel.pipeline.task_inputs import Secrets, next_attempt, open_constant_iteration
from noetl.kernel.pipeline.waits import begin_wait, outcome_after_wait, wait_attempt_meta
from noetl.kernel.plan import WAITING_KINDS
from noetl.kernel.references.resolve import Fetched, Unfetched
from noetl.kernel.state.run_state import Frame, RunState, Shard
from noetl.model.errors import ExpressionError
from noetl.model.outcome import ErrorInfo, failed

LONG_WAIT = 5 * SECOND
"""A longer wait before a retry holds no worker."""

MOST_LOSSES = 3

_NOTHING: Fetched = {}


def advance(run: RunState, now: int, secrets: Secrets | None = None, fetched: Fetched = _NOTHING) -> Move:
    """The next instruction. Asking again without recording what it asked for gives the same answer.

    `fetched` are stored values by key; what else is needed is asked for with Fetch.
    """
    if run.phase == "suspended":
        return Suspend()
    if run.phase != "claimed":
        raise Refused(f"{run.id} is {run.phase}, not claimed")
    earliest_wait: int | None = None
    try:
        if run.step.step.loop is not None and run.loop is None:
            return start_loop(run, now, fetched)
        for index in run.busy:  # not all frames: thousands of iterations may be suspended
            move = advance_frame(run, run.frames[int(index)], now, secrets, fetched)
            if not isinstance(move, Wait):
                return move
            earliest_wait = (
                move.until if earliest_wait is None else min(earliest_wait, move.until or earliest_wait)
            )
    except Unfetched as error:
        return Fetch(error.keys)
    if run.startable and run.loop is not None:
        # With a keychain inputs are masked, constant or not, so the slow way is gone.
        # An iteration that is redriven has begun before, and goes on where it was.
        is_new = not run.loop.redriven
        begun = open_constant_iteration(run, run.loop.next, now) if secrets is None and is_new else None
        return begun or Record(LoopIterationStarted(run=run.id, index=run.loop.following))
    if not run.frames:
        return Finish(end_loop(run))
    return Wait(earliest_wait)


def advance_shard(
    run: RunState, shard: Shard, now: int, secrets: Secrets | None = None, fetched: Fetched = _NOTHING
) -> Move:
    """The same for a shard of a run: its iterations begin one after the other."""
    if shard.phase == "suspended":
        return Suspend()
    if shard.phase != "claimed":
        raise Refused(f"shard {shard.start} of {run.id} is {shard.phase}, not claimed")
    if not shard.open:
        begun = open_constant_iteration(run, shard.next, now) if secrets is None else None
        return begun or Record(LoopIterationStarted(run=run.id, index=shard.next))
    index = shard.open[0]
    if str(index) not in run.busy:
        return Wait()
    try:
        return advance_frame(run, run.frames[index], now, secrets, fetched)
    except Unfetched as error:
        return Fetch(error.keys)


def pause_run(run: RunState) -> RunSuspended | None:
    """What to record instead of going on, once no task is in flight; None before that."""
    return None if is_in_flight(run.frames.values()) else RunSuspended(run=run.id, reason="pause")


def is_in_flight(frames: Iterable[Frame]) -> bool:
    """Whether a task of these has begun that no wait holds."""
    return any(frame.running and frame.suspension is None for frame in frames)


def cancel_run(
    run: RunState, message: str = "the execution was cancelled", source: EventSource = "worker"
) -> StepFailed:
    """The end of a run whose tasks were interrupted, or never began."""
    error = ErrorInfo(kind="cancelled", message=message)
    return StepFailed(run=run.id, error=error, source=source)


def advance_frame(run: RunState, frame: Frame, now: int, secrets: Secrets | None, fetched: Fetched) -> Move:
    """What one open iteration wants next, whatever the others want. Raises Unfetched."""
    if frame.status != "open":
        return _end_frame(run, frame)
    masked = secrets.masked if secrets else None
    if frame.resumption is not None:
        outcome = replace(
            outcome_after_wait(run, frame, frame.resumption), meta=wait_attempt_meta(run, frame, now)
        )
        return Record(judge_with_policy(run, frame.index, outcome, now, masked, fetched))
    if frame.running:
        return _suspend_or_judge(run, frame, now, masked, fetched)
    if frame.retry_at is not None and frame.retry_at > now:
        return _await_retry(run, frame, frame.retry_at, now)
    try:
        attempt = next_attempt(run, frame, now, secrets, fetched)
    except ExpressionError as error:
        fault = expression_error_info(error)
        if secrets is not None:
            fault = replace(fault, message=secrets.mask_message(fault.message, None))
        return _fail_frame(run, frame, fault)
    if frame.losses >= MOST_LOSSES and frame.lost_workers >= MOST_LOSSES:
        return _judge_lost_attempt(run, frame, now, masked, fetched)
    return Record(attempt.started) if attempt.task.kind in WAITING_KINDS else attempt


def _suspend_or_judge(
    run: RunState, frame: Frame, now: int, masked: Mapping[str, Any] | None, fetched: Fetched
) -> Move:
    begun = begin_wait(run, frame, now)
    if isinstance(begun, RunSuspended):
        return Record(begun)
    outcome = replace(begun, meta=wait_attempt_meta(run, frame, now))
    return Record(judge_with_policy(run, frame.index, outcome, now, masked, fetched))


def _await_retry(run: RunState, frame: Frame, until: int, now: int) -> Move:
    if until - now > LONG_WAIT:
        return Record(RunSuspended(run=run.id, reason="retry", iteration=frame.index, until=until))
    return Wait(until)


def _judge_lost_attempt(
    run: RunState, frame: Frame, now: int, masked: Mapping[str, Any] | None, fetched: Fetched
) -> Move:
    message = f"{frame.lost_workers} workers were lost while they ran this"
    lost = failed(ErrorInfo(kind="worker_lost", message=message, retryable=True))
    outcome = replace(lost, meta=wait_attempt_meta(run, frame, now))
    return Record(judge_with_policy(run, frame.index, outcome, now, masked, fetched))


def _end_frame(run: RunState, frame: Frame) -> Move:
    if frame.status == "failed":
        unknown = ErrorInfo(kind="tool", message="the task failed and does not say why")
        return _fail_frame(run, frame, frame.error or unknown)
    if run.loop is not None:
        return Record(
            LoopIterationCompleted(
                run=run.id,
                index=frame.index,
                status="success",
                result=frame.result,
                contributions=frame.contributions,
            )
        )
    return Finish(StepDone(run=run.id, result=run.inherited if run.step.passes else frame.result))


def _fail_frame(run: RunState, frame: Frame, error: ErrorInfo) -> Move:
    if run.loop is not None:
        return Record(LoopIterationCompleted(run=run.id, index=frame.index, status="error", error=error))
    task = run.task(frame).label
    return Finish(StepFailed(run=run.id, error=error, task=task, attempt=frame.attempt))
