"""From an outcome to a directive (000 §6)."""

import hashlib
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, Literal, assert_never, overload

from msgspec import Struct, structs

from noetl.dsl.document.playbook import Break, Continue, Fail, Jump, Policy, RetryTask, Then
from noetl.events.bodies import EventBody, LoopIterationCompleted, Patch, StepDone, TaskProcessed
from noetl.expr.expression import Expression
from noetl.expr.runtime.marker import ReferenceUnresolved, SecretRefused
from noetl.expr.template import Template
from noetl.kernel.pipeline.moves import Fetch, RunTask
from noetl.kernel.pipeline.task_inputs import idempotency_key
from noetl.kernel.references.resolve import Fetched, Unfetched, with_needed_values
from noetl.kernel.scopes import EvaluationScope, item_keys, task_scope
from noetl.kernel.state.run_state import Frame, RunState
from noetl.model.errors import ExpressionError
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.reference import escape, may_hold_marker
from noetl.model.secret import lost_part, secret_text_marker
from noetl.model.timestamp import moment_after, seconds_of

SECOND = 1_000_000
MAX_TRANSITIONS = 100_000


class _Verdict(Struct):
    do: Literal["continue", "retry", "jump", "break", "fail"] = "continue"
    rule: int | None = None
    to: str = ""
    retry_at: int | None = None
    set_prev: bool = False
    prev: Any = None
    error: ErrorInfo | None = None


@overload
def judge(
    run: RunState,
    index: int,
    outcome: Outcome,
    now: int,
    keychain: Mapping[str, Any] | None = None,
    fetched: None = None,
) -> TaskProcessed: ...


@overload
def judge(
    run: RunState,
    index: int,
    outcome: Outcome,
    now: int,
    keychain: Mapping[str, Any] | None = None,
    fetched: Fetched = ...,
) -> TaskProcessed | Fetch: ...


def judge(  # noqa: PLR0917 - what is judged, and what that needs
    run: RunState,
    index: int,
    outcome: Outcome,
    now: int,
    keychain: Mapping[str, Any] | None = None,
    fetched: Fetched | None = None,
) -> TaskProcessed | Fetch:
    """What an attempt's outcome, as the tool gave it, means: writes evaluated, the directive chosen.

    `keychain` are the masked entries, for args that name them. `fetched` are stored values by key: what
    else is needed is asked for, or raises Unfetched where `fetched` is not given at all.
    """
    if may_hold_marker([outcome]):
        outcome = _escape_outcome(outcome)
    if fetched is None:
        return judge_with_policy(run, index, outcome, now, keychain, {})
    try:
        return judge_with_policy(run, index, outcome, now, keychain, fetched)
    except Unfetched as error:
        return Fetch(error.keys)


# The fast path of `judge`: start, outcome and end of a task that has nothing to evaluate go into one report,
# so that a no-op step or iteration costs one report instead of three, and builds no scope. What it gives must
# be what `judge` and `advance` give one after the other: tests/kernel/test_kernel_fast_paths.py holds that.
def judge_without_policy(run: RunState, move: RunTask, outcome: Outcome) -> tuple[EventBody, ...] | None:
    """As `judge`, before the attempt is recorded as started; None if there is something to evaluate.

    With it comes the end of the pipeline, if this was all of it.
    """
    if move.task.policy is not None or move.task.writes:
        return None
    scalar = outcome.error is None and not outcome.helpers and type(outcome.result) in _SCALARS
    if not scalar and may_hold_marker([outcome]):
        outcome = _escape_outcome(outcome)
    started = move.started
    processed = TaskProcessed(
        run=run.id,
        task=started.task,
        outcome=outcome,
        iteration=started.iteration,
        visit=started.visit,
        attempt=started.attempt,
        do="continue" if outcome.status == "ok" else "fail",
    )
    # Only a scalar ends the pipeline here: what might be externalized or escaped is not yet what the
    # fold would hand on as the result, and the end has to name the same value.
    if run.step.only_task is None or not scalar or outcome.status != "ok":
        return (processed,)
    if run.loop is None:
        result = run.inherited if run.step.passes else outcome.result
        return processed, StepDone(run=run.id, result=result)
    ended = LoopIterationCompleted(
        run=run.id, index=started.iteration, status="success", result=outcome.result
    )
    return processed, ended


_SCALARS = frozenset({type(None), bool, int, float})
"""Types of results that stay in the event, and stand for nothing else."""


def _escape_outcome(outcome: Outcome) -> Outcome:
    """What a tool gave, as it may stand in the log."""
    error = outcome.error
    if error is not None:
        error = structs.replace(error, details=escape(error.details))
    return structs.replace(
        outcome,
        result=escape(outcome.result),
        error=error,
        meta=escape(outcome.meta),
        helpers=escape(outcome.helpers),
    )


