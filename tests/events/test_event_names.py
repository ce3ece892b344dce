"""Filters know events by every name that the specification gives them."""

import pytest

from noetl.events import bodies as of
from noetl.events.errors import EventNameUnknown
from noetl.events.event import Event, event_matches
from noetl.events.event_kind import EVENT_KINDS, kind_named
from noetl.model.errors import NoetlError
from noetl.model.outcome import succeeded


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("StepDone", of.StepDone),
        ("step.done", of.StepDone),
        ("step.failed", of.StepFailed),
        ("loop.done", of.LoopDone),
        ("step.scheduled", of.StepScheduled),
        ("step.started", of.StepScheduled),
        ("token.created", of.TokenEnqueued),
        ("token.enqueued", of.TokenEnqueued),
        ("next.enqueued", of.TokenEnqueued),
        ("token.claimed", of.TokenClaimed),
        ("next.selected", of.NextEvaluated),
        ("next.evaluated", of.NextEvaluated),
        ("task.started", of.TaskStarted),
        ("task.processed", of.TaskProcessed),
        ("task.done", of.TaskProcessed),
        ("playbook.execution.requested", of.PlaybookExecutionRequested),
        ("playbook.request.evaluated", of.PlaybookRequestEvaluated),
        ("loop.iteration.completed", of.LoopIterationCompleted),
        ("ctx.patched", of.CtxPatched),
    ],
)
def test_a_name_means_one_event(name: str, body: type[of.Body]) -> None:
    assert kind_named(name).body is body


def test_no_name_means_two_events() -> None:
    names = [name for kind in EVENT_KINDS for name in (kind.name, kind.dotted, *kind.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["TaskProcessed", "task.processed", "task.done"])
def test_a_filter_keeps_the_events_of_its_name(name: str) -> None:
    assert event_matches(name, Event(2, 0, of.TaskProcessed(run="r1", task="a", outcome=succeeded())))
    assert not event_matches(name, Event(1, 0, of.TaskStarted(run="r1", task="a")))


@pytest.mark.parametrize(
    ("wrong", "hint"),
    [
        ("step.dne", "did you mean `step.done`?"),
        ("StepDnoe", "did you mean `StepDone`?"),
        ("STEPFAILED", "did you mean `StepFailed`?"),
        ("token.create", "did you mean `token.created`?"),
        ("xyzzy", ""),
        ("", ""),
    ],
)
def test_a_wrong_name_is_refused_with_the_nearest_right_one(wrong: str, hint: str) -> None:
    with pytest.raises(EventNameUnknown) as refused:
        event_matches(wrong, Event(1, 0, of.WorkflowStarted()))
    assert refused.value.hint == hint
    assert refused.value.name == wrong
    assert f"`{wrong}`" in str(refused.value)
    assert hint in str(refused.value)
    assert isinstance(refused.value, NoetlError)
