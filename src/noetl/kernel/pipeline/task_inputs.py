"""What an attempt of a task gets: rendered inputs, a timeout, a key."""

import hashlib
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from noetl.dsl.document.playbook import Task
from noetl.events.bodies import LoopIterationStarted, TaskStarted
from noetl.expr.runtime.marker import ReferenceUnresolved, SecretRefused
from noetl.expr.template import Constant, Template
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.plan import WAITING_KINDS, ConstantInputs, reads_keychain, timeout_of
from noetl.kernel.references.resolve import Fetched, Unfetched, with_needed_values
from noetl.kernel.scopes import EvaluationScope, item_keys, task_scope
from noetl.kernel.state.run_state import Frame, RunState
from noetl.model.errors import ExpressionError, NoetlError
from noetl.model.reference import may_hold_marker, wrap_references
from noetl.model.secret import SECRET_KEY_PREFIX as SECRET_PREFIX
from noetl.model.secret import SecretLost, secret_keys

PASSING = "noop"
"""What hands on its inputs as they are: secrets among them stay hidden."""

WAITING_KNOBS = ("timeout", "wait", "on_failure")


class Secrets:
    """The keychain as the tool sees it, and as the events do.

    `real`, `masked` and `decoys` are the entries by name: with their values, with what stands for them in
    the log, and with other texts in place of the secrets. `real` raises Unfetched for one that is not at
    hand. `revealed` are the values of secrets that stand in the log, and `failures` says why others cannot
    be had, both by key. `disguise` gives a value with other texts for that of such a secret. `mask` gets
    rendered inputs, and the same rendered with those other texts, and puts what stands for them in place of
    secrets; `mask_message` puts `***` into a message, of which it may get the same with those other texts.
    """

    __slots__ = ("decoys", "disguise", "failures", "mask", "mask_message", "masked", "real", "revealed")

    def __init__(
        self,
        real: Mapping[str, Any],
        masked: Mapping[str, Any],
        *,
        decoys: Mapping[str, Any],
        disguise: Callable[[Any], Any],
        revealed: Mapping[str, Any],
        failures: Mapping[str, str],
        mask: Callable[[dict[str, Any], dict[str, Any] | None], dict[str, Any]],
        mask_message: Callable[[str, str | None], str],
    ) -> None:
        self.real = real
        self.masked = masked
        self.decoys = decoys
        self.disguise = disguise
        self.revealed = revealed
        self.failures = failures
        self.mask = mask
        self.mask_message = mask_message


def credential_error(message: str) -> ExpressionError:
    """What fails a pipeline whose next task cannot have its secrets."""
    error = ExpressionError(message)
    error.kind = "credential"
    return error


def next_attempt(run: RunState, frame: Frame, now: int, secrets: Secrets | None, fetched: Fetched) -> RunTask:
    """The next attempt of the task the frame stands at. Raises ExpressionError and Unfetched."""
    task = run.task(frame)
    constants = run.step.constant_inputs.get(task.label)
    args, prev = _read_by_tool(task, run.args, frame.prev)
    simple = secrets is None and not ((args or prev) and may_hold_marker([args, prev]))
    if constants is not None and simple:
        return _constant_attempt(run, frame, task, constants, now)
    first = item_keys(run, frame) if fetched else ()
    readable: Fetched = fetched
    if secrets is not None:
        readable = ChainMap(secrets.revealed, fetched)  # type: ignore[arg-type]  # nobody writes to it
    return with_needed_values(
        lambda needed: _render_attempt(run, frame, now, secrets, needed, fetched), readable, first
    )


