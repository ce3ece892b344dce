"""The one fold: what an event means for the state. It evaluates nothing and refuses what cannot follow."""

from collections.abc import Callable, Iterable
from typing import Any

from noetl.events import bodies as of
from noetl.events.bodies import EventBody, EventSource, Patch
from noetl.events.event import Event
from noetl.kernel.errors import WrongSequence
from noetl.kernel.state import marking, reopen_fold, run_fold, shards
from noetl.kernel.state.agenda import AdmitToken, DeliverSignal, RouteRun
from noetl.kernel.state.execution_state import ExecutionState, QueuedSignal, UnhandledFailure
from noetl.kernel.state.run_fold import RUN_FOLDS, evolve_run
from noetl.kernel.state.run_state import RunState, Shard, reducer_of
from noetl.kernel.state.variables import Variables, watching_tokens
from noetl.model.outcome import ErrorInfo


def evolve(state: ExecutionState, event: Event) -> None:
    """Fold one event into the state. Raises WrongSequence; the state is then of no use any more."""
    if event.seq != state.version + 1:
        raise WrongSequence(f"event {event.seq} cannot follow event {state.version}")
    state.version = event.seq
    FOLDS[type(event.body)](state, event.body, event)
    state.last_ts = event.ts


def require_run(state: ExecutionState, run: str) -> RunState:
    try:
        return state.runs[run]
    except KeyError as missing:
        raise WrongSequence(f"there is no open run {run}") from missing


def write_ctx(state: ExecutionState, patches: Iterable[Patch]) -> None:
    """Apply writes to the execution's ctx, and have the tokens asked again that they concern."""
    for patch in patches:
        if patch.scope == "ctx":
            state.ctx.write(patch.path, patch.value)
            if state.watchers:
                for token in watching_tokens(state.watchers, "ctx", patch.path):
                    state.agenda.add(AdmitToken(token))


def _fold_requested(state: ExecutionState, body: of.PlaybookExecutionRequested, event: Event) -> None:
    if state.status != "new":
        raise WrongSequence("the execution was requested already")
    state.status = "running"
    state.decider = state.inputs.decider = body.decider
    state.priority = body.priority
    state.started_at = event.ts
    state.inputs.trace_id = body.trace_id


def _fold_request_evaluated(state: ExecutionState, body: of.PlaybookRequestEvaluated, _: Event) -> None:
    if body.error is not None:
        state.status = "refused"


def _fold_workflow_started(state: ExecutionState, body: of.WorkflowStarted, event: Event) -> None:
    state.inputs.workload = body.workload
    state.ctx = Variables(dict(body.ctx))
    state.deadline = body.deadline
    state.timed_from = event.ts


def _fold_workflow_finished(state: ExecutionState, body: of.WorkflowFinished, _: Event) -> None:
    # None is left, but where a repaired document has given arcs to a step that had none when its run ended.
    for run in [run for run in state.runs.values() if run.phase == "ended"]:
        state.agenda.discard(RouteRun(run.id))
        _end_branch(state, run, handled=False)
        marking.drop_run(state, run)
    state.finished = body.status


def _fold_playbook_processed(state: ExecutionState, body: of.PlaybookProcessed, event: Event) -> None:
    if state.over:
        raise WrongSequence("the execution is over already")
    state.status = body.status
    state.result = body.result
    state.error = body.error
    state.ended_at = event.ts
    for token in state.tokens.values():
        marking.summarise_wait(state, token)


def _fold_token_claimed(state: ExecutionState, body: of.TokenClaimed, event: Event) -> None:
    run = require_run(state, body.run)
    owned: RunState | Shard = run
    if run.loop is not None and run.sharded:
        owned = shards.shard_at(run, body.shard)
        if owned.phase != "ready" or owned.start != body.shard:
            raise WrongSequence(f"shard {body.shard} of {run.id} is {owned.phase} and cannot be claimed")
        shards.claim_shard(run, owned, event.seq)
        owned.worker = body.worker
    elif run.phase != "ready":
        raise WrongSequence(f"{run.id} is {run.phase} and cannot be claimed")
    else:
        run_fold.claim_run(run, event.seq)
    owned.session = body.session
    run.since = run.since or event.ts
    marking.offer_run(state, run)