def judge_with_policy(  # noqa: PLR0917 - what is judged, and what that needs
    run: RunState,
    index: int,
    outcome: Outcome,
    now: int,
    keychain: Mapping[str, Any] | None,
    fetched: Fetched,
) -> TaskProcessed:
    """As `judge`, for an outcome that is escaped already. Raises Unfetched."""
    frame = run.frames[index]
    task = run.task(frame)
    # The fast path of `_judge_with_values`, without a scope; test_kernel_fast_paths.py holds them equal.
    if task.policy is None and not task.writes:
        verdict = _Verdict(do="continue" if outcome.status == "ok" else "fail")
        return _task_processed(run, frame, outcome, verdict, [])
    if not fetched:
        return _judge_with_values(run, frame, outcome, now, keychain, fetched)
    first = item_keys(run, frame)
    return with_needed_values(
        lambda needed: _judge_with_values(run, frame, outcome, now, keychain, needed), fetched, first
    )


def _judge_with_values(  # noqa: PLR0917 - what is judged, and what that needs
    run: RunState,
    frame: Frame,
    outcome: Outcome,
    now: int,
    keychain: Mapping[str, Any] | None,
    fetched: Fetched,
) -> TaskProcessed:
    task = run.task(frame)
    verdict = _Verdict()
    patches: list[Patch] = []
    try:
        scope = task_scope(run, frame, now, keychain, fetched)
        patches = scope.patches
        outcome_value = outcome.as_value()
        scope.namespaces["outcome"] = scope.with_fetched(outcome_value) if fetched else outcome_value
        if task.args:
            scope.namespaces["_idempotency_key"] = idempotency_key(run, frame, task, frame.attempt)
            scope.namespaces["args"] = {**scope.namespaces["args"], **_own_args(task.args, scope)}
        if outcome.status == "ok":
            for write in task.writes:
                scope.write(write)
        _judge_by_rules(_Case(run, frame, outcome, scope, now), task.policy, verdict)
    except ReferenceUnresolved as error:
        fault = scope.unfetched(error)
        if not isinstance(fault, ExpressionError):
            raise fault from None
        _fail_with(verdict, fault)
    except ExpressionError as error:
        _fail_with(verdict, error)
    return _task_processed(run, frame, outcome, verdict, patches)


def _fail_with(verdict: _Verdict, error: ExpressionError) -> None:
    """An expression raised: whatever was chosen before it, the task has failed. Its writes so far stay."""
    verdict.do, verdict.to, verdict.retry_at = "fail", "", None
    verdict.error = expression_error_info(error)


def _own_args(args: Mapping[str, Template], scope: EvaluationScope) -> dict[str, Any]:
    """The args of a task; what cannot be told without its secrets is one itself."""
    rendered: dict[str, Any] = {}
    for name, data in args.items():
        try:
            rendered[name] = scope.value(data)
        except SecretRefused:
            rendered[name] = dict(secret_text_marker([lost_part()]))
    return rendered


def _task_processed(
    run: RunState, frame: Frame, outcome: Outcome, verdict: _Verdict, patches: list[Patch]
) -> TaskProcessed:
    task = run.task(frame)
    return TaskProcessed(
        run=run.id,
        task=task.label,
        outcome=outcome,
        iteration=frame.index,
        visit=frame.visits[task.label],
        attempt=frame.attempt,
        rule=verdict.rule,
        do=verdict.do,
        to=verdict.to,
        retry_at=verdict.retry_at,
        patches=tuple(patches),
        set_prev=verdict.set_prev,
        prev=verdict.prev,
        error=verdict.error,
    )


def expression_error_info(error: ExpressionError) -> ErrorInfo:
    details = {"hint": error.hint} if error.kind == "limit" and error.hint else {}
    return ErrorInfo(kind=error.kind, message=error.message, details=details)


class _Case(Struct, frozen=True):
    run: RunState
    frame: Frame
    outcome: Outcome
    scope: EvaluationScope
    now: int

    @property
    def ok(self) -> bool:
        return self.outcome.status == "ok"

    @property
    def tries(self) -> int:
        """Tries of this visit, the one just ended included."""
        return self.frame.attempt - self.frame.forgiven


def _judge_by_rules(case: _Case, policy: Policy | None, verdict: _Verdict) -> None:
    if policy is None:
        verdict.do = "continue" if case.ok else "fail"
        return
    for position, rule in enumerate(policy.rules):
        if case.scope.holds(rule.when):
            verdict.rule = position
            _judge_by_rule(case, rule.then, verdict)
            return
    if policy.otherwise is not None:
        verdict.rule = -1
        _judge_by_rule(case, policy.otherwise, verdict)
    elif policy.on_unmatched == "fail" and not case.ok:
        verdict.do = "fail"


