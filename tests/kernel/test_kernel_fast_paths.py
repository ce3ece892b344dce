"""Each fast path gives what the slow path gives that it stands for."""

import copy
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import EventBody, TokenParked
from noetl.events.codec import encode
from noetl.events.event import Event
from noetl.kernel.net import decider
from noetl.kernel.net.admission import decide_admission
from noetl.kernel.net.decider import decide_next
from noetl.kernel.pipeline import policy
from noetl.kernel.pipeline.interpreter import advance, advance_shard
from noetl.kernel.pipeline.moves import Finish, Move, Record, RunTask
from noetl.kernel.pipeline.policy import judge, judge_with_policy, judge_without_policy
from noetl.kernel.pipeline.task_inputs import open_more_iterations
from noetl.kernel.plan import StepPlan, Watch
from noetl.kernel.references.externalize import externalize
from noetl.kernel.scopes import playbook_time
from noetl.kernel.state.execution_state import ExecutionState
from noetl.kernel.state.replay import dump_state
from noetl.kernel.state.run_fold import evolve_run
from noetl.kernel.state.run_state import RunState, Shard
from noetl.kernel.state.shards import shard_at
from noetl.kernel.state.variables import Watchers, unwatch, watch, watching_tokens
from noetl.model.outcome import Outcome, succeeded
from tests.kernel.driver import EXECUTION, Driver, error
from tests.kernel.random_playbooks import (
    BIG_OUTCOMES,
    Chaos,
    big_outcomes,
    big_texts,
    choices,
    load_sound,
    outcomes,
    playbooks,
)
from tests.playbooks import playbook_of


def stored_bytes(bodies: list[EventBody]) -> list[tuple[type, bytes]]:
    return [(type(body), encode(body)) for body in bodies]


def detached(run: RunState) -> RunState:
    """The run, to be folded on without the one in the state."""
    alone = copy.deepcopy(run, {id(run.step): run.step, id(run.inputs): run.inputs})
    assert alone == run
    return alone


class Twice(Chaos):
    """Judges every outcome by both ways. `compared` counts the times there were two."""

    compared = 0

    def push(self, run: RunState, shard: Shard | None = None) -> bool:
        owned = (shard or run).phase == "claimed"
        move = self.advance(run, shard) if owned and not (self.state.paused or self.state.stopping) else None
        if isinstance(move, RunTask):
            self.compare(detached(run), move, self.outcome_of(move))
        return super().push(run, shard)

    def compare(self, run: RunState, move: RunTask, outcome: Outcome) -> None:
        fast = judge_without_policy(run, move, outcome)
        if fast is None:
            return
        self.compared += 1
        for body in move.begins:
            evolve_run(run, body)
        processed = judge(run, move.iteration, outcome, self.now)
        slow: list[EventBody] = [processed]
        if len(fast) > 1:
            evolve_run(run, processed)
            shard = shard_at(run, move.iteration) if run.sharded else None
            following = advance(run, self.now) if shard is None else advance_shard(run, shard, self.now)
            assert isinstance(following, Record | Finish)
            slow.append(following.body)
        assert stored_bytes(list(fast)) == stored_bytes(slow)


@settings(max_examples=100)
@given(playbooks(), outcomes, choices)
def test_judging_without_a_policy_is_judging(playbook: Playbook, turns: list[int], order: list[int]) -> None:
    Twice(playbook, turns).run_in_order(order).retry_if_failed()


@settings(max_examples=50)
@given(big_texts, big_outcomes, choices)
def test_judging_values_of_any_size_without_a_policy_is_judging(
    text: str, turns: list[int], order: list[int]
) -> None:
    Twice(load_sound(text.replace("KNOBS", "")), turns, BIG_OUTCOMES).run_in_order(order).retry_if_failed()


@pytest.mark.parametrize("loop", ["", '  loop: {in: "{{ [1, 2, 3] }}", iterator: n}\n'])
def test_the_end_of_a_pipeline_that_comes_with_its_outcome_is_compared(loop: str) -> None:
    driver = Twice(playbook_of(f"- step: start\n{loop}  tool: [{{t0: {{kind: python, code: '1'}}}}]\n"), [1])
    driver.run_in_order([])
    assert driver.compared == (3 if loop else 1)


