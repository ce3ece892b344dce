"""What failed is retried while other branches run."""

import pytest

from noetl.events.bodies import ExecutionRetried, StepFailed, StepScheduled
from noetl.kernel.errors import NotOwner, Refused
from noetl.kernel.net.commands import Cancel, CompleteStep, Pause, Retry
from noetl.kernel.pipeline.policy import SECOND, judge
from noetl.kernel.state.run_state import RunState
from noetl.model.outcome import succeeded
from tests.kernel.driver import Driver, Script, error, run
from tests.kernel.test_held_back import check_history, final, guarded
from tests.kernel.test_join_modes import fan, meets

HANDLES_LATE = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: work}, {step: long}]}
- step: work
  tool: [{w: {kind: python, code: "1"}}]
  next: {arcs: [{step: after}]}
- step: after
  set: {ctx.seen: "{{ event.name }}"}
  tool: [{x: {kind: python, code: "1"}}]
  next: {arcs: [{step: end}]}
- step: end
  tool: [{e: {kind: noop}}]
- step: long
  tool: [{l: {kind: python, code: "1"}}]
""".lstrip()
"""What is behind `work` runs though it failed; `long` runs all the while."""


def failed_beside(text: str, script: Script, failing: str, running: str) -> tuple[Driver, RunState]:
    """An execution in which one step has failed while the other is owned by somebody."""
    driver = Driver(text, script).start()
    owner = driver.claim(run_at(driver, running))
    driver.work(driver.claim(run_at(driver, failing)))
    assert (driver.status, list(driver.state.failed_runs)) == ("running", [driver.state.failures[0].run])
    return driver, owner


def run_at(driver: Driver, step: str) -> str:
    (name,) = [run.id for run in driver.state.runs.values() if run.step.name == step]
    return name


@pytest.mark.parametrize("text", [fan("all"), guarded(fan("all"))])
def test_a_branch_that_failed_is_retried_while_another_runs(text: str) -> None:
    driver, owner = failed_beside(text, {"tb": [error(), 1]}, "b", "a")
    driver.submit(Retry("me"))
    (retried,) = driver.bodies(ExecutionRetried)
    assert (retried.steps, retried.by) == (("b",), "me")
    driver.work(owner)
    driver.run()
    assert (driver.status, meets(driver)) == ("completed", 1)
    assert driver.state.result["args"] == {
        "a": 1,
        "b": 2,
        "c": 3,
        "last": driver.state.result["args"]["last"],
    }
    assert sorted(driver.ran) == ["m", "ta", "tb", "tb", "tc"]
    check_history(driver)


def test_the_run_reopens_at_its_failed_task_with_its_time_anew() -> None:
    text = fan("all").replace("- step: b\n", "- step: b\n  spec: {timeout: 5}\n")
    driver, _ = failed_beside(text, {"tb": [error(), 1]}, "b", "a")
    driver.now += 60 * SECOND
    driver.submit(Retry())
    reopened = driver.state.runs[run_at(driver, "b")]
    assert (reopened.phase, reopened.deadline) == ("ready", driver.now + 5 * SECOND)


def test_a_branch_that_fails_again_fails_the_execution() -> None:
    driver, owner = failed_beside(fan("all"), {"tb": error()}, "b", "a")
    driver.submit(Retry())
    driver.work(owner)
    assert (driver.run().status, driver.error.details["step"]) == ("failed", "b")
    assert [failure.error.details["step"] for failure in driver.state.failures] == ["b"]
    check_history(driver)


def test_a_run_under_way_that_came_of_the_failure_is_cancelled_and_routes_nothing() -> None:
    driver, long = failed_beside(HANDLES_LATE, {"w": [error(), 1], "x": "late"}, "work", "long")
    superseded = driver.claim(run_at(driver, "after"))
    move = driver.advance(superseded)
    driver.report(superseded, *move.begins)  # type: ignore[union-attr]  # it wants to run its task
    driver.submit(Retry())
    (retried,) = driver.bodies(ExecutionRetried)
    assert (retried.steps, retried.superseded, retried.ends) == (("work",), ("after",), (superseded.id,))
    assert [(body.run, body.error.kind) for body in driver.bodies(StepFailed)][-1] == (
        superseded.id,
        "cancelled",
    )
    assert driver.ctx == {}, "what is cancelled writes nothing"
    with pytest.raises(NotOwner):
        driver.report(superseded, judge(superseded, 0, succeeded(1), driver.now))
    driver.work(long)
    assert driver.run().status == "completed"
    assert [body.step for body in driver.bodies(StepScheduled)].count("end") == 1
    assert driver.state.step_statuses()["after"] == "completed"
    assert driver.ctx == {"seen": "step.done"}
    check_history(driver)


def test_a_run_that_nobody_owns_and_came_of_the_failure_goes_as_well() -> None:
    driver, long = failed_beside(HANDLES_LATE, {"w": [error(), 1]}, "work", "long")
    superseded = run_at(driver, "after")
    driver.submit(Retry())
    assert superseded not in driver.state.runs
    driver.work(long)
    assert (driver.run().status, driver.ran) == ("completed", ["w", "l", "w", "x", "e"])
    check_history(driver)


def test_what_is_ended_by_hand_takes_back_what_runs_because_it_failed() -> None:
    driver, long = failed_beside(HANDLES_LATE, {"w": error()}, "work", "long")
    superseded = driver.claim(run_at(driver, "after"))
    driver.submit(CompleteStep("work", 7))
    assert superseded.id not in driver.state.runs
    driver.work(long)
    assert (driver.run().status, driver.ran) == ("completed", ["w", "l", "x", "e"])
    check_history(driver)


def test_without_a_failure_there_is_nothing_to_retry() -> None:
    driver = Driver(fan("all")).start()
    with pytest.raises(Refused, match="this one is running: nothing has failed"):
        driver.submit(Retry())


def test_what_is_paused_or_about_to_end_is_not_retried() -> None:
    driver, _ = failed_beside(fan("all"), {"tb": error()}, "b", "a")
    driver.submit(Pause())
    with pytest.raises(Refused, match="resume it first"):
        driver.submit(Retry())
    driver.submit(Cancel())
    with pytest.raises(Refused, match="about to end"):
        driver.submit(Retry())


def test_a_final_step_that_runs_is_waited_for() -> None:
    driver = Driver(
        final("- step: start\n  tool: [{t: {kind: python, code: '1'}}]\n"), {"t": [error(), 1]}
    ).start()
    driver.work(driver.claim(run_at(driver, "start")))
    assert driver.status == "running"
    with pytest.raises(Refused, match="when the execution has ended"):
        driver.submit(Retry())
    assert driver.run().status == "failed"
    driver.submit(Retry())
    assert driver.run().status == "completed"


def test_an_execution_of_the_first_rules_is_retried_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.kernel.net.execution_request.DECIDER", 1)
    driver = Driver(guarded(fan("all")), {"tb": [error(), 1]}).start()
    driver.claim(run_at(driver, "a"))
    driver.work(driver.claim(run_at(driver, "b")))
    with pytest.raises(Refused, match="when the execution has ended"):
        driver.submit(Retry())


def test_a_retry_at_the_end_cancels_nothing() -> None:
    driver = run(HANDLES_LATE, {"w": [error(), 1]})
    driver.submit(Retry())
    assert driver.bodies(ExecutionRetried)[0].ends == ()
    assert driver.run().status == "completed"
