"""What is told about why things happened."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import RunSuspended, TaskStarted, TokenDiscarded
from noetl.events.event import Event
from noetl.kernel.explain.explainer import Explanation, explain
from noetl.kernel.explain.explanation_parts import ReachingStep, RunExplanation, RunWait
from noetl.kernel.expression_reads import PathRead, truncate_value
from noetl.kernel.net.commands import Cancel, Pause, Signal
from noetl.kernel.pipeline.interpreter import pause_run
from noetl.kernel.pipeline.policy import SECOND
from noetl.model.reference import list_chunk, manifest
from tests.golden.golden_files import history
from tests.golden.golden_scenarios import SCENARIOS
from tests.kernel.driver import EXECUTION, Driver, error, run
from tests.kernel.random_playbooks import Chaos, outcomes, playbooks

choices = st.lists(st.integers(0, 1000), max_size=60)


def explain_driver(driver: Driver) -> Explanation:
    explanation = explain(driver.plan, driver.state.execution_id, driver.events)
    assert msgspec.json.decode(msgspec.json.encode(explanation), type=Explanation) == explanation
    return explanation


def runs_of(explanation: Explanation, step: str) -> list[RunExplanation]:
    return [run for run in explanation.runs if run.step == step]


def run_of(explanation: Explanation, step: str) -> RunExplanation:
    (only,) = runs_of(explanation, step)
    return only


@settings(max_examples=40)
@given(playbooks(), outcomes, choices)
def test_every_history_can_be_explained_after_every_append(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    driver = Chaos(playbook, turns)
    appended: list[Event] = []

    def check(events: list[Event]) -> None:
        appended.extend(events)
        if len(appended) > 400:
            return
        explanation = explain(driver.plan, EXECUTION, appended)
        state = driver.state
        msgspec.json.encode(explanation)
        assert len(explanation.runs) == state.scheduled
        assert [token.arrival.token for token in explanation.parked] == list(state.parked)
        assert sum(join.arrived for join in explanation.joins) == sum(
            token.stage == "joined" for token in state.tokens.values()
        )
        assert [token.arrival.token for token in explanation.discarded] == [
            token["token"] for token in state.discarded
        ]
        assert (explanation.failure is None) == (not state.failures)
        assert all(run.waits for run in explanation.runs if run.phase == "suspended")

    driver.on_append = check
    driver.run_in_order(order).retry_if_failed()


@pytest.mark.parametrize("name", SCENARIOS)
def test_golden_histories_can_be_explained_after_every_append(name: str) -> None:
    golden = history(name)
    for end in golden.ends:
        msgspec.json.encode(explain(golden.plan, golden.execution_id, golden.events[:end]))


def golden(name: str) -> Explanation:
    recorded = history(name)
    return explain(recorded.plan, recorded.execution_id, recorded.events)


def test_a_run_names_the_token_the_arc_and_the_step_that_brought_it() -> None:
    load = run_of(golden("chain"), "load")
    (arrival,) = load.arrivals
    assert (arrival.step, arrival.arc, arrival.args) == ("start", 1, {"twice": 24})
    assert arrival.line == 16
    assert load.args == {"mode": "append", "twice": 24}
    assert run_of(golden("chain"), "start").arrivals[0].step is None


def test_routing_names_each_guard_its_verdict_and_what_it_read() -> None:
    routing = run_of(golden("chain"), "start").routing
    assert routing is not None
    none, load = routing.arcs
    assert (none.condition.holds, load.condition.holds, load.selected) == (False, True, True)
    assert none.condition.text == "{{ ctx.rows == 0 }}"
    assert none.condition.reads == (PathRead("ctx.rows", 12),)
    assert load.condition.reads == (PathRead("event.result.twice", 24), PathRead("workload.limit", 20))


def test_arcs_that_were_not_asked_read_nothing_and_one_that_raised_did() -> None:
    text = '- step: start\n  tool: {kind: noop, args: {x: 1}}\n  next: {arcs: [{step: b, when: "{{ 1 / ctx.n > 0 }}"}, {step: b, when: "{{ ctx.m }}"}]}\n- step: b\n  tool: {kind: noop}\n'
    routing = run_of(explain_driver(run(text, ctx={"n": 0})), "start").routing
    assert routing is not None
    assert [arc.condition.reads for arc in routing.arcs] == [(PathRead("ctx.n", 0),), ()]
    assert routing.error is not None
    fine = run_of(explain_driver(run(text, ctx={"n": 1})), "start").routing
    assert fine is not None
    assert [arc.condition.holds for arc in fine.arcs] == [True, None]


def test_admission_says_which_rule_decided_and_what_it_read() -> None:
    explanation = golden("admission_park")
    (gate,) = run_of(explanation, "gate").gates
    assert (gate.verdict, gate.asked) == ("admitted", 4)
    assert [rule.holds for rule in gate.rules] == [False, True]
    assert gate.rules[1].reads == (PathRead("ctx.level", 2), PathRead("steps.level.status", "completed"))
    (lost,) = explanation.discarded
    assert (lost.step, lost.reason, lost.arrival.args) == ("gate", "parked", {"x": 2})
    assert [rule.holds for rule in lost.rules] == [True, None]


def test_a_denied_token_is_told_with_its_rules() -> None:
    explanation = golden("admission_drop_fail")
    (lost,) = explanation.discarded
    assert (lost.step, lost.reason) == ("dropped", "denied")
    assert lost.rules[0].reads == (PathRead("workload.open", missing=True),)
    assert run_of(explanation, "failing").gates[0].verdict == "failed"
    broken = run_of(explanation, "broken").gates[0]
    assert (broken.verdict, broken.rules[0].error[:16]) == ("failed", "division by zero")


def test_tasks_say_which_rules_matched_and_why_they_were_tried_again() -> None:
    explanation = golden("retries")
    (fetch,) = run_of(explanation, "start").tasks
    assert (fetch.attempts, fetch.failed, fetch.retried) == (4, 2, 3)
    assert [(rule.line, rule.do, rule.times) for rule in fetch.rules] == [
        (13, "retry", 2),
        (14, "retry", 1),
        (None, "continue", 1),
    ]
    first, _, third = fetch.retries
    assert first.error is not None
    assert (first.error["kind"], third.result, third.line) == ("connection", "later", 14)
    (send,) = run_of(explanation, "strict").tasks
    assert [(rule.do, rule.times) for rule in send.rules] == [("retry", 1), ("fail", 1)]


def test_lost_workers_and_loops_are_counted() -> None:
    explanation = golden("lost_lease")
    first, loop = explanation.runs
    assert (first.claims, first.lost) == (4, 3)
    assert {task.task: task.redelivered for task in first.tasks} == {"steady": 0, "shaky": 2, "shelter": 0}
    assert loop.loop is not None
    assert (loop.loop.total, loop.loop.succeeded, loop.loop.open) == (3, 3, 0)


def test_the_first_unhandled_failure_is_told_with_its_input_and_place() -> None:
    failure = golden("failures").failure
    assert failure is not None
    assert (failure.step, failure.task, failure.attempt, failure.line) == ("bad", "boom", 1, 9)
    assert failure.input == {"code": "1", "args": {"n": 7}}
    assert failure.error["message"] == "no such column"
    assert failure.iteration is None


def test_the_failure_of_a_loop_names_its_iteration() -> None:
    text = "- step: start\n  loop: {in: \"{{ [7, 8, 9] }}\", iterator: i}\n  tool: [{t: {kind: http, url: 'http://x/{{ iter.i }}'}}]\n"
    failure = explain_driver(run(text, {"t": [1, error()]})).failure
    assert failure is not None
    assert (failure.iteration, failure.input["url"]) == (1, "http://x/8")


def test_a_guard_that_raised_is_a_failure_of_the_router() -> None:
    text = '- step: start\n  tool: {kind: noop, args: {x: 1}}\n  next:\n    arcs: [{step: b, when: "{{ 1 / ctx.n > 0 }}"}]\n- step: b\n  tool: {kind: noop}\n'
    failure = explain_driver(run(text, ctx={"n": 0})).failure
    assert failure is not None
    assert (failure.task, failure.line) == ("", 8)


def test_a_parked_token_is_told_with_the_values_as_they_are_now() -> None:
    text = """
