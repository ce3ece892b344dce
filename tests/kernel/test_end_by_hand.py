"""What is stuck at a step, or failed there, is ended by hand: `complete` and `skip`."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import ExecutionRetried, StepCompletedByHand, StepSkipped, TokenDiscarded
from noetl.events.event import Event
from noetl.kernel.errors import NotOwner, Refused
from noetl.kernel.net.commands import Cancel, CompleteStep, Pause, Report, Resume, Retry, SkipStep
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.invariants import violations
from noetl.kernel.verify.verification import verify
from tests.kernel.driver import EXECUTION, Driver, error, run
from tests.kernel.random_playbooks import Chaos, as_stored, choices, outcomes, playbooks
from tests.kernel.state_comparison import differences
from tests.kernel.test_join_modes import fan, meets

CHAIN = """
- step: a
  tool: [{ta: {kind: python, code: "1"}}]
  next: {arcs: [{step: b, args: {got: "{{ event.result }}", by: "{{ event.source }}"}, when: "{{ event.name == 'step.done' }}"}]}
- step: b
  tool: [{tb: {kind: noop, args: {got: "{{ args.got }}", status: "{{ steps.a.status }}"}}}]
""".lstrip()
WAIT = """
- step: a
  tool: [{ta: {kind: wait, signal: go}}]
  next: {arcs: [{step: b, args: {got: "{{ event.result }}"}}]}
- step: b
  tool: [{tb: {kind: noop, args: {got: "{{ args.got }}"}}}]
""".lstrip()


def checked(driver: Driver) -> Driver:
    """Its history is sound: every decision in it is made again."""
    assert violations(driver.state) == []
    assert verify(driver.plan, EXECUTION, driver.events).differences == ()
    return driver


def test_a_failed_step_is_completed_with_a_result_and_its_arcs_are_followed() -> None:
    driver = run(CHAIN, {"ta": error()})
    assert driver.status == "failed"
    driver.submit(CompleteStep("a", {"n": 1, "$noetl": "mine"}, "ada"))
    checked(driver.run())
    assert driver.status == "completed"
    assert driver.resolve(driver.state.result) == {"got": {"n": 1, "$noetl": "mine"}, "status": "completed"}
    assert driver.ran == ["ta", "tb"], "the task that failed does not run again"
    (ended,) = driver.bodies(StepCompletedByHand)
    assert ended.by == "ada"
    assert driver.state.summaries["a"].worst == "completed"


def test_a_skipped_step_has_no_result_and_says_that_it_was_skipped() -> None:
    driver = run(CHAIN, {"ta": error()})
    driver.submit(SkipStep("a", "ada"))
    checked(driver.run())
    assert driver.status == "completed"
    assert driver.state.result == {"got": None, "status": "skipped"}
    assert driver.state.step_statuses()["a"] == "skipped"
    assert [ended.by for ended in driver.bodies(StepSkipped)] == ["ada"]


def test_of_two_failed_branches_the_other_stays_failed_until_it_is_settled() -> None:
    driver = run(fan("all"), {"ta": error(), "tb": [error(), "again"]})
    driver.submit(SkipStep("a"))
    checked(driver.run())
    assert (driver.status, meets(driver), driver.error.details["step"]) == ("failed", 0, "b")
    assert driver.ran.count("tb") == 1, "what stays failed does not run again"
    assert [retried.keeps for retried in driver.bodies(ExecutionRetried)] == [
        tuple(run for run in driver.state.failed_runs)
    ]
    driver.submit(Retry())
    checked(driver.run())
    assert (driver.status, meets(driver), driver.ran.count("ta")) == ("completed", 1, 1)
    assert len(driver.state.result["joined"]) == 3


def test_tokens_that_came_of_the_failure_give_way_to_those_of_the_end_by_hand() -> None:
    driver = run(fan("all"), {"tb": error()})
    driver.submit(CompleteStep("b", 1))
    checked(driver.run())
    assert (driver.status, meets(driver)) == ("completed", 1)
    assert [token.reason for token in driver.bodies(TokenDiscarded)] == ["retried"]
    assert driver.state.result["args"] == {"a": 1, "b": 2, "c": 3, "last": "b"}


def test_a_step_behind_the_failure_counts_no_longer() -> None:
    text = CHAIN.replace(", when: \"{{ event.name == 'step.done' }}\"", "")
    driver = run(text, {"ta": error(), "tb": [error(), 5]})
    driver.submit(SkipStep("a"))
    checked(driver.run())
    assert (driver.status, driver.state.step_statuses()) == ("completed", {"a": "skipped", "b": "completed"})


def test_a_run_that_waits_is_ended_and_its_signal_is_kept() -> None:
    driver = run(WAIT)
    assert driver.state.listeners != {}
    driver.submit(CompleteStep("a", "by hand"))
    checked(driver.run())
    assert (driver.status, driver.state.result, driver.state.listeners) == (
        "completed",
        {"got": "by hand"},
        {},
    )


def test_the_owner_of_a_run_that_is_ended_has_nothing_to_say_in_it_any_more() -> None:
    driver = Driver(CHAIN).start()
    owned = driver.claim(driver.state.ready.first)
    fence = owned.fence
    driver.submit(SkipStep("a"))
    with pytest.raises(NotOwner):
        driver.submit(Report(owned.id, fence, 0, ()))
    checked(driver.run())
    assert driver.status == "completed"


def test_a_token_that_waits_at_a_gate_becomes_a_run_that_is_skipped() -> None:
    gate = '  spec: {policy: {admit: {on_deny: wait, rules: [{when: "{{ ctx.signals.go is defined }}", then: {allow: true}}]}}}\n'
    text = CHAIN.replace("- step: b\n", f"- step: b\n{gate}")
    driver = run(text)
    assert driver.status == "running"
    driver.submit(SkipStep("b"))
    checked(driver.run())
    assert (driver.status, driver.ran, driver.state.step_statuses()["b"]) == ("completed", ["ta"], "skipped")


def test_a_loop_ends_as_loops_end() -> None:
    text = """
