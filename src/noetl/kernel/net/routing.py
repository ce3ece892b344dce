"""Where the end of a run leads: its step's arcs (000 §8)."""

from typing import Any, NamedTuple, assert_never

from msgspec import structs

from noetl.events.bodies import (
    EventBody,
    EventSource,
    LoopDone,
    NextEvaluated,
    StepCompletedByHand,
    StepDone,
    StepFailed,
    StepSkipped,
    TokenEnqueued,
)
from noetl.expr.runtime.marker import with_extracted
from noetl.kernel.pipeline.loops import reduce_contributions
from noetl.kernel.pipeline.policy import expression_error_info
from noetl.kernel.scopes import EvaluationScope, playbook_time, routing_scope
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.marking import step_outcome
from noetl.kernel.state.run_fold import EndByHand, RunEnd
from noetl.kernel.state.run_state import RunState
from noetl.model.errors import ExpressionError
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import MARKER, is_reference


def decide_routing(state: ExecutionState, run: RunState, now: int) -> list[EventBody]:
    """Judge the arcs, and send a token along each that is selected."""
    arcs = run.step.arcs
    if arcs and run.step.unconditional[0] and run.step.step.is_exclusive:
        return _route_unconditionally(run)
    scope = run_end_scope(state, run, now)
    verdicts: list[bool | None] = [None] * len(arcs)
    tokens: list[EventBody] = []
    selected: list[int] = []
    try:
        for position, arc in enumerate(arcs):
            verdicts[position] = scope.holds(arc.when)
            if verdicts[position]:
                selected.append(position)
                if run.step.step.is_exclusive:
                    break
        for position in selected:
            arc = arcs[position]
            for write in arc.writes:
                scope.write(write)
            args = scope.mapping(arc.args)
            tokens.append(TokenEnqueued(step=arc.step, args=args, run=run.id, arc=position))
    except ExpressionError as error:
        return [_routing_failed(run, verdicts, expression_error_info(error))]
    if not selected and run.error is None and state.plan.playbook.executor.no_next_is_error:
        message = f"no arc of `{run.step.name}` matches {run.event} (`executor.spec.no_next_is_error`)"
        return [_routing_failed(run, verdicts, ErrorInfo(kind="policy", message=message))]
    handled = run.error is None or any(run.step.handles[position] for position in selected)
    evaluated = NextEvaluated(
        run=run.id,
        event=run.event,
        verdicts=tuple(verdicts),
        selected=tuple(selected),
        handled=handled,
        patches=tuple(scope.patches),
    )
    return [evaluated, *tokens]


# The fast path of `decide_routing`: most steps have one arc without a guard, and judging it would build a
# scope with the event in it. test_kernel_fast_paths.py holds that both give the same.
def _route_unconditionally(run: RunState) -> list[EventBody]:
    """As `decide_routing`, where the first arc is taken whatever happened, and nothing is to be evaluated."""
    arcs = run.step.arcs
    evaluated = NextEvaluated(
        run=run.id,
        event=run.event,
        verdicts=(True, *[None] * (len(arcs) - 1)),
        selected=(0,),
        handled=run.error is None or run.step.handles[0],
    )
    return [evaluated, TokenEnqueued(step=arcs[0].step, run=run.id, arc=0)]


def _routing_failed(run: RunState, verdicts: list[bool | None], error: ErrorInfo) -> NextEvaluated:
    return NextEvaluated(run=run.id, event=run.event, verdicts=tuple(verdicts), handled=False, error=error)


def seal_run_end(
    state: ExecutionState, run: RunState, body: RunEnd | EndByHand, now: int
) -> RunEnd | EndByHand:
    """Add what only the server knows to the end of a run: reduced values and the step's own writes.

    Where that raises, the run has failed. If it had failed already, why it did stays and nothing is written.
    """
    loop_done = isinstance(body, LoopDone)
    if (
        state.stopping
        or run.superseded
        or (not run.step.step.writes and not (loop_done and run.loop is not None and run.loop.contributions))
    ):
        return body
    try:
        ctx = state.ctx.values
        patches = reduce_contributions(run, ctx) if loop_done else []
        scope = _routing_scope(state, run, _coming_event(state, run, body, now), now)
        if run.step.keeps_result and state.holds_back:
            scope.namespaces["steps"] = {**state.outcomes, run.step.name: _coming_outcome(body)}
        for patch in patches:
            scope.apply_patch(patch)
        for write in run.step.step.writes:
            scope.write(write)
    except ExpressionError as error:
        fault = expression_error_info(error)
        if isinstance(body, StepFailed) and state.holds_back:
            details = {**body.error.details, "set_error": fault.message}
            return structs.replace(body, error=structs.replace(body.error, details=details))
        return StepFailed(run=run.id, error=fault, source="server")
    return _with_patches(body, tuple(scope.patches))


