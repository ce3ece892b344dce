"""What failed unhandled holds back what a retry of it could still change."""

import json

import pytest

from noetl.events.bodies import ExecutionRetried, Patch, StepScheduled, TokenDiscarded
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, Fork, PatchCtx, Pause, Retry, Signal, TimerFired
from noetl.kernel.pipeline.policy import SECOND
from noetl.kernel.state.execution_state import waiting_steps
from noetl.kernel.state.invariants import violations
from noetl.kernel.state.replay import dump_state, load_state, replay
from noetl.kernel.verify.verification import verify
from tests.kernel.driver import EXECUTION, Driver, error, run
from tests.kernel.test_join_modes import fan, meets

DONE = "when: \"{{ event.name == 'step.done' }}\""


def reasons(driver: Driver) -> dict[str, str]:
    return {entry["step"]: entry["reason"] for entry in waiting_steps(driver.state)}


def retried(driver: Driver) -> Driver:
    """Retried, and run to its end; its whole history is sound."""
    check_history(driver)
    driver.submit(Retry("me"))
    driver.run()
    check_history(driver)
    return driver


def check_history(driver: Driver) -> None:
    assert violations(driver.state) == []
    assert verify(driver.plan, EXECUTION, driver.events).differences == ()
    for append in driver.appends:
        before = replay(driver.plan, EXECUTION, driver.events[: append[-1].seq])
        assert violations(before) == []
        assert load_state(driver.plan, json.loads(json.dumps(dump_state(before)))) == before


def guarded(text: str) -> str:
    """The same with arcs that are taken after a success only."""
    return text.replace("last: a}}", f"last: a}}, {DONE}}}", 1).replace(
        "last: b}}", f"last: b}}, {DONE}}}", 1
    )


def test_a_join_of_all_waits_for_the_retry_of_a_branch_that_failed() -> None:
    driver = run(guarded(fan("all")), {"tb": [error(), 1]})
    assert (driver.status, meets(driver)) == ("failed", 0)
    assert reasons(driver) == {"meet": "the branch `b` failed"}
    assert driver.statuses["meet"] == "waiting"
    retried(driver)
    assert (driver.status, meets(driver)) == ("completed", 1)
    assert driver.state.result["args"] == {"a": 1, "b": 2, "c": 3, "last": "b"}
    assert driver.state.discarded == []
    assert reasons(driver) == {}


def test_a_branch_that_fails_again_holds_back_again() -> None:
    driver = run(guarded(fan("all")), {"tb": [error(), error(), 1]})
    retried(driver)
    assert (driver.status, meets(driver)) == ("failed", 0)
    assert reasons(driver) == {"meet": "the branch `b` failed"}
    assert meets(retried(driver)) == 1


def test_what_came_of_the_failure_gives_way_to_the_retry() -> None:
    driver = run(fan("all"), {"tb": [error(), 1]})
    assert (driver.status, meets(driver)) == ("failed", 0)
    assert len(driver.state.joins[4].arrivals) == 3, "the failure went where its arc leads"
    retried(driver)
    assert (driver.status, meets(driver)) == ("completed", 1)
    assert [token["reason"] for token in driver.state.discarded] == ["retried"]
    assert len(driver.state.result["joined"]) == 3


def test_a_guard_that_raised_holds_back_as_a_failure_does() -> None:
    text = fan("all").replace("event.result != 'skip'", "1 / ctx.n > 0")
    driver = run(text, ctx={"n": 0})
    assert (driver.status, meets(driver), reasons(driver)) == ("failed", 0, {"meet": "the branch `c` failed"})


def test_several_branches_are_named_in_the_order_of_the_document() -> None:
    driver = run(guarded(fan("all")), {"ta": error(), "tb": error()})
    assert reasons(driver) == {"meet": "the branches `a` and `b` failed"}


def test_a_failure_that_an_arc_handles_holds_nothing_back() -> None:
    text = fan("all").replace(
        "last: b}}", "last: b}, when: \"{{ event.name in ['step.done', 'step.failed'] }}\"}", 1
    )
    driver = run(text, {"tb": error()})
    assert (driver.status, meets(driver)) == ("completed", 1)


