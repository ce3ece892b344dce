"""Tasks that wait: for a time, a signal, a child. No worker is held meanwhile (semantics §9)."""

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec

from noetl.events.bodies import RunSuspended
from noetl.events.identifiers import task_run_id
from noetl.expr.template import Constant
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.pipeline.task_inputs import idempotency_key
from noetl.kernel.plan import seconds_in
from noetl.kernel.scopes import playbook_time
from noetl.kernel.state.execution_state import ChildStart
from noetl.kernel.state.run_state import Frame, Resumption, RunState
from noetl.model.outcome import ErrorInfo, Outcome, failed, succeeded
from noetl.model.timestamp import moment_after, seconds_of
from noetl.model.wait_question import LARGEST_SCHEMA, WaitQuestion, problem_of_schema


def begin_wait(run: RunState, frame: Frame, now: int) -> RunSuspended | Outcome:
    """How the waiting task that just started waits; or its outcome if it need not."""
    task = run.task(frame)
    inputs: Mapping[str, Any] = frame.input or {}
    limit = _explicit_timeout(run, frame)
    deadline = moment_after(now, limit) if limit is not None else None
    if task.kind == "playbook":
        child = child_id(run, frame)
        if not waits_for_child(run, frame):
            return succeeded({"execution_id": child}, playbook={"execution_id": child, "status": "running"})
        child = frame.child or child
        return RunSuspended(run=run.id, reason="child", iteration=frame.index, child=child, until=deadline)
    if signal := inputs.get("signal"):
        question = _question_of(inputs)
        if isinstance(question, Outcome):
            return question
        return RunSuspended(
            run=run.id,
            reason="signal",
            iteration=frame.index,
            signal=str(signal),
            until=deadline,
            question=question,
        )
    until = _wait_until(inputs, now)
    if isinstance(until, Outcome):
        return until
    return RunSuspended(run=run.id, reason="wait", iteration=frame.index, until=until)


def _question_of(inputs: Mapping[str, Any]) -> WaitQuestion | Outcome | None:
    """What a wait asks, or why it cannot ask so; None if it asks nothing."""
    schema, assignee = inputs.get("schema"), inputs.get("assignee")
    names = [assignee] if isinstance(assignee, str) else assignee or []
    if not (isinstance(names, list) and all(isinstance(name, str) and name for name in names)):
        message = "`assignee` is the name of a token, or a list of names"
        return failed(ErrorInfo(kind="input", message=message))
    if schema is not None and (problem := _problem_of_schema(schema)):
        return failed(ErrorInfo(kind="input", message=f"`schema` is no JSON Schema: {problem}"))
    title, description = str(inputs.get("title") or ""), str(inputs.get("description") or "")
    question = WaitQuestion(title, description, schema, tuple(names))
    return question if question != WaitQuestion() else None


