"""The marking of the net: where tokens and runs are, and what that lets happen next."""

from collections.abc import Iterable
from typing import Any

from noetl.events import bodies as of
from noetl.events.event import Event
from noetl.kernel.errors import WrongSequence
from noetl.kernel.plan import StepPlan
from noetl.kernel.state.agenda import AdmitToken, FireJoin, RouteRun
from noetl.kernel.state.execution_state import (
    ExecutionState,
    JoinState,
    Occupancy,
    StepStatus,
    StepSummary,
    Token,
)
from noetl.kernel.state.run_state import RunState
from noetl.kernel.state.shards import is_through
from noetl.kernel.state.variables import unwatch, watch, watching_tokens
from noetl.model.outcome import ErrorInfo

REDRIVABLE_KEPT = 100
"""Ended loops whose failed iterations can run again."""


def occupancy_at(state: ExecutionState, number: int) -> Occupancy:
    occupancy = state.occupancy.get(number)
    if occupancy is None:
        occupancy = state.occupancy[number] = Occupancy()
    state.occupied |= 1 << number
    return occupancy


def settle_step(state: ExecutionState, number: int) -> None:
    """Something left this step: if it was the last, joins behind it may be complete."""
    occupancy = state.occupancy[number]
    if not (occupancy.pending or occupancy.joined or occupancy.runs):
        del state.occupancy[number]
        state.occupied &= ~(1 << number)
    if not state.joins:
        return
    for join in list(state.joins):  # a join that is complete may leave
        plan = state.plan.by_number[join]
        if (plan.above >> number & 1 or join == number) and not state.can_reach(join):
            _complete_join(state, join)


def _complete_join(state: ExecutionState, number: int) -> None:
    """Nothing else can come to this join."""
    waiting = state.joins[number]
    step = state.plan.by_number[number].step
    waiting.absorbing = waiting.absorbing and bool(waiting.arrivals)
    if step.join is not None and step.join.mode == "all" and waiting.arrivals:
        state.agenda.add(FireJoin(number))
    elif not waiting.arrivals:
        del state.joins[number]


def require_token(state: ExecutionState, token: str) -> Token:
    try:
        return state.tokens[token]
    except KeyError as missing:
        raise WrongSequence(f"there is no token {token}") from missing


def fold_token_enqueued(state: ExecutionState, body: of.TokenEnqueued, event: Event) -> None:
    plan = state.plan.by_name[body.step]
    token = Token(f"t{event.seq}", plan.number, body.args)
    state.tokens[token.id] = token
    # Counted before the run that sends it may leave: a join behind both must not look complete in between.
    occupancy_at(state, plan.number).pending += 1
    state.agenda.add(AdmitToken(token.id))
    if not body.run:
        return
    run = state.runs.get(body.run)
    if run is None or run.owed < 1:
        raise WrongSequence(f"{body.run} sends no token to `{body.step}`")
    token.source = run.step.number
    token.after_failure = (run.unhandled or run.after_failure) and state.holds_back
    if plan.passes:
        token.inherited = run.result
    run.owed -= 1
    if not run.owed:
        drop_run(state, run)


def fold_token_parked(state: ExecutionState, body: of.TokenParked, _: Event) -> None:
    token = require_token(state, body.token)
    plan = state.step_of(token)
    state.agenda.discard(AdmitToken(token.id))
    token.deadline = body.deadline
    if token.stage != "enqueued":
        return
    token.stage = "waiting" if body.mode == "wait" else "parked"
    state.waiting += body.mode == "wait"
    state.parked.add(token.id)
    watch(state.watchers, token.id, plan.watches)
    summary = state.summaries.get(plan.name)
    if summary is None:
        state.summaries[plan.name] = StepSummary("waiting")
    elif not occupancy_at(state, plan.number).runs:
        summary.status = "waiting"


def fold_token_admitted(state: ExecutionState, body: of.TokenAdmitted, _: Event) -> None:
    token = require_token(state, body.token)
    plan = state.step_of(token)
    _leave(state, token)
    token.stage = "joined"
    occupancy = occupancy_at(state, plan.number)
    occupancy.joined += 1
    join = state.joins.setdefault(plan.number, JoinState())
    join.arrivals.append(token.id)
    policy = plan.step.join
    if policy is None:
        raise WrongSequence(f"`{plan.name}` has no join")
    if policy.mode == "count":
        ready = len(join.arrivals) >= (policy.count or 1)
    elif policy.mode == "any":
        ready = not join.absorbing
    else:
        ready = not state.can_reach(plan.number)
    # A join that absorbs is on the agenda, too: it discards what has come late.
    if ready or (policy.mode == "any" and join.absorbing):
        state.agenda.add(FireJoin(plan.number))


