"""Fan-out and fan-in (000 §11.1)."""

import pytest

from tests.conformance.execution.conformance_engine import Engine

DIAMOND = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a, args: {n: 1}}, {step: b, args: {n: 2}}, {step: c, args: {n: 3}}]}
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: meet, args: {a: "{{ args.n }}", last: a}}]}
- step: b
  tool: {kind: noop}
  next: {arcs: [{step: b2, args: {n: "{{ args.n }}"}}]}
- step: b2
  tool: {kind: noop}
  next: {arcs: [{step: meet, args: {b: "{{ args.n }}", last: b}}]}
- step: c
  tool: {kind: noop}
  next: {arcs: [{step: meet, when: "{{ args.n != 3 }}"}]}
- step: meet
  %s
  tool: {kind: noop, args: {args: "{{ args }}", joined: "{{ joined | default([]) }}"}}
"""


def policy(join: str) -> str:
    return DIAMOND % f"spec: {{policy: {{join: {join}}}}}"


@pytest.mark.spec("000 §4.2 (2)")
@pytest.mark.spec("000 §11.1")
def test_without_a_join_each_token_is_a_run(engine: Engine) -> None:
    ran = engine(DIAMOND % "desc: no join")
    assert len(ran.runs("meet")) == 2
    assert [data["args"] for data in ran.data("StepScheduled") if data["step"] == "meet"] == [
        {"a": 1, "last": "a"},
        {"b": 2, "last": "b"},
    ]


@pytest.mark.spec("000 §11.1")
def test_all_runs_once_when_nothing_can_come_any_more(engine: Engine) -> None:
    ran = engine(policy("all"))
    assert ran.result["args"] == {"a": 1, "b": 2, "last": "b"}
    assert ran.result["joined"] == [
        {"step": "a", "args": {"a": 1, "last": "a"}},
        {"step": "b2", "args": {"b": 2, "last": "b"}},
    ]
    (run,) = ran.runs("meet")
    (scheduled,) = [event for event in ran.of("StepScheduled") if event["entity_id"] == run]
    assert len(scheduled["data"]["tokens"]) == 2
    assert max(event["seq"] for event in ran.of("NextEvaluated")) < scheduled["seq"]


@pytest.mark.spec("000 §11.1")
def test_any_runs_on_the_first_and_absorbs_the_rest(engine: Engine) -> None:
    ran = engine(policy("any"))
    assert len(ran.runs("meet")) == 1
    assert ran.result["args"] == {"a": 1, "last": "a"}
    assert [(event["data"]["reason"], event["status"]) for event in ran.of("TokenDiscarded")] == [
        ("absorbed", "success")
    ]
    assert ran.execution.discarded == []


@pytest.mark.spec("000 §11.1")
@pytest.mark.parametrize(("count", "runs", "left"), [(1, 2, 0), (2, 1, 0), (3, 0, 2)])
def test_count_runs_once_for_so_many(engine: Engine, count: int, runs: int, left: int) -> None:
    ran = engine(policy(f"{{count: {count}}}"))
    assert len(ran.runs("meet")) == runs
    assert ran.execution.discarded == [{"step": "meet", "reason": "remainder"}] * left


@pytest.mark.spec("000 §4.4")
@pytest.mark.spec("000 §11.1")
def test_joins_that_wait_for_each_other_are_settled_when_nothing_else_moves(engine: Engine) -> None:
    ran = engine("""
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  spec: {policy: {join: all}}
  tool: {kind: noop}
  next: {arcs: [{step: b, when: "{{ ctx.n is undefined }}", set: {ctx.n: 1}}]}
- step: b
  spec: {policy: {join: all}}
  tool: {kind: noop}
  next: {arcs: [{step: a, when: "{{ ctx.n == 2 }}"}]}
""")
    assert ran.status == "completed"
    assert (len(ran.runs("a")), len(ran.runs("b"))) == (1, 1)
    assert len(ran.data("StepScheduled")[-1]["tokens"]) == 2
