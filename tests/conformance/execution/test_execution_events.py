"""The event log, as the command line shows it (000 §9, §10; 003 §9)."""

import json
import re
from datetime import datetime

import pytest

import noetl
from noetl.events.event_kind import EVENT_KINDS
from tests.conformance.execution.conformance_engine import Engine
from tests.events.standard_events import BY_SERVER, BY_WORKER
from tests.playbooks import document_of

RICH = """
workload: {items: [1, 2]}
workflow:
- step: start
  tool: {name: work, kind: python, code: "result = 1"}
  next: {spec: {mode: inclusive}, arcs: [{step: each}, {step: fails}, {step: gate}, {step: waits}]}
- step: each
  loop: {in: "{{ workload.items }}", iterator: item}
  tool: {name: one, kind: noop}
- step: fails
  tool: {name: wrong, kind: python, code: "1 / 0"}
  next: {arcs: [{step: after, when: "{{ event.name == 'step.failed' }}"}]}
- step: gate
  spec: {policy: {admit: {rules: [{when: "{{ ctx.open }}", then: {allow: true}}]}}}
  tool: {kind: noop}
- step: waits
  tool: {kind: wait, seconds: 0.01}
- step: after
  tool: {kind: noop}
"""


@pytest.mark.spec("000 §10.1")
@pytest.mark.spec("000 §10.2")
@pytest.mark.spec("000 §4.3 (4)")
@pytest.mark.spec("003 §9.2")
@pytest.mark.spec("002 §1")
@pytest.mark.spec("003 §9.1")
def test_every_transition_is_an_event_with_the_whole_envelope(engine: Engine) -> None:
    """By the real command: a run in a process of its own, and its events read by another."""
    engine.write("p.yaml", RICH)
    ran = engine.command("run", "p.yaml", "-q", "-o", "json")
    assert (ran.code, ran.err) == (0, "")
    events = engine.command("executions", "events", "latest", "-o", "json").json["events"]
    execution = ran.json["execution_id"]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1)), "no gaps"
    kinds = {kind.body.__name__: kind for kind in EVENT_KINDS}
    for event in events:
        assert event["execution_id"] == execution
        assert event["event_id"] == f"{execution}/{event['seq']}"
        assert datetime.fromisoformat(event["timestamp"]).utcoffset() is not None
        assert event["source"] in ("server", "worker")
        assert event["entity"] in ("playbook", "workflow", "step", "task", "loop", "next")
        assert event["entity"] == kinds[event["name"]].entity
        assert event["status"] in ("in_progress", "success", "error", "paused")
        assert event["entity_id"]
        assert isinstance(event["data"], dict)
        assert event["trace_id"] == execution.replace("-", "")
        if event["name"] in BY_SERVER:
            assert event["source"] == "server"
        if event["name"] in BY_WORKER:
            assert event["source"] == "worker"
    assert sorted(events, key=lambda event: event["timestamp"]) == events
    names = {event["name"] for event in events}
    assert names >= BY_SERVER | BY_WORKER
    assert {event["status"] for event in events} == {"in_progress", "success", "error", "paused"}


@pytest.mark.spec("000 §10.1")
@pytest.mark.spec("003 §9.3")
def test_events_name_what_they_belong_to(engine: Engine) -> None:
    ran = engine(RICH)
    tokens = {event["entity_id"]: event for event in ran.of("TokenEnqueued")}
    runs = {event["entity_id"]: event for event in ran.of("StepScheduled")}
    assert all(re.fullmatch(r"t\d+", name) for name in tokens)
    assert all(re.fullmatch(r"r\d+", name) for name in runs)
    for event in runs.values():
        assert event["parent_id"] in tokens
    for event in list(tokens.values())[1:]:
        assert event["parent_id"] in runs
    attempts = {event["task_run_id"] for event in ran.of("TaskStarted")}
    assert attempts == {event["task_run_id"] for event in ran.of("TaskProcessed")}
    assert len(attempts) == len(ran.of("TaskStarted"))
    for event in ran.of(
        "TaskStarted", "TaskProcessed", "LoopDone", "StepDone", "StepFailed", "NextEvaluated"
    ):
        assert event["step_run_id"] in runs
    indexes = [event["entity_id"] for event in ran.of("LoopIterationStarted")]
    assert [name.split("/")[1] for name in indexes] == ["0", "1"]


