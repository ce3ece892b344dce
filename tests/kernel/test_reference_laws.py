"""What holds for values of every size: where they are kept changes nothing but that."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.events.event import Event
from noetl.kernel.references.externalize import externalize
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.invariants import violations
from noetl.kernel.verify.verification import verify
from noetl.model.reference import escape, references_in, stored_keys
from noetl.model.table_reader import decode_value_or_table
from tests.kernel.driver import EXECUTION
from tests.kernel.random_playbooks import (
    BIG_OUTCOMES,
    Chaos,
    as_stored,
    big_outcomes,
    big_texts,
    choices,
    load_sound,
)
from tests.kernel.state_comparison import differences, from_snapshot

limits = st.sampled_from([0, 20, 40, 64, 100, 200, 1000])


def knobs(text: str, limit: int | None) -> str:
    spec = f", result: {{inline_max_bytes: {limit}, preview_max_bytes: 8}}" if limit is not None else ""
    return text.replace("KNOBS", spec)


def lived(text: str, limit: int | None, turns: list[int], order: list[int]) -> Chaos:
    driver = Chaos(load_sound(knobs(text, limit)), turns, BIG_OUTCOMES)
    return driver.run_in_order(order).retry_if_failed()


def seen(driver: Chaos) -> list[Any]:
    """What tools were given, in order; with what they got by reference in its place."""
    return [
        (
            call.started.run,
            call.iteration,
            call.task.label,
            driver.resolve(escape([call.inputs, call.args, call.prev])),
        )
        for call in driver.calls
    ]


@settings(max_examples=200)
@given(big_texts, limits, big_outcomes, choices)
def test_an_execution_ends_the_same_wherever_its_values_are_kept(
    text: str, limit: int, turns: list[int], order: list[int]
) -> None:
    inline, apart = lived(text, None, turns, order), lived(text, limit, turns, order)
    assert not inline.stored
    assert apart.names == inline.names
    assert seen(apart) == seen(inline)
    assert apart.resolve(apart.state.result) == inline.resolve(inline.state.result)
    assert apart.resolve(apart.ctx) == inline.resolve(inline.ctx)
    assert apart.statuses == inline.statuses


@settings(max_examples=100)
@given(big_texts, limits, big_outcomes, choices)
def test_the_history_alone_gives_the_same_state_and_holds_nothing_large(
    text: str, limit: int, turns: list[int], order: list[int]
) -> None:
    driver = Chaos(load_sound(knobs(text, limit)), turns, BIG_OUTCOMES)
    mirror = new_state(driver.plan, EXECUTION)

    def check(events: list[Event]) -> None:
        for event in events:
            assert event.data == as_stored(event).body_bytes, "the bytes are those of the body"
            for reference in references_in(json.loads(event.data)):
                assert set(stored_keys(reference)) <= driver.stored.keys(), "it is stored before it is named"
            run = driver.state.runs.get(getattr(event.body, "run", ""))
            if run is not None:
                assert externalize(driver.plan, run.step, event.body, EXECUTION) == (event.body, [])
            evolve(mirror, as_stored(event))
            assert violations(mirror) == []
        assert differences(mirror, driver.state) == []

    driver.on_append = check
    driver.run_in_order(order).retry_if_failed()


@settings(max_examples=50)
@given(big_texts, limits, big_outcomes, choices, st.floats(0, 1))
def test_a_snapshot_and_its_tail_are_the_whole_history(
    text: str, limit: int, turns: list[int], order: list[int], where: float
) -> None:
    driver = lived(text, limit, turns, order)
    assert differences(from_snapshot(driver, where), driver.state) == []


@settings(max_examples=100)
@given(big_texts, limits, big_outcomes, choices)
def test_no_history_with_stored_values_raises_a_false_alarm(
    text: str, limit: int, turns: list[int], order: list[int]
) -> None:
    driver = lived(text, limit, turns, order)
    events = [as_stored(event) for event in driver.events]
    verification = verify(
        driver.plan, EXECUTION, events, lambda key: decode_value_or_table(driver.stored[key])
    )
    assert verification.differences == ()
