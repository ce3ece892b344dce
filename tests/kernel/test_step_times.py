"""How long a step was worked on: not while nobody ran it."""

from noetl.kernel.explain.explainer import explain
from noetl.kernel.net.commands import Fork, LeaseLost, Pause, Resume, Retry, Signal
from noetl.kernel.pipeline.interpreter import pause_run
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.state.replay import replay
from tests.kernel.driver import EXECUTION, Driver, Fault

TWO = """\
workflow:
  - step: start
    tool: [{name: a, kind: noop}, {name: b, kind: noop}]
"""
HOLD = """\
workflow:
  - step: start
    tool: {name: hold, kind: wait, signal: go}
"""


def seconds(driver: Driver, step: str = "start") -> float:
    return driver.state.step_times(driver.now)[step] / SECOND


def claimed(text: str) -> Driver:
    """The first run is taken up after ten seconds in which nobody had time for it."""
    driver = Driver(text).start()
    driver.now += 10 * SECOND
    driver.claim(driver.state.ready.first)
    return driver


def test_the_time_counts_from_the_claim_to_the_end() -> None:
    driver = claimed(TWO)
    driver.now += 2 * SECOND
    assert seconds(driver) == 2
    (run,) = driver.state.runs.values()
    driver.work(run)
    driver.now += SECOND
    assert (driver.state.status, seconds(driver)) == ("completed", 2)


def test_what_passes_after_a_run_was_given_back_does_not_count() -> None:
    driver = claimed(TWO)
    (run,) = driver.state.runs.values()
    driver.now += 2 * SECOND
    driver.submit(LeaseLost(run.id, run.fence, "released"))
    driver.now += 3600 * SECOND
    assert seconds(driver) == 2
    driver.claim(run.id)
    driver.now += 3 * SECOND
    driver.work(run)
    assert (driver.state.status, seconds(driver)) == ("completed", 5)
    explanation = explain(driver.plan, EXECUTION, [event for events in driver.appends for event in events])
    assert [(run.lost, run.worked) for run in explanation.runs] == [(0, 5 * SECOND)]


def test_a_lost_worker_worked_until_the_last_that_was_heard_of_it() -> None:
    driver = claimed(TWO)
    (run,) = driver.state.runs.values()
    driver.now += 2 * SECOND
    driver.submit(Signal("ping"))
    driver.now += 3600 * SECOND
    driver.submit(LeaseLost(run.id, run.fence))
    assert seconds(driver) == 2
    explanation = explain(driver.plan, EXECUTION, [event for events in driver.appends for event in events])
    assert explanation.runs[0].lost == 1


def test_what_a_step_waits_for_is_its_own_time() -> None:
    driver = claimed(HOLD)
    (run,) = driver.state.runs.values()
    driver.work(run)
    assert run.phase == "suspended"
    driver.now += 5 * SECOND
    assert seconds(driver) == 5
    driver.submit(Signal("go"))
    driver.now += SECOND
    driver.run()
    assert (driver.state.status, seconds(driver)) == ("completed", 6)


def test_a_pause_is_not_the_time_of_a_step() -> None:
    driver = claimed(TWO)
    (run,) = driver.state.runs.values()
    driver.now += 6 * SECOND
    driver.submit(Pause())
    body = pause_run(run)
    assert body is not None
    driver.report(run, body)
    driver.now += 3600 * SECOND
    assert seconds(driver) == 6
    driver.submit(Resume())
    driver.run()
    assert (driver.state.status, seconds(driver)) == ("completed", 6)


def test_a_retry_adds_what_it_takes_and_runs_of_one_step_add_up() -> None:
    driver = Driver(TWO, {"a": [Fault("sql"), 1]}).start()
    for number in (1, 2):
        (run,) = driver.state.runs.values()
        driver.claim(run.id)
        driver.now += number * SECOND
        driver.work(run)
        driver.now += 3600 * SECOND
        if number == 1:
            driver.submit(Retry("me"))
    assert (driver.state.status, seconds(driver)) == ("completed", 3)


def test_a_fork_does_not_count_what_passed_before_it_was_made() -> None:
    for text, expected in ((TWO, 2), (HOLD, 6)):
        original = claimed(text)
        (run,) = original.state.runs.values()
        if text is HOLD:
            original.work(run)
        original.now += 2 * SECOND
        original.submit(Signal("ping"))
        fork = Driver(text)
        fork.state = replay(original.plan, "f", [event for events in original.appends for event in events])
        fork.now = original.now + 3600 * SECOND
        fork.submit(Fork(EXECUTION, fork.state.version, shift=3600 * SECOND))
        fork.now += 4 * SECOND
        assert seconds(fork) == expected
