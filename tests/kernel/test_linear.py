"""From the request to the end along arcs."""

import pytest

from noetl.events.bodies import (
    NextEvaluated,
    PlaybookRequestEvaluated,
    StepDone,
    StepScheduled,
    WorkflowStarted,
)
from noetl.kernel.net.commands import Cancel, Command, Request, Signal
from noetl.kernel.net.decider import MAX_EVENTS_AT_ONCE
from noetl.model.outcome import ErrorInfo
from tests.kernel.driver import Driver, error, run

CHAIN = """
- step: start
  tool: {kind: noop, args: {n: 1}}
  next: {arcs: [{step: middle, args: {n: "{{ event.result.n + 1 }}"}}]}
- step: middle
  tool: {kind: noop, args: {n: "{{ args.n + 1 }}"}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop}
""".lstrip()


@pytest.mark.spec("000 §4.1 (1)")
@pytest.mark.spec("000 §4.1 (4)")
@pytest.mark.spec("000 §4.1 (7)")
def test_a_request_is_recorded_judged_and_sends_the_first_token() -> None:
    driver = Driver(CHAIN).start()
    assert driver.names == [
        "PlaybookExecutionRequested",
        "PlaybookRequestEvaluated",
        "WorkflowStarted",
        "TokenEnqueued",
        "StepScheduled",
    ]


@pytest.mark.spec("000 §4.4")
@pytest.mark.spec("000 §8.1")
def test_a_chain_runs_to_its_end_and_keeps_the_result_through_noop() -> None:
    driver = run(CHAIN)
    assert driver.state.status == "completed"
    assert driver.state.result == {"n": 3}
    assert driver.names[-2:] == ["WorkflowFinished", "PlaybookProcessed"]
    assert driver.statuses == {"start": "completed", "middle": "completed", "end": "completed"}


@pytest.mark.spec("000 §4.2 (3)")
@pytest.mark.spec("000 §8.3")
def test_the_selection_of_arcs_is_recorded() -> None:
    driver = run(CHAIN)
    first = driver.bodies(NextEvaluated)[0]
    assert (first.event, first.verdicts, first.selected) == ("step.done", (True,), (0,))


def test_a_refused_request_is_recorded_and_ends_failed() -> None:
    driver = Driver(CHAIN)
    driver.submit(Request(error=ErrorInfo(kind="not_found", message="no such version")))
    assert driver.names == ["PlaybookExecutionRequested", "PlaybookRequestEvaluated", "PlaybookProcessed"]
    assert driver.state.status == "failed"
    assert driver.bodies(PlaybookRequestEvaluated)[0].error.kind == "not_found"


@pytest.mark.spec("000 §4.1 (5)")
@pytest.mark.spec("001 §5")
def test_the_request_is_laid_over_rendered_defaults() -> None:
    text = """
workload:
  host: example.org
  url: "https://{{ workload.host }}/{{ execution_id }}"
  limits: {a: 1, b: [1, 2]}
workflow:
- step: start
  tool: {kind: noop}
""".lstrip()
    driver = run(text, workload={"host": "{{ not.rendered }}", "limits": {"b": [3]}, "more": 1})
    workload = driver.bodies(WorkflowStarted)[0].workload
    assert workload["host"] == "{{ not.rendered }}"
    assert workload["url"].startswith("https://{{ not.rendered }}/")
    assert workload["limits"] == {"a": 1, "b": [3]}
    assert workload["more"] == 1


def test_defaults_that_raise_refuse_the_request() -> None:
    driver = run('workload: {a: "{{ 1 / 0 }}"}\nworkflow:\n- step: start\n  tool: {kind: noop}\n')
    assert driver.state.status == "failed"
    assert driver.state.error is not None
    assert driver.state.error.kind == "expression"


@pytest.mark.spec("000 §4.1 (6)")
def test_ctx_is_empty_unless_the_request_gives_it() -> None:
    assert run(CHAIN).ctx == {}
    assert run(CHAIN, ctx={"a": 1}).ctx == {"a": 1}


ROUTER = """
- step: start
  tool: {{kind: noop, args: {{n: 5}}}}
  next:
    spec: {{mode: {mode}}}
    arcs:
    - {{step: a, when: "{{{{ event.result.n > 9 }}}}"}}
    - {{step: b, when: "{{{{ event.result.n > 3 }}}}"}}
    - {{step: c, when: "{{{{ event.result.n > 1 }}}}"}}
- step: a
  tool: {{kind: noop}}
- step: b
  tool: {{kind: noop}}
- step: c
  tool: {{kind: noop}}
""".lstrip()