def _render_attempt(  # noqa: PLR0917 - a run, a moment, and what may be read there
    run: RunState, frame: Frame, now: int, secrets: Secrets | None, fetched: Fetched, at_hand: Fetched
) -> RunTask:
    """An attempt with rendered inputs: expressions see the values in `fetched`, the tool all `at_hand`."""
    task = run.task(frame)
    scope = task_scope(run, frame, now, secrets.real if secrets else None, fetched)
    redelivered = frame.losses > 0
    attempt = frame.attempt if redelivered else frame.attempt + 1
    scope.namespaces["_attempt"] = attempt - frame.forgiven
    key = scope.namespaces["_idempotency_key"] = idempotency_key(run, frame, task, attempt)
    try:
        inputs, args = _render_inputs(task, scope)
        spec = scope.mapping(task.spec)
        revealed = None if task.kind == PASSING else secrets.revealed if secrets else {}
        values = _tool_values(task, inputs, *_read_by_tool(task, args, frame.prev), spec)
        tool_inputs, tool_args, tool_spec, prev = scope.for_tool(values, at_hand, revealed)
    except ReferenceUnresolved as error:
        raise scope.unfetched(error) from None
    except SecretRefused as error:
        raise _secret_error(error.marker, secrets) from None
    except SecretLost:
        raise credential_error(_LOST) from None
    except Unfetched as error:
        raise _missing_secrets_error(error, secrets) from None
    except ExpressionError as error:
        if (
            secrets is not None
            and (decoy_scope := _decoy_scope(run, frame, now, secrets, fetched)) is not None
        ):
            decoy_scope.namespaces.update(
                {name: scope.namespaces[name] for name in ("_attempt", "_idempotency_key")}
            )
            error.message = secrets.mask_message(error.message, _decoy_error_message(task, decoy_scope))
        raise
    recorded = inputs
    # Nobody can render a waiting task again when its wait is over: ctx may have changed meanwhile.
    if task.kind in WAITING_KINDS and (knobs := _rendered_knobs(task, spec)):
        recorded = {**recorded, "spec": knobs}
    if secrets is not None:
        decoy_scope = _decoy_scope(run, frame, now, secrets, fetched)
        if decoy_scope is not None:
            decoy_scope.namespaces.update(
                {name: scope.namespaces[name] for name in ("_attempt", "_idempotency_key")}
            )
        recorded = secrets.mask(
            recorded, None if decoy_scope is None else _render_decoy_inputs(task, decoy_scope)
        )
    return RunTask(
        task=task,
        started=_task_started(run, frame, task, attempt, recorded, now),
        inputs=tool_inputs,
        args=tool_args,
        spec=tool_spec,
        prev=prev,
        timeout=timeout_of(spec),
        idempotency_key=key,
    )


def _read_by_tool(task: Task, args: Mapping[str, Any], prev: Any) -> tuple[Mapping[str, Any], Any]:
    """Of these, what the tool looks at: nothing else need be at hand."""
    reads = task.reads
    return args if "args" in reads else {}, prev if "_prev" in reads else None


def _tool_values(
    task: Task, inputs: dict[str, Any], args: Mapping[str, Any], prev: Any, spec: Mapping[str, Any]
) -> list[Any]:
    """The values for a tool, what it takes by reference as such."""
    if names := task.references:
        inputs = {name: wrap_references(value) if name in names else value for name, value in inputs.items()}
        args = wrap_references(args) if "args" in names else args
        prev = wrap_references(prev) if "_prev" in names else prev
    return [inputs, args, spec, prev]


# The fast path of `Record(LoopIterationStarted)` and then `next_attempt` of the new frame: both are reported
# together. Not with args: they may hold references, which only `next_attempt` looks for.
def open_constant_iteration(run: RunState, index: int, now: int) -> RunTask | None:
    """The iteration with its task, if that is all of it and nothing is to be evaluated."""
    task = run.step.only_task
    if task is None or run.args or task.kind in WAITING_KINDS:
        return None
    frame = Frame(index, visits={task.label: 1})
    opens = LoopIterationStarted(run=run.id, index=index)
    return _constant_attempt(run, frame, task, run.step.constant_inputs[task.label], now, opens)


# The fast path of recording one iteration after the other and asking `advance` each time: one report for all
# that may begin saves a decision, an append of its own and a callback for each. Waiting frames still wait: no
# time has passed. test_kernel_fast_paths.py holds both equal.
def open_more_iterations(run: RunState, opened: RunTask, now: int, most: int) -> list[RunTask]:
    """What `advance` would ask for next, one after the other, once `opened` was recorded; with it `most`."""
    if opened.opens is None:
        return []
    first = opened.opens.index
    further = (
        open_constant_iteration(run, first + ahead, now) for ahead in range(1, min(run.startable, most))
    )
    return [move for move in further if move is not None]


def _decoy_scope(
    run: RunState, frame: Frame, now: int, secrets: Secrets, fetched: Fetched
) -> EvaluationScope | None:
    """The task's scope with other texts in place of secrets; None if its expressions read none.

    Rendered a second time with these, inputs show which of their characters came from a secret, however an
    expression has cut or joined it: a search for the secret's own text would miss that.
    """
    decoy_values = {
        key: secrets.disguise(value) for key, value in fetched.items() if key.startswith(SECRET_PREFIX)
    }
    if not decoy_values and not reads_keychain(run.task(frame)):
        return None
    return task_scope(run, frame, now, secrets.decoys, {**fetched, **decoy_values})


