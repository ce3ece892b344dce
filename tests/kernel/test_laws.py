"""What holds for every playbook, every outcome and every order of events."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import EventBody, LeaseExpired, TaskProcessed, TokenClaimed
from noetl.events.event import Event
from noetl.kernel.net.commands import LeaseLost
from noetl.kernel.references.loop_chunks import without_results
from noetl.kernel.state import fold
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.invariants import sequence_gaps, violations
from noetl.kernel.state.replay import dump_state, encode_run, load_run, replay
from noetl.kernel.state.run_fold import RUN_FOLDS, evolve_run, iteration_of
from noetl.kernel.state.run_state import RunState, Shard
from tests.kernel.driver import EXECUTION, Driver
from tests.kernel.random_playbooks import Chaos, as_stored, choices, outcome_by_attempt, outcomes, playbooks
from tests.kernel.state_comparison import differences, from_snapshot


def test_the_fold_knows_every_event() -> None:
    from typing import get_args

    assert set(fold.FOLDS) == set(get_args(EventBody))


@pytest.mark.spec("000 §10.3")
@settings(max_examples=100)
@given(playbooks(), outcomes, choices)
def test_invariants_hold_after_every_event_and_the_stored_history_gives_the_same_state(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    driver = Chaos(playbook, turns)
    mirror = new_state(driver.plan, EXECUTION)

    def check(events: list[Event]) -> None:
        for event in events:
            evolve(mirror, as_stored(event))
            assert violations(mirror) == []
        assert differences(mirror, driver.state) == []

    driver.on_append = check
    driver.run_in_order(order).retry_if_failed()
    assert driver.state.over, "nothing is left that could happen"
    assert list(sequence_gaps(driver.events)) == []


def test_a_ctx_that_many_runs_have_pinned_is_in_a_snapshot_once() -> None:
    arcs = ", ".join(["{step: b}"] * 20)
    text = f"- step: start\n  next: {{spec: {{mode: inclusive}}, arcs: [{arcs}]}}\n- step: b\n  tool: {{kind: noop}}\n"
    driver = Driver(text).start(ctx={"a": 1})
    assert len(driver.state.runs) == 20
    assert [mapping for mapping in dump_state(driver.state)["mappings"] if mapping] == [{"a": 1}]


@settings(max_examples=50)
@given(playbooks(), outcomes, choices, st.floats(0, 1))
def test_a_snapshot_and_its_tail_are_the_whole_history(
    playbook: Playbook, turns: list[int], order: list[int], where: float
) -> None:
    driver = Chaos(playbook, turns).run_in_order(order)
    assert differences(from_snapshot(driver, where), driver.state) == []


@settings(max_examples=50)
@given(playbooks(), outcomes, choices)
def test_a_worker_that_folds_what_it_reports_knows_what_the_server_knows(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    driver = Chaos(playbook, turns)
    copies: dict[int, RunState] = {}

    def at_worker(run: RunState, fence: int) -> RunState:
        """As its worker sees a run or shard: it keeps no results, and of a shard nothing of the others."""
        owned = run.owned_under(fence)
        plain = json.loads(encode_run(run, owned if isinstance(owned, Shard) else None))
        return load_run(driver.plan, driver.state.inputs, plain)

    def check(events: list[Event]) -> None:
        for event in events:
            body = event.body
            if isinstance(body, TokenClaimed):
                run = replay(driver.plan, EXECUTION, driver.events[: event.seq]).runs[body.run]
                copies[event.seq] = at_worker(run, event.seq)
            elif type(body) in RUN_FOLDS:
                for fence, copy in copies.items():
                    owned = copy.owned_under(fence) if copy.id == body.run else None  # type: ignore[union-attr]  # all of these have it
                    if isinstance(owned, Shard) and not owned.start <= iteration_of(body) < owned.end:
                        continue
                    if owned is not None:
                        evolve_run(copy, without_results(body))
            elif isinstance(body, LeaseExpired):
                del copies[body.fence]
        for run in driver.state.claimed_runs():
            for owned in run.owned_parts():
                assert _seen_alike(at_worker(copies[owned.fence], owned.fence), at_worker(run, owned.fence))

    driver.on_append = check
    driver.run_in_order(order)


def _seen_alike(copy: RunState, run: RunState) -> bool:
    """Where there are shards, others may have written since, and have shown how long it works."""
    if run.sharded:
        run = structs.replace(
            run, since=copy.since, worked=copy.worked, variables=copy.variables, ctx=copy.ctx
        )
    return copy == run


def _end(driver: Driver) -> tuple[Any, ...]:
    state = driver.state
    failures = sorted(
        (failure.error.kind, str(failure.error.details.get("step"))) for failure in state.failures
    )
    return state.status, state.result, state.ctx.values, driver.statuses, failures


@settings(max_examples=50)
@given(playbooks(), outcomes, st.floats(0, 1))
def test_a_crash_anywhere_ends_in_the_same_state_and_runs_no_recorded_task_again(
    playbook: Playbook, turns: list[int], where: float
) -> None:
    uninterrupted = Chaos(playbook, turns)
    uninterrupted.start()
    uninterrupted.settle()
    cut = 1 + round(where * (len(uninterrupted.appends) - 1))
    before_crash = [event for append in uninterrupted.appends[:cut] for event in append]
    after = Chaos(playbook, turns)
    after.state = replay(after.plan, EXECUTION, before_crash)
    after.now = before_crash[-1].ts
    for run in list(after.state.claimed_runs()):
        for owned in run.owned_parts():
            after.submit(LeaseLost(run.id, owned.fence))
        while run.id in after.state.ready:
            after.claim_part(run.id)
    after.settle()
    assert _end(after) == _end(uninterrupted)
    recorded = {_attempt_key(event.body) for event in before_crash if isinstance(event.body, TaskProcessed)}
    again = {_attempt_key(call.started) for call in after.calls}
    assert not recorded & again


def _attempt_key(body: Any) -> tuple[Any, ...]:
    return body.run, body.iteration, body.task, body.visit, body.attempt


LOOP = """
- step: start
  loop: {in: "{{ range(%d) | list }}", iterator: n, spec: {mode: %s, max_in_flight: %d, policy: {exec: %s, failure: {mode: best_effort}}, reduce: {total: sum, seen: append, big: max}}}
  tool:
    - t0: {kind: python, code: '1', spec: {policy: {rules: [{when: "{{ outcome.status == 'error' and _attempt < 3 }}", then: {do: retry}}]}}}
    - t1: {kind: noop, args: {n: "{{ iter.n }}"}, set: {ctx.total: "{{ iter.n }}", ctx.seen: "{{ iter.n }}", ctx.big: "{{ iter.n * 2 }}"}}
"""


@settings(max_examples=50)
@given(st.integers(0, 12), st.integers(1, 5), outcomes, choices)
def test_a_parallel_loop_ends_as_a_sequential_one(
    size: int, flying: int, turns: list[int], order: list[int]
) -> None:
    from tests.playbooks import playbook_of

    ends = []
    for mode, placement in product(("sequential", "parallel"), ("local", "distributed")):
        driver = Chaos(playbook_of((LOOP % (size, mode, flying, placement)).lstrip()), turns)
        del driver.script["t1"]
        driver.run_in_order([choice for choice in order if choice % 19 != 18])
        ends.append((driver.state.status, driver.state.result, driver.ctx))
    assert ends[0] == ends[1]


def test_outcomes_of_a_place_are_the_same_when_asked_again() -> None:
    driver = Driver("- step: start\n  tool: [{t0: {kind: python, code: '1'}}]\n").run()
    outcome = outcome_by_attempt([1, 2, 3])
    assert outcome(driver.calls[0]) == outcome(driver.calls[0])
