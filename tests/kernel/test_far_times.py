"""Times that no store can hold, and numbers that are none: whoever says them gets an answer, and nothing breaks."""

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from noetl.events.bodies import RunSuspended, StepFailed, StepScheduled, TaskProcessed
from noetl.kernel.pipeline.policy import SECOND
from noetl.model.timestamp import LAST_MOMENT, iso_time, moment_after, seconds_of
from tests.kernel.driver import Driver, error
from tests.kernel.test_pipeline_directives import RETRY, policy

FAR = ["1.0e+300", "\"{{ '1e400' }}\"", '"{{ 10 ** 400 }}"', "10000000000000"]


def test_the_last_moment_can_be_stored_and_written() -> None:
    assert LAST_MOMENT < 2**63
    assert iso_time(LAST_MOMENT) == "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(
    ("seconds", "moment"),
    [
        (1.5, 8_500_000),
        (-1.0, 6_000_000),
        (1e300, LAST_MOMENT),
        (inf, LAST_MOMENT),
        (LAST_MOMENT / SECOND, LAST_MOMENT),
        (-1e300, 0),
        (-inf, 0),
    ],
)
def test_a_moment_is_one_that_there_is(seconds: float, moment: int) -> None:
    assert moment_after(7_000_000, seconds) == moment


@pytest.mark.parametrize(
    ("value", "seconds"), [("1.5", 1.5), (10**400, inf), (-(10**400), -inf), ("1e400", inf)]
)
def test_seconds_are_a_number_however_large(value: object, seconds: float) -> None:
    assert seconds_of(value) == seconds


@pytest.mark.parametrize("value", [nan, "nan", "soon", None, []])
def test_what_is_no_number_is_no_time(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        seconds_of(value)


def started(text: str) -> Driver:
    driver = Driver(text, {"first": error()}).start()
    driver.step()
    return driver


def wait_of(seconds: str) -> Any:
    text = f"- step: start\n  tool: {{kind: wait, seconds: {seconds}}}\n"
    return started(text).bodies(RunSuspended)[0].until


def retry_of(seconds: str) -> Any:
    text = policy(RETRY % f"attempts: 2, delay: {seconds}")
    return started(text).bodies(TaskProcessed)[0].retry_at


def step_timeout_of(seconds: str) -> Any:
    text = f"- step: start\n  spec: {{timeout: {seconds}}}\n  tool: {{kind: wait, signal: go}}\n"
    return started(text).bodies(StepScheduled)[0].deadline


def task_timeout_of(seconds: str) -> Any:
    text = f"- step: start\n  tool: {{kind: wait, signal: go, spec: {{timeout: {seconds}}}}}\n"
    return started(text).bodies(RunSuspended)[0].until


@pytest.mark.parametrize("seconds", FAR)
@pytest.mark.parametrize("deadline_of", [wait_of, retry_of, step_timeout_of, task_timeout_of])
def test_what_is_too_far_away_is_as_far_as_can_be(deadline_of: Callable[[str], Any], seconds: str) -> None:
    assert deadline_of(seconds) == LAST_MOMENT


@pytest.mark.parametrize(
    "then",
    [
        "delay: \"{{ 'nan' }}\"",
        'delay: "{{ 1e308 * 10 - 1e308 * 10 }}"',
        "delay: \"{{ 'Mon, 01 Jan 99999999999999999999 00:00:00 GMT' }}\"",
        'attempts: "{{ 1e308 * 10 }}"',
    ],
)
def test_a_retry_by_a_number_that_is_none_fails_the_pipeline(then: str) -> None:
    (failed,) = Driver(policy(RETRY % then), {"first": error()}).run().bodies(StepFailed)
    assert failed.error.kind == "expression"