@pytest.mark.spec("000 §8.2")
def test_exclusive_fires_the_first_arc_that_matches_and_asks_no_further() -> None:
    driver = run(ROUTER.format(mode="exclusive"))
    assert set(driver.statuses) == {"start", "b"}
    assert driver.bodies(NextEvaluated)[0].verdicts == (False, True, None)


@pytest.mark.spec("000 §8.2")
def test_inclusive_fires_every_arc_that_matches() -> None:
    driver = run(ROUTER.format(mode="inclusive"))
    assert set(driver.statuses) == {"start", "b", "c"}
    assert driver.bodies(NextEvaluated)[0].selected == (1, 2)


def test_the_result_is_that_of_the_last_branch_in_document_order() -> None:
    text = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: b}, {step: a}]}
- step: a
  tool: {kind: noop, args: {from: a}}
- step: b
  tool: {kind: noop, args: {from: b}}
""".lstrip()
    assert run(text).state.result == {"from": "b"}


def test_a_step_without_tools_is_completed_by_the_server() -> None:
    driver = run("- step: start\n  next: {arcs: [{step: b}]}\n- step: b\n  tool: {kind: noop}\n")
    done = driver.bodies(StepDone)[0]
    assert done.source == "server"
    assert driver.ran == ["task_0"]


def test_no_matching_arc_ends_the_branch() -> None:
    text = "- step: start\n  tool: {kind: noop, args: {a: 1}}\n  next: {arcs: [{step: b, when: false}]}\n- step: b\n  tool: {kind: noop}\n"
    driver = run(text)
    assert (driver.state.status, driver.state.result) == ("completed", {"a": 1})


def test_no_matching_arc_can_be_made_a_failure() -> None:
    text = """
executor: {kind: local, spec: {no_next_is_error: true}}
workflow:
- step: start
  tool: {kind: noop}
  next: {arcs: [{step: b, when: "{{ event.result == 1 }}"}]}
- step: b
  tool: {kind: noop}
""".lstrip()
    driver = run(text)
    assert driver.state.status == "failed"
    assert "no arc of `start` matches" in driver.error.message


def test_where_no_matching_arc_is_a_failure_a_step_without_arcs_still_ends_its_branch() -> None:
    text = """
executor: {kind: local, spec: {no_next_is_error: true}}
workflow:
- step: start
  tool: {kind: noop, args: {n: 1}}
  next: {arcs: [{step: b}]}
- step: b
  tool: {kind: noop}
""".lstrip()
    driver = run(text)
    assert (driver.state.status, driver.state.result) == ("completed", {"n": 1})
    failing = run(
        text.replace("args: {n: 1}", 'args: {n: "{{ 1 / 0 }}"}').replace("  next: {arcs: [{step: b}]}\n", "")
    )
    assert (failing.state.status, failing.error.kind) == ("failed", "expression")


def test_by_earlier_rules_a_step_without_arcs_fails_where_no_matching_arc_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("noetl.kernel.net.execution_request.DECIDER", 4)
    driver = run(
        """
executor: {kind: local, spec: {no_next_is_error: true}}
workflow:
- step: start
  tool: {kind: noop}
""".lstrip()
    )
    assert (driver.state.status, driver.error.kind) == ("failed", "policy")


def test_arcs_write_before_their_token_is_made() -> None:
    text = """
- step: start
  tool: {kind: noop, args: {n: 2}}
  next:
    arcs:
    - {step: b, set: {ctx.n: "{{ event.result.n }}"}, args: {m: "{{ ctx.n + 1 }}"}}
- step: b
  tool: {kind: noop, args: {m: "{{ args.m }}", n: "{{ ctx.n }}"}}
""".lstrip()
    assert run(text).state.result == {"m": 3, "n": 2}


def test_a_step_writes_at_its_terminal_event() -> None:
    text = """
- step: start
  tool: {kind: noop, args: {n: 2}}
  set: {ctx.seen: "{{ event.name }} {{ event.result.n }}"}
""".lstrip()
    assert run(text).ctx == {"seen": "step.done 2"}


def test_a_steps_args_are_defaults_under_the_tokens() -> None:
    text = """
- step: start
  next: {arcs: [{step: b, args: {x: 1}}]}
- step: b
  args: {x: 7, y: "{{ args.x + 1 }}"}
  tool: {kind: noop, args: {x: "{{ args.x }}", y: "{{ args.y }}"}}
