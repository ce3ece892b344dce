"""What an attempt of a task gets: rendered inputs, a timeout, a key."""

import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec import structs

from noetl.dsl.playbook import Task
from noetl.events.bodies import LoopIterationStarted, TaskStarted
from noetl.expr import Constant, Unread, uses_of
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.plan import Plain, timeout_of
from noetl.kernel.references.whole import Fetched, with_needed
from noetl.kernel.run import Frame, RunState
from noetl.kernel.scopes import Surroundings, item_keys, task_scope
from noetl.model.reference import held, mentions

WAITING_KINDS = frozenset({"playbook", "wait"})
"""What waits without a worker."""

WAITING_KNOBS = ("timeout", "wait", "on_failure")


class Secrets:
    """The keychain as the tool sees it, and as the events do."""

    __slots__ = ("masked", "real")

    def __init__(self, real: Mapping[str, Any], masked: Mapping[str, Any]) -> None:
        self.real = real
        self.masked = masked


def attempt_of(run: RunState, frame: Frame, now: int, secrets: Secrets | None, fetched: Fetched) -> RunTask:
    """The next attempt of the task the frame stands at. Raises ExpressionError and Unfetched."""
    task = run.task(frame)
    plain = run.step.plain.get(task.label)
    if plain is not None and not ((run.args or frame.prev) and mentions([run.args, frame.prev])):
        return _plain_attempt(run, frame, task, plain, now)
    first = item_keys(run, frame) if fetched else ()
    return with_needed(lambda some: _attempt(run, frame, now, secrets, some, fetched), fetched, first)


def _attempt(  # noqa: PLR0917 -- as above
    run: RunState, frame: Frame, now: int, secrets: Secrets | None, fetched: Fetched, at_hand: Fetched
) -> RunTask:
    """The same; expressions see those of the stored values that are `fetched`, the tool all `at_hand`."""
    task = run.task(frame)
    around = task_scope(run, frame, now, secrets.real if secrets else None, fetched)
    given = around.spaces["args"]
    again = frame.losses > 0
    attempt = frame.attempt if again else frame.attempt + 1
    around.spaces["_attempt"] = attempt - frame.forgiven
    key = around.spaces["_idempotency_key"] = idempotency_key(run, frame, task, attempt)
    try:
        inputs, args = _rendered(task, around)
        recorded = inputs
        if secrets is not None and reads_keychain(task):
            around.spaces["keychain"] = secrets.masked
            around.spaces["args"] = given
            recorded, _ = _rendered(task, around)
        spec = around.mapping(task.spec)
        if task.kind in WAITING_KINDS and (knobs := _asked_for(task, spec)):
            recorded = {**recorded, "spec": knobs}
    except Unread as error:
        raise around.unfetched(error) from None
    prev = frame.prev
    if names := task.references:
        inputs = {name: held(value) if name in names else value for name, value in inputs.items()}
        args = held(args) if "args" in names else args
        prev = held(prev) if "_prev" in names else prev
    given_inputs, given_args, given_spec, prev = around.for_tool([inputs, args, spec, prev], at_hand)
    return RunTask(
        task=task,
        started=TaskStarted(
            run=run.id,
            task=task.label,
            iteration=frame.index,
            visit=frame.visits[task.label],
            attempt=attempt,
            redelivery=frame.losses,
            input=recorded or None,
            at=now if task.kind in WAITING_KINDS else 0,
        ),
        inputs=given_inputs,
        args=given_args,
        spec=given_spec,
        prev=prev,
        timeout=timeout_of(spec),
        idempotency_key=key,
    )


def opening(run: RunState, now: int) -> RunTask | None:
    """The next iteration with its task, if that is all of it and nothing is to be evaluated."""
    task, loop = run.step.single, run.loop
    if task is None or loop is None or run.args or task.kind in WAITING_KINDS:
        return None
    frame = Frame(loop.next, visits={task.label: 1})
    attempt = _plain_attempt(run, frame, task, run.step.plain[task.label], now)
    return structs.replace(attempt, opens=LoopIterationStarted(run=run.id, index=frame.index))


def _plain_attempt(run: RunState, frame: Frame, task: Task, plain: Plain, now: int) -> RunTask:
    """The same where nothing is to be evaluated or fetched."""
    attempt = frame.attempt if frame.losses > 0 else frame.attempt + 1
    return RunTask(
        task=task,
        started=TaskStarted(
            run=run.id,
            task=task.label,
            iteration=frame.index,
            visit=frame.visits[task.label],
            attempt=attempt,
            redelivery=frame.losses,
            input=plain.inputs or None,
            at=now if task.kind in WAITING_KINDS else 0,
        ),
        inputs=plain.inputs,
        args=run.args,
        spec=plain.spec,
        prev=frame.prev,
        timeout=plain.timeout,
        idempotency_key=idempotency_key(run, frame, task, attempt),
    )


def _asked_for(task: Task, spec: Mapping[str, Any]) -> dict[str, Any]:
    """The knobs of a waiting task that are expressions: what they gave must be known after the wait."""
    asked = [name for name in WAITING_KNOBS if name in task.spec]
    return {name: spec[name] for name in asked if not isinstance(task.spec[name], Constant)}


def _rendered(task: Task, around: Surroundings) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """What the tool gets, the task's own args among it, and these over the token's."""
    args: Mapping[str, Any] = around.spaces["args"]
    if task.args is None:
        return around.mapping(task.inputs), args
    own = around.mapping(task.args)
    args = around.spaces["args"] = {**args, **own}
    return {**around.mapping(task.inputs), "args": own}, args


def reads_keychain(task: Task) -> bool:
    data = (*task.inputs.values(), *(task.args or {}).values())
    return any(use.path[0] == "keychain" for value in data for use in uses_of(value))


def idempotency_key(run: RunState, frame: Frame, task: Task, attempt: int) -> str:
    """The same for every delivery and every retry after an error; another one after an ok outcome."""
    place = [run.given.execution_id, run.id, str(frame.index), task.label, str(frame.visits[task.label])]
    if frame.polls:
        place.append(f"poll {frame.polls}")
    if task.label in run.step.fresh_keys:
        place.append(f"attempt {attempt}")
    return hashlib.sha256("/".join(place).encode()).hexdigest()[:32]
