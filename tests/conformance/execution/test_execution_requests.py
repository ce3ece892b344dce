"""What the server does with an execution request (000 §4.1)."""

import pytest

import noetl
from tests.conformance.execution.conformance_engine import Engine

GREET = """
workload: {name: World, deep: {a: 1, b: 2}, text: "hello {{ workload.name }}"}
workflow:
- step: start
  tool: {kind: noop, args: {workload: "{{ workload }}", ctx: "{{ ctx }}"}}
"""


@pytest.mark.spec("000 §4.1 (1)")
@pytest.mark.spec("000 §4.1 (4)")
@pytest.mark.spec("000 §4.1 (7)")
@pytest.mark.spec("002 §4")
def test_a_request_is_recorded_then_judged_and_then_the_first_token_goes_out(engine: Engine) -> None:
    ran = engine(GREET, {"name": "Ann"}, ctx={"k": 1}, labels={"team": "a"})
    assert ran.names[:5] == [
        "PlaybookExecutionRequested",
        "PlaybookRequestEvaluated",
        "WorkflowStarted",
        "TokenEnqueued",
        "StepScheduled",
    ]
    requested, evaluated, started, token = (event["data"] for event in ran.events[:4])
    assert (requested["path"], requested["workload"], requested["ctx"], requested["labels"]) == (
        "docs/page",
        {"name": "Ann"},
        {"k": 1},
        {"team": "a"},
    )
    assert evaluated == {"error": None}
    assert started["workload"] == {"name": "Ann", "deep": {"a": 1, "b": 2}, "text": "hello Ann"}
    assert (token["step"], token["args"], token["run"]) == ("start", {}, "")


@pytest.mark.spec("000 §4.1 (5)")
@pytest.mark.spec("001 §5")
def test_the_request_is_merged_over_the_defaults_and_never_rendered(engine: Engine) -> None:
    workload = {"deep": {"b": 3, "c": 4}, "more": "{{ workload.name }}"}
    ran = engine(GREET, workload)
    assert ran.result["workload"] == {
        "name": "World",
        "deep": {"a": 1, "b": 3, "c": 4},
        "text": "hello World",
        "more": "{{ workload.name }}",
    }


@pytest.mark.spec("000 §4.1 (5)")
@pytest.mark.spec("001 §5")
def test_no_step_changes_the_workload_for_the_next(engine: Engine) -> None:
    ran = engine("""
workload: {list: [1], map: {a: 1}}
workflow:
- step: start
  tool:
    kind: python
    args: {list: "{{ workload.list }}", map: "{{ workload.map }}"}
    code: "list.append(2); map['b'] = 2; result = [list, map]"
  next: {arcs: [{step: after, when: "{{ event.name == 'step.done' }}"}]}
- step: after
  tool: {kind: noop, args: {seen: "{{ workload }}"}}
""")
    assert ran.result == {"seen": {"list": [1], "map": {"a": 1}}}
    assert ran.data("StepDone")[0]["result"] == [[1, 2], {"a": 1, "b": 2}]


@pytest.mark.spec("000 §4.1 (6)")
def test_ctx_begins_empty_or_as_the_request_says(engine: Engine) -> None:
    assert engine(GREET).result["ctx"] == {}
    assert engine(GREET, ctx={"a": {"b": 1}}).result["ctx"] == {"a": {"b": 1}}


@pytest.mark.spec("000 §4.1 (3)")
@pytest.mark.spec("000 §11.1")
def test_a_playbook_with_a_wrong_reference_is_refused_and_nothing_runs(engine: Engine) -> None:
    text = "- step: start\n  next: {arcs: [{step: nowhere}]}\n"
    engine.write("p.yaml", text)
    ran = engine.command("run", "p.yaml", "-o", "json")
    assert ran.code == 2
    assert [problem["code"] for problem in ran.json["problems"]] == ["unknown-step"]
    with pytest.raises(noetl.PlaybookInvalid):
        engine(text)
    assert engine.command_output("executions", "list")["executions"] == []


