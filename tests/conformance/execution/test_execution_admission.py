"""The gate in front of a step, and what follows when it opens (000 §4.2, 001 §6.2)."""

import pytest

from noetl.kernel.net.commands import Signal
from tests.conformance.execution.conformance_engine import Engine, LiveConversation

GATE = """
- step: start
  tool: {kind: noop}
  next:
    spec: {mode: inclusive}
    arcs: [{step: gate, args: {x: 1}}, {step: other}]
- step: gate
  spec: {policy: {admit: %s}}
  tool: {kind: noop, args: {inside: true}}
- step: other
  tool: {name: write, kind: noop, args: {n: 1}, set: {ctx.go: "{{ outcome.result.n }}"}}
"""
ON_CTX = '{rules: [{when: "{{ ctx.go == %d }}", then: {allow: true}}]%s}'


@pytest.mark.spec("000 §4.2 (1)")
@pytest.mark.spec("000 §4.2 (4)")
@pytest.mark.spec("000 §11.1")
@pytest.mark.spec("001 §6.2")
@pytest.mark.parametrize(
    ("rules", "allowed"),
    [
        ('{when: "{{ args.x == 1 }}", then: {allow: true}}, {else: {then: {allow: false}}}', True),
        ('{when: "{{ args.x == 2 }}", then: {allow: true}}, {else: {then: {allow: false}}}', False),
        ('{when: "{{ args.x == 1 }}", then: {allow: false}}, {when: true, then: {allow: true}}', False),
        ('{when: "{{ args.x == 2 }}", then: {allow: true}}', False),
        ('{else: , then: {allow: true}}, {when: "{{ args.x == 2 }}", then: {allow: false}}', True),
    ],
)
def test_the_first_rule_that_holds_decides(engine: Engine, rules: str, allowed: bool) -> None:
    ran = engine(GATE % f"{{rules: [{rules}]}}")
    assert bool(ran.runs("gate")) is allowed
    assert ran.status == "completed"
    if not allowed:
        assert ran.statuses["gate"] == "not_admitted"
        assert ran.execution.discarded == [{"step": "gate", "reason": "parked"}]


@pytest.mark.spec("000 §4.2 (5)")
@pytest.mark.spec("001 §6.2")
def test_without_admission_every_token_enters(engine: Engine) -> None:
    ran = engine(GATE.replace("  spec: {policy: {admit: %s}}\n", ""))
    assert len(ran.runs("gate")) == 1
    assert "TokenParked" not in ran.names


@pytest.mark.spec("000 §4.2 (2)")
@pytest.mark.spec("000 §4.3 (1)")
@pytest.mark.spec("002 §3 (1)")
@pytest.mark.spec("002 §4")
def test_an_admitted_token_becomes_a_run_that_one_worker_claims(engine: Engine) -> None:
    ran = engine(GATE % '{rules: [{when: "{{ args.x == 1 }}", then: {allow: true}}]}')
    for step in ("start", "gate", "other"):
        (run,) = ran.runs(step)
        (scheduled,) = [event for event in ran.of("StepScheduled") if event["entity_id"] == run]
        (claimed,) = [event for event in ran.of("TokenClaimed") if event["step_run_id"] == run]
        (token,) = [event for event in ran.of("TokenEnqueued") if event["data"]["step"] == step]
        assert scheduled["data"]["tokens"] == [token["entity_id"]] == [claimed["entity_id"]]
        assert (scheduled["source"], claimed["source"]) == ("server", "server")
        assert token["seq"] < scheduled["seq"] < claimed["seq"]
        assert claimed["worker"]
        first = next(event for event in ran.of("TaskStarted") if event["step_run_id"] == run)
        assert claimed["seq"] < first["seq"]
    assert [event["data"]["args"] for event in ran.of("StepScheduled")][1:] == [{"x": 1}, {}]


@pytest.mark.spec("000 §4.2 (3)")
def test_what_the_gate_decides_is_recorded(engine: Engine) -> None:
    parked = engine(GATE % (ON_CTX % (2, "")))
    dropped = engine(GATE % (ON_CTX % (1, ", on_deny: drop")))
    admitted = engine(GATE % (ON_CTX % (1, "")))
    assert [data["mode"] for data in parked.data("TokenParked")] == ["park", "park"]
    assert [data["reason"] for data in parked.data("TokenDiscarded")] == ["parked"]
    assert [data["reason"] for data in dropped.data("TokenDiscarded")] == ["denied"]
    assert not dropped.runs("gate")
    assert admitted.names.count("TokenParked") == 1
    assert len(admitted.runs("gate")) == 1


@pytest.mark.spec("000 §4.2 (1)")
def test_a_parked_token_is_asked_again_when_what_it_waits_for_comes(engine: Engine) -> None:
    ran = engine(GATE % (ON_CTX % (1, "")))
    assert ran.statuses == {"start": "completed", "gate": "completed", "other": "completed"}
    assert ran.names.index("TokenParked") < ran.events.index(
        next(event for event in ran.of("StepScheduled") if event["data"]["step"] == "gate")
    )


@pytest.mark.spec("000 §4.2 (3)")
def test_a_gate_may_fail_the_step_and_the_steps_arcs_see_it(engine: Engine) -> None:
    text = GATE % (ON_CTX % (2, ", on_deny: fail"))
    assert engine(text).error["kind"] == "admission"
    handled = text.replace(
        "inside: true}}\n",
        "inside: true}}\n  next: {arcs: [{step: other, when: \"{{ event.error.kind == 'admission' }}\"}]}\n",
    )
    ran = engine(handled)
    assert (ran.status, ran.statuses["gate"]) == ("completed", "failed")
    assert ran.of("StepFailed")[0]["source"] == "server"


@pytest.mark.spec("000 §4.2 (1)")
@pytest.mark.spec("000 §11.1")
def test_a_gate_may_wait_for_a_signal(engine: Engine) -> None:
    async def approve(talk: LiveConversation) -> None:
        await talk.wait_for("TokenParked")
        await talk.wait_for("TaskProcessed", 2)
        await talk.local.submit(talk.id, Signal("approved", {"by": "ann"}))

    ran = engine.run_with(
        GATE % '{rules: [{when: "{{ ctx.signals.approved }}", then: {allow: true}}]}', approve
    )
    assert ran.status == "completed"
    assert ran.data("TokenParked")[0]["mode"] == "wait"
    (received,) = ran.of("SignalReceived")
    (run,) = ran.runs("gate")
    assert received["seq"] < int(run[1:])
    assert ran.ctx["signals"]["approved"] == {"by": "ann"}


@pytest.mark.spec("000 §4.2 (1)")
def test_a_wait_at_the_gate_may_time_out(engine: Engine) -> None:
    ran = engine(GATE % '{rules: [{when: "{{ ctx.signals.approved }}", then: {allow: true}}], timeout: 0.05}')
    assert (ran.status, ran.error["kind"], ran.error["step"]) == ("failed", "timeout", "gate")


@pytest.mark.spec("000 §4.2 (1)")
def test_a_gate_that_cannot_be_judged_ends_its_branch_alone(engine: Engine) -> None:
    ran = engine(GATE % '{rules: [{when: "{{ 1 / (args.x - 1) }}", then: {allow: true}}]}')
    assert (ran.status, ran.error["kind"], ran.error["step"]) == ("failed", "expression", "gate")
    assert ran.statuses["other"] == "completed"