def _problem_of_schema(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "it is a mapping"
    if len(msgspec.json.encode(schema)) > LARGEST_SCHEMA:
        return f"it has more than {LARGEST_SCHEMA:,} bytes"
    return problem_of_schema(schema)


def outcome_after_wait(run: RunState, frame: Frame, resumption: Resumption) -> Outcome:
    """What a waiting task gives after its wait."""
    if resumption.reason == "timeout":
        if run.task(frame).kind == "playbook":
            return _child_timeout(run, frame)
        message = f"`{run.task(frame).label}` waited too long"
        return failed(ErrorInfo(kind="timeout", message=message, retryable=True))
    if resumption.reason == "child":
        return _child_outcome(run, frame, resumption.payload)
    return succeeded(resumption.payload)


def wait_attempt_meta(run: RunState, frame: Frame, now: int) -> dict[str, Any]:
    """What is known of an attempt that no tool has made: when it began only where it waited."""
    key = idempotency_key(run, frame, run.task(frame), frame.attempt)
    times: dict[str, Any] = {"finished_at": playbook_time(now)}
    if frame.began_at:
        duration = round(max(now - frame.began_at, 0) / 1e3, 3)
        times = {"duration_ms": duration, "started_at": playbook_time(frame.began_at), **times}
    return {
        "attempt": frame.attempt,
        **times,
        "trace_id": run.inputs.trace_id,
        "span_id": key[:16],
        "idempotency_key": key,
    }


def _child_outcome(run: RunState, frame: Frame, ended: Mapping[str, Any]) -> Outcome:
    helper = {"execution_id": ended["execution_id"], "status": ended["status"]}
    if ended["status"] == "completed" or _knob(run, frame, "on_failure", default="fail") == "continue":
        return succeeded(ended.get("result"), playbook=helper)
    cause = ended.get("error") or {}
    message = f"the child {ended['execution_id']} {ended['status']}"
    if child_message := _child_message(cause):
        message = f"{message}: {child_message}"
    return failed(ErrorInfo(kind="child_failed", message=message, details={"cause": cause}), playbook=helper)


def _child_message(cause: Mapping[str, Any]) -> str:
    """The message of a child's error. Of a long chain of children only the lowest is told."""
    lowest = cause
    while True:
        match lowest:
            case {"kind": "child_failed", "cause": {"kind": "child_failed"} as below}:
                lowest = below
            case _:
                break
    message = str(lowest.get("message") or "")
    return message if lowest is cause else f"… {message}"


def _child_timeout(run: RunState, frame: Frame) -> Outcome:
    child, limit = frame.child, _explicit_timeout(run, frame)
    message = f"the child {child} was not done within {limit:g} s"
    error = ErrorInfo(kind="timeout", message=message, retryable=True)
    return failed(error, playbook={"execution_id": child, "status": "running"})


def child_start(run: RunState, frame: Frame) -> ChildStart:
    """The child of the attempt that the frame is at."""
    return ChildStart(child_id(run, frame), attempt_id(run, frame), frame.input or {})


def detached_child(run: RunState, frame: Frame) -> ChildStart | None:
    """The child of the task that has just started, if that starts one and does not wait for it."""
    if run.task(frame).kind != "playbook" or waits_for_child(run, frame):
        return None
    return child_start(run, frame)


def attempt_id(run: RunState, frame: Frame) -> str:
    """The task run of the attempt that the frame is at."""
    task = run.task(frame).label
    return task_run_id(run.id, frame.index, task, frame.visits[task], frame.attempt)


def child_id(run: RunState, frame: Frame) -> str:
    """The id of an execution that this attempt starts: a UUIDv7 of the parent's time, the rest a hash."""
    attempt = attempt_id(run, frame)
    parent = run.inputs.execution_id
    digest = hashlib.sha256(f"{parent}/{attempt}".encode()).digest()
    try:
        time = UUID(parent).bytes[:6]
    except ValueError:
        time = hashlib.sha256(parent.encode()).digest()[:6]
    body = bytearray(time + digest[:10])
    body[6] = 0x70 | body[6] & 0x0F
    body[8] = 0x80 | body[8] & 0x3F
    return str(UUID(bytes=bytes(body)))


def _wait_until(inputs: Mapping[str, Any], now: int) -> int | Outcome:
    seconds, until = inputs.get("seconds"), inputs.get("until")
    try:
        if seconds is not None:
            return moment_after(now, seconds_of(seconds))
        moment = datetime.fromisoformat(str(until))
    except (TypeError, ValueError):
        return failed(ErrorInfo(kind="input", message=f"{seconds or until!r} is not a time to wait for"))
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * SECOND)


def _knob(run: RunState, frame: Frame, name: str, default: Any) -> Any:
    data = run.task(frame).spec.get(name)
    if isinstance(data, Constant):
        return data.value if data.value is not None else default
    rendered = (frame.input or {}).get("spec", {}).get(name)
    return rendered if rendered is not None else default


def waits_for_child(run: RunState, frame: Frame) -> bool:
    """Whether a task that starts a child goes on only when that has ended."""
    return bool(_knob(run, frame, "wait", default=True))


def _explicit_timeout(run: RunState, frame: Frame) -> float | None:
    return seconds_in({"timeout": _knob(run, frame, "timeout", default=None)}, "timeout")
