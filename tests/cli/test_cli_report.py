"""How the end of an execution is told."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from noetl.cli.format import duration_text, yaml_lines
from noetl.engine.summary import execution_json
from noetl.events.bodies import TaskStarted
from noetl.events.event import Event
from noetl.kernel.net.commands import Cancel
from noetl.kernel.pipeline.policy import SECOND
from noetl.model.outcome import ErrorInfo, Outcome
from tests.cli.execution_display import drive, report_of
from tests.kernel.driver import EXECUTION, Driver, Fault, error
from tests.playbooks import HEADER, step

FAILING = step(
    """
    tool:
      - name: fetch
        kind: tool
        url: "http://example.org/{{ workload.id | default(7) }}"
        headers: {authorization: SECRET}
      - name: rest
        kind: noop
    next: {arcs: [{step: end}]}
    """
) + step("tool: {kind: noop}", "end")


def test_the_json_of_a_completed_execution() -> None:
    driver = Driver(
        HEADER.replace("docs/page", "docs/page, version: 1.2.0") + "workflow:\n" + FAILING,
        {"fetch": 3},
        kinds=["tool"],
    )
    driver.start(ctx={"a": 1})
    driver.now += 1_500_999
    driver.run()
    assert execution_json(driver.state) == {
        "execution_id": EXECUTION,
        "playbook": "docs/page",
        "version": "1.2.0",
        "status": "completed",
        "result": 3,
        "ctx": {"a": 1},
        "error": None,
        "duration_ms": 1500,
        "discarded": [],
        "waiting": [],
        "steps": {"start": {"status": "completed", "runs": 1}, "end": {"status": "completed", "runs": 1}},
        "forked_from": None,
        "warnings": [],
    }


def test_the_error_is_that_of_the_first_unhandled_failure() -> None:
    driver = drive(FAILING, {"fetch": error("connection", "it broke")}, workload={"id": 7})
    document = execution_json(driver.state)
    assert (document["status"], document["result"]) == ("failed", None)
    assert document["error"] == {
        "step": "start",
        "task": "fetch",
        "attempt": 1,
        "kind": "connection",
        "message": "it broke",
    }
    assert document["steps"]["start"]["status"] == "failed"


def test_an_error_outside_of_steps_has_no_place() -> None:
    driver = drive(
        "executor: {kind: local, spec: {output: '{{ ctx.none.x }}'}}\nworkflow:\n"
        + step("tool: {kind: noop}")
    )
    error = execution_json(driver.state)["error"]
    assert (error["step"], error["task"], error["attempt"], error["kind"]) == (None, None, None, "expression")
    assert report_of(driver, "").ending().splitlines()[1] == "  expression"


def test_an_execution_that_is_not_over_has_its_error_and_its_time_so_far() -> None:
    text = (
        step(
            """
        next: {spec: {mode: inclusive}, arcs: [{step: bad}, {step: hold}]}
        """
        )
        + step("tool: {name: fetch, kind: tool}", "bad")
        + step("tool: {kind: wait, signal: go}", "hold")
    )
    driver = drive(text, {"fetch": Fault("sql")})
    driver.now += SECOND
    document = execution_json(driver.state, last_ts=driver.now)
    assert (document["status"], document["duration_ms"], document["error"]["step"]) == (
        "running",
        1000,
        "bad",
    )
    assert document["steps"]["hold"] == {"status": "waiting", "runs": 1}
    assert report_of(driver, text).ending().startswith("running, ")


def test_discarded_tokens_are_listed_and_warned_about_but_not_those_of_a_join() -> None:
    text = step(
        """
        next: {spec: {mode: inclusive}, arcs: [{step: one}, {step: one}, {step: two}, {step: two}]}
        """
    )
    text += step("spec: {policy: {join: any}}\ntool: {kind: noop}", "one")
    text += step(
        """
        spec: {policy: {admit: {rules: [{when: "{{ ctx.ok }}", then: {allow: true}}]}}}
        tool: {kind: noop}
        """,
        "two",
    )
    driver = drive(text)
    document = execution_json(driver.state)
    assert document["discarded"] == [{"step": "two", "reason": "parked"}] * 2
    assert document["steps"]["two"] == {"status": "not_admitted", "runs": 0}
    assert report_of(driver, text).ending().splitlines()[0] == (
        "warning: 2 tokens for step `two` discarded: it was not admitted before the end"
    )


def mask(driver: Driver) -> None:
    """Records a marker where a credential was."""
    for append in driver.appends:
        for number, event in enumerate(append):
            if isinstance(event.body, TaskStarted) and event.body.task == "fetch":
                marker = {"$noetl": "secret", "name": "key"}
                task_input = {**event.body.input, "headers": {"authorization": marker}}
                append[number] = Event(event.seq, event.ts, replace(event.body, input=task_input))


def test_a_failure_is_told_with_all_that_helps() -> None:
    broken = Outcome(
        status="error",
        error=ErrorInfo(kind="python", message="ValueError: no\x1b[2J\ngood"),
        helpers={"py": {"traceback": 'Traceback:\n  File "<code>", line 1\nValueError: no\x1b[2J'}},
    )
    driver = drive(FAILING, {"fetch": broken}, workload={"id": 7})
    mask(driver)
    assert report_of(driver, FAILING).ending().splitlines() == [
        f"failed after 0.00 s: docs/page {EXECUTION}",
        "  step `start`, task `fetch`, attempt 1: python",
        "    ValueError: no␛[2J",
        "    good",
        "",
        "  playbook.yaml:7:13",
        "      7 |     - name: fetch",
        "        |             ^",
        "",
        "  input:",
        "    url: http://example.org/7",
        "    headers:",
        "      authorization: ***",
        "",
        "  traceback:",
        "    Traceback:",
        '      File "<code>", line 1',
        "    ValueError: no␛[2J",
        "",
        f"  noetl executions retry {EXECUTION} --playbook FILE  goes on from what failed, with the playbook repaired",
        f"  noetl executions retry {EXECUTION}                  goes on with the same one, once the cause is gone",
        f"  noetl executions show {EXECUTION}                   what happened",
    ]


FAILURES = {
    "an exception in code": ("python", False, ["--playbook", ""]),
    "an undefined name": ("expression", False, ["--playbook"]),
    "a wrong input": ("input", False, ["--playbook"]),
    "an input that may pass": ("input", True, [""]),
    "a status of a server": ("http_status", False, [""]),
    "a connection": ("connection", True, [""]),
    "an exit code": ("process_exit", False, [""]),
}


@pytest.mark.parametrize("loop", [False, True], ids=["step", "loop"])
@pytest.mark.parametrize(("kind", "retryable", "flags"), FAILURES.values(), ids=FAILURES)
def test_what_is_recommended_after_a_failure_can_help(
    kind: Any, retryable: bool, flags: list[str], loop: bool
) -> None:
    text = (
        step(
            """
        loop: {in: [a], iterator: item}
        tool: {name: fetch, kind: tool}
        """
        )
        if loop
        else FAILING
    )
    failure = Outcome(status="error", error=ErrorInfo(kind=kind, message="no", retryable=retryable))
    ending = report_of(drive(text, {"fetch": failure}, workload={"id": 7}), text).ending()
    commands = re.findall(rf"^  noetl executions retry {EXECUTION} (--playbook|)", ending, re.MULTILINE)
    assert commands == flags


def test_of_a_loop_the_iteration_that_failed_is_told() -> None:
    text = step(
        """
        loop: {in: [a, b, c], iterator: item}
        tool: {name: fetch, kind: tool, url: "{{ iter.item }}"}
        """
    )
    driver = drive(text, {"fetch": lambda call: error() if call.iteration == 1 else 1})
    ending = report_of(driver, text).ending()
    assert "  step `start`, iteration 1, task `fetch`, attempt 1: iteration_failed" in ending
    assert "    url: b" in ending


def test_inputs_that_failed_to_render_are_not_those_of_another_task() -> None:
    text = step(
        """
        tool:
          - {name: one, kind: tool, url: good}
          - {name: two, kind: tool, url: "{{ ctx.none.x }}"}
        """
    )
    driver = drive(text)
    ending = report_of(driver, text).ending()
    assert "task `two`" in ending
    assert "good" not in ending


def test_a_cancelled_execution_says_so() -> None:
    driver = Driver(FAILING, kinds=["tool"]).start()
    driver.submit(Cancel())
    assert report_of(driver, FAILING).ending().splitlines()[-1].startswith("cancelled after")
    assert execution_json(driver.state)["steps"]["start"]["status"] == "cancelled"


def test_a_long_result_is_cut_with_the_command_that_shows_it_all() -> None:
    driver = drive(FAILING, {"fetch": [list(range(100))]})
    report = report_of(driver, FAILING)
    assert report.result().count("\n") == 100
    assert report.result(most=3).splitlines() == [
        "- 0",
        "- 1",
        "- 2",
        "… 97 more lines",
        f"all of it: noetl executions result {EXECUTION}",
    ]
    assert report_of(drive(FAILING), FAILING).result() == ""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": {"b": [1, {"c": None}]}, "d": {}, "e": []}, "a:\n  b:\n    - 1\n    - c: null\nd: {}\ne: []"),
        ("plain", "plain"),
        ("\x1b[2J", '"\\x1b[2J"'),
        ({"t": "two\nlines\n"}, "t: |\n  two\n  lines"),
        ([["x"], {"$noetl": "secret", "name": "k"}], "- - x\n- ***"),
    ],
)
def test_values_are_shown_as_yaml(value: object, text: str) -> None:
    assert "\n".join(yaml_lines(value)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.00 s"),
        (0.994, "0.99 s"),
        (1.25, "1.2 s"),
        (9.96, "10 s"),
        (61, "1 min 1 s"),
        (7_325, "2 h 2 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration_text(round(seconds * SECOND)) == text
