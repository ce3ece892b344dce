"""Arcs, tokens and how an execution ends (000 §4.4, §8; 001 §6.5)."""

import pytest

from tests.conformance.execution.conformance_engine import Engine

ARCS = """
- step: start
  tool: {kind: noop, args: {n: 1}}
  next:
    %s
    arcs:
    - {step: a, when: "{{ event.result.n == 2 }}"}
    - {step: b, when: "{{ event.result.n == 1 }}", args: {from: "{{ event.step }}", n: "{{ event.result.n + 1 }}"}}
    - {step: c}
- step: a
  tool: {kind: noop, args: {at: a}}
- step: b
  tool: {kind: noop, args: {at: b, got: "{{ args }}"}}
- step: c
  tool: {kind: noop, args: {at: c}}
"""


@pytest.mark.spec("000 §8.2")
@pytest.mark.spec("000 §8.3")
@pytest.mark.spec("001 §6.5")
@pytest.mark.parametrize("spec", ["spec: {}", "spec: {mode: exclusive}"])
def test_exclusive_fires_the_first_arc_that_holds(engine: Engine, spec: str) -> None:
    ran = engine(ARCS % spec)
    assert [bool(ran.runs(step)) for step in "abc"] == [False, True, False]
    judged = ran.data("NextEvaluated")[0]
    assert (judged["verdicts"], judged["selected"]) == ([False, True, None], [1])


@pytest.mark.spec("000 §8.2")
@pytest.mark.spec("000 §8.3")
@pytest.mark.spec("001 §6.5")
def test_inclusive_fires_all_arcs_that_hold_in_their_order(engine: Engine) -> None:
    ran = engine(ARCS % "spec: {mode: inclusive}")
    assert [data["step"] for data in ran.data("TokenEnqueued")] == ["start", "b", "c"]
    judged = ran.data("NextEvaluated")[0]
    assert (judged["verdicts"], judged["selected"]) == ([False, True, True], [1, 2])
    assert ran.result == {"at": "c"}


@pytest.mark.spec("000 §8.1")
@pytest.mark.spec("002 §3 (2)")
@pytest.mark.spec("002 §7")
def test_args_are_the_payload_of_the_token(engine: Engine) -> None:
    ran = engine(ARCS % "spec: {}")
    assert ran.result == {"at": "b", "got": {"from": "start", "n": 2}}
    assert ran.data("TokenEnqueued")[1]["args"] == {"from": "start", "n": 2}
    assert ran.data("StepScheduled")[1]["args"] == {"from": "start", "n": 2}


@pytest.mark.spec("000 §8.3")
@pytest.mark.spec("000 §11.1")
@pytest.mark.spec("002 §4")
def test_the_server_judges_the_arcs_upon_the_terminal_event(engine: Engine) -> None:
    ran = engine(ARCS % "spec: {}")
    (done,) = [event for event in ran.of("StepDone") if event["step_run_id"] == ran.runs("start")[0]]
    judged = ran.of("NextEvaluated")[0]
    assert (done["source"], judged["source"]) == ("worker", "server")
    assert judged["seq"] == done["seq"] + 1
    assert judged["data"]["event"] == "step.done"
    assert ran.events[judged["seq"]]["name"] == "TokenEnqueued"


TERMINAL = """
workload: {fail: false, items: [1, 2]}
workflow:
- step: start
  %s
  tool: {name: work, kind: python, args: {fail: "{{ workload.fail }}"}, code: "result = 1 // (not fail)"}
  next:
    spec: {mode: inclusive}
    arcs:
    - {step: done, when: "{{ event.name == 'step.done' }}"}
    - {step: loop, when: "{{ event.name == 'loop.done' }}"}
    - {step: failed, when: "{{ event.name == 'step.failed' }}", args: {kind: "{{ event.error.kind }}"}}
- step: done
  tool: {kind: noop}
- step: loop
  tool: {kind: noop}
- step: failed
  tool: {kind: noop, args: {kind: "{{ args.kind }}"}}
"""
LOOP = 'loop: {in: "{{ workload.items }}", iterator: item}'


