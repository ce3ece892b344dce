"""What events mean for a run: the fold that server and worker share."""

from bisect import insort
from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import Any, TypeAlias, assert_never

from msgspec.structs import replace

from noetl.events import bodies as of
from noetl.events.bodies import LoopStarted, Patch, RunResumed
from noetl.kernel.errors import WrongSequence
from noetl.kernel.plan import WAITING_KINDS
from noetl.kernel.state import shards
from noetl.kernel.state.run_state import (
    COUNTING_LOSSES,
    HANDING_ON,
    KEEPING_PREV,
    Frame,
    LoopState,
    Resumption,
    RunState,
    Shard,
    Suspension,
    reducer_of,
)

FAILURES_KEPT = 100


def claim_run(run: RunState, fence: int) -> None:
    run.phase = "claimed"
    run.fence = fence
    run.reported = 0
    if run.step.step.loop is None and not run.frames and run.loop is None:
        open_frame(run, 0)


def release_run(run: RunState, *, lost: bool) -> None:
    """Nobody owns it: what its owner had begun may have happened or not, so it is delivered again."""
    run.phase = "suspended" if run.stalled else "ready"
    run.fence = 0
    given_back = not lost and run.inputs.decider >= COUNTING_LOSSES
    run.losses += lost
    _redeliver(run, run.frames.values(), given_back=given_back)


def release_shard(run: RunState, shard: Shard, *, lost: bool) -> None:
    """The same for a shard: what others have of the loop goes on."""
    shard.losses += lost
    _redeliver(run, [run.frames[index] for index in shard.open], given_back=not lost)
    shards.free_shard(run, shard)


def _redeliver(run: RunState, frames: Iterable[Frame], *, given_back: bool) -> None:
    for frame in frames:
        if frame.running and frame.suspension is None and frame.resumption is None:
            frame.running = False
            frame.losses += 1
            frame.given_back += given_back
            run.busy.add(str(frame.index))


def fork_run(run: RunState) -> None:
    """A copy goes on by itself: it owns nothing of the original, neither leases nor children.

    What was in flight there begins anew here, and does not count as a try.
    """
    for frame in run.frames.values():
        if frame.suspension is not None and frame.suspension.child:
            frame.suspension = None
            run.suspended -= 1
        if frame.running and frame.suspension is None and frame.resumption is None:
            frame.running = False
            frame.losses += 1
            run.busy.add(str(frame.index))
        frame.attempt -= frame.losses > 0  # here nobody has tried it yet
        frame.losses = frame.given_back = 0
    run.fence = 0
    if run.sharded:
        shards.reopen_shards(run)
    else:
        run.phase = "suspended" if run.stalled else "ready"


def forget_children(run: RunState) -> None:
    """A copy has children of its own: what the original started is not retried here."""
    for frame in (*all_frames(run), *kept_frames(run)):
        frame.child = ""


def retryable_children(run: RunState) -> list[str]:
    """The children that tasks of a failed run waited for when it ended."""
    return [frame.child for frame in all_frames(run) if frame.child]


def all_frames(run: RunState) -> list[Frame]:
    """The open passes, and those that failed the loop."""
    failed_frames = run.loop.failed_frames if run.loop is not None else {}
    return [*run.frames.values(), *failed_frames.values()]


def kept_frames(run: RunState) -> list[Frame]:
    """The passes that failed without failing the loop."""
    return list(run.loop.kept_frames.values()) if run.loop is not None else []


def shift_run(run: RunState, shift: int) -> None:
    """All that the run has a time for comes so much later."""
    run.began_at += shift
    run.since += shift if run.since else 0
    if run.deadline is not None:
        run.deadline += shift
    for frame in all_frames(run):
        frame.began_at += shift if frame.began_at else 0
        if frame.retry_at is not None:
            frame.retry_at += shift
        if frame.suspension is not None and frame.suspension.until is not None:
            frame.suspension = replace(frame.suspension, until=frame.suspension.until + shift)


def open_frame(run: RunState, index: int) -> Frame:
    frame = run.frames[index] = Frame(index)
    tasks = run.step.step.tasks
    if tasks:
        frame.visits = {tasks[0].label: 1}
    else:
        frame.status = "done"
    run.busy.add(str(index))
    return frame


