"""Runs in time, against the events that they come from."""

from collections import Counter

import pytest

from noetl.engine.history.read import RecordedHistory
from noetl.engine.history.run_bars import RunTimeline, run_page
from noetl.engine.history.run_detail import run_detail
from noetl.events.bodies import (
    LoopIterationCompleted,
    StepScheduled,
    TaskProcessed,
    TaskStarted,
    TokenClaimed,
)
from noetl.events.identifiers import run_id
from noetl.graph.time_axis import TimeAxis
from noetl.ports.store import ExecutionRecord
from tests.golden.golden_files import History, history, recordings


def recorded(golden: History) -> RecordedHistory:
    first = golden.events[0]
    record = ExecutionRecord(
        execution_id=golden.execution_id,
        version=len(golden.events),
        status="running",
        path="golden",
        playbook=golden.plan.playbook.hash,
        started_at=first.ts,
        updated_at=golden.events[-1].ts,
        namespace="",
        parent="",
        root="",
        labels={},
        priority=0,
        fair_key="",
        next_wake=0,
        ended_at=0,
        expires_at=0,
        forked_from="",
    )
    return RecordedHistory(record, golden.plan, golden.events, golden.ends, b"")


@pytest.mark.parametrize(("name", "decider"), recordings())
def test_bars_tell_what_the_events_of_golden_histories_do(name: str, decider: int) -> None:
    golden = history(name, decider)
    page = run_page(recorded(golden), len(golden.events), 0, 1_000)
    bodies = [(event, event.body) for event in golden.events]
    scheduled = [event for event, body in bodies if isinstance(body, StepScheduled)]
    assert [bar.run for bar in page.runs] == [run_id(event.seq) for event in scheduled]
    attempts = Counter(
        body.run for _, body in bodies if isinstance(body, TaskStarted) and body.redelivery == 0
    )
    failed = Counter(
        body.run for _, body in bodies if isinstance(body, TaskProcessed) and body.outcome.status == "error"
    )
    iterations = Counter(body.run for _, body in bodies if isinstance(body, LoopIterationCompleted))
    for bar in page.runs:
        assert (bar.attempts, bar.failed_attempts) == (attempts[bar.run], failed[bar.run])
        claims = [
            event.ts for event, body in bodies if isinstance(body, TokenClaimed) and body.run == bar.run
        ]
        assert bar.claimed == (claims[0] if claims else None)
        if bar.loop is not None and bar.loop.heat is not None:
            assert sum(bar.loop.heat.succeeded) + sum(bar.loop.heat.failed) == iterations[bar.run]
        assert all(
            earlier.end is not None and earlier.end <= later.begin
            for earlier, later in zip(bar.waits, bar.waits[1:], strict=False)
        )
        detail = run_detail(recorded(golden), bar.run, len(golden.events), 0, 1_000)
        assert detail.bar == bar


@pytest.mark.parametrize(("name", "decider"), recordings())
def test_a_timeline_that_is_followed_is_the_same_as_a_new_one(name: str, decider: int) -> None:
    record = recorded(history(name, decider))
    followed = RunTimeline(record, 0)
    for at in range(1, len(record.events) + 1):
        followed.advance(record, at)
        page = followed.page(0, 1_000)
        assert page == run_page(record, at, 0, 1_000)
        for bar in page.runs:
            reasons = [wait.reason for wait in bar.waits if wait.end is None]
            assert len(reasons) == (bar.status in ("ready", "waiting"))
            assert bar.status != "ready" or reasons == ["ready"]


@pytest.mark.parametrize(("name", "decider"), recordings())
def test_nothing_is_worked_on_in_idle_time(name: str, decider: int) -> None:
    golden = history(name, decider)
    for begin, end in RunTimeline(recorded(golden), len(golden.events)).idle:
        assert end - begin >= 1_000_000
        for event in golden.events:
            if begin < event.ts < end:
                assert not isinstance(event.body, TaskStarted | TaskProcessed), event


def test_waiting_for_a_signal_is_idle_time() -> None:
    idle = {
        name
        for name, _ in recordings()
        if RunTimeline(recorded(history(name)), len(history(name).events)).idle
    }
    assert idle, "at least one golden history waits for longer than a second"


def test_long_idle_time_is_folded_and_nothing_else() -> None:
    axis = TimeAxis(0, 1_000, [(100, 900), (950, 951)])
    assert [(round(start, 3), idle) for start, _, idle in axis.folds] == [(0.487, 800)]
    positions = [axis.position(ts) for ts in range(-10, 1_020, 10)]
    assert positions == sorted(positions)
    assert (positions[0], positions[-1]) == (0.0, 1.0)
    assert axis.position(900) - axis.position(100) == pytest.approx(1 / 40)
    assert axis.position(50) == pytest.approx(axis.position(950) - axis.position(900))
    assert TimeAxis(0, 1_000).position(250) == pytest.approx(0.25)
    assert TimeAxis(5, 5).position(5) == 0.0
    assert TimeAxis(0, 100, [(0, 100)]).position(100) == 1.0
