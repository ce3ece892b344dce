"""What each event does to the marking, against the marking itself."""

from collections.abc import Iterable

import pytest
from hypothesis import given, settings

from noetl.dsl.document.playbook import Playbook
from noetl.engine.summary import marking_json
from noetl.events.event import Event
from noetl.kernel.plan import Plan
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.marking_changes import MARKING_PLACES, MarkingTracker, count_marking
from noetl.kernel.state.replay import replay
from tests.golden.golden_files import history, recordings
from tests.kernel.driver import EXECUTION
from tests.kernel.random_playbooks import Chaos, choices, outcomes, playbooks

_OPEN = MARKING_PLACES.index("ended") + 1


def summed(plan: Plan, execution_id: str, events: Iterable[Event]) -> Iterable[tuple[Event, list[list[int]]]]:
    """The changes up to each event, added up."""
    tracker = MarkingTracker(new_state(plan, execution_id))
    counts = [[0] * len(MARKING_PLACES) for _ in plan.by_number]
    for event in events:
        for change in tracker.fold(event):
            assert change.by, "nothing is said where nothing changes"
            counts[change.step][change.stage] += change.by
        assert counts == count_marking(tracker.state), event
        yield event, counts


def named(plan: Plan, counts: list[list[int]]) -> dict[str, dict[str, int]]:
    """The tokens and open runs, as `marking_json` has them."""
    rows: dict[str, dict[str, int]] = {
        step.name: {
            str(stage): count for stage, count in zip(MARKING_PLACES[:_OPEN], row, strict=False) if count
        }
        for step, row in zip(plan.by_number, counts, strict=True)
    }
    return {step: places for step, places in rows.items() if places}


@pytest.mark.parametrize(("name", "decider"), recordings())
def test_the_changes_add_up_to_the_marking_after_every_event_of_golden_histories(
    name: str, decider: int
) -> None:
    golden = history(name, decider)
    for event, counts in summed(golden.plan, golden.execution_id, golden.events):
        assert all(count >= 0 for row in counts for count in row), event
        if event.seq in golden.ends:
            # Not by the tracker's own state: a state that was folded anew.
            state = replay(golden.plan, golden.execution_id, golden.events[: event.seq])
            assert named(golden.plan, counts) == marking_json(state)


@settings(max_examples=100)
@given(playbooks(), outcomes, choices)
def test_the_changes_add_up_to_the_marking_whatever_happens(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    driver = Chaos(playbook, turns)
    driver.run_in_order(order).retry_if_failed()
    counts: list[list[int]] = []
    for _, counts in summed(driver.plan, EXECUTION, driver.events):
        assert all(count >= 0 for row in counts for count in row)
    assert named(driver.plan, counts) == marking_json(driver.state)


def test_ended_runs_are_counted_by_how_they_ended() -> None:
    golden = history("failures")
    *_, (_, counts) = summed(golden.plan, golden.execution_id, golden.events)
    ended = {
        step.name: dict(zip(MARKING_PLACES[_OPEN:], row[_OPEN:], strict=True))
        for step, row in zip(golden.plan.by_number, counts, strict=True)
    }
    state = replay(golden.plan, golden.execution_id, golden.events)
    for step, places in ended.items():
        summary = state.summaries.get(step)
        assert sum(places.values()) == (summary.runs if summary is not None else 0)
    assert any(places["failed"] for places in ended.values())