@pytest.mark.spec("000 §8.3")
@pytest.mark.spec("000 §7.3")
@pytest.mark.parametrize(
    ("loop", "fail", "event", "taken"),
    [
        ("desc: plain", False, "step.done", "done"),
        ("desc: plain", True, "step.failed", "failed"),
        (LOOP, False, "loop.done", "loop"),
        (LOOP, True, "step.failed", "failed"),
    ],
)
def test_each_terminal_event_is_routed(engine: Engine, loop: str, fail: bool, event: str, taken: str) -> None:
    engine.write("p.yaml", TERMINAL % loop)
    ran = engine.command("run", "p.yaml", "-q", "-o", "json", "--set", f"fail={str(fail).lower()}")
    assert (ran.code, ran.json["status"]) == (0, "completed"), "the failure is handled"
    steps = {name for name, step in ran.json["steps"].items() if step["status"] == "completed"}
    assert steps - {"start"} == {taken}
    judged = next(event for event in engine.events("latest") if event["name"] == "NextEvaluated")
    assert (judged["data"]["event"], judged["data"]["handled"]) == (event, True)


FAILING = """
- step: start
  tool: {kind: python, code: "raise ValueError('no')"}
  next: {arcs: [%s]}
- step: after
  tool: {kind: noop, args: {ran: true}}
"""


@pytest.mark.spec("000 §8.1")
@pytest.mark.parametrize(
    ("arc", "status"),
    [
        ("{step: after}", "failed"),
        ("{step: after, when: \"{{ event.status == 'error' }}\"}", "completed"),
        ("{step: after, when: \"{{ event.error.kind == 'python' }}\"}", "completed"),
    ],
)
def test_an_arc_without_a_guard_takes_a_failure_along_but_does_not_handle_it(
    engine: Engine, arc: str, status: str
) -> None:
    ran = engine(FAILING % arc)
    assert (ran.status, ran.statuses["after"]) == (status, "completed")
    assert ran.data("NextEvaluated")[0]["handled"] is (status == "completed")


@pytest.mark.spec("000 §8.2")
@pytest.mark.spec("000 §4.4")
def test_where_no_arc_holds_the_branch_ends(engine: Engine) -> None:
    text = """
%s
workflow:
- step: start
  tool: {kind: noop, args: {n: 1}}
  next: {arcs: [{step: after, when: "{{ event.result.n == 2 }}"}]}
- step: after
  tool: {kind: noop}
"""
    ran = engine(text % "workload: {}")
    assert (ran.status, ran.result) == ("completed", {"n": 1})
    assert ran.data("NextEvaluated")[0]["selected"] == []
    strict = engine(text % "executor: {kind: local, spec: {no_next_is_error: true}}")
    assert strict.status == "failed"


@pytest.mark.spec("000 §8.3")
@pytest.mark.parametrize("broken", ['when: "{{ 1 / 0 }}"', 'args: {x: "{{ event.result.missing }}"}'])
def test_an_arc_that_cannot_be_judged_ends_that_branch_alone(engine: Engine, broken: str) -> None:
    ran = engine(f"""
- step: start
  next: {{spec: {{mode: inclusive}}, arcs: [{{step: one}}, {{step: two}}]}}
- step: one
  tool: {{kind: noop, args: {{n: 1}}}}
  next: {{arcs: [{{step: two, {broken}}}]}}
- step: two
  tool: {{kind: noop, args: {{n: 2}}}}
""")
    assert (ran.status, ran.error["kind"], ran.error["step"]) == ("failed", "expression", "one")
    assert len(ran.runs("two")) == 1
    assert [event["status"] for event in ran.of("NextEvaluated")] == ["success", "error"]


@pytest.mark.spec("000 §11.1")
def test_a_step_without_tools_routes_by_itself(engine: Engine) -> None:
    ran = engine("""
- step: start
  next: {arcs: [{step: end, args: {n: 5}}]}
- step: end
  tool: {kind: noop, args: {n: "{{ args.n }}"}}
""")
    assert ran.result == {"n": 5}
    assert [event["source"] for event in ran.of("StepDone")] == ["server", "worker"]
    assert len(ran.of("TokenClaimed")) == 1


