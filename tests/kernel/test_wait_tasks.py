"""Waiting is one mechanism: timers, signals, children."""

import pytest

from noetl.events.bodies import RunResumed, RunSuspended, TaskProcessed, TaskStarted
from noetl.kernel.net.commands import ChildEnded, Signal, TimerFired
from noetl.kernel.pipeline.policy import SECOND
from noetl.model.outcome import ErrorInfo
from tests.kernel.driver import Driver, run


def waiting(inputs: str, spec: str = "") -> str:
    return f"- step: start\n  tool:\n    - w: {{{inputs}{spec}}}\n    - after: {{kind: noop}}\n"


def test_a_wait_is_durable_and_holds_no_worker() -> None:
    driver = Driver(waiting("kind: wait, seconds: 3600")).start()
    driver.step()
    (suspended,) = driver.bodies(RunSuspended)
    assert (suspended.reason, suspended.until) == ("wait", driver.now + 3600 * SECOND)
    assert list(driver.state.claimed_runs()) == []
    assert driver.submit(TimerFired(suspended.run)) == [], "too early"
    assert driver.run().state.status == "completed"
    assert driver.names.count("TaskStarted") == 2


def test_a_wait_until_a_time() -> None:
    driver = run(waiting("kind: wait, until: '2023-11-14T23:00:00Z'"))
    assert driver.bodies(RunSuspended)[0].until == 1_700_002_800 * SECOND


def test_a_time_that_is_none_is_an_input_error() -> None:
    driver = run(waiting("kind: wait, until: \"{{ 'soon' }}\""))
    assert driver.error.kind == "input"


def test_a_signal_ends_a_wait_and_its_payload_is_the_result() -> None:
    driver = run(waiting("kind: wait, signal: go"))
    assert driver.state.status == "running"
    driver.submit(Signal("go", {"by": "me"}))
    assert driver.run().state.result == {"by": "me"}
    assert driver.ctx == {"signals": {"go": {"by": "me"}}}


def test_a_signal_sent_before_is_kept_for_the_wait() -> None:
    driver = Driver(waiting("kind: wait, signal: go")).start()
    driver.submit(Signal("go", 1))
    assert driver.run().state.result == 1


def test_signals_are_queued_and_each_wait_takes_the_oldest() -> None:
    text = '- step: start\n  loop: {in: "{{ [0, 1] }}", iterator: i, spec: {mode: parallel}}\n  tool: [{w: {kind: wait, signal: go}}]\n'
    driver = Driver(text).start()
    driver.submit(Signal("go", "first"))
    driver.run()
    assert driver.state.status == "running"
    driver.submit(Signal("go", "second"))
    assert driver.run().state.result == ["first", "second"]
    assert driver.state.signals == {}


def test_a_wait_for_a_signal_may_time_out() -> None:
    driver = run(waiting("kind: wait, signal: go", ", spec: {timeout: 10}"))
    assert driver.error.kind == "timeout"
    assert driver.state.listeners == {}


CHILD = "kind: playbook, path: a/child, args: {x: 1}"


def ended(driver: Driver, **how: object) -> ChildEnded:
    (run_state,) = driver.state.runs.values()
    suspension = run_state.frames[0].suspension
    assert suspension is not None
    return ChildEnded(run_state.id, 0, suspension.child, **how)  # type: ignore[arg-type]  # each test says its own


def test_a_child_is_waited_for_and_its_result_is_the_tasks() -> None:
    driver = run(waiting(CHILD))
    command = ended(driver, status="completed", result=9)
    assert command.child[:13] == driver.state.execution_id[:13], "the first 48 bits are the parent's"
    driver.submit(command)
    assert driver.submit(command) == []
    assert driver.run().state.result == 9
    outcome = driver.bodies(TaskProcessed)[0].outcome
    assert outcome.helpers == {"playbook": {"execution_id": command.child, "status": "completed"}}