def _render_decoy_inputs(task: Task, scope: EvaluationScope) -> dict[str, Any]:
    """The inputs as the decoys make them; what they make fail is left out."""
    own = _render_what_works(task.args or {}, scope)
    scope.namespaces["args"] = {**scope.namespaces["args"], **own}
    return {**_render_what_works(task.inputs, scope), **({"args": own} if task.args is not None else {})}


def _decoy_error_message(task: Task, scope: EvaluationScope) -> str | None:
    """What the inputs fail with under the decoys; None if they do not."""
    try:
        _render_inputs(task, scope)
        scope.mapping(task.spec)
    except ExpressionError as error:
        return error.message
    return None


def _render_what_works(entries: Mapping[str, Template], scope: EvaluationScope) -> dict[str, Any]:
    rendered = {}
    for name, data in entries.items():
        with suppress(NoetlError):
            rendered[name] = scope.value(data)
    return rendered


_LOST = "a value that the task needs was masked and cannot be had again"


def _secret_error(marker: Mapping[str, Any], secrets: Secrets | None) -> NoetlError:
    """What to raise for a secret that is not at hand: that it must be fetched, or why it cannot be."""
    try:
        keys = secret_keys(marker)
    except SecretLost:
        return credential_error(_LOST)
    return _missing_secrets_error(Unfetched(tuple(sorted(keys))), secrets)


def _missing_secrets_error(error: Unfetched, secrets: Secrets | None) -> NoetlError:
    if secrets is None:
        return error
    failed = [key for key in error.keys if key in secrets.failures and key not in secrets.revealed]
    reasons = [secrets.failures[key] for key in failed]
    return credential_error("; ".join(reasons)) if reasons else error


# The fast path of `_render_attempt`: most tasks of large loops have constant inputs, and rendering them for
# every attempt would cost a scope each time. test_kernel_fast_paths.py holds that both give the same.
def _constant_attempt(  # noqa: PLR0917 - what is attempted, and with what
    run: RunState,
    frame: Frame,
    task: Task,
    constants: ConstantInputs,
    now: int,
    opens: LoopIterationStarted | None = None,
) -> RunTask:
    """As `_render_attempt`, where nothing is to be evaluated or fetched."""
    attempt = frame.attempt if frame.losses > 0 else frame.attempt + 1
    args, prev = _read_by_tool(task, run.args, frame.prev)
    return RunTask(
        task=task,
        started=_task_started(run, frame, task, attempt, constants.inputs, now),
        opens=opens,
        inputs=constants.inputs,
        args=args,
        spec=constants.spec,
        prev=prev,
        timeout=constants.timeout,
        idempotency_key=idempotency_key(run, frame, task, attempt),
    )


def _task_started(  # noqa: PLR0917 - of whom, and what
    run: RunState, frame: Frame, task: Task, attempt: int, inputs: dict[str, Any], now: int
) -> TaskStarted:
    """What is recorded of an attempt before its tool runs."""
    return TaskStarted(
        run=run.id,
        task=task.label,
        iteration=frame.index,
        visit=frame.visits[task.label],
        attempt=attempt,
        redelivery=frame.losses,
        input=inputs or None,
        at=now if task.kind in WAITING_KINDS else 0,
    )


def _rendered_knobs(task: Task, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs of a waiting task that are expressions: what they gave must be known after the wait."""
    names = [name for name in WAITING_KNOBS if name in task.spec]
    return {name: spec[name] for name in names if not isinstance(task.spec[name], Constant)}


def _render_inputs(task: Task, scope: EvaluationScope) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """What the tool gets, the task's own args among it, and these over the token's."""
    args: Mapping[str, Any] = scope.namespaces["args"]
    if task.args is None:
        return scope.mapping(task.inputs), args
    own = scope.mapping(task.args)
    args = scope.namespaces["args"] = {**args, **own}
    return {**scope.mapping(task.inputs), "args": own}, args


def idempotency_key(run: RunState, frame: Frame, task: Task, attempt: int) -> str:
    """The same for every delivery and every retry after an error; another one after an ok outcome."""
    label = task.label
    parts = f"{run.inputs.execution_id}/{run.id}/{frame.index}/{label}/{frame.visits[label]}"
    if frame.polls:
        parts = f"{parts}/poll {frame.polls}"
    if label in run.step.fresh_keys:
        parts = f"{parts}/attempt {attempt}"
    return hashlib.sha256(parts.encode()).hexdigest()[:32]