def test_a_join_that_the_failure_cannot_reach_lets_go() -> None:
    text = guarded(fan("all")).replace("{step: c}]", "{step: c}, {step: alone}]")
    text += f"- step: alone\n  tool: [{{x: {{kind: python, code: '1'}}}}]\n  next: {{arcs: [{{step: other, {DONE}}}]}}\n"
    text += "- step: other\n  tool: {kind: noop}\n"
    driver = run(text, {"x": error()})
    assert (driver.status, meets(driver)) == ("failed", 1)


def test_any_runs_on_the_first_and_absorbs_the_branch_that_is_retried() -> None:
    driver = run(guarded(fan("any")), {"tb": [error(), 1]})
    assert (driver.status, meets(driver)) == ("failed", 1)
    retried(driver)
    assert (driver.status, meets(driver)) == ("completed", 1)
    assert [body.reason for body in driver.bodies(TokenDiscarded)] == ["absorbed", "absorbed"]


def test_any_runs_again_where_it_ran_because_of_the_failure() -> None:
    driver = run(fan("any"), {"ta": [error(), 1]})
    assert (driver.status, meets(driver)) == ("failed", 1)
    retried(driver)
    assert meets(driver) == 2
    assert driver.state.result["joined"][0]["step"] == "a"
    assert driver.bodies(ExecutionRetried)[0].superseded == ("meet",)


def test_the_remainder_of_a_count_waits_for_the_branch_that_failed() -> None:
    driver = run(guarded(fan("{count: 3}")), {"tb": [error(), 1]})
    assert (meets(driver), driver.state.discarded) == (0, [])
    assert reasons(driver) == {"meet": "the branch `b` failed"}
    assert meets(retried(driver)) == 1
    assert driver.state.discarded == []


def test_a_count_goes_on_at_its_number() -> None:
    driver = run(guarded(fan("{count: 2}")), {"tb": error()})
    assert (driver.status, meets(driver)) == ("failed", 1)


def test_a_run_of_which_only_a_part_came_of_a_failure_is_retried_itself() -> None:
    driver = run(fan("{count: 3}"), {"tb": [error(), 1], "m": [error(), "met"]})
    driver.submit(Retry())
    assert driver.bodies(ExecutionRetried)[0].steps == ("b", "meet")


GATED = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: work}, {step: gate}, {step: meet}]}
- step: work
  tool: [{w: {kind: python, code: "1", set: {ctx.ready: true}}}]
  next: {arcs: [{step: after, when: "{{ event.name == 'step.done' }}"}]}
- step: after
  tool: {kind: noop}
- step: gate
  spec: {policy: {admit: {rules: [{when: "{{ ctx.ready }}", then: {allow: true}}]}}}
  tool: [{g: {kind: noop, args: {open: true}}}]
  next: {arcs: [{step: meet}]}
- step: meet
  spec: {policy: {join: all}}
  tool: [{m: {kind: noop, args: {n: "{{ joined | length }}"}}}]
""".lstrip()


def test_a_parked_token_waits_for_what_a_retried_run_writes_and_joins_wait_for_the_token() -> None:
    driver = run(GATED, {"w": [error(), 1]})
    assert (driver.status, driver.state.discarded, driver.ran) == ("failed", [], ["w"])
    assert reasons(driver) == {"gate": "the branch `work` failed", "meet": "the branch `work` failed"}
    retried(driver)
    assert (driver.status, driver.state.discarded) == ("completed", [])
    assert driver.state.result == {"n": 2}


def test_a_parked_token_that_the_retry_does_not_help_is_discarded_then() -> None:
    driver = run(GATED.replace(", set: {ctx.ready: true}", ""), {"w": [error(), 1]})
    retried(driver)
    assert [token["reason"] for token in driver.state.discarded] == ["parked"]
    assert driver.state.result == {"n": 1}


def test_the_remainder_of_a_count_waits_for_a_parked_token_that_a_retry_may_admit() -> None:
    driver = run(GATED.replace("join: all", "join: {count: 2}"), {"w": [error(), 1]})
    assert driver.state.discarded == []
    assert retried(driver).state.result == {"n": 2}


def test_a_waiting_token_is_admitted_though_another_branch_has_failed() -> None:
    text = GATED.replace("ctx.ready }}", "ctx.signals.go }}")
    driver = run(text, {"w": error()})
    assert driver.status == "running"
    driver.submit(Signal("go"))
    driver.run()
    assert (driver.status, driver.ran) == ("failed", ["w", "g", "m"])


TWICE = """
- step: start
  tool: [{s: {kind: python, code: "1"}}]
  next: {arcs: [{step: next}]}