def _with_patches(body: RunEnd | EndByHand, patches: tuple[Any, ...]) -> RunEnd | EndByHand:
    fields = {name: getattr(body, name) for name in body.__struct_fields__}
    return type(body)(**{**fields, "patches": patches})


def run_end_scope(state: ExecutionState, run: RunState, now: int) -> EvaluationScope:
    """What the arcs of a run that has ended see."""
    return _routing_scope(state, run, _recorded_event(state, run), now)


def _routing_scope(state: ExecutionState, run: RunState, event: dict[str, Any], now: int) -> EvaluationScope:
    return routing_scope(run, state.ctx.values, state.outcomes, event, now, ctx_size=state.ctx.size)


class _RunEnding(NamedTuple):
    """How a run ended, recorded or about to be."""

    name: str
    result: Any
    error: ErrorInfo | None
    source: EventSource
    seq: int
    ts: int


def _recorded_event(state: ExecutionState, run: RunState) -> dict[str, Any]:
    """The run's last event, as its arcs see it."""
    end = _RunEnding(run.event, run.result, run.error, run.ended_by, run.ended_seq, run.ended_at)
    return _event_value(state, run, end)


def _coming_event(state: ExecutionState, run: RunState, body: RunEnd | EndByHand, now: int) -> dict[str, Any]:
    """The same, while the event is not recorded yet."""
    seq = state.version + 1
    match body:
        case StepDone():
            end = _RunEnding("step.done", body.result, None, body.source, seq, now)
        case LoopDone():
            end = _RunEnding("loop.done", body.result, None, body.source, seq, now)
        case StepFailed():
            end = _RunEnding("step.failed", None, body.error, body.source, seq, now)
        case StepCompletedByHand():
            end = _RunEnding(run.done_event, body.result, None, "server", seq, now)
        case StepSkipped():
            end = _RunEnding(run.done_event, None, None, "server", seq, now)
        case _:
            assert_never(body)
    return _event_value(state, run, end)


def _coming_outcome(body: RunEnd | EndByHand) -> dict[str, Any]:
    """What `steps.NAME` is once the event is recorded."""
    if isinstance(body, StepFailed):
        return step_outcome(None, body.error)
    if isinstance(body, StepSkipped):
        return {**step_outcome(None, None), "status": "skipped"}
    return step_outcome(body.result, None)


def _fields_of_reference(reference: dict[str, Any]) -> dict[str, Any]:
    """A reference as a plain mapping: its own fields can be read, and nothing stands for a value."""
    return {key: value for key, value in reference.items() if key != MARKER}


def _event_value(state: ExecutionState, run: RunState, end: _RunEnding) -> dict[str, Any]:
    error = end.error.as_value() if end.error is not None else None
    result = end.result
    stored = is_reference(result)
    if run.step.reads_extracted and not stored:
        result = with_extracted(result, run.step.selected(result))
    event = {
        "event_id": f"{state.execution_id}/{end.seq}",
        "execution_id": state.execution_id,
        "timestamp": playbook_time(end.ts),
        "source": end.source,
        "name": end.name,
        "entity": "loop" if end.name == "loop.done" else "step",
        "entity_id": run.id,
        "status": "success" if error is None else "error",
        "data": {"result": result} if error is None else {"error": error},
        "step": run.step.name,
        "result": result,
        "result_ref": _fields_of_reference(result) if stored else None,
        "error": error,
    }
    if run.loop is not None:
        event["loop"] = {
            "total": run.loop.total,
            "succeeded": run.loop.succeeded,
            "failed": run.loop.failed,
            "failures": run.loop.failures,
        }
    return event