def _leave(state: ExecutionState, token: Token) -> None:
    """The token is no longer on its way in, or no longer at its join."""
    occupancy = state.occupancy[token.step]  # the token itself is counted there
    state.agenda.pop(AdmitToken(token.id), None)
    if token.stage == "joined":
        occupancy.joined -= 1
        join = state.joins[token.step]
        join.arrivals.remove(token.id)
        return
    occupancy.pending -= 1
    if token.stage != "enqueued":
        state.waiting -= token.stage == "waiting"
        state.parked.discard(token.id)
        unwatch(state.watchers, token.id, state.step_of(token).watches)


def fold_token_discarded(state: ExecutionState, body: of.TokenDiscarded, _: Event) -> None:
    token = require_token(state, body.token)
    plan = state.step_of(token)
    _leave(state, token)
    del state.tokens[token.id]
    _recheck_join(state, token.step)
    settle_step(state, token.step)
    if body.reason == "absorbed":
        return
    state.discarded.append({"step": plan.name, "token": token.id, "reason": body.reason})
    if body.reason == "retried":
        _forget_wait(state, plan)
        return
    summary = state.summaries.setdefault(plan.name, StepSummary("not_admitted"))
    if not summary.runs:
        summary.status = "cancelled" if body.reason == "cancelled" else "not_admitted"


def _forget_wait(state: ExecutionState, plan: StepPlan) -> None:
    """A retry took a token away: if nothing else has come to its step, the step was never reached."""
    summary = state.summaries.get(plan.name)
    if summary is not None and not summary.runs and plan.number not in state.occupancy:
        del state.summaries[plan.name]


def _recheck_join(state: ExecutionState, number: int) -> None:
    """The join's arrivals have changed, so it may be due, or no longer."""
    join = state.joins.get(number)
    policy = state.plan.by_number[number].step.join
    if join is None or policy is None:
        return
    due = len(join.arrivals) >= (policy.count or 1) if policy.mode == "count" else bool(join.arrivals)
    if policy.mode != "all" and due:
        state.agenda.add(FireJoin(number))
    elif not due:
        state.agenda.discard(FireJoin(number))
        if not join.absorbing and not join.arrivals:
            del state.joins[number]


def fold_step_scheduled(state: ExecutionState, body: of.StepScheduled, event: Event) -> None:
    plan = state.plan.by_name[body.step]
    tokens = [require_token(state, name) for name in body.tokens]
    run = RunState(
        id=f"r{event.seq}",
        step=plan,
        inputs=state.inputs,
        args=body.args,
        ctx=state.ctx.pinned(),
        steps={name: state.outcomes[name] for name in plan.reads_steps if name in state.outcomes}
        if plan.reads_steps
        else {},
        deadline=body.deadline,
        began_at=event.ts,
        final=body.final,
        token=body.tokens[0] if body.tokens else "",
    )
    if tokens and tokens[0].after_failure and all(token.after_failure for token in tokens):
        run.after_failure = True
        state.ran_after_failure.add(plan.name)
    if plan.step.join is not None:
        run.joined = [joined_entry(state, token) for token in tokens]
    if plan.passes and tokens:
        # Of several branches the last in the document, as with the result of the execution.
        run.inherited = max(tokens, key=lambda token: token.source).inherited
    state.runs[run.id] = run
    occupancy = occupancy_at(state, plan.number)
    occupancy.runs += 1  # before its tokens leave: joins behind this step must not look complete
    for token in tokens:
        _leave(state, token)
        del state.tokens[token.id]
    join = state.joins.get(plan.number)
    if join is not None:
        if plan.step.join is not None and plan.step.join.mode == "any":
            join.absorbing = bool(join.arrivals) or state.can_reach(plan.number)
            join.after_failure = run.after_failure
        _recheck_join(state, plan.number)
    settle_step(state, plan.number)
    state.open_runs += 1
    state.scheduled += 1
    summary = state.summaries.setdefault(plan.name, StepSummary("running"))
    summary.status = "running"
    summary.runs += 1
    if body.final:
        state.final = "running"
    if plan.routes_only:
        state.agenda.add(RouteRun(run.id))
    else:
        state.ready.add(run.id)


def joined_entry(state: ExecutionState, token: Token) -> dict[str, Any]:
    """What `joined` says of a token."""
    step = state.plan.by_number[token.source].name if token.source >= 0 else None
    return {"step": step, "args": token.args}


