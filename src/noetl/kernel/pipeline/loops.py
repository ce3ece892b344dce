"""How a loop begins and ends."""

import json
from typing import Any

from noetl.events.bodies import LoopDone, LoopStarted, Patch, StepFailed
from noetl.expr.expression import Expression
from noetl.expr.runtime.marker import ReferenceUnresolved
from noetl.expr.template import Template
from noetl.kernel.pipeline.moves import Finish, Move, Record
from noetl.kernel.pipeline.policy import expression_error_info
from noetl.kernel.references.resolve import Fetched
from noetl.kernel.scopes import EvaluationScope, loop_scope
from noetl.kernel.state.reducers import combine
from noetl.kernel.state.run_state import SHARDING, RunState, reducer_of
from noetl.kernel.state.variables import variable_at
from noetl.model.errors import ExpressionError
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import escape, is_manifest, is_reference, is_table_reference

SHARDS_EACH = 4
"""Shards of a distributed loop for each iteration that may be in flight."""


def start_loop(run: RunState, now: int, fetched: Fetched) -> Move:
    """The collection, evaluated once. A manifest or a table is gone through as it is. Raises Unfetched."""
    loop = run.step.step.loop
    assert loop is not None  # noqa: S101 - asked of loop steps only
    scope = loop_scope(run, now, fetched)
    try:
        # First without what was fetched: a manifest is gone through chunk by chunk, and never had whole.
        items: Any = _stored_items(run, loop.items, now)
        if items is None:
            items = loop_items(scope.value(loop.items))
        max_in_flight = 1 if loop.mode == "sequential" else _max_in_flight(scope, loop.max_in_flight)
    except ReferenceUnresolved as error:
        fault = scope.unfetched(error)
        if not isinstance(fault, ExpressionError):
            raise fault from None
        return Finish(StepFailed(run=run.id, error=expression_error_info(fault)))
    except ExpressionError as error:
        return Finish(StepFailed(run=run.id, error=expression_error_info(error)))
    total = items["length"] if isinstance(items, dict) else len(items)
    size = 0
    if loop.placement == "distributed" and run.inputs.decider >= SHARDING:
        size = shard_size(total, max_in_flight, loop.window)
    return Record(
        LoopStarted(run=run.id, total=total, items=items, max_in_flight=max_in_flight, shard_size=size)
    )


def shard_size(total: int, max_in_flight: int, window: int) -> int:
    """How many iterations a worker claims together: few enough for all to fit into the window.

    And for a worker that is done early to get some of what is left: each place in flight has several.
    """
    return max(min(window // max_in_flight, -(-total // (max_in_flight * SHARDS_EACH))), 1)


def _stored_items(run: RunState, data: Template, now: int) -> dict[str, Any] | None:
    """The manifest or table that the loop runs over, if it names one and nothing else."""
    if not isinstance(data, Expression) or data.path is None:
        return None
    try:
        items = loop_scope(run, now).value(data)
    except ReferenceUnresolved:
        return None
    return items if is_manifest(items) or is_table_reference(items) else None


def loop_items(value: Any) -> list[Any]:
    """The elements: of a list, the pairs of a mapping, or of JSON text for one of them."""
    if isinstance(value, str):
        try:
            value = escape(json.loads(value))
        except ValueError:
            raise ExpressionError("a loop runs over a list or a mapping, not over text") from None
    if is_reference(value):
        raise ReferenceUnresolved(value, "what the loop runs over")
    if isinstance(value, dict):
        return [{"key": key, "value": item} for key, item in value.items()]
    if not isinstance(value, list):
        raise ExpressionError(f"a loop runs over a list or a mapping, not over {value!r}")
    return value


def _max_in_flight(scope: EvaluationScope, value: int | Expression) -> int:
    number = scope.value(value) if isinstance(value, Expression) else value
    try:
        return max(int(number), 1)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        raise ExpressionError(f"`max_in_flight` is a number, not {number!r}") from None


def end_loop(run: RunState) -> LoopDone | StepFailed:
    """No iteration is open and none will begin. The results are the server's to add: workers keep none."""
    loop = run.loop
    assert loop is not None  # noqa: S101 - only a loop has no frames while it is claimed
    if loop.broken >= 0:
        return _loop_failed(run, loop.broken)
    return LoopDone(
        run=run.id,
        total=loop.total,
        succeeded=loop.succeeded,
        failed=loop.failed,
        failures=tuple(loop.failures),
    )


def _loop_failed(run: RunState, index: int) -> StepFailed:
    assert run.loop is not None  # noqa: S101 - only a loop has iterations that fail it
    frame = run.loop.failed_frames[index]
    cause = frame.error
    message = f"iteration {index} failed"
    details: dict[str, Any] = {"index": index}
    if cause is not None:
        message = f"{message}: {cause.message}"
        details["cause"] = cause.as_value()
    error = ErrorInfo(
        kind="iteration_failed",
        message=message,
        retryable=cause.retryable if cause else False,
        details=details,
    )
    tasks = run.step.step.tasks
    task = tasks[min(frame.at, len(tasks) - 1)].label if tasks else ""
    return StepFailed(run=run.id, error=error, task=task, attempt=frame.attempt)


def reduce_contributions(run: RunState, ctx: dict[str, Any]) -> list[Patch]:
    """What the loop's reducers make of all contributions, in index order, onto the values as they are now.

    Raises ExpressionError.
    """
    if run.loop is None or not run.loop.contributions:
        return []
    gathered: dict[tuple[str, ...], tuple[Patch, list[Any]]] = {}
    for index in sorted(run.loop.contributions):
        for patch in run.loop.contributions[index]:
            gathered.setdefault((patch.scope, *patch.path), (patch, []))[1].append(patch.value)
    bases = {"ctx": ctx, "run": run.variables.values}
    return [
        Patch(
            scope=patch.scope,
            path=patch.path,
            value=combine(reducer_of(run, patch), variable_at(bases[patch.scope], patch.path), values),
        )
        for patch, values in gathered.values()
    ]
