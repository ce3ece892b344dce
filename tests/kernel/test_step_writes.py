"""What a step's own `set` sees, and what becomes of it when it raises."""

import pytest

from noetl.events.bodies import StepFailed
from noetl.kernel.verify.verification import verify
from tests.kernel.driver import EXECUTION, Driver, error, run

FAILS = """
- step: start
  tool: [{t: {kind: python, code: "1"}}]
  set: {ctx.before: 1, ctx.n: "{{ event.result.n }}"}
  next: {arcs: [{step: told, when: "{{ event.name == 'step.failed' }}", args: {why: "{{ event.error }}"}}]}
- step: told
  tool: {kind: noop, args: {why: "{{ args.why }}"}}
""".lstrip()


def is_decided_again(driver: Driver) -> bool:
    return verify(driver.plan, EXECUTION, driver.events).differences == ()


def test_a_write_that_raises_does_not_hide_why_the_step_failed() -> None:
    driver = run(FAILS, {"t": error("sql", "no such table", sqlstate="42P01")})
    (failed,) = driver.bodies(StepFailed)
    assert (failed.error.kind, failed.error.message, failed.task, failed.attempt) == (
        "sql",
        "no such table",
        "t",
        1,
    )
    why = driver.state.result["why"]
    assert (why["kind"], why["message"], why["sqlstate"]) == ("sql", "no such table", "42P01")
    assert why["set_error"] == "`event.result.n` is undefined in `{{ event.result.n }}`"
    assert (driver.ctx, driver.status) == ({}, "completed")
    assert is_decided_again(driver)


def test_a_write_that_raises_fails_a_step_that_was_done() -> None:
    driver = run(FAILS, {"t": {"m": 1}})
    assert driver.state.result["why"]["kind"] == "expression"
    assert "set_error" not in driver.state.result["why"]
    assert is_decided_again(driver)


def test_a_write_that_can_be_evaluated_after_a_failure_is_made() -> None:
    driver = run(FAILS.replace("event.result.n", "event.error.kind"), {"t": error("sql")})
    assert driver.ctx == {"before": 1, "n": "sql"}
    assert driver.bodies(StepFailed)[0].error.details == {}


def test_executions_of_earlier_rules_go_on_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.kernel.net.execution_request.DECIDER", 1)
    driver = run(FAILS, {"t": error("sql")})
    assert driver.bodies(StepFailed)[0].error.kind == "expression"
    assert is_decided_again(driver)
    own = run(OWN, {"t": {"n": 3}})
    assert (own.status, own.error.kind) == ("failed", "expression")
    assert is_decided_again(own)


OWN = """
- step: count
  tool: [{t: {kind: python, code: "1"}}]
  set: {ctx.n: "{{ count.n }}", ctx.status: "{{ steps.count.status }}", ctx.error: "{{ steps.count.error }}"}
  next: {arcs: [{step: count, when: "{{ event.name == 'step.done' and count.n < 3 and ctx.n < 3 }}"}]}
""".lstrip()


def test_a_step_reads_its_own_result_by_name_as_its_arcs_do() -> None:
    driver = run(OWN, {"t": {"n": 3}})
    assert (driver.status, driver.ctx) == ("completed", {"n": 3, "status": "completed", "error": None})
    assert is_decided_again(driver)


def test_it_is_the_result_of_this_run_not_of_the_one_before() -> None:
    driver = run(
        OWN.replace("ctx.n: ", 'ctx.all: "{{ (ctx.all | default([])) + [count.n] }}", ctx.n: '),
        {"t": [{"n": 1}, {"n": 2}, {"n": 3}]},
    )
    assert driver.ctx["all"] == [1, 2, 3]


def test_after_a_failure_there_is_an_error_in_its_place() -> None:
    driver = run(OWN.replace('ctx.n: "{{ count.n }}", ', ""), {"t": error("sql", "no")})
    assert (driver.ctx["status"], driver.ctx["error"]["message"]) == ("failed", "no")
    assert is_decided_again(driver)


def test_a_loop_reads_the_list_of_its_results() -> None:
    text = """
- step: all
  loop: {in: "{{ [1, 2, 3] }}", iterator: item}
  tool: [{t: {kind: noop, args: {n: "{{ iter.item }}"}}}]
  set: {ctx.last: "{{ all[2].n }}", ctx.count: "{{ all | length }}"}
""".lstrip()
    driver = run(text)
    assert driver.ctx == {"last": 3, "count": 3}


def test_a_result_that_is_stored_elsewhere_is_read_by_its_parts() -> None:
    driver = run(OWN, {"t": {"n": 3, "rows": ["x" * 1_000] * 200}})
    assert (driver.status, driver.ctx["n"]) == ("completed", 3)
    assert driver.stored
    assert is_decided_again(driver)


def test_other_steps_are_read_beside_it() -> None:
    text = """
- step: start
  tool: [{a: {kind: noop, args: {n: 4}}}]
  next: {arcs: [{step: count, when: "{{ event.name == 'step.done' }}"}]}
- step: count
  tool: [{t: {kind: noop, args: {n: 3}}}]
  set: {ctx.sum: "{{ count.n + start.n }}"}
""".lstrip()
    assert run(text).ctx == {"sum": 7}
