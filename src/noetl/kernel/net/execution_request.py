"""How an execution begins (000 §4.1)."""

from typing import Any

from noetl.events.bodies import (
    EventBody,
    PlaybookExecutionRequested,
    PlaybookProcessed,
    PlaybookRequestEvaluated,
    TokenEnqueued,
    WorkflowStarted,
)
from noetl.expr.expression import Expression
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Request
from noetl.kernel.pipeline.policy import expression_error_info
from noetl.kernel.scopes import CTX_BYTES, inline_stand_in, limit_error, state_scope, workload_scope
from noetl.kernel.state.execution_state import ENDING_WITHOUT_ARCS, ExecutionState
from noetl.kernel.state.variables import json_size, mapping_size
from noetl.model.errors import ExpressionError
from noetl.model.reference import escape
from noetl.model.timestamp import moment_after, seconds_of

DECIDER = ENDING_WITHOUT_ARCS
"""The number of these rules, recorded with each execution."""


def decide_request(state: ExecutionState, command: Request, now: int) -> list[EventBody]:
    """The request, its judgement, and the first token or the refusal."""
    if state.status != "new":
        raise Refused("the execution has begun already")
    playbook = state.plan.playbook
    requested_workload, ctx = escape(command.workload), escape(command.ctx)
    requested = PlaybookExecutionRequested(
        path=playbook.metadata.path,
        hash=playbook.hash,
        version=command.version,
        workload=requested_workload,
        ctx=ctx,
        labels=command.labels,
        parent=command.parent,
        idempotency_key=command.idempotency_key,
        requested_by=command.requested_by,
        decider=DECIDER,
        trace_id=command.trace_id,
        file=command.file,
        priority=command.priority,
    )
    error = command.error
    workload: dict[str, Any] = {}
    deadline = None
    if error is None:
        try:
            workload = render_workload(state, requested_workload, now)
            deadline = _deadline(state, workload, command, now)
            if mapping_size({key: inline_stand_in(value) for key, value in ctx.items()}) > CTX_BYTES:
                largest = max(ctx, key=lambda key: json_size(inline_stand_in(ctx[key])))
                raise limit_error(f"ctx is larger than {CTX_BYTES:,} bytes; its largest key is `{largest}`")
        except ExpressionError as fault:
            error = expression_error_info(fault)
    evaluated = PlaybookRequestEvaluated(error=error)
    if error is not None:
        return [requested, evaluated, PlaybookProcessed(status="failed", error=error)]
    started = WorkflowStarted(workload=workload, ctx=ctx, deadline=deadline)
    return [requested, evaluated, started, TokenEnqueued(step=playbook.entry)]


def render_workload(state: ExecutionState, requested: dict[str, Any], now: int) -> dict[str, Any]:
    """The defaults, rendered in document order, under what the request gives. Raises ExpressionError."""
    merged = dict(requested)
    for key, default in state.plan.playbook.workload.items():
        override = requested.get(key)
        if key in requested and not isinstance(override, dict):
            continue
        value = workload_scope(state.inputs, merged, now).value(default)
        if isinstance(override, dict):
            value = merge_mappings(value, override) if isinstance(value, dict) else override
        merged[key] = value
    return merged


def merge_mappings(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Mappings merge deep; anything else is replaced."""
    merged = dict(below)
    for key, value in above.items():
        under = merged.get(key)
        merged[key] = (
            merge_mappings(under, value) if isinstance(under, dict) and isinstance(value, dict) else value
        )
    return merged


def _deadline(state: ExecutionState, workload: dict[str, Any], command: Request, now: int) -> int | None:
    timeout = state.plan.playbook.executor.timeout if command.timeout is None else command.timeout
    if isinstance(timeout, Expression):
        scope = state_scope(state.inputs, command.ctx, {}, now)
        scope.namespaces["workload"] = workload
        return deadline_after(scope.value(timeout), now)
    return deadline_after(timeout, now)


def deadline_after(seconds: Any, now: int) -> int | None:
    """When a timeout that starts now is over. Raises ExpressionError."""
    if seconds is None:
        return None
    try:
        return moment_after(now, seconds_of(seconds))
    except (TypeError, ValueError):
        raise ExpressionError(f"`timeout` is a number of seconds, not {seconds!r}") from None