@pytest.mark.spec("000 §10.1")
@pytest.mark.spec("000 §11.1")
@pytest.mark.spec("002 §7")
def test_the_log_is_only_ever_added_to(engine: Engine) -> None:
    """Other executions, reading, verifying and going on change nothing that was written."""
    ran = engine("- step: start\n  tool: {kind: python, code: 'result = len(open(\"in\").read())'}\n")
    engine(RICH)
    engine.command_output("executions", "verify", ran.execution.execution_id)
    assert engine.events(ran.execution.execution_id) == ran.events
    (engine.folder / "in").write_text("four")
    retried = engine.retry(ran.execution.execution_id)
    assert (retried.status, retried.result) == ("completed", 4)
    assert retried.events[: len(ran.events)] == ran.events
    assert retried.events[len(ran.events)]["name"] == "ExecutionRetried"


@pytest.mark.spec("000 §10.3")
def test_the_state_follows_from_the_events(engine: Engine) -> None:
    ran = engine(RICH)
    execution = engine.command_output("executions", "show", "latest")
    last = engine.command_output("executions", "replay", "latest")
    for step in execution["steps"].values():
        assert step.pop("duration_ms") >= 0  # `show` tells more
        assert step.pop("failed", 0) == (step["status"] == "failed")
    for name in ("status", "result", "ctx", "steps", "discarded"):
        assert last[name] == execution[name] == getattr(ran.execution, name)
    for event in ran.events:
        state = engine.command_output("executions", "replay", "latest", "--at", str(event["seq"]))
        assert state["at"] == event["seq"]
        if event["name"] == "StepScheduled":
            assert state["marking"][event["data"]["step"]]["ready"] >= 1, "a run that may be claimed"
        if event["name"] == "TokenEnqueued":
            assert state["marking"][event["data"]["step"]]["enqueued"] == 1, "a token on its way"
        if event["name"] == "LoopIterationStarted":
            (run,) = [step_run for step_run in state["runs"] if step_run["step"] == "each"]
            assert run["run"] == event["step_run_id"]
    verified = engine.command_output("executions", "verify", "latest")
    assert (verified["ok"], verified["events"]) == (True, len(ran.events))


@pytest.mark.spec("000 §10.3")
@pytest.mark.spec("003 §3.2")
def test_ctx_is_what_its_patches_make_of_it(engine: Engine) -> None:
    ran = engine("""
- step: start
  loop: {in: [1, 2, 3], iterator: item}
  tool: {kind: noop, set: {ctx.last: "{{ item }}", ctx.deep.sum: "{{ ctx.deep.sum | default(0) + item }}"}}
""")
    ctx: dict[str, object] = {}
    for patch in (patch for data in ran.data("TaskProcessed") for patch in data["patches"]):
        mapping: dict[str, object] = ctx
        for key in patch["path"][:-1]:
            mapping = mapping.setdefault(key, {})  # type: ignore[assignment]  # all on the way are mappings
        mapping[patch["path"][-1]] = patch["value"]
    assert ctx == ran.ctx == {"last": 3, "deep": {"sum": 6}}


@pytest.mark.spec("000 §10.2")
@pytest.mark.parametrize("name", ["StepDone", "step.done"])
def test_events_are_found_by_both_of_their_names(engine: Engine, name: str) -> None:
    engine(RICH)
    events = engine.command_output("executions", "events", "latest", "--name", name, "--step", "start")[
        "events"
    ]
    assert [(event["name"], event["data"]["result"]) for event in events] == [("StepDone", 1)]


LARGE = """
workload: {n: %d}
workflow:
- step: start
  tool:
  - {name: make, kind: python, args: {n: "{{ workload.n }}"}, code: "result = {'n': n, 'rows': ['x' * 99] * n}"}
  - {name: use, kind: python, args: {rows: "{{ _prev.rows }}"}, code: "result = len(rows)"}
  - {name: again, kind: python, args: {made: "{{ make }}"}, code: "result = made"}
  next: {arcs: [{step: end, when: "{{ event.result.n == workload.n }}", args: {rows: "{{ event.result.rows }}"}}]}
- step: end
  tool: {kind: python, args: {rows: "{{ args.rows }}"}, code: "result = [len(rows), len(rows[-1])]"}
"""


@pytest.mark.spec("000 §9.1")
@pytest.mark.spec("002 §3 (5)")
@pytest.mark.spec("002 §1")
@pytest.mark.spec("002 §7")
def test_large_results_are_kept_outside_of_the_log_and_still_whole(engine: Engine) -> None:
    ran = engine(LARGE % 5_000)
    assert ran.status == "completed"
    assert max(len(json.dumps(event)) for event in ran.events) < 10_000
    made = ran.data("TaskProcessed")[0]["outcome"]["result"]
    assert made["size"] > 500_000
    assert made["key"] == f"{ran.execution.execution_id}/{made['hash']}"
    assert ran.data("TaskProcessed")[1]["outcome"]["result"] == 5_000
    assert ran.result == [5_000, 99]