def _fold_lease_expired(state: ExecutionState, body: of.LeaseExpired, event: Event) -> None:
    run = require_run(state, body.run)
    owned = run.owned_under(body.fence)
    if owned is None:
        raise WrongSequence(f"{run.id} is not owned under fence {body.fence}")
    lost = body.reason == "expired"
    if len(run.owned_parts()) == 1:
        # That an owner is gone may be noticed much later: it worked until the last event before.
        marking.stop_clock(state, run, event.ts if body.reason == "released" else state.last_ts)
    if isinstance(owned, Shard):
        run_fold.release_shard(run, owned, lost=lost)
        marking.settle_shards(state, run)
    else:
        run_fold.release_run(run, lost=lost)
        marking.offer_run(state, run)


def _fold_run_event(state: ExecutionState, body: Any, _: Event) -> None:
    run = require_run(state, body.run)
    if run.phase != "claimed":
        raise WrongSequence(f"{run.id} is {run.phase}, so nothing can happen in it")
    evolve_run(run, body)
    if run.phase != "claimed" and not run.claimable:
        state.summaries[run.step.name].status = "waiting"
    loop = run.loop
    if loop is not None and loop.shard_size and type(body) in _SETTLING:
        marking.settle_shards(state, run)


_SETTLING = frozenset({of.LoopStarted, of.LoopIterationCompleted, of.RunSuspended})
"""What may change which shards there are to claim."""


def _fold_task_processed(state: ExecutionState, body: of.TaskProcessed, event: Event) -> None:
    _fold_run_event(state, body, event)
    if body.patches:
        run = state.runs[body.run]
        write_ctx(state, (patch for patch in body.patches if not reducer_of(run, patch)))


def _fold_run_suspended(state: ExecutionState, body: of.RunSuspended, event: Event) -> None:
    _fold_run_event(state, body, event)
    if body.reason == "pause":
        marking.stop_clock(state, state.runs[body.run], event.ts)
    if body.signal:
        state.listeners.setdefault(body.signal, []).append(f"{body.run}/{body.iteration}")
        _match_signal(state, body.signal)


def _match_signal(state: ExecutionState, signal: str) -> None:
    if state.signals.get(signal) and state.listeners.get(signal):
        state.agenda.add(DeliverSignal(signal))
    else:
        state.agenda.discard(DeliverSignal(signal))


def _take_signal(state: ExecutionState, signal: str) -> None:
    queue = state.signals[signal]
    queue.pop(0)
    if not queue:
        del state.signals[signal]


def _fold_run_resumed(state: ExecutionState, body: of.RunResumed, _: Event) -> None:
    run = require_run(state, body.run)
    frame = run.frames.get(body.iteration)
    signal = frame.suspension.signal if frame is not None and frame.suspension is not None else ""
    evolve_run(run, body)
    if signal and body.reason in ("signal", "timeout"):
        listeners = state.listeners[signal]
        listeners.remove(f"{body.run}/{body.iteration}")
        if not listeners:
            del state.listeners[signal]
        if body.reason == "signal":
            _take_signal(state, signal)
        _match_signal(state, signal)
    if run.claimable:
        state.summaries[run.step.name].status = "running"
    marking.offer_run(state, run)


def _fold_step_done(state: ExecutionState, body: of.StepDone, event: Event) -> None:
    run = require_run(state, body.run)
    run.event, run.result = "step.done", body.result
    _end_run(state, run, body.source, body.patches, event)


def _fold_loop_done(state: ExecutionState, body: of.LoopDone, event: Event) -> None:
    run = require_run(state, body.run)
    run.event, run.result = "loop.done", body.result
    _end_run(state, run, body.source, body.patches, event)


def _fold_step_failed(state: ExecutionState, body: of.StepFailed, event: Event) -> None:
    run = require_run(state, body.run)
    run.event, run.error = "step.failed", body.error
    run.failed_task, run.failed_attempt = body.task, body.attempt
    _end_run(state, run, body.source, body.patches, event)


def _fold_completed_by_hand(state: ExecutionState, body: of.StepCompletedByHand, event: Event) -> None:
    run = require_run(state, body.run)
    run.event, run.result = run.done_event, body.result
    _settle_iterations(run)
    _end_run(state, run, "server", body.patches, event)