@settings(max_examples=50)
@given(playbooks(), outcomes, choices)
def test_an_outcome_for_which_there_is_no_rule_is_judged_as_by_a_policy_without_rules(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    class Judge(Chaos):
        def judge(self, run: RunState, index: int, outcome: Outcome) -> Any:
            frame = run.frames[index]
            if run.task(frame).policy is None and not run.task(frame).writes:
                fast = judge_with_policy(run, index, outcome, self.now, None, {})
                slow = policy._judge_with_values(run, frame, outcome, self.now, None, {})
                assert stored_bytes([fast]) == stored_bytes([slow])
            return super().judge(run, index, outcome)

    Judge(playbook, turns).run_in_order(order)


def evaluated_always(step: StepPlan) -> StepPlan:
    """Tasks are rendered and arcs judged, though nothing is to be evaluated."""
    slow = copy.copy(step)
    slow.constant_inputs = {}
    slow.only_task = None
    slow.unconditional = tuple(False for _ in step.unconditional)
    return slow


class Renderer(Chaos):
    """Asks twice what a run wants next. `compared` counts the tasks whose inputs are constant."""

    compared = 0

    def advance(self, run: RunState, shard: Shard | None = None) -> Move:
        move = super().advance(run, shard)
        slow_run = detached(run)
        slow_run.step = evaluated_always(run.step)
        slow_shard = slow_run.shards[shard.start] if shard is not None else None
        slow = super().advance(slow_run, slow_shard)
        if isinstance(move, RunTask) and move.opens is not None:
            assert slow == Record(move.opens)
            evolve_run(slow_run, move.opens)
            slow = super().advance(slow_run, slow_shard)
            move = structs.replace(move, opens=None)
        assert slow == move
        self.compared += isinstance(move, RunTask) and move.task.label in run.step.constant_inputs
        return super().advance(run, shard)


@settings(max_examples=100)
@given(playbooks(), outcomes, choices)
def test_a_task_with_constant_inputs_gets_what_rendering_them_gives(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    Renderer(playbook, turns).run_in_order(order).retry_if_failed()


class Opener(Chaos):
    """Asks for iterations together and one by one. `together` is the most that began at once."""

    together = 0

    def advance(self, run: RunState, shard: Shard | None = None) -> Move:
        move = super().advance(run, shard)
        if isinstance(move, RunTask) and move.opens is not None and shard is None:
            for most in (1, 2, 16):
                further = open_more_iterations(run, move, self.now, most)
                assert [move, *further] == self.one_by_one(detached(run), most)
                self.together = max(self.together, 1 + len(further))
        return move

    def one_by_one(self, run: RunState, most: int) -> list[Move]:
        moves: list[Move] = []
        while len(moves) < most:
            move = super().advance(run)
            if not (isinstance(move, RunTask) and move.opens is not None):
                break
            moves.append(move)
            for body in move.begins:
                evolve_run(run, body)
        return moves


@settings(max_examples=100)
@given(playbooks(), outcomes, choices)
def test_iterations_that_begin_together_are_those_that_begin_one_after_the_other(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    Opener(playbook, turns).run_in_order(order).retry_if_failed()


@pytest.mark.parametrize(
    ("spec", "together"),
    [
        ("mode: parallel, max_in_flight: 3", 3),
        ("mode: parallel, max_in_flight: 30", 7),
        ("mode: parallel, max_in_flight: 30, window: 4", 4),
        ("mode: sequential", 1),
    ],
)
def test_as_many_iterations_begin_together_as_may_be_in_flight(spec: str, together: int) -> None:
    loop = f'  loop: {{in: "{{{{ range(7) | list }}}}", iterator: n, spec: {{{spec}}}}}\n'
    driver = Opener(playbook_of(f"- step: start\n{loop}  tool: [{{t0: {{kind: python, code: '1'}}}}]\n"), [1])
    driver.run_in_order([])
    assert driver.together == together


def test_constant_inputs_are_compared_in_loops_and_after_losses() -> None:
    text = """
- step: start
  loop: {in: "{{ [1, 2, 3] }}", iterator: n, spec: {mode: parallel, max_in_flight: 2}}
  tool: [{t0: {kind: python, code: "1"}}]
""".lstrip()
    driver = Renderer(playbook_of(text), [1])
    driver.run_in_order([1, 0, 0, 18, 1, 0, 0, 18 + 19 * 2])
    assert driver.compared > 3
    assert any(call.started.redelivery for call in driver.calls)


@pytest.mark.parametrize("mode", ["exclusive", "inclusive"])
@pytest.mark.parametrize("outcome", [succeeded(1), error()])
@pytest.mark.parametrize("first", ["", ", when: true", ", args: {a: 1}", ", set: {ctx.a: 1}"])
@pytest.mark.parametrize(
    "second",
    [None, "", ", when: false", ", when: \"{{ event.name == 'step.failed' }}\"", ', when: "{{ 1 / 0 }}"'],
)
def test_an_arc_that_is_always_taken_is_routed_as_if_it_were_judged(
    mode: str, outcome: Outcome, first: str, second: str | None
) -> None:
    arcs = f"{{step: a{first}}}" + (f", {{step: a{second}}}" if second is not None else "")
    text = f"""
- step: start
  tool: [{{t0: {{kind: python, code: "1"}}}}]
  next: {{spec: {{mode: {mode}}}, arcs: [{arcs}]}}
- step: a
  tool: {{kind: noop}}
""".lstrip()
    fast, slow = Driver(text, {"t0": outcome}), Driver(text, {"t0": outcome})
    start = slow.plan.by_name["start"]
    start.unconditional = evaluated_always(start).unconditional
    histories = [[event.body for event in driver.run().events] for driver in (fast, slow)]
    assert stored_bytes(histories[0]) == stored_bytes(histories[1])


spaces = st.sampled_from(["ctx", "steps"])
keys = st.sampled_from("abc")
nothing = st.just("")  # given, or Hypothesis takes any text: also what lies below no key
watches = st.one_of(
    st.builds(Watch, spaces, nothing, nothing),
    st.builds(Watch, spaces, keys, nothing),
    st.builds(Watch, spaces, keys, keys),
)
tokens = st.sampled_from(["t1", "t2", "t3"])


@given(
    st.dictionaries(tokens, st.lists(watches, max_size=4)),
    st.sets(tokens),
    spaces,
    st.lists(keys, min_size=1, max_size=3).map(tuple),
)
def test_the_tokens_that_a_write_concerns_are_found_without_asking_all(
    watched: dict[str, list[Watch]], gone: set[str], space: str, path: tuple[str, ...]
) -> None:
    watchers: Watchers = {}
    for token, listed in watched.items():
        watch(watchers, token, listed)
    for token in gone & watched.keys():
        unwatch(watchers, token, watched.pop(token))
    assert watched or not watchers

    def concerns(read: Watch) -> bool:
        """Whether what is read lies above or below what is written."""
        path_read = tuple(key for key in (read.key, read.below) if key)
        shared = min(len(path_read), len(path))
        return read.space == space and path_read[:shared] == path[:shared]

    assert set(watching_tokens(watchers, space, path)) == {
        token for token, listed in watched.items() if any(map(concerns, listed))
    }


def can_reach_by_search(state: ExecutionState, number: int) -> bool:
    """Whether a token may still come, found by following every arc from where something is that may go on.

    That are tokens, runs, and runs that failed: a retry opens them again.
    """
    plan = state.plan
    if (at := state.occupancy.get(number)) is not None and at.pending:
        return True
    starts = {step for step, occupancy in state.occupancy.items() if step != number or occupancy.runs}
    starts |= {run.step.number for run in state.failed_runs.values()}
    for start in starts:
        seen: set[int] = set()
        ahead = [start]
        while ahead:
            following = {plan.by_name[arc.step].number for arc in plan.by_number[ahead.pop()].arcs}
            ahead += following - seen
            seen |= following
        if number in seen:
            return True
    return False


@settings(max_examples=100)
@given(playbooks(), outcomes, choices)
def test_what_is_found_without_a_search_is_what_a_search_finds(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    driver = Chaos(playbook, turns)

    def check(_: list[Event]) -> None:
        state = driver.state
        assert decide_next(state, driver.now) == [], "`handle` has left nothing to decide"
        if state.status != "running" or state.stopping:
            return
        for name in state.parked:
            bodies = decide_admission(state, state.tokens[name], driver.now)
            assert [type(body) for body in bodies] == [TokenParked], "what nobody asked would not be let in"
        for number in state.joins:
            assert state.can_reach(number) == can_reach_by_search(state, number)

    driver.on_append = check
    driver.run_in_order(order).retry_if_failed()


@settings(max_examples=50)
@given(big_texts, st.sampled_from([20, 64, 200, 1000]), big_outcomes, choices)
def test_an_event_that_is_too_small_to_be_looked_at_holds_nothing_large(
    text: str, limit: int, turns: list[int], order: list[int]
) -> None:
    spec = f", result: {{inline_max_bytes: {limit}, preview_max_bytes: 8}}"
    driver = Chaos(load_sound(text.replace("KNOBS", spec)), turns, BIG_OUTCOMES)
    driver.run_in_order(order)
    for event in driver.events:
        if len(encode(event.body)) <= driver.plan.smallest_limit:
            step = driver.plan.by_name.get(getattr(event.body, "step", ""))
            assert externalize(driver.plan, step, event.body, EXECUTION) == (event.body, [])


def record_each_apart(
    state: ExecutionState, bodies: list[EventBody], events: list[Event], now: int, sent: Sequence[bytes] = ()
) -> None:
    """The slow path of `_record`."""
    for body in bodies:
        if not decider._record_apart(state, body, events, now, sent):
            return


def proceed_until_nothing_is_found(state: ExecutionState, events: list[Event], now: int) -> list[Event]:
    """The slow path of `_proceed`."""
    while len(events) < decider.MAX_EVENTS_AT_ONCE and (bodies := decide_next(state, now)):
        decider._record(state, bodies, events, now)
    return events


@settings(max_examples=100)
@given(playbooks() | big_texts.map(lambda text: load_sound(text.replace("KNOBS", ""))), outcomes, choices)
def test_what_is_recorded_as_it_was_decided_is_recorded_as_all_else_is(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    fast = Chaos(playbook, turns, BIG_OUTCOMES).run_in_order(order).retry_if_failed()
    with (
        patch.object(decider, "_record", record_each_apart),
        patch.object(decider, "_proceed", proceed_until_nothing_is_found),
    ):
        slow = Chaos(playbook, turns, BIG_OUTCOMES).run_in_order(order).retry_if_failed()
    assert [event.data for event in fast.events] == [event.data for event in slow.events]
    assert fast.events == slow.events
    assert dump_state(fast.state) == dump_state(slow.state)
    assert fast.stored == slow.stored


@given(st.integers(0, 4_000_000_000_000_000))
def test_a_time_from_the_cache_of_seconds_is_the_time(micros: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)
    assert playbook_time(micros) == moment.isoformat().replace("+00:00", "Z")
