"""What it means for the state that something goes on which had ended: by a retry, a redrive or a fork."""

from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.kernel.state import marking, run_fold
from noetl.kernel.state.agenda import RouteRun
from noetl.kernel.state.execution_state import ExecutionState, ForkPoint
from noetl.kernel.state.run_state import RunState


def fold_execution_retried(state: ExecutionState, body: of.ExecutionRetried, event: Event) -> None:
    if state.over:
        _reopen_execution(state, body, event)
    other_runs = {*body.keeps, *state.runs}  # one that is on its way out has failed meanwhile
    state.failures = [failure for failure in state.failures if failure.run in other_runs]
    state.failures_in_row = {}
    opened = 0
    for name in body.runs:
        run = state.failed_runs.pop(name)
        opened |= run.step.bit
        _reopen_run(state, run, body, event)
    if body.keeps:
        state.failing = 0
        for run in state.failed_runs.values():
            state.failing |= run.step.bit if state.holds_back else 0
        marking.forget_superseded(state, body.superseded)
    else:
        state.failed_runs.clear()
        state.failing, opened = 0, -1  # all are live now, whatever step they are at
        state.ending_after_failure, state.result_after_failure = -1, None
        marking.forget_superseded(state, list(state.ran_after_failure))
    for name in body.ends:
        _supersede_run(state, state.runs[name])
    marking.rearm_joins(state, opened)


def _supersede_run(state: ExecutionState, run: RunState) -> None:
    """What it came of is retried: it routes nothing, now if it has ended, or else when it does."""
    if run.phase == "ended":
        state.agenda.discard(RouteRun(run.id))
        marking.drop_run(state, run)
    else:
        run.superseded = True


def _reopen_execution(
    state: ExecutionState, body: of.ExecutionRetried | of.IterationsRedriven, event: Event
) -> None:
    if "" in body.deadlines:
        state.deadline, state.timed_from = body.deadlines[""], event.ts
    elif state.deadline is not None:
        # A retry has all of its time again.
        state.deadline += event.ts - state.timed_from
        state.timed_from = event.ts
    state.status, state.finished, state.error, state.result = "running", "", None, None
    if state.stopping:
        state.stopping, state.stop_error, state.scheduled = "", None, 0
        for token in state.tokens.values():
            if token.deadline is not None:
                token.deadline += event.ts - state.ended_at
    state.ended_at = 0
    state.final = ""


def _reopen_run(state: ExecutionState, run: RunState, body: of.ExecutionRetried, event: Event) -> None:
    if run.unhandled or run.error is not None:  # else it was only cut short on its way out
        marking.count_failed_run(state, run, -1)
    run.unhandled = False
    _restore_run(state, run, body, event)
    if run.error is None:
        state.agenda.add(RouteRun(run.id))
        run.phase = "ended"
        return
    run_fold.reopen_run(run, body.children)
    _offer_again(state, run)
    if run.final:
        state.final = "running"


def _restore_run(
    state: ExecutionState,
    run: RunState,
    body: of.ExecutionRetried | of.IterationsRedriven,
    event: Event,
) -> None:
    """It has all of its time again."""
    if run.id in body.deadlines:
        run.deadline, run.began_at = body.deadlines[run.id], event.ts
    elif run.deadline is not None:
        run.deadline += event.ts - run.began_at
        run.began_at = event.ts
    marking.restore_run(state, run)


def _offer_again(state: ExecutionState, run: RunState) -> None:
    state.open_runs += 1
    state.pending_effects.loop_bytes.pop(run.id, None)  # its gaps are others now
    state.summaries[run.step.name].status = "running"
    marking.settle_shards(state, run)


def fold_iterations_redriven(state: ExecutionState, body: of.IterationsRedriven, event: Event) -> None:
    if state.over:
        _reopen_execution(state, body, event)
    for name in body.runs:
        run = state.redrivable.pop(name)
        _restore_run(state, run, body, event)
        run_fold.redrive_run(run, body.children)
        _offer_again(state, run)


def fold_execution_forked(state: ExecutionState, body: of.ExecutionForked, event: Event) -> None:
    state.forked_at = event.seq
    state.fork = ForkPoint(body.source, body.at, event.ts)
    if body.workload is not None:
        state.inputs.workload = body.workload
    for run in state.claimed_runs():
        marking.stop_clock(state, run, state.last_ts)
    if body.shift:
        _shift_clocks(state, body.shift)
    for run in state.runs.values():
        if run.phase in ("claimed", "suspended") or (run.sharded and run.phase == "ready"):
            run_fold.fork_run(run)
            marking.settle_shards(state, run)
    for run in (*state.runs.values(), *state.failed_runs.values(), *state.redrivable.values()):
        run_fold.forget_children(run)


def _shift_clocks(state: ExecutionState, shift: int) -> None:
    """What has a time has as much of it left as it had when the copy was cut off."""
    state.timed_from += shift
    if state.deadline is not None:
        state.deadline += shift
    for token in state.tokens.values():
        if token.deadline is not None:
            token.deadline += shift
    for run in (*state.runs.values(), *state.failed_runs.values()):
        run_fold.shift_run(run, shift)
