"""What is retried has its time again, and a repaired document says how much that is."""

from typing import Any

import pytest

from noetl.events.bodies import ExecutionRetried, StepScheduled
from noetl.kernel.net.commands import Redrive, Retry, TimerFired
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.state.replay import replay
from noetl.kernel.verify.verification import verify
from tests.kernel.driver import EXECUTION, Driver, error


def timed(execution: str = "timeout: 60", step: str = "timeout: 5") -> str:
    return f"""\
executor: {{kind: local, spec: {{{execution}}}}}
workload: {{patience: 70}}
workflow:
- step: start
  spec: {{{step}}}
  tool: [{{t: {{kind: python, code: "1"}}}}]
"""


def late(text: str, target: str, seconds: int) -> Driver:
    """An execution that has failed because its time, or that of its one run, was up."""
    driver = Driver(text).start()
    driver.now += seconds * SECOND
    driver.submit(TimerFired(target))
    assert (driver.status, driver.error.kind) == ("failed", "timeout")
    driver.now += 1_000 * SECOND
    return driver


def with_document(driver: Driver, text: str) -> Driver:
    """The same execution, retried with another document."""
    other = Driver(text)
    other.state = replay(other.plan, EXECUTION, driver.events)
    other.appends, other.now = list(driver.appends), driver.now
    other.submit(Retry(hash=other.plan.playbook.hash, file="repaired.yaml"))
    return other


def seconds_left(driver: Driver) -> tuple[Any, Any]:
    """Of the execution, and of its run."""
    due = driver.state.deadline, driver.state.runs["r5"].deadline
    first, second = [None if moment is None else (moment - driver.now) / SECOND for moment in due]
    return first, second


@pytest.mark.parametrize(("target", "seconds"), [("", 60), ("r5", 5)])
def test_what_timed_out_has_all_of_its_time_again(target: str, seconds: int) -> None:
    driver = late(timed(), target, seconds)
    driver.submit(Retry())
    assert seconds_left(driver) == (60, 5)
    assert driver.bodies(ExecutionRetried)[0].deadlines == {}
    assert driver.submit(TimerFired(target)) == []
    assert driver.run().status == "completed"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (timed("timeout: 600", "timeout: 50"), (600, 50)),
        (timed('timeout: "{{ workload.patience }}"', 'timeout: "{{ workload.patience * 2 }}"'), (70, 140)),
        (timed("", ""), (60, None)),
        (timed(step='timeout: "{{ workload.nothing }}"'), (60, 5)),
    ],
)
def test_a_repaired_document_says_how_much_time_there_is(text: str, left: tuple[Any, Any]) -> None:
    driver = with_document(late(timed(), "r5", 5), text)
    assert seconds_left(driver) == left
    assert replay(driver.plan, EXECUTION, driver.events) == driver.state
    assert verify(driver.plan, EXECUTION, driver.events).differences == ()
    assert driver.run().status == "completed"


def test_a_second_retry_has_the_time_of_the_repaired_document() -> None:
    driver = with_document(late(timed(), "", 60), timed("timeout: 600", "timeout: 50"))
    driver.now += 600 * SECOND
    driver.submit(TimerFired())
    driver.submit(Retry())
    assert seconds_left(driver) == (600, 50)


BEST_EFFORT = """\
- step: start
  spec: {timeout: 5}
  loop: {in: "{{ [0, 1, 2] }}", iterator: i, spec: {policy: {failure: {mode: best_effort}}}}
  tool: [{t: {kind: python, code: "1"}}]
  next: {arcs: [{step: end, args: {loop: "{{ event.loop }}"}}]}
- step: end
  tool: [{e: {kind: noop}}]
"""


def failures(driver: Driver) -> tuple[int, list[int]]:
    """What the arcs saw last of the loop: how many iterations failed, and which."""
    loop = driver.bodies(StepScheduled)[-1].args["loop"]
    return loop["failed"], [entry["index"] for entry in loop["failures"]]


def test_a_retried_loop_remembers_the_iterations_that_failed_in_it() -> None:
    driver = Driver(BEST_EFFORT, {"t": [error(), 1]}).start()
    run = driver.claim(driver.state.ready.first)
    while run.loop is None or not run.loop.failed:
        driver.move(run)
    driver.now += 5 * SECOND
    driver.submit(TimerFired(run.id))
    assert driver.run().status == "failed"
    driver.submit(Retry())
    assert driver.run().status == "completed"
    assert failures(driver) == (1, [0])


def test_a_redriven_loop_forgets_the_failures_of_iterations_that_run_again() -> None:
    driver = Driver(BEST_EFFORT, {"t": [error(), error(), 1, error(), 1]}).run()
    assert failures(driver) == (2, [0, 1])
    driver.submit(Redrive())
    assert driver.run().status == "completed"
    assert failures(driver) == (1, [0])