def require_frame(run: RunState, index: int) -> Frame:
    try:
        return run.frames[index]
    except KeyError as missing:
        raise WrongSequence(f"{run.id} has no open iteration {index}") from missing


def fold_task_started(run: RunState, body: of.TaskStarted) -> None:
    frame = require_frame(run, body.iteration)
    task = run.task(frame) if frame.status == "open" and not frame.running else None
    if task is None or task.label != body.task:
        raise WrongSequence(f"{run.id}/{body.iteration} is not ready to start `{body.task}`")
    frame.attempt = body.attempt
    frame.running = True
    frame.retry_at = None
    if task.kind in WAITING_KINDS:
        frame.input = body.input
        frame.began_at = body.at
    else:
        run.busy.pop(str(frame.index), None)


def fold_task_processed(run: RunState, body: of.TaskProcessed) -> None:
    frame = require_frame(run, body.iteration)
    # After too many losses the attempt is judged without being started once more.
    if not (frame.running or frame.losses) or run.task(frame).label != body.task:
        raise WrongSequence(f"{run.id}/{body.iteration} is not running `{body.task}`")
    frame.running = False
    frame.losses = frame.given_back = 0
    frame.input = None
    frame.resumption = None
    run.busy.add(str(frame.index))
    for patch in body.patches:
        apply_patch(run, frame, patch)
    ok = body.outcome.status == "ok"
    if ok or body.do != "fail":
        frame.child = ""  # another attempt or task has a child of its own
    if body.do == "retry":
        frame.retry_at = body.retry_at
        frame.polls += ok
        return
    frame.result = body.outcome.result
    if ok:
        frame.results[body.task] = body.outcome.result
    if body.do != "fail" or run.inputs.decider < KEEPING_PREV:
        hands_on = ok or run.inputs.decider >= HANDING_ON
        frame.prev = body.prev if body.set_prev else body.outcome.result if hands_on else None
    match body.do:
        case "continue":
            _move_to(run, frame, frame.at + 1)
        case "jump":
            _move_to(run, frame, run.step.label_at[body.to])
        case "break":
            frame.status = "done"
        case "fail":
            frame.status = "failed"
            frame.error = body.error or body.outcome.error
        case _:
            assert_never(body.do)


def _move_to(run: RunState, frame: Frame, to: int) -> None:
    frame.at = to
    frame.transitions += 1
    frame.attempt = frame.forgiven = frame.polls = 0
    tasks = run.step.step.tasks
    if to >= len(tasks):
        frame.status = "done"
    else:
        label = tasks[to].label
        frame.visits[label] = frame.visits.get(label, 0) + 1


def apply_patch(run: RunState, frame: Frame, patch: Patch) -> None:
    """A write of the pipeline, as this run sees it. What a reducer combines waits for the loop's end."""
    if reducer_of(run, patch):
        frame.contributions += (patch,)
        return
    match patch.scope:
        case "ctx":
            run.ctx.write(patch.path, patch.value)
        case "iter":
            frame.iter.write(patch.path, patch.value)
        case "run":
            run.variables.write(patch.path, patch.value)
        case _:
            assert_never(patch.scope)


def fold_loop_started(run: RunState, body: of.LoopStarted) -> None:
    if run.loop is not None or run.step.step.loop is None:
        raise WrongSequence(f"{run.id} has no loop to start")
    run.loop = LoopState(body.items, body.total, body.max_in_flight, shard_size=body.shard_size)


def fold_iteration_started(run: RunState, body: of.LoopIterationStarted) -> None:
    loop = run.loop
    if loop is not None and loop.shard_size:
        shard = shards.shard_at(run, body.index)
        if body.index != shard.next or not shards.can_begin(run, shard):
            raise WrongSequence(f"iteration {body.index} of {run.id} cannot start in its shard")
        shard.next += 1
        shard.open.append(body.index)
    elif loop is None or body.index != loop.following or not run.startable:
        raise WrongSequence(f"iteration {body.index} of {run.id} cannot start")
    elif loop.redriven:
        frame = run.frames[body.index] = loop.kept_frames.pop(loop.redriven.pop(0))
        run.busy.add(str(frame.index))
        return
    else:
        loop.next += 1
    open_frame(run, body.index)


