"""Who does what: server and worker (000 §1.2, §4.3, §11; 002 §3), and what the command says of it."""

import socket
from typing import Any

import pytest

from tests.conformance.execution.conformance_engine import Engine

WORK = """
workload: {n: 1}
workflow:
- step: start
  tool:
  - {name: one, kind: python, args: {n: "{{ workload.n }}"}, code: "result = 6 // n"}
  - {name: two, kind: noop, args: {n: "{{ _prev }}"}}
  next: {arcs: [{step: each, when: "{{ event.name == 'step.done' }}"}]}
- step: each
  loop: {in: [1, 2], iterator: item, spec: {mode: parallel}}
  tool: {name: three, kind: noop, args: {n: "{{ item }}"}}
"""


@pytest.mark.spec("000 §11.2")
@pytest.mark.spec("000 §1.2")
@pytest.mark.spec("002 §1")
def test_nothing_listens_while_a_playbook_runs(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[Any] = []
    monkeypatch.setattr(socket.socket, "listen", lambda *arguments: heard.append(arguments))
    assert engine(WORK).status == "completed"
    assert heard == []


@pytest.mark.spec("000 §4.3 (1)")
@pytest.mark.spec("000 §4.3 (4)")
@pytest.mark.spec("000 §11.1")
@pytest.mark.spec("000 §11.2")
@pytest.mark.spec("002 §3 (1)")
@pytest.mark.spec("000 §1.2")
@pytest.mark.spec("002 §1")
@pytest.mark.spec("003 §9.1")
def test_the_server_schedules_and_the_worker_says_what_it_did(engine: Engine) -> None:
    ran = engine(WORK)
    owner: dict[str | None, str] = {}
    for event in ran.events:
        run = event.get("step_run_id")
        if event["name"] == "TokenClaimed":
            assert run not in owner, "a run has one owner"
            owner[str(run)] = event["worker"]
        if event["source"] == "worker":
            assert event["entity"] in ("task", "step", "loop")
            assert run in owner, "a worker speaks of the runs that it claimed"
            assert event["name"] not in ("StepScheduled", "TokenEnqueued", "NextEvaluated")
        else:
            assert event["entity"] not in ("task", "loop")
    assert len(owner) == 2


@pytest.mark.spec("000 §4.3 (4)")
def test_after_its_terminal_event_a_run_says_no_more(engine: Engine) -> None:
    ran = engine(WORK)
    for run in (*ran.runs("start"), *ran.runs("each")):
        names = [
            event["name"]
            for event in ran.events
            if event.get("step_run_id") == run and event["source"] == "worker"
        ]
        assert names[-1] in ("StepDone", "LoopDone")
        assert sum(name in ("StepDone", "StepFailed", "LoopDone") for name in names) == 1
        assert names.count("TaskStarted") == names.count("TaskProcessed") == 2


@pytest.mark.spec("000 §11.1")
@pytest.mark.spec("000 §4.4")
@pytest.mark.parametrize(("setting", "code", "status"), [("n=2", 0, "completed"), ("n=0", 1, "failed")])
def test_the_command_says_how_it_ended(engine: Engine, setting: str, code: int, status: str) -> None:
    engine.write("p.yaml", WORK)
    ran = engine.command("run", "p.yaml", "-q", "-o", "json", "--set", setting)
    assert (ran.code, ran.json["status"]) == (code, status)
    execution_id = ran.json["execution_id"]
    (listed,) = engine.command_output("executions", "list")["executions"]
    assert (listed["execution_id"], listed["status"]) == (execution_id, status)
    execution = engine.command_output("executions", "show", execution_id)
    for step in execution["steps"].values():
        assert step.pop("duration_ms") >= 0  # `show` tells more
        assert step.pop("failed", 0) == (step["status"] == "failed")
    for name in ("result", "ctx", "error", "steps", "discarded", "duration_ms"):
        assert execution[name] == ran.json[name]
    last = engine.events(execution_id)[-1]
    assert (last["name"], last["data"]["status"]) == ("PlaybookProcessed", status)


@pytest.mark.spec("000 §6.2 (2)")
@pytest.mark.spec("000 §11.2")
def test_policies_are_applied_the_same_way_each_time(engine: Engine) -> None:
    """What was decided is decided again from the log alone, by another process."""
    engine.write(
        "p.yaml",
        """
- step: start
  loop: {in: [1, 2, 3], iterator: item, spec: {mode: parallel, reduce: {sum: sum}}}
  tool:
  - name: try
    kind: noop
    args: {n: "{{ _attempt }}"}
    spec:
      policy:
        rules:
        - {when: "{{ outcome.result.n < item }}", then: {do: retry, attempts: 5, delay: 0.001, jitter: 0.001}}
        - else: {then: {do: continue, set_ctx: {sum: "{{ outcome.result.n }}"}}}
""",
    )
    assert engine.command("run", "p.yaml", "-q").code == 0
    verified = engine.command("executions", "verify", "latest", "-o", "json")
    assert (verified.code, verified.json["ok"], verified.json["differences"]) == (0, True, [])
    assert engine.command_output("executions", "show", "latest")["ctx"] == {"sum": 6}
