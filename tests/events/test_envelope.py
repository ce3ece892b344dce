"""The envelope has what the specification asks for, computed from the event alone."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given

from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.event import Event, draft_envelope, envelope
from noetl.events.event_kind import kind_named
from noetl.model.outcome import ErrorInfo, failed, succeeded
from tests.events.any_event import AT_ANY_SPEED, EXECUTION, any_event

TS = 1_793_700_000_123_456
ALWAYS = [
    "event_id",
    "execution_id",
    "seq",
    "timestamp",
    "source",
    "name",
    "entity",
    "entity_id",
    "status",
    "trace_id",
    "data",
]
SOMETIMES = {"step_run_id", "task_run_id", "parent_id", "worker"}

CANCELLED = ErrorInfo(kind="cancelled", message="cancelled")


def of_body(body: EventBody) -> dict[str, object]:
    return dict(envelope(Event(12, TS, body), EXECUTION))


@pytest.mark.spec("003 §9.3")
@AT_ANY_SPEED
@given(any_event())
def test_the_draft_names_its_fields_otherwise(event: Event) -> None:
    canonical, draft = envelope(event, EXECUTION), draft_envelope(event, EXECUTION)
    renamed = {"name": "event_type", "timestamp": "ts", "data": "payload"}
    assert list(draft) == [renamed.get(name, name) for name in canonical]
    assert {"event_id", "event_type", "ts", "execution_id", "trace_id", "payload"} <= draft.keys()
    assert (draft["ts"], draft["payload"]) == (canonical["timestamp"], canonical["data"])
    assert kind_named(str(draft["event_type"])).name == canonical["name"]


@pytest.mark.spec("003 §9.2")
@pytest.mark.parametrize(
    ("body", "event_type"),
    [
        (of.StepDone(run="r1"), "step.done"),
        (of.StepScheduled(step="s", tokens=("t1",)), "step.scheduled"),
        (of.TokenEnqueued(step="s"), "token.enqueued"),
        (of.NextEvaluated(run="r1", event="step.done"), "next.selected"),
        (of.WorkflowFinished(status="completed"), "workflow.finished"),
    ],
)
def test_the_draft_has_its_own_names_of_events(body: EventBody, event_type: str) -> None:
    assert draft_envelope(Event(1, TS, body), EXECUTION)["event_type"] == event_type


@pytest.mark.spec("000 §10.1")
@AT_ANY_SPEED
@given(any_event())
def test_every_event_has_the_envelope(event: Event) -> None:
    fields = envelope(event, EXECUTION)
    assert [name for name in fields if name not in SOMETIMES] == ALWAYS
    assert fields["event_id"] == f"{EXECUTION}/{event.seq}"
    assert fields["name"] == type(event.body).__name__
    assert fields["source"] in ("server", "worker")
    assert fields["entity"] in ("playbook", "workflow", "step", "task", "loop", "next")
    assert fields["status"] in ("in_progress", "success", "error", "paused")
    assert json.loads(json.dumps(fields)) == fields


@pytest.mark.spec("000 §10.1")
def test_the_envelope_of_a_finished_step() -> None:
    assert of_body(of.StepDone(run="r7", result={"n": 1})) == {
        "event_id": f"{EXECUTION}/12",
        "execution_id": EXECUTION,
        "seq": 12,
        "timestamp": "2026-11-03T10:00:00.123456Z",
        "source": "worker",
        "name": "StepDone",
        "entity": "step",
        "entity_id": "r7",
        "status": "success",
        "step_run_id": "r7",
        "trace_id": "019a48f36a007c3e9d526b1f0e8a4c17",
        "data": {"run": "r7", "result": {"n": 1}, "patches": []},
    }


@AT_ANY_SPEED
@given(any_event())
def test_the_timestamp_is_exact_and_in_utc(event: Event) -> None:
    timestamp = envelope(event, EXECUTION)["timestamp"]
    assert isinstance(timestamp, str)
    assert len(timestamp) == len("2026-11-03T10:00:00.123456Z")
    elapsed = datetime.fromisoformat(timestamp) - datetime(1970, 1, 1, tzinfo=UTC)
    assert (elapsed.days * 86_400 + elapsed.seconds) * 1_000_000 + elapsed.microseconds == event.ts


ATTEMPT: dict[str, Any] = {"run": "r12", "iteration": 7, "task": "fetch", "visit": 2, "attempt": 1}


@pytest.mark.spec("003 §9.3")
@pytest.mark.parametrize(
    ("body", "ids"),
    [
        (of.TaskStarted(**ATTEMPT), {"entity_id": "r12/7/fetch/2/1", "step_run_id": "r12", "task_run_id": "r12/7/fetch/2/1", "parent_id": "r12"}),
        (of.TaskProcessed(**ATTEMPT, outcome=succeeded()), {"entity_id": "r12/7/fetch/2/1", "step_run_id": "r12", "task_run_id": "r12/7/fetch/2/1", "parent_id": "r12"}),
        (of.LoopIterationStarted(run="r3", index=5), {"entity_id": "r3/5", "step_run_id": "r3", "parent_id": "r3"}),
        (of.LoopIterationCompleted(run="r3", index=5, status="success"), {"entity_id": "r3/5", "step_run_id": "r3", "parent_id": "r3"}),
        (of.LoopStarted(run="r3", total=1), {"entity_id": "r3", "step_run_id": "r3"}),
        (of.LoopDone(run="r3", total=1, succeeded=1), {"entity_id": "r3", "step_run_id": "r3"}),
        (of.StepScheduled(step="a", tokens=("t9", "t11")), {"entity_id": "r12", "step_run_id": "r12", "parent_id": "t9"}),
        (of.StepScheduled(step="a", final=True), {"entity_id": "r12", "step_run_id": "r12"}),
        (of.StepFailed(run="r3", error=CANCELLED), {"entity_id": "r3", "step_run_id": "r3"}),
        (of.RunSuspended(run="r3", reason="wait"), {"entity_id": "r3", "step_run_id": "r3"}),
        (of.RunResumed(run="r3", reason="timer"), {"entity_id": "r3", "step_run_id": "r3"}),
        (of.LeaseExpired(run="r3", fence=4), {"entity_id": "r3", "step_run_id": "r3"}),
        (of.NextEvaluated(run="r3", event="step.done"), {"entity_id": "r3", "step_run_id": "r3"}),
        (of.TokenEnqueued(step="a"), {"entity_id": "t12"}),
        (of.TokenEnqueued(step="a", run="r3", arc=0), {"entity_id": "t12", "parent_id": "r3"}),
        (of.TokenParked(token="t5", mode="park"), {"entity_id": "t5"}),
        (of.TokenAdmitted(token="t5"), {"entity_id": "t5"}),
        (of.TokenDiscarded(token="t5", reason="denied"), {"entity_id": "t5"}),
        (of.TokenClaimed(run="r3", worker="w1", token="t2"), {"entity_id": "t2", "step_run_id": "r3", "worker": "w1"}),
        (of.TokenClaimed(run="r3"), {"entity_id": "r3", "step_run_id": "r3"}),
        (of.PlaybookExecutionRequested(path="p", hash="h"), {"entity_id": EXECUTION}),
        (of.PlaybookExecutionRequested(path="p", hash="h", parent=of.ParentTask(execution_id="x", task_run_id="r1/0/call/1/1")), {"entity_id": EXECUTION, "parent_id": "x/r1/0/call/1/1"}),
        (of.WorkflowStarted(), {"entity_id": EXECUTION}),
        (of.ExecutionRetried(runs=("r3",)), {"entity_id": EXECUTION}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, of.Body) else "",
)  # fmt: skip
def test_ids_say_where_the_event_belongs(body: EventBody, ids: dict[str, str]) -> None:
    fields = of_body(body)
    assert {name: fields[name] for name in ("entity_id", *SOMETIMES) if name in fields} == ids


@pytest.mark.spec("003 §9.3")
def test_all_events_of_an_execution_have_one_trace() -> None:
    request = of.PlaybookExecutionRequested(path="p", hash="h", trace_id="4bf92f")
    events = Event(1, TS, request), Event(2, TS, of.PlaybookRequestEvaluated())
    assert [envelope(event, EXECUTION, request.trace_id)["trace_id"] for event in events] == ["4bf92f"] * 2
    assert envelope(events[0], EXECUTION)["trace_id"] == "4bf92f"
    assert envelope(events[1], EXECUTION)["trace_id"] == EXECUTION.replace("-", "")


@pytest.mark.parametrize(
    "body",
    [
        of.StepDone(run="r1", source="server"),
        of.StepFailed(run="r1", error=CANCELLED, source="server"),
        of.LoopDone(run="r1", total=0, succeeded=0, source="server"),
    ],
    ids=lambda body: type(body).__name__,
)
def test_what_the_server_says_itself_has_source_server(body: EventBody) -> None:
    fields = of_body(body)
    assert fields["source"] == "server"
    data = fields["data"]
    assert isinstance(data, dict)
    assert "source" not in data


def test_a_fork_keeps_the_source_of_its_history_in_data() -> None:
    fields = of_body(of.ExecutionForked(source="x", at=4))
    assert fields["source"] == "server"
    assert fields["data"] == {
        "source": "x",
        "at": 4,
        "by": "",
        "hash": "",
        "file": "",
        "workload": None,
        "shift": 0,
    }


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (of.TokenDiscarded(token="t1", reason="denied"), "denied"),
        (of.CancelRequested(reason="too late"), "too late"),
        (of.CancelRequested(), "cancelled"),
        (of.WorkflowFinished(status="cancelled"), "cancelled"),
        (of.PlaybookProcessed(status="cancelled"), "cancelled"),
        (of.StepFailed(run="r1", error=CANCELLED), "cancelled"),
        (of.StepFailed(run="r1", error=ErrorInfo(kind="admission", message="no")), "denied"),
        (of.TaskProcessed(run="r1", task="a", outcome=failed(CANCELLED)), "cancelled"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, of.Body) else value,
)
def test_what_was_denied_discarded_or_cancelled_says_so(body: EventBody, reason: str) -> None:
    fields = of_body(body)
    assert fields["status"] == "error"
    data = fields["data"]
    assert isinstance(data, dict)
    assert data["reason"] == reason


def test_other_failures_have_no_reason() -> None:
    data = of_body(of.PlaybookProcessed(status="failed"))["data"]
    assert data == {"status": "failed", "result": None, "error": None}


def test_data_shows_outcomes_and_errors_as_playbooks_see_them() -> None:
    error = ErrorInfo(kind="http_status", message="Bad Gateway", retryable=True, details={"attempts": 3})
    body = of.TaskProcessed(
        run="r1",
        task="fetch",
        outcome=failed(error, http={"status": 502}),
        do="fail",
        patches=(of.Patch(scope="ctx", path=("a", "b"), value=[1]),),
        error=error,
    )
    error_fields = {"kind": "http_status", "message": "Bad Gateway", "retryable": True, "attempts": 3}
    assert of_body(body)["data"] == {
        "run": "r1",
        "task": "fetch",
        "outcome": {
            "status": "error",
            "result": None,
            "error": error_fields,
            "meta": {},
            "http": {"status": 502},
        },
        "iteration": 0,
        "visit": 1,
        "attempt": 1,
        "rule": None,
        "do": "fail",
        "to": "",
        "retry_at": None,
        "patches": [{"scope": "ctx", "path": ["a", "b"], "value": [1]}],
        "set_prev": False,
        "prev": None,
        "error": error_fields,
    }