""".lstrip()
    driver = run(text)
    assert driver.state.result == {"x": 1, "y": 2}
    assert driver.bodies(StepScheduled)[1].args == {"x": 1, "y": 2}


def test_a_guard_that_raises_ends_its_branch_unhandled_and_others_finish() -> None:
    text = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  tool: {kind: noop}
  next: {arcs: [{step: c, when: "{{ 1 / 0 }}"}]}
- step: b
  tool: {kind: noop}
  next: {arcs: [{step: c}]}
- step: c
  tool: {kind: noop}
""".lstrip()
    driver = run(text)
    assert driver.state.status == "failed"
    assert driver.error.kind == "expression"
    assert driver.error.details["step"] == "a"
    assert driver.state.summaries["c"].runs == 1


def test_output_names_the_result_of_the_execution() -> None:
    text = """
executor: {kind: local, spec: {output: "{{ {'n': ctx.n, 'was': start.a} }}"}}
workflow:
- step: start
  tool: {kind: noop, args: {a: 1}}
  set: {ctx.n: 4}
""".lstrip()
    assert run(text).state.result == {"n": 4, "was": 1}


def test_an_endless_graph_is_bounded() -> None:
    text = """
executor: {kind: local, spec: {max_step_runs: 5}}
workflow:
- step: start
  tool: {kind: noop}
  next: {arcs: [{step: start, when: "{{ ctx.stop is not defined }}"}]}
""".lstrip()
    driver = run(text)
    assert driver.state.status == "failed"
    assert driver.error.kind == "limit"
    assert driver.state.scheduled == 5


HANDLED = """
- step: start
  tool: [{{work: {{kind: python, code: "1"}}}}]
  next: {{arcs: [{{step: after{guard}}}]}}
- step: after
  tool: {{kind: noop}}
""".lstrip()


def test_a_failure_is_handled_only_by_an_arc_that_looks_at_it() -> None:
    handled = run(HANDLED.format(guard=", when: \"{{ event.name == 'step.failed' }}\""), {"work": error()})
    assert handled.state.status == "completed"
    unseen = run(HANDLED.format(guard=""), {"work": error()})
    assert unseen.state.status == "failed"
    assert unseen.statuses == {"start": "failed", "after": "completed"}


def test_the_error_of_a_failed_execution_says_where() -> None:
    driver = run(HANDLED.format(guard=", when: false"), {"work": error("sql", "no table")})
    failure = driver.state.error
    assert failure is not None
    assert (failure.kind, failure.message) == ("sql", "no table")
    assert failure.details == {"step": "start", "task": "work", "attempt": 1}


FINAL = """
executor: {kind: local, spec: {final_step: last}}
workflow:
- step: start
  tool: {kind: python, code: "1"}
- step: last
  tool:
  - note: {kind: python, code: "1", args: {status: "{{ args.status }}"}}
""".lstrip()


def test_the_final_step_runs_once_and_never_replaces_the_result() -> None:
    driver = run(FINAL, {"task_0": 7, "note": 8})
    assert driver.state.result == 7
    assert [call.args["status"] for call in driver.calls if call.task.label == "note"] == ["completed"]


def test_the_final_step_runs_after_a_failure_and_its_own_failure_fails() -> None:
    after = run(FINAL, {"task_0": error()})
    assert [call.args["status"] for call in after.calls if call.task.label == "note"] == ["failed"]
    driver = run(FINAL, {"task_0": 7, "note": error("sql", "gone")})
    assert driver.state.status == "failed"
    assert driver.error.details["step"] == "last"


def test_a_long_way_without_tools_is_recorded_in_several_appends() -> None:
    text = """
executor: {kind: local, spec: {max_step_runs: 4000}}
workflow:
- step: start
  next: {arcs: [{step: start, when: "{{ ctx.stop is not defined }}"}]}
""".lstrip()
    driver = run(text)
    assert driver.error.kind == "limit"
    assert len(driver.appends) == 2
    assert len(driver.events) > MAX_EVENTS_AT_ONCE


CUT = """
executor: {kind: local, spec: {final_step: last}}
workflow:
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: held}, {step: held}, {step: ask}]}
- step: held
  spec: {policy: {admit: {rules: [{when: "{{ ctx.open }}", then: {allow: true}}]}}}
  tool: {kind: noop}
- step: ask
  tool: {kind: wait, signal: go}
- step: last
  tool: {kind: noop}
""".lstrip()


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("command", [Signal("go"), Cancel()])
def test_wherever_an_append_is_cut_the_execution_goes_on(
    most: int, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    uncut = run(CUT)
    uncut.submit(command)
    monkeypatch.setattr("noetl.kernel.net.decider.MAX_EVENTS_AT_ONCE", most)
    cut = run(CUT)
    cut.submit(command)
    assert uncut.run().status == cut.run().status
    assert cut.state.over
    assert cut.names == uncut.names
    assert len(cut.appends) > len(uncut.appends)