@pytest.mark.spec("000 §4.1 (3)")
@pytest.mark.spec("000 §4.1 (4)")
def test_a_request_that_is_refused_is_recorded_with_the_reason(engine: Engine) -> None:
    """The child's playbook is known only when the task runs, so that it is the request that is judged."""
    engine.write("bad.yaml", "- step: start\n  next: {arcs: [{step: nowhere}]}\n")
    ran = engine(
        "workload: {p: docs/page}\nworkflow:\n- step: start\n  tool: {kind: playbook, path: '{{ workload.p }}'}\n"
    )
    assert (ran.status, ran.error["kind"]) == ("failed", "child_failed")
    children = engine.command_output("executions", "show", ran.execution.execution_id)["children"]
    events = engine.events(children[0]["execution_id"])
    assert [(event["name"], event["status"]) for event in events] == [
        ("PlaybookExecutionRequested", "in_progress"),
        ("PlaybookRequestEvaluated", "error"),
        ("PlaybookProcessed", "error"),
    ]
    assert events[1]["data"]["error"]["kind"] == "input"
    assert "nowhere" in events[1]["data"]["error"]["message"]


@pytest.mark.spec("000 §4.1 (3)")
@pytest.mark.spec("000 §4.1 (4)")
def test_a_workload_that_cannot_be_made_refuses_the_request(engine: Engine) -> None:
    engine.write(
        "p.yaml",
        "workload: {n: 0, m: '{{ 1 / workload.n }}'}\nworkflow:\n- step: start\n  tool: {kind: noop}\n",
    )
    ran = engine.command("run", "p.yaml", "-q", "-o", "json")
    assert ran.code == 1
    assert (ran.json["status"], ran.json["error"]["kind"]) == ("failed", "expression")
    names = [event["name"] for event in engine.events("latest")]
    assert names == ["PlaybookExecutionRequested", "PlaybookRequestEvaluated", "PlaybookProcessed"]
    assert engine.command("run", "p.yaml", "-q", "--set", "n=2").code == 0


VERSIONED = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: team/child, version: "%s"}
workflow:
- step: start
  tool: {kind: noop, args: {version: "%s", got: "{{ workload.n }}"}}
"""


@pytest.mark.spec("000 §4.1 (2)")
def test_a_playbook_is_found_by_its_path_and_version(engine: Engine) -> None:
    for number in ("1", "2"):
        engine.write(f"books/v{number}.yaml", VERSIONED % (number, number))
    text = """
workflow:
- step: start
  tool:
  - {name: old, kind: playbook, path: team/child, version: "1", args: {n: 10}}
  - {name: new, kind: playbook, path: team/child, version: "2", args: {n: 20}}
  - {name: both, kind: noop, args: {old: "{{ old }}", new: "{{ new }}"}}
"""
    ran = engine(text)
    assert ran.result == {"old": {"version": "1", "got": 10}, "new": {"version": "2", "got": 20}}
    for wrong in ('version: "3"', ""):
        with pytest.raises(noetl.CannotRun, match="team/child"):
            engine(text.replace('version: "2"', wrong).replace("child, ,", "child,"))


@pytest.mark.spec("000 §4.1 (2)")
def test_an_execution_keeps_the_playbook_that_it_began_with(engine: Engine) -> None:
    """By its hash: the file may change or go."""
    file = engine.write(
        "p.yaml", "- step: start\n  tool: {kind: python, code: 'result = len(open(\"in\").read())'}\n"
    )
    failed = noetl.run(file)
    assert failed.error is not None
    file.write_text("gone")
    (engine.folder / "in").write_text("four")
    ran = engine.retry(failed.execution_id)
    assert (ran.status, ran.result) == ("completed", 4)
    assert ran.names.count("PlaybookExecutionRequested") == 1


@pytest.mark.spec("000 §4.1 (7)")
@pytest.mark.parametrize(
    ("document", "first"),
    [
        ("workflow:\n- step: b\n  tool: {kind: noop}\n- step: start\n  tool: {kind: noop}\n", "start"),
        ("workflow:\n- step: b\n  tool: {kind: noop}\n- step: a\n  tool: {kind: noop}\n", "b"),
        (
            "executor: {kind: local, spec: {entry_step: a}}\nworkflow:\n- step: start\n  tool: {kind: noop}\n- step: a\n  tool: {kind: noop}\n",
            "a",
        ),
    ],
)
def test_the_first_token_goes_to_the_entry(engine: Engine, document: str, first: str) -> None:
    ran = engine(document)
    assert [data["step"] for data in ran.data("TokenEnqueued")] == [first]
    assert ran.statuses[first] == "completed"


@pytest.mark.spec("000 §4.1 (1)")
def test_the_same_key_asks_for_the_same_execution(engine: Engine) -> None:
    first, second = (engine(GREET, idempotency_key="monday") for _ in range(2))
    assert second.execution.execution_id == first.execution.execution_id
    assert second.names.count("PlaybookExecutionRequested") == 1