def test_a_failed_child_fails_the_task_unless_told_otherwise() -> None:
    failure = ErrorInfo(kind="sql", message="no table")
    driver = run(waiting(CHILD))
    driver.submit(ended(driver, status="failed", error=failure))
    driver.run()
    assert driver.error.kind == "child_failed"
    assert "no table" in driver.error.message
    tolerant = run(waiting(CHILD, ", spec: {on_failure: continue}"))
    tolerant.submit(ended(tolerant, status="failed", error=failure))
    assert tolerant.run().state.status == "completed"


def test_a_child_need_not_be_waited_for() -> None:
    driver = run(waiting(CHILD, ", spec: {wait: false}"))
    assert driver.state.status == "completed"
    assert driver.bodies(RunSuspended) == []
    assert set(driver.state.result) == {"execution_id"}


def test_a_retried_child_is_another_child() -> None:
    rule = "{when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 2}}"
    driver = run(waiting(CHILD, f", spec: {{policy: {{rules: [{rule}]}}}}"))
    first = ended(driver, status="failed")
    driver.submit(first)
    driver.run()
    second = ended(driver, status="completed")
    assert first.child != second.child


def test_in_a_loop_only_the_iteration_suspends_and_keeps_its_place() -> None:
    text = """
- step: start
  loop: {in: "{{ [10, 0, 20, 0] }}", iterator: s, spec: {mode: parallel, max_in_flight: 2}}
  tool:
    - w: {kind: wait, seconds: "{{ iter.s }}"}
    - t: {kind: python, code: "1"}
""".lstrip()
    driver = Driver(text).start()
    driver.step()
    (run_state,) = driver.state.runs.values()
    assert run_state.phase == "suspended"
    assert list(run_state.frames) == [0, 1], "two places, both suspended"
    driver.run()
    assert driver.state.status == "completed"
    assert driver.bodies(RunResumed)[0].iteration == 1


@pytest.mark.parametrize("losses", [1, 2, 3])
def test_an_attempt_lost_with_its_worker_is_delivered_again(losses: int) -> None:
    from noetl.kernel.net.commands import Claim, LeaseLost
    from noetl.kernel.pipeline.interpreter import advance
    from noetl.kernel.pipeline.moves import RunTask

    driver = Driver("- step: start\n  tool: [{t: {kind: python, code: '1'}}]\n").start()
    keys = set()
    name = driver.state.ready.first
    for _ in range(losses):
        driver.submit(Claim(name))
        run_state = driver.state.runs[name]
        move = advance(run_state, driver.now)
        assert isinstance(move, RunTask)
        keys.add(move.idempotency_key)
        driver.report(run_state, move.started)
        driver.submit(LeaseLost(name, run_state.fence))
    driver.run()
    starts = driver.bodies(TaskStarted)
    assert {body.attempt for body in starts} == {1}
    if losses < 3:
        assert [body.redelivery for body in starts] == list(range(losses + 1))
        assert driver.state.status == "completed"
        assert keys == {driver.calls[0].idempotency_key}
    else:
        assert driver.error.kind == "worker_lost"
        assert driver.calls == []


def test_the_knobs_of_a_wait_may_be_expressions() -> None:
    text = "workload: {patience: 3}\nworkflow:\n- step: start\n  tool: {kind: wait, signal: go, spec: {timeout: '{{ workload.patience }}'}}\n"
    driver = run(text)
    assert driver.state.error is not None
    assert driver.state.error.kind == "timeout"
    (suspended,) = driver.bodies(RunSuspended)
    assert suspended.until == driver.bodies(TaskStarted)[0].at + 3_000_000


def test_a_timeout_that_is_no_number_fails_the_task() -> None:
    text = "workload: {patience: soon}\nworkflow:\n- step: start\n  tool: {kind: wait, signal: go, spec: {timeout: '{{ workload.patience }}'}}\n"
    driver = run(text)
    assert driver.state.error is not None
    assert "number of seconds" in driver.state.error.message