def fold_iteration_completed(run: RunState, body: of.LoopIterationCompleted) -> None:
    loop, frame = run.loop, require_frame(run, body.index)
    if loop is None or frame.running:
        raise WrongSequence(f"iteration {body.index} of {run.id} is still running")
    del run.frames[body.index]
    run.busy.discard(str(body.index))
    _advance_low(loop, body.index)
    _count_iteration(run, loop, frame, body)
    if body.chunk is not None:
        _drop_chunked_results(loop, body.chunk)
    _release_if_stalled(run)


def _count_iteration(run: RunState, loop: LoopState, frame: Frame, body: of.LoopIterationCompleted) -> None:
    if body.status == "success":
        loop.succeeded += 1
        _keep_result(loop, body.index, body.result)
        if body.contributions:
            loop.contributions[body.index] = body.contributions
        return
    loop.failed += 1
    if len(loop.failures) < FAILURES_KEPT:
        # By index, not by arrival: a parallel loop must end as a sequential one does.
        failure = {"index": body.index, "error": body.error.as_value() if body.error else None}
        insort(loop.failures, failure, key=itemgetter("index"))
    if run.step.step.loop is not None and run.step.step.loop.failure == "fail_fast":
        frame.error = frame.error or body.error
        loop.failed_frames[body.index] = frame
        if loop.broken < 0:
            loop.broken = body.index
    else:
        loop.kept_frames[body.index] = frame


def _keep_result(loop: LoopState, index: int, result: Any) -> None:
    # Iterations end in any order; those that have not yet, or failed, leave None. So does a worker, which
    # keeps no results: its list stays empty.
    offset = index - loop.base
    if offset < 0:
        loop.redone[index] = result
        return
    if result is None and offset >= len(loop.results):
        return
    if offset >= len(loop.results):
        loop.results.extend([None] * (offset + 1 - len(loop.results)))
    loop.results[offset] = result


def _drop_chunked_results(loop: LoopState, chunk: dict[str, Any]) -> None:
    """What a chunk holds need not be held here."""
    if chunk["from"] != loop.base or not loop.base < chunk["to"] <= loop.low:
        raise WrongSequence(f"a chunk of {chunk['from']} to {chunk['to']} cannot follow {loop.base}")
    loop.chunks.append(chunk)
    del loop.results[: chunk["to"] - loop.base]
    loop.base = chunk["to"]


def _advance_low(loop: LoopState, index: int) -> None:
    # Only what ended ahead of a gap is held by number: a set of all would grow with the loop.
    loop.ended.add(index)
    while loop.low in loop.ended:
        loop.ended.discard(loop.low)
        loop.low += 1


def fold_run_suspended(run: RunState, body: of.RunSuspended) -> None:
    if body.reason == "pause":
        run.paused = True
    else:
        frame = require_frame(run, body.iteration)
        if frame.suspension is not None:
            raise WrongSequence(f"{run.id}/{body.iteration} is suspended already")
        frame.suspension = Suspension(body.reason, body.until, body.signal, body.child, body.question)
        frame.child = body.child
        run.suspended += 1
        run.busy.discard(str(body.iteration))
    _release_if_stalled(run)


def _release_if_stalled(run: RunState) -> None:
    """Where all that is left waits, nobody owns the run."""
    if run.stalled:
        run.phase = "suspended"
        run.fence = 0


def fold_run_resumed(run: RunState, body: of.RunResumed) -> None:
    if body.reason == "resume":
        run.paused = False
    else:
        frame = require_frame(run, body.iteration)
        if frame.suspension is None:
            raise WrongSequence(f"{run.id}/{body.iteration} is not suspended")
        if frame.suspension.reason == "retry":
            frame.retry_at = None
        else:
            frame.resumption = Resumption(body.reason, body.payload)
        frame.suspension = None
        run.suspended -= 1
        run.busy.add(str(body.iteration))
    if run.sharded:
        shard = shards.shard_at(run, body.iteration)
        if shard.phase == "suspended":
            shards.free_shard(run, shard)
    elif run.phase == "suspended" and not run.stalled:
        run.phase = "ready"