def _judge_by_rule(case: _Case, then: Then, verdict: _Verdict) -> None:
    for write in then.writes:
        case.scope.write(write)
    if then.set_prev is not None:
        verdict.set_prev = True
        verdict.prev = case.scope.value(then.set_prev)
    match then.do:
        case Continue():
            verdict.do = "continue"
        case Break():
            verdict.do = "break"
        case RetryTask():
            _retry(case, then.do, verdict)
        case Jump():
            _jump(case, then.do, verdict)
        case Fail():
            _fail(case, then, then.do, verdict)
        case _:
            assert_never(then.do)


def _retry(case: _Case, retry: RetryTask, verdict: _Verdict) -> None:
    attempts = _max_attempts(case, retry.attempts)
    tries = case.tries
    if tries < attempts:
        verdict.do = "retry"
        verdict.retry_at = moment_after(case.now, _delay(case, retry, tries))
        return
    verdict.do = "fail"
    details = {"exhausted": True, "attempts": tries}
    if case.outcome.error is None:
        message = f"still not done after {tries} attempts"
        verdict.error = ErrorInfo(kind="retry_exhausted", message=message, details=details)
    else:
        verdict.error = add_error_details(case.outcome.error, details)


def add_error_details(error: ErrorInfo, details: dict[str, Any]) -> ErrorInfo:
    return ErrorInfo(
        kind=error.kind,
        message=error.message,
        retryable=error.retryable,
        retry_after=error.retry_after,
        details={**error.details, **details},
    )


def _max_attempts(case: _Case, value: int | Expression) -> int:
    attempts = case.scope.value(value) if isinstance(value, Expression) else value
    try:
        return int(attempts)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        raise ExpressionError(f"`attempts` is a number, not {attempts!r}") from None


def _delay(case: _Case, retry: RetryTask, tries: int) -> float:
    """Seconds before the next try."""
    delay = retry.delay
    if isinstance(delay, Expression):
        delay = _seconds(case.scope.value(delay), case.now)
    match retry.backoff:
        case "none":
            pass
        case "linear":
            delay *= tries
        case "exponential":
            delay *= 2.0 ** min(tries - 1, 60)  # unbounded, the 1025th try would overflow
        case _:
            assert_never(retry.backoff)
    if retry.max_delay is not None:
        delay = min(delay, retry.max_delay)
    if retry.jitter:
        delay += retry.jitter * _jitter_fraction(case)
    return delay


def _seconds(value: Any, now: int) -> float:
    """Seconds from a number, a numeric text, or the date of a `Retry-After` header."""
    try:
        return max(seconds_of(value), 0.0)
    except (TypeError, ValueError):
        pass
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError, AttributeError, OverflowError):
        raise ExpressionError(f"`delay` is a number of seconds or a date, not {value!r}") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(moment.timestamp() - now / SECOND, 0.0)


def _jitter_fraction(case: _Case) -> float:
    """A number from 0 to 1 that differs between tries and is the same when asked again."""
    # Not random: deciding the same outcome again, in `verify` or after a crash, must give the same delay.
    attempt_key = (
        f"{case.run.inputs.execution_id}/{case.run.id}/{case.frame.index}/{case.frame.at}/{case.tries}"
    )
    return int.from_bytes(hashlib.sha256(attempt_key.encode()).digest()[:4]) / 2**32


def _jump(case: _Case, jump: Jump, verdict: _Verdict) -> None:
    task = case.run.task(case.frame)
    limit = task.spec.get("max_transitions")
    most = case.scope.value(limit) if limit is not None else None
    most = most if isinstance(most, int) else MAX_TRANSITIONS
    if case.frame.transitions + 1 > most:
        verdict.do = "fail"
        verdict.error = ErrorInfo(kind="jump_limit", message=f"more than {most} transitions in one pipeline")
    else:
        verdict.do, verdict.to = "jump", jump.to


def _fail(case: _Case, then: Then, fail: Fail, verdict: _Verdict) -> None:
    verdict.do = "fail"
    message = str(case.scope.value(fail.message)) if fail.message is not None else ""
    error = case.outcome.error
    if error is None:
        where = f"the rule in line {then.position.line} says fail"
        verdict.error = ErrorInfo(kind="policy", message=message or where)
    elif message:
        verdict.error = ErrorInfo(
            kind=error.kind,
            message=message,
            retryable=error.retryable,
            retry_after=error.retry_after,
            details={**error.details, "cause": error.message},
        )
