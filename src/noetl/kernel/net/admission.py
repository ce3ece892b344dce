"""The gate in front of a step (000 §4.2), and how tokens become runs."""

from collections.abc import Sequence
from typing import Any, assert_never

from noetl.dsl.document.playbook import Admission, Step
from noetl.events.bodies import (
    CancelRequested,
    EventBody,
    NextEvaluated,
    StepFailed,
    StepScheduled,
    TokenAdmitted,
    TokenDiscarded,
    TokenParked,
)
from noetl.events.identifiers import run_id
from noetl.expr.expression import Expression
from noetl.kernel.net.execution_request import deadline_after
from noetl.kernel.pipeline.policy import expression_error_info
from noetl.kernel.scopes import EvaluationScope, state_scope
from noetl.kernel.state.execution_state import ExecutionState, Token
from noetl.kernel.state.marking import joined_entry
from noetl.model.errors import ExpressionError
from noetl.model.outcome import ErrorInfo


def decide_admission(state: ExecutionState, token: Token, now: int) -> list[EventBody]:
    """What becomes of a token that came to a step, or is asked again."""
    plan = state.step_of(token)
    policy = plan.step.admit
    if policy is not None:
        scope = admission_scope(state, token, now)
        try:
            if not _allows(policy, scope):
                return _deny(state, token, policy, scope, now)
        except ExpressionError as error:
            return _fail_by_expression(state, [token], error)
    if plan.step.join is not None:
        return [TokenAdmitted(token=token.id)]
    return schedule_run(state, [token], now)


def schedule_run(state: ExecutionState, tokens: Sequence[Token], now: int) -> list[EventBody]:
    """A run for these tokens, their args merged in order of arrival over the step's own."""
    step = state.step_of(tokens[0]).step
    # Nearly always neither is so, and this is asked for every run.
    too_many = state.scheduled >= state.plan.playbook.executor.max_step_runs
    if (too_many or state.failures_in_row) and (limit := _limit_runs(state, step)):
        return limit
    args = _merged_args(tokens)
    deadline = None
    if step.args or step.timeout is not None:
        try:
            scope = admission_scope(state, tokens[0], now)
            scope.namespaces["args"] = args
            if step.join is not None:
                scope.namespaces["joined"] = [joined_entry(state, token) for token in tokens]
            args = {**scope.mapping(step.args), **args}
            scope.namespaces["args"] = args
            deadline = _deadline(scope, step.timeout, now)
        except ExpressionError as error:
            return _fail_by_expression(state, tokens, error)
    names = tuple([token.id for token in tokens])  # of a list: for one or two, a generator costs more
    return [StepScheduled(step=step.name, tokens=names, args=args, deadline=deadline)]


def fail_at_admission(state: ExecutionState, tokens: Sequence[Token], error: ErrorInfo) -> list[EventBody]:
    """A run that fails at once, so that the step's own arcs can handle it."""
    step = state.step_of(tokens[0]).step
    if limit := _limit_runs(state, step):
        return limit
    names = tuple([token.id for token in tokens])
    scheduled = StepScheduled(step=step.name, tokens=names, args=_merged_args(tokens))
    return [scheduled, StepFailed(run=run_id(state.version + 1), error=error, source="server")]


def _fail_by_expression(
    state: ExecutionState, tokens: Sequence[Token], error: ExpressionError
) -> list[EventBody]:
    """An expression raised: the branch ends here, and the execution has failed."""
    fault = expression_error_info(error)
    bodies = fail_at_admission(state, tokens, fault)
    failed = isinstance(bodies[-1], StepFailed)
    if failed and state.routes(state.step_of(tokens[0])):
        run = run_id(state.version + 1)
        bodies.append(NextEvaluated(run=run, event="step.failed", handled=False, error=fault))
    return bodies


def _limit_runs(state: ExecutionState, step: Step) -> list[EventBody]:
    """The end of the execution if it has run too often, or this step has failed too often; else nothing."""
    executor = state.plan.playbook.executor
    if state.scheduled >= executor.max_step_runs:
        message = f"more than {executor.max_step_runs} step runs (`executor.spec.max_step_runs`)"
        return [CancelRequested(reason="limit", error=ErrorInfo(kind="limit", message=message))]
    failures = state.failures_in_row.get(step.name, 0) if state.failures_in_row else 0
    if failures < executor.max_failures_in_row:
        return []
    last = next(
        (failure.error for failure in reversed(state.failures) if failure.error.details["step"] == step.name),
        None,
    )
    why = f"; the last: {last.kind}: {last.message}" if last is not None else ""
    message = f"`{step.name}` failed {failures} times in a row (`executor.spec.max_failures_in_row`){why}"
    error = ErrorInfo(kind="limit", message=message, details={"step": step.name})
    return [CancelRequested(reason="limit", error=error)]


def _allows(policy: Admission, scope: EvaluationScope) -> bool:
    for rule in policy.rules:
        if scope.holds(rule.when):
            return rule.allow
    return bool(policy.otherwise)


def _deny(
    state: ExecutionState, token: Token, policy: Admission, scope: EvaluationScope, now: int
) -> list[EventBody]:
    match policy.on_deny:
        case "park":
            return [TokenParked(token=token.id, mode="park")]
        case "wait":
            deadline = token.deadline
            if token.stage == "enqueued":
                deadline = _deadline(scope, policy.timeout, now)
            return [TokenParked(token=token.id, mode="wait", deadline=deadline)]
        case "drop":
            return [TokenDiscarded(token=token.id, reason="denied")]
        case "fail":
            step = state.step_of(token).name
            error = ErrorInfo(kind="admission", message=f"`{step}` does not admit this token")
            return fail_at_admission(state, [token], error)
        case _:
            assert_never(policy.on_deny)


def admission_scope(state: ExecutionState, token: Token, now: int) -> EvaluationScope:
    """What the rules of admission see for this token."""
    return state_scope(state.inputs, state.ctx.values, state.outcomes, now, token.id, args=token.args)


def _merged_args(tokens: Sequence[Token]) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for token in tokens:
        args.update(token.args)
    return args


def _deadline(scope: EvaluationScope, timeout: float | Expression | None, now: int) -> int | None:
    return deadline_after(scope.value(timeout) if isinstance(timeout, Expression) else timeout, now)
