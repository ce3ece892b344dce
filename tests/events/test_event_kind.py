"""One table says what every event is called and what it means."""

from typing import get_args

import pytest

from noetl.events import bodies as of
from noetl.events.bodies import EventBody, EventSource
from noetl.events.errors import EventUnreadable
from noetl.events.event_kind import EVENT_KINDS, EventEntity, EventStatus, kind_numbered, kind_of_body
from noetl.model.outcome import ErrorInfo, failed, succeeded
from tests.events.standard_events import BY_SERVER, BY_WORKER

ERROR = ErrorInfo(kind="sql", message="no such table")

NUMBERS = {
    "PlaybookExecutionRequested": 1,
    "PlaybookRequestEvaluated": 2,
    "WorkflowStarted": 3,
    "WorkflowFinished": 4,
    "PlaybookProcessed": 5,
    "TokenEnqueued": 6,
    "TokenParked": 7,
    "TokenAdmitted": 8,
    "TokenDiscarded": 9,
    "StepScheduled": 10,
    "TokenClaimed": 11,
    "LeaseExpired": 12,
    "TaskStarted": 13,
    "TaskProcessed": 14,
    "LoopStarted": 15,
    "LoopIterationStarted": 16,
    "LoopIterationCompleted": 17,
    "RunSuspended": 18,
    "RunResumed": 19,
    "StepDone": 20,
    "StepFailed": 21,
    "LoopDone": 22,
    "NextEvaluated": 23,
    "CtxPatched": 24,
    "SignalReceived": 25,
    "CancelRequested": 26,
    "ExecutionPaused": 27,
    "ExecutionResumed": 28,
    "ExecutionRetried": 29,
    "ExecutionForked": 30,
    "StepCompletedByHand": 31,
    "StepSkipped": 32,
    "IterationsRedriven": 33,
    "SignalDropped": 34,
}
"""What is stored. A number in a released version is never changed and never given again."""


def test_every_body_has_one_row_and_every_row_a_body() -> None:
    assert [kind.body for kind in EVENT_KINDS] == list(get_args(EventBody))


def test_numbers_are_those_that_were_given() -> None:
    assert {kind.name: kind.number for kind in EVENT_KINDS} == NUMBERS
    assert all(0 < number < 2**15 for number in NUMBERS.values())


def test_rows_are_found_by_number_and_by_body() -> None:
    for kind in EVENT_KINDS:
        assert kind_numbered(kind.number) is kind
    assert kind_of_body(of.StepDone(run="r1")).name == "StepDone"


def test_a_number_that_nobody_has_is_refused() -> None:
    with pytest.raises(EventUnreadable, match="event kind 35 is unknown"):
        kind_numbered(35)


@pytest.mark.spec("000 §10.1")
def test_entities_and_sources_are_those_of_the_specification() -> None:
    assert get_args(EventEntity) == ("playbook", "workflow", "step", "task", "loop", "next")
    assert get_args(EventSource) == ("server", "worker")
    assert get_args(EventStatus) == ("in_progress", "success", "error", "paused")
    assert {kind.entity for kind in EVENT_KINDS} == set(get_args(EventEntity))


@pytest.mark.spec("000 §10.1")
@pytest.mark.parametrize(("source", "names"), [("server", BY_SERVER), ("worker", BY_WORKER)])
def test_the_standard_events_exist_with_their_source(source: str, names: set[str]) -> None:
    assert names <= {kind.name for kind in EVENT_KINDS if kind.source == source}