- step: next
  tool: [{n: {kind: python, code: "1"}}]
  next: {arcs: [{step: end, when: "{{ event.name == 'step.done' and event.result == 'early' }}"}]}
- step: end
  tool: [{e: {kind: noop, args: {ended: true}}}]
""".lstrip()


def test_only_the_first_of_failures_that_follow_from_each_other_is_opened_again() -> None:
    driver = run(TWICE, {"s": [error(), 1], "n": [error(), 5]})
    assert [failure.error.details["step"] for failure in driver.state.failures] == ["start", "next"]
    retried(driver)
    (again,) = driver.bodies(ExecutionRetried)
    assert (again.steps, again.superseded) == (("start",), ("next",))
    assert (driver.status, driver.state.result) == ("completed", 5)
    assert driver.ran == ["s", "n", "s", "n"]


def test_the_result_of_a_branch_that_came_of_the_failure_is_forgotten() -> None:
    driver = run(TWICE, {"s": [error(), 1], "n": ["early", "late"]})
    assert (driver.status, driver.state.result) == ("failed", {"ended": True})
    assert (retried(driver).status, driver.state.result) == ("completed", "late")


def final(text: str, *spec: str) -> str:
    last = "- step: last\n  tool: [{f: {kind: python, code: '1'}}]\n"
    return f"executor: {{kind: local, spec: {{{', '.join(('final_step: last', *spec))}}}}}\nworkflow:\n{text}{last}"


def test_the_final_step_runs_once_for_each_end_and_hears_what_waits() -> None:
    driver = run(final(guarded(fan("all"))), {"tb": [error(), 1], "f": [error(), 1]})
    (summary,) = [body.args for body in driver.bodies(StepScheduled) if body.final]
    assert summary["waiting"] == [{"step": "meet", "reason": "the branch `b` failed"}]
    retried(driver)
    assert driver.bodies(ExecutionRetried)[0].steps == ("b",)
    assert (driver.status, driver.ran.count("f")) == ("completed", 2)
    second = [body.args for body in driver.bodies(StepScheduled) if body.final][1]
    assert (second["status"], second["waiting"]) == ("completed", [])


def test_a_final_step_that_failed_alone_is_opened_again() -> None:
    driver = run(final("- step: start\n  tool: {kind: noop}\n"), {"f": [error(), 1]})
    assert retried(driver).status == "completed"
    assert driver.bodies(ExecutionRetried)[0].steps == ("last",)


def limited(spec: str, text: str) -> str:
    return f"executor: {{kind: local, spec: {{{spec}}}}}\nworkflow:\n{text}"


def test_a_timeout_settles_nothing_and_a_retry_goes_on_with_all_of_it() -> None:
    text = guarded(fan("all")).replace("- step: c\n", "- step: c\n  spec: {timeout: 900}\n")
    driver = Driver(limited("timeout: 60", text), {"tb": [error(), 1]}).start()
    driver.step()  # a is done and waits at the join, b fails
    driver.step()
    owned = driver.claim(driver.state.ready.first)
    driver.now += 60 * SECOND
    driver.submit(TimerFired())
    driver.work(owned)  # the owner of c is through with it only now
    assert (driver.status, driver.error.kind, driver.state.discarded) == ("failed", "timeout", [])
    assert reasons(driver) == {"meet": "the branch `b` failed"}
    driver.now += 3600 * SECOND
    retried(driver)
    assert (driver.status, meets(driver)) == ("completed", 1)
    assert [call.task.label for call in driver.calls] == ["ta", "tb", "tc", "tb", "m"]


def test_tokens_that_wait_when_time_is_up_have_the_rest_of_their_time_after_a_retry() -> None:
    text = GATED.replace("ctx.ready }}", "ctx.signals.go }}").replace("rules:", "timeout: 100, rules:")
    driver = Driver(limited("timeout: 60", text)).run()
    assert (driver.status, driver.error.kind) == ("failed", "timeout")
    assert reasons(driver) == dict.fromkeys(("gate", "meet"), "the execution took too long")
    ended = driver.now
    driver.now += 3600 * SECOND
    again = driver.now
    driver.submit(Retry())
    assert driver.state.deadline == again + 60 * SECOND
    (waiting,) = [token for token in driver.state.tokens.values() if token.stage == "waiting"]
    assert waiting.deadline == again + 40 * SECOND
    assert ended + 3600 * SECOND == again
    driver.submit(Signal("go"))
    assert driver.run().state.result == {"n": 2}
    check_history(driver)


def test_a_run_that_waits_when_time_is_up_waits_anew_after_a_retry() -> None:
    text = "- step: start\n  tool: [{w: {kind: wait, signal: go}}]\n"
    driver = Driver(limited("timeout: 60", text)).run()
    assert (driver.status, driver.statuses) == ("failed", {"start": "cancelled"})
    driver.submit(Retry())
    driver.step()
    driver.submit(Signal("go", 5))
    assert driver.run().status == "completed"
    check_history(driver)


def test_a_limit_settles_nothing_and_a_retry_has_it_anew() -> None:
    text = limited("max_step_runs: 3", fan("all"))
    driver = run(text)
    assert (driver.status, driver.error.kind) == ("failed", "limit")
    assert driver.state.discarded == []
    assert set(reasons(driver).values()) == {"more than 3 step runs (`executor.spec.max_step_runs`)"}
    retried(driver)
    assert (driver.status, meets(driver)) == ("completed", 1)
    assert len(driver.state.result["joined"]) == 3


def test_cancel_discards_what_was_held_back() -> None:
    text = guarded(fan("all")).replace(
        '- step: c\n  tool: [{tc: {kind: python, code: "1"}}]',
        "- step: c\n  tool: [{tc: {kind: wait, signal: x}}]",
    )
    driver = run(text, {"tb": error()})
    driver.submit(Cancel("me"))
    assert (driver.status, driver.state.tokens, reasons(driver)) == ("cancelled", {}, {})
    assert [token["reason"] for token in driver.state.discarded] == ["cancelled"]
    with pytest.raises(Refused):
        driver.submit(Retry())


def test_a_fork_has_what_was_held_back_too() -> None:
    text = guarded(fan("all")).replace('{tc: {kind: python, code: "1"}}', "{tc: {kind: wait, signal: x}}")
    source = run(text, {"tb": error()})
    driver = Driver(source.plan.playbook, {"tb": 1})
    driver.state = replay(driver.plan, "another", source.events)
    driver.submit(Fork(EXECUTION, source.state.version))
    driver.submit(Signal("x"))
    driver.run()
    assert reasons(driver) == {"meet": "the branch `b` failed"}
    driver.submit(Retry())
    assert driver.run().state.result["args"]["b"] == 2


def test_what_a_ctx_from_outside_admits_is_not_held_back() -> None:
    driver = Driver(GATED, {"w": error()}).start()
    driver.step()
    assert driver.status == "failed"
    driver = Driver(
        GATED.replace("{step: work}", "{step: work}, {step: slow}")
        + "- step: slow\n  tool: {kind: wait, signal: x}\n",
        {"w": error()},
    ).run()
    driver.submit(PatchCtx((Patch(scope="ctx", path=("ready",), value=True),)))
    driver.run()
    assert "g" in driver.ran


def test_an_execution_of_earlier_rules_goes_on_by_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noetl.kernel.net.execution_request.DECIDER", 1)
    driver = run(guarded(fan("all")), {"tb": [error(), 1]})
    assert (driver.status, meets(driver), reasons(driver)) == ("failed", 1, {})
    driver.submit(Retry())
    assert meets(driver.run()) == 2
    verification = verify(driver.plan, EXECUTION, driver.events)
    assert (verification.differences, verification.notes) == ((), ())


def test_a_token_that_is_parked_before_the_join_itself_counts() -> None:
    text = guarded(fan("all")).replace("{step: c}]", "{step: c}, {step: work}]")
    admit = 'admit: {rules: [{when: "{{ args.a is defined or ctx.ready }}", then: {allow: true}}]}'
    text = text.replace("join: all}", f"join: all, {admit}}}")
    text += "- step: work\n  tool: [{w: {kind: python, code: '1', set: {ctx.ready: true}}}]\n"
    driver = run(text, {"w": [error(), 1]})
    assert (meets(driver), driver.state.discarded) == (0, [])
    retried(driver)
    assert [len(body.tokens) for body in driver.bodies(StepScheduled) if body.step == "meet"] == [3]


def test_a_join_on_a_cycle_waits_for_its_own_failed_run() -> None:
    text = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: meet, args: {n: 1}}, {step: gate}]}
- step: gate
  spec: {policy: {admit: {rules: [{when: "{{ ctx.ready }}", then: {allow: true}}]}}}
  tool: {kind: noop}
  next: {arcs: [{step: meet, args: {n: 2}}]}
- step: meet
  spec: {policy: {join: all}}
  tool: [{w: {kind: noop, set: {ctx.ready: true}}}, {m: {kind: python, code: "1"}}]
  next: {arcs: [{step: turn, when: "{{ event.result == 'again' }}"}]}
- step: turn
  tool: {kind: noop}
  next: {arcs: [{step: meet, args: {n: 3}}]}
""".lstrip()
    driver = run(text, {"m": [error(), "again", "end"]})
    assert reasons(driver) == {"meet": "the branch `meet` failed"}
    retried(driver)
    assert [body.args["n"] for body in driver.bodies(StepScheduled) if body.step == "meet"] == [1, 3]
    assert len(driver.bodies(StepScheduled)[-1].tokens) == 2