def reopen_run(run: RunState, children: Collection[str]) -> None:
    """A failed run goes on at its failed task or iterations: tries so far no longer count.

    Tasks that failed with one of `children` wait for it again; others start a new one.
    """
    run.phase, run.event, run.error, run.failed_task, run.failed_attempt = "ready", "", None, "", 0
    run.fence = run.reported = run.owed = run.losses = 0
    run.paused = False
    loop = run.loop
    if loop is not None:
        run.frames.update(loop.failed_frames)
        loop.failed -= len(loop.failed_frames)
        _go_back(loop, {*run.frames, *loop.redriven, *shards.unbegun(run)})
        loop.failures = [entry for entry in loop.failures if entry["index"] not in loop.failed_frames]
        loop.failed_frames = {}
        loop.broken = -1
    for frame in run.frames.values():
        _reopen_frame(frame, children)
        run.busy.add(str(frame.index))
    run.suspended = 0
    if run.sharded:
        shards.reopen_shards(run)


def redrive_run(run: RunState, children: Collection[str]) -> None:
    """A loop that had ended goes on with the iterations that failed in it; only these are published again."""
    loop = run.loop
    if loop is None or not loop.kept_frames:
        raise WrongSequence(f"no iteration of {run.id} can run again")
    loop.shard_size = 0  # they are few: one worker has them all
    reopen_run(run, children)
    run.result = None
    for frame in loop.kept_frames.values():
        _reopen_frame(frame, children)
    loop.redriven = sorted(loop.kept_frames)
    loop.failed -= len(loop.redriven)
    loop.failures = []
    loop.contributions = {}
    _go_back(loop, loop.redriven)


def _go_back(loop: LoopState, opened: Collection[int]) -> None:
    """`low` goes back to the first that is open again, and what ended above it is held by number anew."""
    loop.low = min((loop.low, *opened))
    loop.ended = set(range(loop.low, loop.next)).difference(opened)


def _reopen_frame(frame: Frame, children: Collection[str]) -> None:
    frame.running = False
    if frame.status == "failed":
        frame.status, frame.error = "open", None
    frame.forgiven = frame.attempt
    frame.losses = frame.given_back = 0
    frame.retry_at = frame.suspension = frame.resumption = None
    if frame.child not in children:
        frame.child = ""


RunEnd: TypeAlias = of.StepDone | of.StepFailed | of.LoopDone
"""What ends a run. It changes more than the run, so the fold of the execution knows it."""
EndByHand: TypeAlias = of.StepCompletedByHand | of.StepSkipped
"""The same where somebody ends it who is no worker."""

RUN_FOLDS: dict[type, Callable[[RunState, Any], None]] = {
    of.TaskStarted: fold_task_started,
    of.TaskProcessed: fold_task_processed,
    of.LoopStarted: fold_loop_started,
    of.LoopIterationStarted: fold_iteration_started,
    of.LoopIterationCompleted: fold_iteration_completed,
    of.RunSuspended: fold_run_suspended,
    of.RunResumed: fold_run_resumed,
}
"""What happens inside a run. Each raises WrongSequence where the event cannot follow."""


def evolve_run(run: RunState, body: of.EventBody) -> None:
    """Fold one event of the pipeline into the run; others are not for it."""
    kind, loop = type(body), run.loop
    if loop is not None and loop.shard_size and kind is not RunResumed:
        _evolve_shard(run, body)
        return
    RUN_FOLDS[kind](run, body)
    # What the owner has reported is counted, so that a report which comes twice is known as such.
    if kind is not RunResumed:
        run.reported += 1
        run.losses = 0
        if kind is LoopStarted and run.sharded:
            # Whoever started the loop lets go; its shards are for everybody.
            run.fence = 0
            shards.open_shards(run)


def _evolve_shard(run: RunState, body: of.EventBody) -> None:
    """What the owner of a shard reports changes that alone."""
    shard = shards.shard_at(run, iteration_of(body))
    if shard.phase != "claimed":
        raise WrongSequence(f"shard {shard.start} of {run.id} is {shard.phase}, so nothing can happen in it")
    if isinstance(body, of.RunSuspended) and body.reason == "pause":
        raise WrongSequence(f"a shard of {run.id} is given back, not paused")
    RUN_FOLDS[type(body)](run, body)
    shard.reported += 1
    shard.losses = 0
    if isinstance(body, of.LoopIterationCompleted):
        shard.open.remove(body.index)
        shards.settle_shard(run, shard)
    elif isinstance(body, of.RunSuspended):
        shards.settle_shard(run, shard)


def iteration_of(body: of.EventBody) -> int:
    """The iteration that an event of a run is about."""
    return getattr(body, "iteration", getattr(body, "index", 0))