@pytest.mark.spec("000 §8.1")
def test_a_graph_may_go_in_circles(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool: {kind: noop, args: {n: "{{ args.n | default(0) }}"}}
  next:
    arcs:
    - {step: start, when: "{{ event.result.n < 5 }}", args: {n: "{{ event.result.n + 1 }}"}}
    - {step: end}
- step: end
  tool: {kind: noop, args: {n: "{{ start.n }}"}}
""")
    assert ran.result == {"n": 5}
    assert ran.execution.steps["start"]["runs"] == 6


@pytest.mark.spec("000 §4.4")
def test_an_endless_graph_is_ended_by_its_limit(engine: Engine) -> None:
    ran = engine("""
executor: {kind: local, spec: {max_step_runs: 20}}
workflow:
- step: start
  tool: {kind: noop}
  next: {arcs: [{step: start}]}
""")
    assert (ran.status, ran.error["kind"]) == ("failed", "limit")


@pytest.mark.spec("000 §4.4")
@pytest.mark.spec("002 §4")
def test_the_workflow_ends_when_no_token_is_left(engine: Engine) -> None:
    ran = engine(ARCS % "spec: {mode: inclusive}")
    assert ran.names[-2:] == ["WorkflowFinished", "PlaybookProcessed"]
    assert [event["status"] for event in ran.events[-2:]] == ["success", "success"]
    assert [event["source"] for event in ran.events[-2:]] == ["server", "server"]
    assert [name for name in ran.names if name in ("WorkflowFinished", "PlaybookProcessed")] == ran.names[-2:]
    tokens = {event["entity_id"] for event in ran.of("TokenEnqueued")}
    taken = {token for event in ran.of("StepScheduled") for token in event["data"]["tokens"]}
    assert tokens == taken


@pytest.mark.spec("000 §4.4")
def test_a_failed_branch_ends_the_execution_failed_when_the_others_are_done(engine: Engine) -> None:
    ran = engine("""
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: bad}, {step: good}]}
- step: bad
  tool: {name: broken, kind: python, code: "raise KeyError('k')"}
- step: good
  tool: {kind: noop, args: {n: 1}}
  next: {arcs: [{step: last}]}
- step: last
  tool: {kind: noop}
""")
    assert (ran.status, ran.statuses["last"]) == ("failed", "completed")
    assert ran.error == {
        "step": "bad",
        "task": "broken",
        "attempt": 1,
        "kind": "python",
        "message": "KeyError: 'k'",
    }
    assert [event["status"] for event in ran.events[-2:]] == ["error", "error"]
    assert ran.data("PlaybookProcessed")[0]["status"] == "failed"


@pytest.mark.spec("000 §4.4")
def test_the_final_step_runs_once_at_the_end_and_leaves_the_result(engine: Engine) -> None:
    text = """
executor: {kind: local, spec: {final_step: clean}}
workload: {fail: false}
workflow:
- step: start
  tool: {kind: python, args: {fail: "{{ workload.fail }}"}, code: "result = 7 // (not fail)"}
- step: clean
  tool: {kind: noop, args: {status: "{{ args.status }}"}, set: {ctx.seen: "{{ outcome.result.status }}"}}
"""
    good, bad = engine(text), engine(text, {"fail": True})
    assert (good.status, good.result, good.ctx["seen"]) == ("completed", 7, "completed")
    assert (bad.status, bad.error["step"], bad.ctx["seen"]) == ("failed", "start", "failed")
    assert [data["final"] for data in good.data("StepScheduled")] == [False, True]
    broken = engine(
        text.replace("{kind: noop, args: {status", "{kind: noop, args: {x: '{{ 1 / 0 }}', status")
    )
    assert (broken.status, broken.error["step"]) == ("failed", "clean")


@pytest.mark.spec("000 §4.4")
@pytest.mark.parametrize(
    ("executor", "result"),
    [("{kind: local}", {"at": "c"}), ('{kind: local, spec: {output: "{{ start.n + b.got.n }}"}}', 3)],
)
def test_the_result_is_the_output_or_that_of_the_last_branch(
    engine: Engine, executor: str, result: object
) -> None:
    ran = engine(f"executor: {executor}\nworkflow:{ARCS % 'spec: {mode: inclusive}'}")
    assert ran.result == result
    assert ran.data("PlaybookProcessed")[0]["result"] == result