def summarise_wait(state: ExecutionState, token: Token) -> None:
    """The execution has ended, and the token waits at its step for a retry."""
    summary = state.summaries.setdefault(state.step_of(token).name, StepSummary("waiting"))
    if not summary.runs:
        summary.status = "waiting"


def summarise_run(state: ExecutionState, run: RunState) -> None:
    """What other steps see of a run that has ended."""
    name = run.step.name
    summary = state.summaries[name]
    summary.status = "skipped" if run.skipped else _status_after(run.error)
    summary.skipped += run.skipped
    if run.error is not None:
        count_failed_run(state, run)
    if run.step.keeps_result:
        state.outcomes[name] = {**step_outcome(run.result, run.error), "status": summary.status}
    if state.watchers:
        for token in watching_tokens(state.watchers, "steps", (name,)):
            state.agenda.add(AdmitToken(token))


def count_failed_run(state: ExecutionState, run: RunState, number: int = 1) -> None:
    """So many more runs of its step ended as this one did, which is not well."""
    summary = state.summaries[run.step.name]
    if run.error is not None and run.error.kind == "cancelled":
        summary.cancelled += number
        summary.cancelled_after += number if run.after_failure else 0
    else:
        summary.failed += number
        summary.failed_after += number if run.after_failure else 0


def forget_superseded(state: ExecutionState, steps: Iterable[str]) -> None:
    """What is opened again takes the place of what came of its failure: how that ended counts no longer."""
    for name in steps:
        summary = state.summaries[name]
        summary.failed -= summary.failed_after
        summary.cancelled -= summary.cancelled_after
        summary.failed_after = summary.cancelled_after = 0
        state.ran_after_failure.discard(name)


def stop_clock(state: ExecutionState, run: RunState, ts: int) -> None:
    """From here on nobody works on the run."""
    if run.since:
        worked = max(ts - run.since, 0)
        run.since = 0
        run.worked += worked
        state.summaries[run.step.name].worked += worked


def step_outcome(result: Any, error: ErrorInfo | None) -> dict[str, Any]:
    """What `steps.NAME` is after a run that ended so."""
    return {
        "status": _status_after(error),
        "result": result,
        "error": error.as_value() if error is not None else None,
    }


def _status_after(error: ErrorInfo | None) -> StepStatus:
    if error is None:
        return "completed"
    return "cancelled" if error.kind == "cancelled" else "failed"


def drop_run(state: ExecutionState, run: RunState, *, reopens: bool = False) -> None:
    """The run is routed: nothing of it is left in the net. One that failed unhandled can be retried.

    `reopens` says that of another one. What came of an unhandled failure is not retried itself: that is.
    """
    del state.runs[run.id]
    if (run.unhandled or reopens) and not run.after_failure:
        state.failed_runs[run.id] = run
        if state.holds_back:
            # Before its step is settled: joins behind it must not look complete.
            state.failing |= run.step.bit
    elif run.event == "loop.done" and run.loop is not None and run.loop.kept_frames and not run.after_failure:
        _keep_redrivable(state, run)
    occupancy = state.occupancy[run.step.number]
    occupancy.runs -= 1
    settle_step(state, run.step.number)


def _keep_redrivable(state: ExecutionState, run: RunState) -> None:
    state.redrivable[run.id] = run
    # A loop on a cycle may end without end.
    if len(state.redrivable) > REDRIVABLE_KEPT:
        del state.redrivable[next(iter(state.redrivable))]


def restore_run(state: ExecutionState, run: RunState) -> None:
    state.runs[run.id] = run
    occupancy_at(state, run.step.number).runs += 1


def rearm_joins(state: ExecutionState, opened: int) -> None:
    """What a join of any has run for is taken back by a retry: it runs on the first token again.

    `opened` has the bits of the steps that are open again.
    """
    for number, join in list(state.joins.items()):
        if join.after_failure and state.plan.by_number[number].above & opened:
            join.absorbing = join.after_failure = False
            if not join.arrivals:
                del state.joins[number]


def offer_run(state: ExecutionState, run: RunState) -> None:
    """It may be claimed, or no longer."""
    if run.claimable:
        state.ready.add(run.id)
    else:
        state.ready.pop(run.id, None)


def settle_shards(state: ExecutionState, run: RunState) -> None:
    """Others may be open now, or none is left, and the server ends the loop."""
    offer_run(state, run)
    if is_through(run):
        state.agenda.add(RouteRun(run.id))