def test_a_step_that_only_the_failure_came_to_was_never_reached() -> None:
    text = """
- step: start
  tool: [{s: {kind: python, code: "1"}}]
  next: {arcs: [{step: end, when: "{{ event.result == 1 }}"}, {step: gate}]}
- step: gate
  spec: {policy: {admit: {rules: [{when: "{{ ctx.ready }}", then: {allow: true}}]}}}
  tool: {kind: noop}
- step: end
  tool: {kind: noop}
""".lstrip()
    driver = run(text, {"s": [error(), 1]})
    assert driver.statuses == {"start": "failed", "gate": "waiting"}
    assert retried(driver).statuses == {"start": "completed", "end": "completed"}


def test_a_run_that_ended_and_was_not_routed_when_time_was_up_is_routed_by_the_retry() -> None:
    text = "- step: start\n  tool: [{a: {kind: python, code: '1'}}]\n  next: {arcs: [{step: after}]}\n"
    text += "- step: after\n  tool: [{b: {kind: python, code: '1'}}]\n"
    driver = Driver(limited("timeout: 60", text), {"a": "first", "b": "second"}).start()
    owned = driver.claim(driver.state.ready.first)
    driver.submit(Pause())
    driver.work(owned)
    driver.now += 60 * SECOND
    driver.submit(TimerFired())
    assert (driver.status, driver.state.result) == ("failed", None)
    retried(driver)
    assert (driver.status, driver.ran, driver.state.result) == ("completed", ["a", "b"], "second")
    assert driver.bodies(ExecutionRetried)[0].steps == ()


def test_any_that_ran_because_of_the_failure_takes_a_token_that_a_limit_left_there() -> None:
    text = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  tool: [{ta: {kind: python, code: "1"}}]
  next: {arcs: [{step: meet}]}
- step: b
  tool: [{tb: {kind: python, code: "1"}}]
  next: {spec: {mode: inclusive}, arcs: [{step: meet}, {step: other}]}
- step: meet
  spec: {policy: {join: any}}
  tool: [{m: {kind: noop, args: {from: "{{ joined[0].step }}"}}}]
- step: other
  tool: {kind: noop}
""".lstrip()
    driver = run(limited("max_step_runs: 4", text), {"ta": [error(), 1]})
    assert (driver.error.kind, len(driver.state.joins[3].arrivals)) == ("limit", 1)
    retried(driver)
    meeting = [body for body in driver.bodies(StepScheduled) if body.step == "meet"]
    assert (driver.status, len(meeting), driver.statuses["other"]) == ("completed", 2, "completed")