- step: start
  next: {arcs: [{step: gate, args: {x: 1}}]}
- step: gate
  spec: {policy: {admit: {rules: [{when: "{{ ctx.signals.go == args.x }}", then: {allow: true}}], timeout: 60}}}
  tool: {kind: noop}
""".lstrip()
    driver = Driver(text).start()
    (waiting,) = explain_driver(driver).parked
    assert (waiting.step, waiting.mode, waiting.until) == ("gate", "waiting", driver.now + 60 * SECOND)
    assert waiting.rules[0].reads == (PathRead("ctx.signals.go", missing=True), PathRead("args.x", 1))
    driver.submit(Signal("go", 2))
    (still,) = explain_driver(driver).parked
    assert still.rules[0].reads[0] == PathRead("ctx.signals.go", 2)
    assert still.seq > waiting.seq


def test_a_join_says_who_has_come_and_who_may_still_come() -> None:
    recorded = history("join_all")
    for end in recorded.ends:
        explanation = explain(recorded.plan, recorded.execution_id, recorded.events[:end])
        if explanation.joins:
            break
    (join,) = explanation.joins
    assert (join.mode, join.arrived, join.needed) == ("all", 1, None)
    assert [arrival.step for arrival in join.arrivals] == ["b"]
    assert join.waits_for == (ReachingStep(step="a", runs=1), ReachingStep(step="gate", tokens=1))


def test_a_join_of_a_number_says_how_many_it_has_of_how_many() -> None:
    recorded = history("join_count")
    cut = next(event.seq for event in recorded.events if isinstance(event.body, TokenDiscarded)) - 1
    (join,) = explain(recorded.plan, recorded.execution_id, recorded.events[:cut]).joins
    assert (join.mode, join.arrived, join.needed) == ("count", 1, 2)


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("kind: wait, seconds: 9", {"reason": "wait", "until": 1_700_000_009 * SECOND}),
        ("kind: wait, signal: go", {"reason": "signal", "signal": "go"}),
    ],
)
def test_a_suspended_run_says_what_it_waits_for(task: str, expected: dict[str, Any]) -> None:
    driver = Driver(f"- step: start\n  tool: [{{w: {{{task}}}}}]\n").start()
    driver.step()
    start = run_of(explain_driver(driver), "start")
    assert (start.phase, start.waits) == ("suspended", (RunWait(**expected),))


def test_a_run_says_which_task_is_open() -> None:
    driver = run("- step: start\n  tool: [{a: {kind: noop}}, {b: {kind: noop}}]\n")
    _, second = (event.seq for event in driver.events if isinstance(event.body, TaskStarted))
    start = run_of(explain(driver.plan, EXECUTION, driver.events[:second]), "start")
    assert [(task.task, task.open) for task in start.tasks] == [("a", 0), ("b", 1)]
    assert [task.open for task in run_of(explain_driver(driver), "start").tasks] == [0, 0]


def test_a_task_that_waits_is_not_open() -> None:
    driver = Driver("- step: start\n  tool: [{w: {kind: wait, signal: go}}]\n").start()
    driver.step()
    (task,) = run_of(explain_driver(driver), "start").tasks
    assert (task.attempts, task.open) == (1, 0)


def test_who_cancelled_and_why_is_told() -> None:
    driver = Driver("- step: start\n  tool: {kind: noop}\n").start()
    assert explain_driver(driver).cancelled is None
    driver.submit(Cancel(by="ada", reason="enough"))
    cancellation = explain_driver(driver).cancelled
    assert cancellation is not None
    assert (cancellation.by, cancellation.reason) == ("ada", "enough")


def test_a_child_and_a_pause_are_waited_for() -> None:
    driver = run("- step: start\n  tool: [{w: {kind: playbook, path: a/b}}]\n")
    (waits,) = run_of(explain_driver(driver), "start").waits
    (child,) = (body.child for body in driver.bodies(RunSuspended))
    assert (waits.reason, waits.child) == ("child", child)
    paused = Driver("- step: start\n  tool: {kind: noop}\n").start()
    state = paused.claim(paused.state.ready.first)
    paused.submit(Pause())
    suspended = pause_run(state)
    assert suspended is not None
    paused.report(state, suspended)
    explanation = explain_driver(paused)
    assert (explanation.status, run_of(explanation, "start").waits) == ("paused", (RunWait(reason="pause"),))


def test_the_error_of_an_execution_that_ran_out_of_time_is_told() -> None:
    explanation = golden("deadlines")
    assert explanation.error is not None
    assert explanation.error["kind"] == "timeout"
    assert explanation.failure is None


def test_long_values_are_cut() -> None:
    assert truncate_value("x" * 1000) == "x" * 300 + "…"
    assert truncate_value(list(range(30)))[-1] == "… 10 more"
    assert truncate_value({str(number): 1 for number in range(30)})["…"] == "10 more"
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert len(str(truncate_value(deep))) < 50
    wide = [[[[list(range(20))] * 20] * 20] * 20] * 20
    assert len(str(truncate_value(wide))) < 5000


def test_a_list_in_parts_keeps_all_of_them_when_it_is_cut() -> None:
    chunks = [list_chunk(f"execution/{number}", number, number + 1, 9) for number in range(50)]
    stored = manifest(chunks, "x" * 1000, tail=list(range(30)))
    shortened = truncate_value({"rows": stored})["rows"]
    assert shortened["chunks"] == chunks
    assert shortened["tail"] == list(range(30))
    assert len(shortened["preview"]) == 301