def _fold_step_skipped(state: ExecutionState, body: of.StepSkipped, event: Event) -> None:
    run = require_run(state, body.run)
    run.event, run.result, run.skipped = run.done_event, None, True
    _settle_iterations(run)
    _end_run(state, run, "server", body.patches, event)


def _settle_iterations(run: RunState) -> None:
    """Somebody has said what the loop gives: what failed in it does not run again."""
    if run.loop is not None:
        run.loop.kept_frames = {}


def _end_run(
    state: ExecutionState, run: RunState, source: EventSource, patches: tuple[Patch, ...], event: Event
) -> None:
    if run.phase == "ended":
        raise WrongSequence(f"{run.id} has ended already")
    sharded = run.loop is not None and run.sharded
    if sharded:
        shards.end_shards(run)
    run.phase = "ended"
    run.fence = 0
    run.reported += 1
    run.ended_by, run.ended_seq, run.ended_at = source, event.seq, event.ts
    marking.stop_clock(state, run, event.ts)
    state.open_runs -= 1
    state.ready.pop(run.id, None)
    routing = RouteRun(run.id)
    if run.step.routes_only or sharded:
        state.agenda.discard(routing)  # where it stood to be ended
    if run.suspended:
        _forget_listeners(state, run)
    if patches:
        _write_run_end(state, run, patches)
    marking.summarise_run(state, run)
    if run.superseded:
        marking.forget_superseded(state, [run.step.name])
        marking.drop_run(state, run)
    elif run.final or state.stopping:
        state.final = "done" if run.final else state.final
        if run.error is not None and run.error.kind != "cancelled":
            _add_unhandled_failure(state, run, run.error)
        marking.drop_run(state, run, reopens=state.cut_short and not run.final)
    elif state.routes(run.step):
        # At the end of the agenda, also where the server itself has ended the run.
        state.agenda.add(routing)
    else:
        _end_branch(state, run, handled=False)
        marking.drop_run(state, run)


def _write_run_end(state: ExecutionState, run: RunState, patches: Iterable[Patch]) -> None:
    """The writes of a run that has ended: to its own scope, and to ctx."""
    for patch in patches:
        if patch.scope == "run":
            run.variables.write(patch.path, patch.value)
    write_ctx(state, patches)


def _forget_listeners(state: ExecutionState, run: RunState) -> None:
    for frame in run.frames.values():
        if frame.suspension is not None and frame.suspension.signal in state.listeners:
            signal = frame.suspension.signal
            state.listeners[signal].remove(f"{run.id}/{frame.index}")
            if not state.listeners[signal]:
                del state.listeners[signal]
            _match_signal(state, signal)


def _end_branch(state: ExecutionState, run: RunState, *, handled: bool) -> None:
    if run.error is not None and not handled:
        _add_unhandled_failure(state, run, run.error)
        return
    state.failures_in_row.pop(run.step.name, None)
    if run.error is None and run.after_failure:
        if run.step.number >= state.ending_after_failure:
            state.ending_after_failure, state.result_after_failure = run.step.number, run.result
    elif run.error is None and run.step.number >= state.ending:
        state.ending = run.step.number
        state.ending_result = run.result


def _add_unhandled_failure(state: ExecutionState, run: RunState, error: ErrorInfo) -> None:
    details = {**error.details, "step": run.step.name}
    if run.failed_task:
        details |= {"task": run.failed_task, "attempt": run.failed_attempt}
    located = ErrorInfo(
        kind=error.kind,
        message=error.message,
        retryable=error.retryable,
        retry_after=error.retry_after,
        details=details,
    )
    state.failures.append(UnhandledFailure(run.id, located))
    if run.error is None:
        marking.count_failed_run(state, run)  # its arcs could not be followed
    run.unhandled = True
    if state.holds_back:
        state.failures_in_row[run.step.name] = state.failures_in_row.get(run.step.name, 0) + 1


