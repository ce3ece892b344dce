"""What an attempt of a task gets: rendered inputs, a timeout, a key."""

import hashlib
from collections import ChainMap
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec import structs

from noetl.dsl.document.playbook import Task
from noetl.events.bodies import LoopIterationStarted, TaskStarted
from noetl.expr import Constant, ReferenceUnresolved, SecretRefused, Template, template_uses
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.plan import ConstantInputs, timeout_of
from noetl.kernel.references.resolve import Fetched, Unfetched, with_needed_values
from noetl.kernel.scopes import EvaluationScope, item_keys, task_scope
from noetl.kernel.state.run_state import Frame, RunState
from noetl.model import ExpressionError, NoetlError
from noetl.model.reference import may_hold_marker, wrap_references
from noetl.model.secret import SECRET_KEY_PREFIX as SECRET_PREFIX
from noetl.model.secret import SecretLost, secret_keys

WAITING_KINDS = frozenset({"playbook", "wait"})
"""What waits without a worker."""

PASSING = "noop"
"""What hands on its inputs as they are: secrets among them stay hidden."""

WAITING_KNOBS = ("timeout", "wait", "on_failure")


class Secrets:
    """The keychain as the tool sees it, and as the events do.

    `real`, `masked` and `alike` are the entries by name: with their values, with what stands for them in
    the log, and with other texts in place of the secrets. `real` raises Unfetched for one that is not at
    hand. `revealed` are the values of secrets that stand in the log, and `failures` says why others cannot
    be had, both by key. `disguise` gives a value with other texts for that of such a secret. `mask` gets
    rendered inputs, and the same rendered with those other texts, and puts what stands for them in place of
    secrets; `told` puts `***` into a message, of which it may be given the same with those other texts.
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
    plain = run.step.constant_inputs.get(task.label)
    args, prev = _looked_at(task, run.args, frame.prev)
    simple = secrets is None and not ((args or prev) and may_hold_marker([args, prev]))
    if plain is not None and simple:
        return _plain_attempt(run, frame, task, plain, now)
    first = item_keys(run, frame) if fetched else ()
    known: Fetched = fetched
    if secrets is not None:
        known = ChainMap(secrets.revealed, fetched)  # type: ignore[arg-type]  # it is only read
    return with_needed_values(lambda some: _attempt(run, frame, now, secrets, some, fetched), known, first)


def _attempt(  # noqa: PLR0917 -- as above
    run: RunState, frame: Frame, now: int, secrets: Secrets | None, fetched: Fetched, at_hand: Fetched
) -> RunTask:
    """The same; expressions see those of the stored values that are `fetched`, the tool all `at_hand`."""
    task = run.task(frame)
    around = task_scope(run, frame, now, secrets.real if secrets else None, fetched)
    again = frame.losses > 0
    attempt = frame.attempt if again else frame.attempt + 1
    around.namespaces["_attempt"] = attempt - frame.forgiven
    key = around.namespaces["_idempotency_key"] = idempotency_key(run, frame, task, attempt)
    try:
        inputs, args = _rendered(task, around)
        spec = around.mapping(task.spec)
        revealed = None if task.kind == PASSING else secrets.revealed if secrets else {}
        handed = _handed(task, inputs, *_looked_at(task, args, frame.prev), spec)
        given_inputs, given_args, given_spec, prev = around.for_tool(handed, at_hand, revealed)
    except ReferenceUnresolved as error:
        raise around.unfetched(error) from None
    except SecretRefused as error:
        raise _unrevealed(error.marker, secrets) from None
    except SecretLost:
        raise credential_error(_LOST) from None
    except Unfetched as error:
        raise _failed_keys(error, secrets) from None
    except ExpressionError as error:
        if secrets is not None and (alike := _alike(run, frame, now, secrets, fetched)) is not None:
            alike.namespaces.update(
                {name: around.namespaces[name] for name in ("_attempt", "_idempotency_key")}
            )
            error.message = secrets.mask_message(error.message, _message_alike(task, alike))
        raise
    recorded = inputs
    if task.kind in WAITING_KINDS and (knobs := _asked_for(task, spec)):
        recorded = {**recorded, "spec": knobs}
    if secrets is not None:
        alike = _alike(run, frame, now, secrets, fetched)
        if alike is not None:
            alike.namespaces.update(
                {name: around.namespaces[name] for name in ("_attempt", "_idempotency_key")}
            )
        recorded = secrets.mask(recorded, None if alike is None else _rendered_alike(task, alike))
    return RunTask(
        task=task,
        started=_started(run, frame, attempt, recorded, now),
        inputs=given_inputs,
        args=given_args,
        spec=given_spec,
        prev=prev,
        timeout=timeout_of(spec),
        idempotency_key=key,
    )


def _looked_at(task: Task, args: Mapping[str, Any], prev: Any) -> tuple[Mapping[str, Any], Any]:
    """Of these, what the tool looks at: nothing else need be at hand."""
    reads = task.reads
    return args if "args" in reads else {}, prev if "_prev" in reads else None


def _handed(
    task: Task, inputs: dict[str, Any], args: Mapping[str, Any], prev: Any, spec: Mapping[str, Any]
) -> list[Any]:
    """The values for a tool, what it takes by reference as such."""
    if names := task.references:
        inputs = {name: wrap_references(value) if name in names else value for name, value in inputs.items()}
        args = wrap_references(args) if "args" in names else args
        prev = wrap_references(prev) if "_prev" in names else prev
    return [inputs, args, spec, prev]


def open_constant_iteration(run: RunState, now: int) -> RunTask | None:
    """The next iteration with its task, if that is all of it and nothing is to be evaluated."""
    task, loop = run.step.only_task, run.loop
    if task is None or loop is None or run.args or task.kind in WAITING_KINDS:
        return None
    frame = Frame(loop.next, visits={task.label: 1})
    attempt = _plain_attempt(run, frame, task, run.step.constant_inputs[task.label], now)
    return structs.replace(attempt, opens=LoopIterationStarted(run=run.id, index=frame.index))


def _alike(
    run: RunState, frame: Frame, now: int, secrets: Secrets, fetched: Fetched
) -> EvaluationScope | None:
    """Around the task, with other texts in place of secrets; None if its expressions read none."""
    veiled = {key: secrets.disguise(value) for key, value in fetched.items() if key.startswith(SECRET_PREFIX)}
    if not veiled and not reads_keychain(run.task(frame)):
        return None
    return task_scope(run, frame, now, secrets.decoys, {**fetched, **veiled})


def _rendered_alike(task: Task, around: EvaluationScope) -> dict[str, Any]:
    """The inputs as they are there; what that fails for is left out."""
    own = _each(task.args or {}, around)
    around.namespaces["args"] = {**around.namespaces["args"], **own}
    return {**_each(task.inputs, around), **({"args": own} if task.args is not None else {})}


def _message_alike(task: Task, around: EvaluationScope) -> str | None:
    """What the inputs fail with there; None if they do not."""
    try:
        _rendered(task, around)
        around.mapping(task.spec)
    except ExpressionError as error:
        return error.message
    return None


def _each(entries: Mapping[str, Template], around: EvaluationScope) -> dict[str, Any]:
    found = {}
    for name, data in entries.items():
        with suppress(NoetlError):
            found[name] = around.value(data)
    return found


_LOST = "a value that the task needs was masked and cannot be had again"


def _unrevealed(marker: Mapping[str, Any], secrets: Secrets | None) -> NoetlError:
    """What to raise for a secret that is not at hand: that it must be fetched, or why it cannot be."""
    try:
        keys = secret_keys(marker)
    except SecretLost:
        return credential_error(_LOST)
    return _failed_keys(Unfetched(tuple(sorted(keys))), secrets)


def _failed_keys(error: Unfetched, secrets: Secrets | None) -> NoetlError:
    if secrets is None:
        return error
    failed = [key for key in error.keys if key in secrets.failures and key not in secrets.revealed]
    reasons = [secrets.failures[key] for key in failed]
    return credential_error("; ".join(reasons)) if reasons else error


def _plain_attempt(run: RunState, frame: Frame, task: Task, plain: ConstantInputs, now: int) -> RunTask:
    """The same where nothing is to be evaluated or fetched."""
    attempt = frame.attempt if frame.losses > 0 else frame.attempt + 1
    args, prev = _looked_at(task, run.args, frame.prev)
    return RunTask(
        task=task,
        started=_started(run, frame, attempt, plain.inputs, now),
        inputs=plain.inputs,
        args=args,
        spec=plain.spec,
        prev=prev,
        timeout=plain.timeout,
        idempotency_key=idempotency_key(run, frame, task, attempt),
    )


def _started(run: RunState, frame: Frame, attempt: int, inputs: dict[str, Any], now: int) -> TaskStarted:
    """What is recorded of an attempt before its tool runs."""
    task = run.task(frame)
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


def _asked_for(task: Task, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs of a waiting task that are expressions: what they gave must be known after the wait."""
    asked = [name for name in WAITING_KNOBS if name in task.spec]
    return {name: spec[name] for name in asked if not isinstance(task.spec[name], Constant)}


def _rendered(task: Task, around: EvaluationScope) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """What the tool gets, the task's own args among it, and these over the token's."""
    args: Mapping[str, Any] = around.namespaces["args"]
    if task.args is None:
        return around.mapping(task.inputs), args
    own = around.mapping(task.args)
    args = around.namespaces["args"] = {**args, **own}
    return {**around.mapping(task.inputs), "args": own}, args


def reads_keychain(task: Task) -> bool:
    data = (*task.inputs.values(), *(task.args or {}).values())
    return any(use.path[0] == "keychain" for value in data for use in template_uses(value))


def idempotency_key(run: RunState, frame: Frame, task: Task, attempt: int) -> str:
    """The same for every delivery and every retry after an error; another one after an ok outcome."""
    place = [run.inputs.execution_id, run.id, str(frame.index), task.label, str(frame.visits[task.label])]
    if frame.polls:
        place.append(f"poll {frame.polls}")
    if task.label in run.step.fresh_keys:
        place.append(f"attempt {attempt}")
    return hashlib.sha256("/".join(place).encode()).hexdigest()[:32]
