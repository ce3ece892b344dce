"""How a step stands: the worst of its runs counts, what is under way counts first."""

import json
from typing import Any

import pytest

from noetl.kernel.net.commands import Cancel, Pause, Retry, TimerFired
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.state.replay import dump_state, load_state
from tests.kernel.driver import Driver, Fault

TWO_RUNS = """\
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: work, args: {n: 0}}, {step: work, args: {n: 1}}]}
  - step: work
    tool: {name: inv, kind: python, args: {n: "{{ args.n }}"}, code: "result = 1 / n"}
"""
AGAIN = """\
workflow:
  - step: start
    tool: {name: poll, kind: noop}
    next:
      arcs:
        - {step: start, when: "{{ event.name == 'step.failed' }}"}
        - {step: look}
  - step: look
    tool: {name: look, kind: noop, args: {last: "{{ steps.start.status }}"}}
"""


def statuses(driver: Driver) -> dict[str, str]:
    return dict(driver.state.step_statuses())


@pytest.mark.parametrize("turns", [[Fault("python"), 1], [1, Fault("python")]])
def test_one_failed_run_fails_the_step_whichever_it_is(turns: list[Any]) -> None:
    driver = Driver(TWO_RUNS, {"inv": turns}).run()
    assert driver.state.status == "failed"
    assert statuses(driver) == {"start": "completed", "work": "failed"}
    assert (driver.state.summaries["work"].runs, driver.state.summaries["work"].failed) == (2, 1)


def test_a_failure_that_an_arc_handled_is_still_seen_but_expressions_read_the_last() -> None:
    driver = Driver(AGAIN, {"poll": [Fault("sql"), 1]}).run()
    assert driver.state.status == "completed"
    assert statuses(driver)["start"] == "failed"
    assert driver.calls[-1].inputs["args"] == {"last": "completed"}


def test_a_run_that_a_retry_opened_again_counts_by_its_new_end() -> None:
    driver = Driver(TWO_RUNS, {"inv": [Fault("python"), 1, Fault("sql"), 2]}).run()
    driver.submit(Retry("me"))
    assert statuses(driver)["work"] == "running"
    driver.run()
    assert statuses(driver)["work"] == "failed"
    driver.submit(Retry("me"))
    driver.run()
    assert (driver.state.status, statuses(driver)["work"]) == ("completed", "completed")


def test_a_step_whose_arcs_could_not_be_followed_has_failed() -> None:
    text = """\
workflow:
  - step: start
    tool: {name: a, kind: noop}
    next: {arcs: [{step: end, when: "{{ event.result.n / 0 > 1 }}"}]}
  - step: end
    tool: {kind: noop}
"""
    driver = Driver(text, {"a": {"n": 1}}).run()
    assert driver.state.failures[0].error.details["step"] == "start"
    assert statuses(driver) == {"start": "failed"}
    driver.submit(Retry("me"))
    driver.run()
    assert driver.state.summaries["start"].failed == 1


def test_what_is_under_way_counts_before_what_has_ended() -> None:
    text = TWO_RUNS.replace("kind: python", "kind: wait").replace('code: "result = 1 / n"', "signal: go")
    driver = Driver(text).run()
    assert statuses(driver)["work"] == "waiting"
    driver.submit(Cancel())
    assert statuses(driver)["work"] == "cancelled"
    driver = Driver(TWO_RUNS, {"inv": [Fault("python"), 1]}).start()
    driver.work(driver.claim(driver.state.ready.first))
    assert statuses(driver)["work"] == "running"
    driver.submit(Pause())
    assert statuses(driver)["work"] == "running"


def test_running_wins_over_waiting_whichever_began_first() -> None:
    text = """\
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: work, args: {n: 0}}, {step: work, args: {n: 1}}]}
  - step: work
    tool: {name: hold, kind: wait, signal: go}
"""
    driver = Driver(text).start()
    first, second = list(driver.state.ready)
    driver.work(driver.claim(first))
    assert statuses(driver)["work"] == "running"
    driver.work(driver.claim(second))
    assert statuses(driver)["work"] == "waiting"


def test_a_step_that_ran_and_then_denied_a_token_does_not_wait_for_ever() -> None:
    text = """\
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: gate, args: {n: 0}}, {step: gate, args: {n: 1}}]}
  - step: gate
    spec: {policy: {admit: {rules: [{when: "{{ args.n == 0 }}", then: {allow: true}}]}}}
    tool: {name: pass, kind: noop}
"""
    driver = Driver(text).run()
    assert driver.state.discarded
    assert statuses(driver)["gate"] == "completed"


def test_a_snapshot_remembers_what_failed() -> None:
    driver = Driver(AGAIN, {"poll": [Fault("sql"), 1]}).run()
    copy = load_state(driver.plan, json.loads(json.dumps(dump_state(driver.state))))
    assert copy.step_statuses() == driver.state.step_statuses()


def test_a_token_that_waits_at_the_gate_of_a_step_that_has_run_makes_it_wait() -> None:
    text = """\
workflow:
  - step: start
    next: {spec: {mode: inclusive}, arcs: [{step: gate, args: {n: 0}}, {step: gate, args: {n: 1}}, {step: hold}]}
  - step: gate
    spec: {policy: {admit: {rules: [{when: "{{ args.n == 0 }}", then: {allow: true}}]}}}
    tool: {name: pass, kind: noop}
  - step: hold
    tool: {name: hold, kind: wait, signal: go}
"""
    driver = Driver(text).run()
    assert statuses(driver) == {"start": "completed", "gate": "waiting", "hold": "waiting"}


def test_what_a_retry_took_the_place_of_counts_no_longer() -> None:
    text = """\
workflow:
  - step: start
    tool: {name: a, kind: noop}
    next: {arcs: [{step: after}]}
  - step: after
    tool: {name: b, kind: noop}
"""
    driver = Driver(text, {"a": [Fault("sql"), 1], "b": [Fault("sql"), 2]}).run()
    assert statuses(driver) == {"start": "failed", "after": "failed"}
    driver.submit(Retry("me"))
    driver.run()
    assert driver.state.status == "completed"
    assert statuses(driver) == {"start": "completed", "after": "completed"}


def test_what_a_limit_cut_short_counts_by_how_it_ends_after_a_retry() -> None:
    text = "executor: {spec: {timeout: 10}}\n" + TWO_RUNS
    driver = Driver(text).start()
    first, _ = list(driver.state.ready)
    driver.work(driver.claim(first))
    driver.now += 11 * SECOND
    driver.submit(TimerFired())
    assert (driver.state.status, statuses(driver)["work"]) == ("failed", "cancelled")
    driver.submit(Retry("me"))
    driver.run()
    assert (driver.state.status, statuses(driver)) == (
        "completed",
        {"start": "completed", "work": "completed"},
    )
    assert driver.state.summaries["work"].failed == driver.state.summaries["work"].cancelled == 0
