"""The first difference of two histories, where the test itself has made it."""

from typing import Any

import pytest
from msgspec import structs

from noetl.engine.history.first_divergence import find_divergence
from noetl.events.bodies import (
    LeaseExpired,
    NextEvaluated,
    PlaybookProcessed,
    StepDone,
    StepScheduled,
    TaskProcessed,
    TaskStarted,
    TokenClaimed,
)
from noetl.events.event import Event
from noetl.model.outcome import Outcome
from tests.golden.golden_files import history, recordings

IDS = ("a" * 36, "b" * 36)


def changed(body: Any) -> Any:
    """The same with another value; None if there is nothing to change."""
    match body:
        case StepDone() | PlaybookProcessed():
            return structs.replace(body, result={"planted": True})
        case TaskProcessed():
            return structs.replace(body, outcome=Outcome(status="ok", result={"planted": True}))
        case TaskStarted():
            return structs.replace(body, input={"planted": True})
        case StepScheduled():
            return structs.replace(body, args={"planted": True})
        case NextEvaluated() if body.verdicts:
            return structs.replace(body, verdicts=(*body.verdicts, True))
        case _:
            return None


@pytest.mark.parametrize(("name", "decider"), recordings())
def test_a_history_does_not_differ_from_itself_whoever_had_its_runs(name: str, decider: int) -> None:
    events = history(name, decider).events
    assert find_divergence(events, events, IDS) is None
    others = [
        Event(event.seq, event.ts + 1_000_000, event.body)
        for event in events
        if not isinstance(event.body, TokenClaimed | LeaseExpired)
    ]
    assert find_divergence(events, others, IDS) is None


@pytest.mark.parametrize("name", sorted({name for name, _ in recordings()}))
def test_the_first_event_that_is_another_is_found(name: str) -> None:
    events = history(name).events
    for number, event in enumerate(events):
        body = changed(event.body)
        if body is None:
            continue
        others = [*events[:number], Event(event.seq, event.ts, body), *events[number + 1 :]]
        divergence = find_divergence(events, others, IDS)
        assert divergence is not None
        assert divergence.a is not None
        assert divergence.b is not None
        assert (divergence.a.seq, divergence.b.seq) == (event.seq, event.seq)
        assert divergence.a.name == type(event.body).__name__
        assert divergence.path


@pytest.mark.parametrize("name", sorted({name for name, _ in recordings()}))
def test_a_history_that_ends_earlier_differs_where_the_other_goes_on(name: str) -> None:
    events = history(name).events
    for end in range(1, len(events)):
        if any(not isinstance(event.body, TokenClaimed | LeaseExpired) for event in events[end:]):
            divergence = find_divergence(events[:end], events, IDS)
            assert divergence is not None
            assert divergence.a is None
            assert divergence.b is not None
            assert divergence.b.seq > end
            assert divergence.what.startswith("only the second has")
