"""Playbooks that run playbooks (000 §1.1)."""

import pytest

from noetl.kernel.net.commands import Cancel
from tests.conformance.execution.conformance_engine import Engine, LiveConversation

CHILD = """
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: child, path: child}
      workload: {n: 0}
      workflow:
      - step: start
        tool: %s
"""


def parent(child: str, more: str = "args: {n: 3}") -> str:
    return f"""
- step: start
  tool:
    name: call
    kind: playbook
    {more}
    document:{CHILD % child}
"""


DOUBLE = '{kind: noop, args: {n: "{{ workload.n * 2 }}"}}'


def children(engine: Engine, execution_id: str) -> list[str]:
    execution = engine.command_output("executions", "show", execution_id)
    return [child["execution_id"] for child in execution["children"]]


@pytest.mark.spec("000 §1.1")
@pytest.mark.spec("000 §11.1")
def test_a_child_is_an_execution_of_its_own_and_gives_its_result(engine: Engine) -> None:
    ran = engine(parent(DOUBLE))
    assert ran.result == {"n": 6}
    (child,) = children(engine, ran.execution.execution_id)
    events = engine.events(child)
    requested = events[0]["data"]
    assert requested["workload"] == {"n": 3}
    started = ran.of("TaskStarted")[0]
    assert requested["parent"] == {
        "execution_id": ran.execution.execution_id,
        "task_run_id": started["task_run_id"],
    }
    assert events[0]["parent_id"] == f"{ran.execution.execution_id}/{started['task_run_id']}"
    assert {event["trace_id"] for event in events} == {ran.events[0]["trace_id"]}
    assert ran.data("TaskProcessed")[0]["outcome"]["playbook"] == {
        "execution_id": child,
        "status": "completed",
    }
    (suspended,) = ran.of("RunSuspended")
    assert (suspended["data"]["reason"], suspended["data"]["child"]) == ("child", child)


@pytest.mark.spec("000 §1.1")
@pytest.mark.parametrize(
    ("more", "status"),
    [("args: {n: 0}", "failed"), ("args: {n: 0}\n    spec: {on_failure: continue}", "completed")],
)
def test_a_failed_child_fails_its_task_unless_that_is_fine(engine: Engine, more: str, status: str) -> None:
    ran = engine(parent('{kind: noop, args: {n: "{{ 1 / workload.n }}"}}', more))
    assert ran.status == status
    outcome = ran.data("TaskProcessed")[0]["outcome"]
    assert outcome["playbook"]["status"] == "failed"
    if status == "failed":
        assert (ran.error["kind"], ran.error["task"]) == ("child_failed", "call")


@pytest.mark.spec("000 §11.1")
def test_cancel_reaches_the_children(engine: Engine) -> None:
    async def cancel(talk: LiveConversation) -> None:
        await talk.wait_for("RunSuspended", 2)
        await talk.local.submit(talk.id, Cancel())

    ran = engine.run_with(parent("{kind: wait, signal: never}"), cancel)
    assert ran.status == "cancelled"
    (child,) = children(engine, ran.execution.execution_id)
    assert engine.command_output("executions", "show", child)["status"] == "cancelled"


@pytest.mark.spec("000 §1.1")
def test_a_child_that_nobody_waits_for_runs_to_its_end(engine: Engine) -> None:
    ran = engine(parent(DOUBLE, "args: {n: 3}\n    spec: {wait: false}"))
    (child,) = children(engine, ran.execution.execution_id)
    assert ran.result == {"execution_id": child}
    assert engine.command_output("executions", "result", child)["result"] == {"n": 6}


@pytest.mark.spec("000 §1.1")
@pytest.mark.spec("000 §7.1")
def test_each_iteration_has_a_child_of_its_own(engine: Engine) -> None:
    text = parent(DOUBLE, 'args: {n: "{{ item }}"}').replace(
        "  tool:", "  loop: {in: [1, 2, 3], iterator: item, spec: {mode: parallel}}\n  tool:", 1
    )
    ran = engine(text)
    assert ran.result == [{"n": 2}, {"n": 4}, {"n": 6}]
    assert len(children(engine, ran.execution.execution_id)) == 3


@pytest.mark.spec("000 §1.1")
def test_a_chain_of_playbooks_has_a_limit(engine: Engine) -> None:
    engine.write("self.yaml", "- step: start\n  tool: {kind: playbook, path: docs/page}\n")
    ran = engine(
        "workload: {p: docs/page}\nworkflow:\n- step: start\n  tool: {kind: playbook, path: '{{ workload.p }}'}\n"
    )
    assert (ran.status, ran.error["kind"]) == ("failed", "child_failed")
    assert "start one another" in ran.error["message"]
