"""A step that fails again and again ends the execution (`executor.spec.max_failures_in_row`)."""

import pytest

from noetl.events.bodies import ExecutionRetried
from noetl.kernel.net.commands import Retry
from noetl.kernel.verify.verification import verify
from tests.kernel.driver import EXECUTION, Driver, Script, error, run

SPIN = """
- step: start
  tool: [{t: {kind: python, code: "1"}}]
  next: {arcs: [{step: start, when: "{{ ctx.done != true }}"}]}
""".lstrip()


def limited(text: str, script: Script, most: int = 3) -> Driver:
    return run(f"executor: {{kind: local, spec: {{max_failures_in_row: {most}}}}}\nworkflow:\n{text}", script)


def test_a_hundred_failures_in_a_row_end_it() -> None:
    driver = run(SPIN, {"t": error("python", "no such column")})
    assert (driver.status, driver.error.kind, len(driver.ran)) == ("failed", "limit", 100)
    assert driver.error.details == {"step": "start"}
    assert driver.error.message == (
        "`start` failed 100 times in a row (`executor.spec.max_failures_in_row`); "
        "the last: python: no such column"
    )
    assert verify(driver.plan, EXECUTION, driver.events).differences == ()


def test_the_number_is_the_playbooks_to_say() -> None:
    assert len(limited(SPIN, {"t": error()}).ran) == 3
    assert len(limited(SPIN, {"t": error()}, most=1).ran) == 1


def test_a_success_begins_the_count_anew() -> None:
    outcomes = [error(), error(), 1, error(), error(), 1, error(), error(), error(), 1]
    driver = limited(SPIN, {"t": outcomes})
    assert (driver.error.kind, len(driver.ran)) == ("limit", 9)


def test_failures_that_an_arc_handles_do_not_count() -> None:
    text = SPIN.replace("ctx.done != true", "event.name == 'step.failed'")
    driver = limited(text, {"t": [*[error()] * 20, "end"]})
    assert (driver.status, driver.state.result) == ("completed", "end")


def test_a_failure_that_is_handled_begins_the_count_anew() -> None:
    text = SPIN.replace("arcs: [", "arcs: [{step: start, when: \"{{ event.error.kind == 'sql' }}\"}, ")
    driver = limited(text, {"t": [error(), error(), error("sql"), error(), error(), error()]})
    assert (driver.error.kind, len(driver.ran)) == ("limit", 6)


def test_each_step_is_counted_by_itself_whatever_runs_between() -> None:
    text = SPIN.replace("{step: start,", "{step: between,") + (
        "- step: between\n  tool: [{b: {kind: noop}}]\n  next: {arcs: [{step: start}]}\n"
    )
    driver = limited(text, {"t": error()})
    assert (driver.error.kind, driver.ran) == ("limit", ["t", "b"] * 3)


def test_branches_that_end_with_a_failure_each_count_for_their_step() -> None:
    fan = ", ".join(["{step: work}"] * 5)
    text = f"- step: start\n  next: {{spec: {{mode: inclusive}}, arcs: [{fan}]}}\n"
    text += "- step: work\n  tool: [{t: {kind: python, code: '1'}}]\n"
    driver = limited(text, {"t": error()})
    assert (driver.status, driver.error.kind, len(driver.ran)) == ("failed", "connection", 5)
    assert driver.state.failures_in_row == {"work": 5}, "what was under way already is not stopped"


def test_a_guard_that_raises_counts_as_a_failure() -> None:
    text = SPIN.replace("ctx.done != true", "1 / ctx.n > 0")
    driver = limited(text, {"t": 1})
    assert (driver.error.kind, driver.state.failures_in_row) == ("expression", {"start": 1})


def test_a_gate_that_fails_tokens_again_and_again_ends_it_too() -> None:
    text = """
- step: start
  spec: {policy: {admit: {rules: [{when: "{{ ctx.ok }}", then: {allow: true}}], on_deny: fail}}}
  tool: {kind: noop}
  next: {arcs: [{step: start}]}
""".lstrip()
    driver = limited(text, {})
    assert (driver.error.kind, driver.state.summaries["start"].runs) == ("limit", 3)


def test_a_retry_begins_the_count_and_the_first_run_anew() -> None:
    driver = limited(SPIN, {"t": [*[error()] * 5, "well", error()]})
    assert len(driver.ran) == 3
    driver.submit(Retry())
    driver.run()
    (again,) = driver.bodies(ExecutionRetried)
    assert (again.steps, again.superseded, len(again.runs)) == (("start",), ("start",), 1)
    assert (driver.error.kind, len(driver.ran)) == ("limit", 9), "two failures, a success, three failures"
    assert [token["reason"] for token in driver.state.discarded] == ["retried"]


def test_executions_of_earlier_rules_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.kernel.net.execution_request.DECIDER", 1)
    text = SPIN.replace("ctx.done != true", "event.result is not defined or event.result != 'end'")
    driver = limited(text.replace("event.result", "steps.start.result"), {"t": [*[error()] * 5, "end"]})
    assert (driver.status, len(driver.ran), driver.error.kind) == ("failed", 6, "connection")