- step: a
  loop: {in: [1, 2], iterator: item}
  tool: [{ta: {kind: python, code: "1"}}]
  next: {arcs: [{step: b, when: "{{ event.name == 'loop.done' }}"}]}
- step: b
  tool: [{tb: {kind: noop}}]
""".lstrip()
    driver = run(text, {"ta": error()})
    driver.submit(CompleteStep("a", [7, 8]))
    checked(driver.run())
    assert (driver.status, driver.ran) == ("completed", ["ta", "tb"])


def test_the_writes_of_the_step_are_made() -> None:
    text = CHAIN.replace("- step: a\n", '- step: a\n  set: {ctx.kept: "{{ event.result }}"}\n')
    driver = run(text, {"ta": error()})
    driver.submit(CompleteStep("a", 4))
    assert checked(driver.run()).ctx["kept"] == 4


def test_writes_that_raise_refuse_the_end() -> None:
    text = CHAIN.replace("- step: a\n", '- step: a\n  set: {ctx.kept: "{{ 1 // event.result }}"}\n')
    driver = run(text, {"ta": error()})
    with pytest.raises(Refused, match="the step's `set` cannot be evaluated"):
        driver.submit(CompleteStep("a", 0))
    driver.submit(CompleteStep("a", 1))
    assert (checked(driver.run()).status, driver.ctx["kept"]) == ("completed", 1)


def test_the_final_step_can_be_skipped() -> None:
    final = '- step: last\n  tool: [{tl: {kind: python, code: "1"}}]\n'
    text = "executor: {kind: local, spec: {final_step: last}}\nworkflow:\n" + CHAIN + final
    driver = run(text, {"tl": error()})
    assert driver.status == "failed"
    driver.submit(SkipStep("last"))
    assert checked(driver.run()).status == "completed"
    assert driver.ran.count("tl") == 1


def test_a_paused_execution_goes_on_when_it_is_resumed() -> None:
    driver = run(WAIT)
    driver.submit(Pause())
    driver.submit(SkipStep("a"))
    assert (driver.status, driver.ran) == ("paused", [])
    driver.submit(Resume())
    assert checked(driver.run()).status == "completed"


@pytest.mark.parametrize(
    ("text", "script", "step", "message"),
    [
        (CHAIN, {}, "a", "the execution is completed"),
        (CHAIN, {"ta": error()}, "b", "the execution is failed, and no run of `b` has failed in it"),
        (CHAIN, {"ta": error()}, "aa", "there is no step `aa`; did you mean `a`?"),
        (WAIT, {}, "b", "nothing runs, waits or has failed at `b`"),
    ],
)
def test_what_cannot_be_ended_is_refused(
    text: str, script: dict[str, object], step: str, message: str
) -> None:
    driver = run(text, script)
    before = len(driver.events)
    with pytest.raises(Refused) as refused:
        driver.submit(SkipStep(step))
    assert (str(refused.value), len(driver.events)) == (message, before)


def test_what_is_cancelled_is_not_ended_by_hand() -> None:
    driver = Driver(CHAIN).start()
    driver.claim(driver.state.ready.first)
    driver.submit(Cancel())
    with pytest.raises(Refused, match="cut short as a whole"):
        driver.submit(SkipStep("a"))


def test_an_execution_that_timed_out_is_not_ended_by_hand() -> None:
    text = "executor: {kind: local, spec: {timeout: 5}}\nworkflow:\n" + WAIT
    driver = run(text)
    assert driver.status == "failed"
    with pytest.raises(Refused, match="only `retry` goes on with it"):
        driver.submit(SkipStep("a"))


@settings(max_examples=60)
@given(playbooks(), outcomes, choices, st.lists(st.integers(0, 1000), min_size=1, max_size=12))
def test_whatever_is_ended_by_hand_the_history_stays_sound(
    playbook: Playbook, turns: list[int], order: list[int], hands: list[int]
) -> None:
    """Any step, at any moment of any playbook; and once all that failed is settled, the execution completes."""
    driver = Chaos(playbook, turns)
    mirror = new_state(driver.plan, EXECUTION)

    def check(events: list[Event]) -> None:
        for event in events:
            evolve(mirror, as_stored(event))
            assert violations(mirror) == []
        assert differences(mirror, driver.state) == []

    driver.on_append = check
    driver.start()
    names = list(driver.plan.by_name)
    for number, choice in enumerate(order):
        if driver.state.over or not (driver.act(choice) or driver.unblock()):
            break
        if number % 5 == 4:
            _end_by_hand(driver, names, hands[number % len(hands)])
    driver.settle()
    for _ in range(20):
        failed = [run.step.name for run in driver.state.failed_runs.values() if run.error is not None]
        if driver.status != "failed" or driver.state.stopping or not failed:
            break
        driver.submit(SkipStep(failed[hands[0] % len(failed)]))
        driver.settle()
    assert driver.state.over


def _end_by_hand(driver: Chaos, names: list[str], choice: int) -> None:
    step = names[choice % len(names)]
    with suppress(Refused):
        driver.submit(SkipStep(step) if choice % 2 else CompleteStep(step, {"n": choice}))
