"""The gate in front of a step."""

import pytest

from noetl.events.bodies import Patch, StepFailed, TokenDiscarded, TokenParked
from noetl.kernel.net.commands import PatchCtx, Pause, Resume, Signal, TimerFired
from noetl.kernel.pipeline.policy import SECOND
from tests.kernel.driver import Driver, run


def gated(admit: str, arcs: str = "") -> str:
    return f"""
- step: start
  next: {{spec: {{mode: inclusive}}, arcs: [{{step: gate, args: {{x: 1}}}}, {{step: other}}]}}
- step: gate
  spec: {{policy: {{admit: {admit}}}}}
  tool: [{{inside: {{kind: python, code: "1"}}}}]
{arcs}
- step: other
  tool: [{{work: {{kind: python, code: "1", set: {{ctx.go: "{{{{ outcome.result }}}}"}}}}}}]
""".lstrip().replace("\n\n", "\n")


OPEN = '{rules: [{when: "{{ ctx.go == 1 }}", then: {allow: true}}]%s}'


@pytest.mark.spec("000 §4.2 (5)")
@pytest.mark.spec("001 §6.2")
def test_without_admit_every_token_is_allowed() -> None:
    assert run("- step: start\n  tool: {kind: noop}\n").names[4] == "StepScheduled"


@pytest.mark.spec("000 §4.2 (1)")
@pytest.mark.spec("000 §4.2 (4)")
@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ('{when: "{{ args.x == 1 }}", then: {allow: true}}, {when: true, then: {allow: false}}', True),
        ('{when: "{{ args.x == 1 }}", then: {allow: false}}, {when: true, then: {allow: true}}', False),
        ('{when: "{{ args.x == 2 }}", then: {allow: true}}', False),
        ('{when: "{{ args.x == 2 }}", then: {allow: false}}, {else: {then: {allow: true}}}', True),
    ],
)
def test_the_first_matching_rule_decides_and_none_denies(rules: str, allowed: bool) -> None:
    driver = run(gated("{rules: [" + rules + "]}"))
    assert ("inside" in driver.ran) is allowed


def test_a_parked_token_is_asked_again_when_what_its_rules_read_changes() -> None:
    driver = run(gated(OPEN % ""), {"work": 1})
    assert driver.ran == ["work", "inside"]
    assert driver.names.count("TokenParked") == 1
    assert driver.state.status == "completed"


def test_a_parked_token_is_not_asked_when_something_else_changes() -> None:
    driver = Driver(gated(OPEN % "")).start()
    before = driver.names.count("TokenParked")
    driver.submit(PatchCtx((Patch(scope="ctx", path=("unrelated",), value=1),)))
    assert driver.names.count("TokenParked") == before
    driver.submit(PatchCtx((Patch(scope="ctx", path=("go",), value=2),)))
    assert driver.names.count("TokenParked") == before + 1


def test_a_parked_token_is_discarded_at_quiescence_and_that_is_not_silent() -> None:
    driver = run(gated(OPEN % ""), {"work": 2})
    assert driver.bodies(TokenDiscarded)[0].reason == "parked"
    assert driver.statuses["gate"] == "not_admitted"
    assert [(token["step"], token["reason"]) for token in driver.state.discarded] == [("gate", "parked")]
    assert driver.state.status == "completed"


def test_drop_discards_at_once() -> None:
    driver = run(gated(OPEN % ", on_deny: drop"), {"work": 1})
    assert driver.bodies(TokenDiscarded)[0].reason == "denied"
    assert "inside" not in driver.ran


def test_fail_is_a_failure_of_the_step_that_its_arcs_can_handle() -> None:
    arcs = "  next: {arcs: [{step: other, when: \"{{ event.error.kind == 'admission' }}\"}]}"
    driver = run(gated(OPEN % ", on_deny: fail", arcs))
    assert driver.state.status == "completed"
    assert driver.statuses["gate"] == "failed"
    assert driver.bodies(StepFailed)[0].source == "server"
    unhandled = run(gated(OPEN % ", on_deny: fail"))
    assert unhandled.error.kind == "admission"


def test_wait_keeps_the_execution_alive() -> None:
    driver = run(gated('{rules: [{when: "{{ ctx.signals.go }}", then: {allow: true}}]}'))
    assert driver.state.status == "running"
    assert driver.bodies(TokenParked)[0].mode == "wait"
    driver.submit(Signal("go"))
    assert driver.run().state.status == "completed"
    assert "inside" in driver.ran


def test_a_wait_has_a_timeout_which_is_a_failure() -> None:
    driver = run(gated('{rules: [{when: "{{ ctx.signals.go }}", then: {allow: true}}], timeout: 30}'))
    assert driver.state.status == "failed"
    assert driver.error.kind == "timeout"


def test_a_wait_that_is_asked_again_ends_when_it_would_have_ended() -> None:
    """Asked by a signal, by a write, while paused, and by a step that ends: the time runs from the arrival."""
    rules = "{{ ctx.signals.go == 3 or ctx.go == 3 or steps.other.status == 'failed' }}"
    driver = Driver(
        gated(f'{{rules: [{{when: "{rules}", then: {{allow: true}}}}], on_deny: wait, timeout: 30}}')
    ).start()
    (token,) = driver.state.tokens.values()
    deadline = token.deadline
    assert deadline == driver.now + 30 * SECOND
    parked = driver.names.count("TokenParked")
    for again in (
        lambda: driver.submit(Signal("go", 1)),
        lambda: driver.submit(PatchCtx((Patch(scope="ctx", path=("go",), value=2),))),
        lambda: [driver.submit(Pause()), driver.submit(Signal("go", 2)), driver.submit(Resume())],
        driver.step,
    ):
        driver.now += 5 * SECOND
        again()
        assert driver.names.count("TokenParked") > parked, "it was not asked again"
        parked = driver.names.count("TokenParked")
        assert token.deadline == deadline
    assert driver.timers() == [(deadline, TimerFired(token.id))]
    assert (driver.run().error.kind, driver.now) == ("timeout", deadline)


def test_a_rule_that_raises_ends_the_branch_unhandled_and_others_finish() -> None:
    arcs = "  next: {arcs: [{step: other, when: \"{{ event.name == 'step.failed' }}\"}]}"
    driver = run(gated('{rules: [{when: "{{ 1 / 0 }}", then: {allow: true}}]}', arcs))
    assert driver.state.status == "failed"
    assert driver.error.kind == "expression"
    assert driver.ran == ["work"]


def test_rules_that_read_a_steps_outcome_are_asked_when_it_ends() -> None:
    driver = run(
        gated("{rules: [{when: \"{{ steps.other.status == 'completed' }}\", then: {allow: true}}]}"),
        {"work": 1},
    )
    assert driver.ran == ["work", "inside"]