@pytest.mark.spec("000 §9.1")
@pytest.mark.parametrize("store", [None, "sqlite:///:memory:"])
def test_python_gets_large_results_whole(engine: Engine, store: str | None) -> None:
    text = """
- step: start
  tool: {kind: python, code: "result = {'rows': ['x' * 99] * 5000}", set: {ctx.rows: "{{ outcome.result.rows }}"}}
"""
    ran = noetl.run(document_of(text.lstrip()), store=store)
    assert ran.result == {"rows": ["x" * 99] * 5_000}
    assert ran.ctx == ran.result
    assert engine.folder.exists()


@pytest.mark.spec("000 §9.1")
def test_data_that_looks_like_a_reference_is_given_back_as_it_was(engine: Engine) -> None:
    value = {"$noetl": "ref", "key": "x", "$$noetl": 1}
    text = "workload: {v: 0}\nworkflow:\n- step: start\n  tool: {kind: noop, args: {v: '{{ workload.v }}'}, set: {ctx.v: '{{ workload.v }}'}}\n"
    ran = engine(text, {"v": value})
    assert (ran.result, ran.ctx) == ({"v": value}, {"v": value})
    execution = engine.command_output("executions", "show", "latest")
    assert (execution["result"], execution["ctx"]) == ({"v": value}, {"v": value})
    printed = engine.command(
        "run", "-", "-q", "--payload", json.dumps({"v": value}), stdin=document_of(text)
    ).out
    assert "$$$noetl" not in printed
    assert '"$noetl": ref' in printed


@pytest.mark.spec("000 §9.1")
@pytest.mark.spec("002 §3 (5)")
def test_small_results_stand_in_the_log(engine: Engine) -> None:
    ran = engine(LARGE % 3)
    assert ran.data("TaskProcessed")[0]["outcome"]["result"] == {"n": 3, "rows": ["x" * 99] * 3}
    assert ran.result == [3, 99]


@pytest.mark.spec("000 §9.2")
@pytest.mark.spec("001 §9.3")
@pytest.mark.spec("003 §10.2")
def test_a_task_that_writes_to_storage_returns_a_reference(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - {name: make, kind: python, code: "result = ['x' * 99] * 20"}
  - name: sink
    kind: artifact
    action: put
    key: pages/one.json
    content: "{{ _prev }}"
    spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {page: "{{ outcome.result }}"}}}}]}}
  next: {arcs: [{step: use}]}
- step: use
  tool: {kind: artifact, action: get, ref: "{{ ctx.page }}", format: json}
""")
    assert (ran.status, ran.result) == ("completed", ["x" * 99] * 20)
    (patch,) = ran.data("TaskProcessed")[1]["patches"]
    assert patch["path"] == ["page"]
    assert patch["value"]["name"] == "pages/one.json"
    assert patch["value"]["size"] > 2_000
    assert "x" * 99 not in json.dumps({**patch["value"], "preview": ""})


@pytest.mark.spec("003 §10.1")
def test_large_results_of_a_draft_are_kept_outside_of_the_log(engine: Engine) -> None:
    engine.write(
        "p.yaml",
        """
- step: start
  tool:
  - make:
      kind: python
      code: "result = {'n': 7, 'rows': ['x' * 99] * 5000}"
      eval: [{else: {do: continue, set_ctx: {made: "{{ outcome.result }}"}}}]
  next: [{step: use, when: "{{ ctx.made.n == 7 }}"}]
- step: use
  tool: [{count: {kind: python, args: {rows: "{{ ctx.made.rows }}"}, code: "result = len(rows)"}}]
""",
    )
    ran = engine.command("run", "p.yaml", "-q", "-o", "json", "--dialect", "draft")
    assert (ran.code, ran.json["result"]) == (0, 5_000)
    events = engine.events(ran.json["execution_id"])
    assert max(len(json.dumps(event)) for event in events) < 10_000
    (made, _) = [event["data"] for event in events if event["name"] == "TaskProcessed"]
    assert made["outcome"]["result"]["size"] > 500_000
    assert made["patches"][0]["value"]["key"] == made["outcome"]["result"]["key"]


@pytest.mark.spec("000 §9.2")
@pytest.mark.spec("001 §9.3")
def test_a_large_value_in_ctx_is_a_reference_there(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
    kind: python
    code: "result = {'n': 7, 'rows': ['x' * 99] * 5000}"
    set: {ctx.made: "{{ outcome.result }}"}
  next: {arcs: [{step: use, when: "{{ ctx.made.n == 7 }}"}]}
- step: use
  tool: {kind: python, args: {rows: "{{ ctx.made.rows }}"}, code: "result = len(rows)"}
""")
    assert (ran.status, ran.result) == ("completed", 5_000)
    assert max(len(json.dumps(event)) for event in ran.events) < 10_000
