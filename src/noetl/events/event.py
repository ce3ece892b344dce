"""An event, and its envelope (000 §10.1, 003 §9.3) as readers see it."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, assert_never

from msgspec import Struct

from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.codec import encode
from noetl.events.event_kind import EventStatus, kind_named, kind_of_body
from noetl.events.identifiers import iteration_id, run_id, task_run_id, token_id
from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.wait_question import WaitQuestion

_EPOCH = datetime(1970, 1, 1)


class Event(Struct, frozen=True, eq=False):
    """What happened at a place in the history of an execution.

    `seq` counts from 1 without gaps; `ts` is when it was recorded, in microseconds since 1970, UTC.
    `data` are the bytes of the body where they are known; two events are equal without them.
    """

    seq: int
    ts: int
    body: EventBody
    data: bytes = b""

    @property
    def body_bytes(self) -> bytes:
        """The body as it is stored."""
        return self.data or encode(self.body)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            return NotImplemented
        return self.seq == other.seq and self.ts == other.ts and self.body == other.body

    __hash__ = None  # type: ignore[assignment]  # equal by its parts, which may be lists


def event_matches(name: str, event: Event) -> bool:
    """Whether the event is of this name; `EventNameUnknown` if no event ever is."""
    return isinstance(event.body, kind_named(name).body)


def envelope(event: Event, execution_id: str, trace_id: str = "") -> dict[str, Json]:
    """The event with everything that follows from it, for people and other programs.

    `trace_id` is that of the execution's request; if it named none, the execution's own id is used, in
    the form of a W3C trace id. Values inside `data` are shared with the event: do not change them.
    """
    fields = envelope_head(event, execution_id)
    worker = fields.pop("worker", None)
    fields["trace_id"] = trace_id or _own_trace(event.body) or execution_id.replace("-", "")
    if worker is not None:
        fields["worker"] = worker
    fields["data"] = _data(event.body, kind_of_body(event.body).status_of(event.body))
    return fields


def envelope_head(event: Event, execution_id: str) -> dict[str, Json]:
    """The envelope without `trace_id` and `data`."""
    body = event.body
    kind = kind_of_body(body)
    ids = _envelope_ids(event, execution_id)
    fields: dict[str, Json] = {
        "event_id": f"{execution_id}/{event.seq}",
        "execution_id": execution_id,
        "seq": event.seq,
        "timestamp": (_EPOCH + timedelta(microseconds=event.ts)).isoformat(timespec="microseconds") + "Z",
        "source": body.source if isinstance(body, of.Reported) else kind.source,
        "name": kind.name,
        "entity": kind.entity,
        "entity_id": ids.entity_id,
        "status": kind.status_of(body),
    }
    if ids.step_run_id:
        fields["step_run_id"] = ids.step_run_id
    if ids.task_run_id:
        fields["task_run_id"] = ids.task_run_id
    if ids.parent_id:
        fields["parent_id"] = ids.parent_id
    if isinstance(body, of.TokenClaimed) and body.worker:
        fields["worker"] = body.worker
    return fields


ENVELOPE_FIELDS = (
    "event_id",
    "execution_id",
    "seq",
    "timestamp",
    "source",
    "name",
    "entity",
    "entity_id",
    "status",
    "step_run_id",
    "task_run_id",
    "parent_id",
    "trace_id",
    "worker",
    "data",
)
"""All that `envelope` may have, in its order."""


def draft_envelope(event: Event, execution_id: str, trace_id: str = "") -> dict[str, Json]:
    """The envelope in the words of the draft (003 §9.3), with its names of events; all else is the same."""
    kind = kind_of_body(event.body)
    event_type = "next.selected" if isinstance(event.body, of.NextEvaluated) else kind.dotted
    fields = envelope(event, execution_id, trace_id)
    return {
        _DRAFT_FIELDS.get(name, name): event_type if name == "name" else value
        for name, value in fields.items()
    }


_DRAFT_FIELDS = {"name": "event_type", "timestamp": "ts", "data": "payload"}


class _EnvelopeIds(NamedTuple):
    """Where in the execution an event belongs. `parent_id` is what the entity came from."""

    entity_id: str
    step_run_id: str = ""
    task_run_id: str = ""
    parent_id: str = ""


def _envelope_ids(event: Event, execution_id: str) -> _EnvelopeIds:
    match event.body:
        case of.TaskStarted() | of.TaskProcessed() as body:
            task_run = task_run_id(body.run, body.iteration, body.task, body.visit, body.attempt)
            return _EnvelopeIds(task_run, body.run, task_run, body.run)
        case of.LoopIterationStarted() | of.LoopIterationCompleted() as body:
            return _EnvelopeIds(iteration_id(body.run, body.index), body.run, "", body.run)
        case of.TokenEnqueued() as body:
            return _EnvelopeIds(token_id(event.seq), parent_id=body.run)
        case of.TokenParked() | of.TokenAdmitted() | of.TokenDiscarded() as body:
            return _EnvelopeIds(body.token)
        case of.TokenClaimed() as body:
            return _EnvelopeIds(body.token or body.run, body.run)
        case of.StepScheduled() as body:
            run = run_id(event.seq)
            return _EnvelopeIds(run, run, parent_id=body.tokens[0] if body.tokens else "")
        case (
            of.StepDone()
            | of.StepFailed()
            | of.NextEvaluated()
            | of.StepCompletedByHand()
            | of.StepSkipped()
            | of.LoopStarted()
            | of.LoopDone()
            | of.RunSuspended()
            | of.RunResumed()
            | of.LeaseExpired()
        ) as body:
            return _EnvelopeIds(body.run, body.run)
        case of.PlaybookExecutionRequested(parent=of.ParentTask() as parent):
            return _EnvelopeIds(execution_id, parent_id=f"{parent.execution_id}/{parent.task_run_id}")
        case (
            of.PlaybookExecutionRequested()
            | of.PlaybookRequestEvaluated()
            | of.PlaybookProcessed()
            | of.WorkflowStarted()
            | of.WorkflowFinished()
            | of.CtxPatched()
            | of.SignalReceived()
            | of.SignalDropped()
            | of.CancelRequested()
            | of.ExecutionPaused()
            | of.ExecutionResumed()
            | of.ExecutionRetried()
            | of.IterationsRedriven()
            | of.ExecutionForked()
        ):
            return _EnvelopeIds(execution_id)
        case unknown:
            assert_never(unknown)


def _own_trace(body: EventBody) -> str:
    return body.trace_id if isinstance(body, of.PlaybookExecutionRequested) else ""


def _data(body: EventBody, status: EventStatus) -> dict[str, Json]:
    """The fields, written out whole; `source` is already in the envelope."""
    data = _fields(body)
    if isinstance(body, of.Reported):
        del data["source"]
    if status == "error" and (reason := _reason(body)):
        data["reason"] = reason
    return data


def _reason(body: EventBody) -> str:
    """Why something was denied or cancelled, where the body says it in other words."""
    match body:
        case of.StepFailed(error=ErrorInfo(kind="admission")):
            return "denied"
        case (
            of.StepFailed(error=ErrorInfo(kind="cancelled"))
            | of.TaskProcessed(outcome=Outcome(error=ErrorInfo(kind="cancelled")))
            | of.WorkflowFinished(status="cancelled")
            | of.PlaybookProcessed(status="cancelled")
            | of.CancelRequested(reason="")
        ):
            return "cancelled"
        case _:
            return ""


def _fields(struct: Struct) -> dict[str, Json]:
    return {name: _json_value(getattr(struct, name)) for name in struct.__struct_fields__}


def _json_value(value: Any) -> Json:
    # Most values are JSON already, and one look at the type is several times faster than a match.
    write = _WRITERS.get(type(value))
    plain: Json = write(value) if write else value
    return plain


_WRITERS: dict[type, Callable[[Any], Json]] = {
    tuple: lambda items: [_json_value(item) for item in items],
    Outcome: Outcome.as_value,
    ErrorInfo: ErrorInfo.as_value,
    of.Patch: _fields,
    of.ParentTask: _fields,
    WaitQuestion: _fields,
}