@pytest.mark.spec("000 §10.1")
@pytest.mark.parametrize(
    ("entity", "names"),
    [
        ("playbook", ["PlaybookExecutionRequested", "PlaybookRequestEvaluated", "PlaybookProcessed"]),
        ("workflow", ["WorkflowStarted", "WorkflowFinished", "CtxPatched", "SignalReceived", "CancelRequested", "ExecutionPaused", "ExecutionResumed", "ExecutionRetried", "ExecutionForked", "IterationsRedriven", "SignalDropped"]),
        ("step", ["StepScheduled", "LeaseExpired", "RunSuspended", "RunResumed", "StepDone", "StepFailed", "StepCompletedByHand", "StepSkipped"]),
        ("task", ["TaskStarted", "TaskProcessed"]),
        ("loop", ["LoopStarted", "LoopIterationStarted", "LoopIterationCompleted", "LoopDone"]),
        ("next", ["TokenEnqueued", "TokenParked", "TokenAdmitted", "TokenDiscarded", "TokenClaimed", "NextEvaluated"]),
    ],
)  # fmt: skip
def test_what_an_event_is_about(entity: str, names: list[str]) -> None:
    assert {kind.name for kind in EVENT_KINDS if kind.entity == entity} == set(names)


@pytest.mark.spec("000 §10.1")
@pytest.mark.parametrize(
    ("body", "status"),
    [
        (of.PlaybookExecutionRequested(path="p", hash="h"), "in_progress"),
        (of.PlaybookRequestEvaluated(), "success"),
        (of.PlaybookRequestEvaluated(error=ERROR), "error"),
        (of.WorkflowStarted(), "in_progress"),
        (of.WorkflowFinished(status="completed"), "success"),
        (of.WorkflowFinished(status="failed"), "error"),
        (of.WorkflowFinished(status="cancelled"), "error"),
        (of.PlaybookProcessed(status="completed"), "success"),
        (of.PlaybookProcessed(status="failed"), "error"),
        (of.PlaybookProcessed(status="cancelled"), "error"),
        (of.TokenEnqueued(step="a"), "in_progress"),
        (of.TokenParked(token="t1", mode="park"), "paused"),
        (of.TokenParked(token="t1", mode="wait"), "paused"),
        (of.TokenAdmitted(token="t1"), "in_progress"),
        (of.TokenDiscarded(token="t1", reason="denied"), "error"),
        (of.TokenDiscarded(token="t1", reason="parked"), "error"),
        (of.TokenDiscarded(token="t1", reason="remainder"), "error"),
        (of.TokenDiscarded(token="t1", reason="cancelled"), "error"),
        (of.TokenDiscarded(token="t1", reason="absorbed"), "success"),
        (of.StepScheduled(step="a"), "in_progress"),
        (of.TokenClaimed(run="r1"), "in_progress"),
        (of.LeaseExpired(run="r1", fence=3), "error"),
        (of.TaskStarted(run="r1", task="a"), "in_progress"),
        (of.TaskProcessed(run="r1", task="a", outcome=succeeded(1)), "success"),
        (of.TaskProcessed(run="r1", task="a", outcome=failed(ERROR), do="continue"), "error"),
        (of.LoopStarted(run="r1", total=2), "in_progress"),
        (of.LoopIterationStarted(run="r1", index=0), "in_progress"),
        (of.LoopIterationCompleted(run="r1", index=0, status="success"), "success"),
        (of.LoopIterationCompleted(run="r1", index=0, status="error", error=ERROR), "error"),
        (of.RunSuspended(run="r1", reason="wait"), "paused"),
        (of.RunResumed(run="r1", reason="timer"), "in_progress"),
        (of.StepDone(run="r1"), "success"),
        (of.StepFailed(run="r1", error=ERROR), "error"),
        (of.LoopDone(run="r1", total=2, succeeded=1, failed=1), "success"),
        (of.NextEvaluated(run="r1", event="step.done"), "success"),
        (of.NextEvaluated(run="r1", event="step.done", error=ERROR), "error"),
        (of.CtxPatched(patches=()), "success"),
        (of.SignalReceived(signal="go"), "success"),
        (of.CancelRequested(), "error"),
        (of.ExecutionPaused(), "paused"),
        (of.ExecutionResumed(), "in_progress"),
        (of.ExecutionRetried(runs=("r1",)), "in_progress"),
        (of.ExecutionForked(source="x", at=4), "in_progress"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, of.Body) else value,
)
def test_the_status_follows_from_the_body(body: EventBody, status: str) -> None:
    assert kind_of_body(body).status_of(body) == status