def _fold_next_evaluated(state: ExecutionState, body: of.NextEvaluated, _: Event) -> None:
    run = require_run(state, body.run)
    routing = RouteRun(run.id)
    if run.phase != "ended" or routing not in state.agenda:
        raise WrongSequence(f"{run.id} has not ended, or was routed already")
    del state.agenda[routing]
    if body.patches:
        _write_run_end(state, run, body.patches)
    if not body.selected:
        if body.error is None:
            _end_branch(state, run, handled=body.handled)
        else:
            _add_unhandled_failure(state, run, run.error or body.error)
        marking.drop_run(state, run)
        return
    run.owed = len(body.selected)
    error = run.error or body.error
    if not body.handled and error is not None:
        _add_unhandled_failure(state, run, error)
    elif state.failures_in_row:
        state.failures_in_row.pop(run.step.name, None)


def _fold_ctx_patched(state: ExecutionState, body: of.CtxPatched, event: Event) -> None:
    write_ctx(state, body.patches)
    if event.seq == state.forked_at + 1:
        # What a fork sets is there for all that has not begun, also for what was scheduled before.
        for run in state.runs.values():
            if run.phase == "ready" and run.untouched:
                run.ctx = state.ctx.pinned()


def _fold_signal_received(state: ExecutionState, body: of.SignalReceived, _: Event) -> None:
    write_ctx(state, (Patch(scope="ctx", path=("signals", body.signal), value=body.payload),))
    queued = QueuedSignal(body.payload, body.by, body.wait, body.by_admin)
    state.signals.setdefault(body.signal, []).append(queued)
    _match_signal(state, body.signal)


def _fold_signal_dropped(state: ExecutionState, body: of.SignalDropped, _: Event) -> None:
    _take_signal(state, body.signal)
    _match_signal(state, body.signal)


def _fold_cancel_requested(state: ExecutionState, body: of.CancelRequested, _: Event) -> None:
    state.stopping = "failed" if body.error is not None else "cancelled"
    state.stop_error = body.error
    state.paused = False
    state.status = "running"
    for run in [run for run in state.runs.values() if run.phase == "ended"]:
        state.agenda.discard(RouteRun(run.id))
        if run.error is not None or not state.cut_short:
            _end_branch(state, run, handled=False)
        marking.drop_run(state, run, reopens=state.cut_short)


def _fold_execution_paused(state: ExecutionState, _: of.ExecutionPaused, __: Event) -> None:
    state.paused = True
    state.status = "paused"


def _fold_execution_resumed(state: ExecutionState, _: of.ExecutionResumed, __: Event) -> None:
    state.paused = False
    state.status = "running"


FOLDS: dict[type[EventBody], Callable[[ExecutionState, Any, Event], None]] = {
    of.PlaybookExecutionRequested: _fold_requested,
    of.PlaybookRequestEvaluated: _fold_request_evaluated,
    of.WorkflowStarted: _fold_workflow_started,
    of.WorkflowFinished: _fold_workflow_finished,
    of.PlaybookProcessed: _fold_playbook_processed,
    of.TokenEnqueued: marking.fold_token_enqueued,
    of.TokenParked: marking.fold_token_parked,
    of.TokenAdmitted: marking.fold_token_admitted,
    of.TokenDiscarded: marking.fold_token_discarded,
    of.StepScheduled: marking.fold_step_scheduled,
    of.TokenClaimed: _fold_token_claimed,
    of.LeaseExpired: _fold_lease_expired,
    **dict.fromkeys(RUN_FOLDS, _fold_run_event),  # those that change more than the run stand below
    of.TaskProcessed: _fold_task_processed,
    of.RunSuspended: _fold_run_suspended,
    of.RunResumed: _fold_run_resumed,
    of.StepDone: _fold_step_done,
    of.StepFailed: _fold_step_failed,
    of.LoopDone: _fold_loop_done,
    of.StepCompletedByHand: _fold_completed_by_hand,
    of.StepSkipped: _fold_step_skipped,
    of.NextEvaluated: _fold_next_evaluated,
    of.CtxPatched: _fold_ctx_patched,
    of.SignalReceived: _fold_signal_received,
    of.SignalDropped: _fold_signal_dropped,
    of.CancelRequested: _fold_cancel_requested,
    of.ExecutionPaused: _fold_execution_paused,
    of.ExecutionResumed: _fold_execution_resumed,
    of.ExecutionRetried: reopen_fold.fold_execution_retried,
    of.IterationsRedriven: reopen_fold.fold_iterations_redriven,
    of.ExecutionForked: reopen_fold.fold_execution_forked,
}
