"""What others may do to an execution while it runs, and its limits of time (000 §4.3, §10, §11)."""

import pytest

from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, Pause, Resume, Signal
from tests.conformance.execution.conformance_engine import Engine, LiveConversation

WAITS = """
- step: start
  tool:
  - {name: hold, kind: wait, signal: go%s}
  - {name: after, kind: noop, args: {got: "{{ _prev }}"}}
  next: {arcs: [{step: end, when: "{{ event.name == 'step.done' }}"}]}
- step: end
  tool: {kind: noop}
"""


@pytest.mark.spec("000 §11.1")
@pytest.mark.spec("000 §10.1")
def test_cancel_interrupts_what_runs_and_routes_nothing(engine: Engine) -> None:
    async def cancel(talk: LiveConversation) -> None:
        await talk.wait_for("TaskStarted", 2)
        await talk.local.submit(talk.id, Cancel("me", "enough"))

    ran = engine.run_with(
        """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: spins}, {step: waits}]}
- step: spins
  tool: {kind: python, code: "while True: pass"}
  next: {arcs: [{step: after}]}
- step: waits
  tool: {kind: wait, signal: never}
  next: {arcs: [{step: after}]}
- step: after
  tool: {kind: noop}
""",
        cancel,
    )
    assert ran.status == "cancelled"
    assert not ran.runs("after")
    (requested,) = ran.of("CancelRequested")
    assert (requested["data"]["by"], requested["data"]["reason"]) == ("me", "enough")
    assert {data["error"]["kind"] for data in ran.data("StepFailed")} == {"cancelled"}
    assert ran.data("PlaybookProcessed")[0]["status"] == "cancelled"
    assert ran.events[-1]["status"] == "error"


@pytest.mark.spec("000 §11.1")
def test_a_signal_ends_a_wait_with_its_payload(engine: Engine) -> None:
    async def send(talk: LiveConversation) -> None:
        await talk.wait_for("RunSuspended")
        await talk.local.submit(talk.id, Signal("other", 1))
        await talk.local.submit(talk.id, Signal("go", {"by": "ann"}, "me"))

    ran = engine.run_with(WAITS % "", send)
    assert (ran.status, ran.result) == ("completed", {"got": {"by": "ann"}})
    assert [data["signal"] for data in ran.data("SignalReceived")] == ["other", "go"]
    assert ran.ctx["signals"] == {"other": 1, "go": {"by": "ann"}}
    suspended, resumed = ran.of("RunSuspended", "RunResumed")
    assert (suspended["status"], resumed["status"]) == ("paused", "in_progress")
    assert (suspended["source"], resumed["source"]) == ("worker", "server")


@pytest.mark.spec("000 §11.1")
def test_signals_are_kept_for_the_waits_to_come(engine: Engine) -> None:
    async def send(talk: LiveConversation) -> None:
        await talk.wait_for("RunSuspended")
        for number in (1, 2):
            await talk.local.submit(talk.id, Signal("go", number))

    two = """
- step: start
  tool:
  - {name: one, kind: wait, signal: go}
  - {name: two, kind: wait, signal: go}
  - {name: both, kind: noop, args: {one: "{{ one }}", two: "{{ two }}"}}
"""
    assert engine.run_with(two, send).result == {"one": 1, "two": 2}


@pytest.mark.spec("000 §11.1")
def test_a_paused_execution_begins_nothing_until_it_is_resumed(engine: Engine) -> None:
    async def work(talk: LiveConversation) -> None:
        await talk.wait_for("RunSuspended")
        await talk.local.submit(talk.id, Pause("me"))
        await talk.local.submit(talk.id, Signal("go", 5))
        assert ("TaskProcessed") not in [name for _, name in talk.event_names]
        await talk.local.submit(talk.id, Resume("me"))

    ran = engine.run_with(WAITS % "", work)
    assert (ran.status, ran.result) == ("completed", {"got": 5})
    paused, resumed = ran.of("ExecutionPaused", "ExecutionResumed")
    assert (paused["status"], resumed["status"]) == ("paused", "in_progress")
    assert (paused["data"]["by"], resumed["data"]["by"]) == ("me", "me")
    worked = ran.of("TaskProcessed", "StepScheduled", "TokenClaimed")
    assert not [event for event in worked if paused["seq"] < event["seq"] < resumed["seq"]]


@pytest.mark.spec("000 §11.1")
@pytest.mark.spec("000 §10.3")
def test_an_execution_stays_paused_over_a_restart(engine: Engine) -> None:
    async def work(talk: LiveConversation) -> None:
        await talk.wait_for("RunSuspended")
        await talk.local.submit(talk.id, Pause())
        talk.local.interrupt()

    ran = engine.run_with(WAITS % "", work)
    assert ran.status == "paused"
    assert engine.command_output("executions", "list")["executions"][0]["status"] == "paused"


@pytest.mark.spec("000 §4.3 (1)")
@pytest.mark.spec("000 §10.3")
def test_what_was_interrupted_goes_on_where_it_stood_and_repeats_nothing(engine: Engine) -> None:
    engine.write(
        "p.yaml",
        """
- step: start
  loop: {in: [1, 2, 3], iterator: item}
  tool:
  - {name: one, kind: python, args: {n: "{{ item }}"}, code: "open('log', 'a').write(str(n)); result = n"}
  - name: two
    kind: python
    args: {n: "{{ item }}", file: "{{ workload.file }}"}
    code: |
      import os, signal
      if n == 2 and not os.path.exists(file):
          open(file, 'w').close()
          os.kill(os.getppid(), signal.SIGKILL)
          signal.pause()
      result = n * 10
""",
    )
    died = engine.command("run", "p.yaml", "-q", "--set", f"file={engine.folder}/died")
    assert died.code == -9
    before = engine.events("latest")
    ran = engine.command("run", "--resume", before[0]["execution_id"], "-q", "-o", "json")
    assert (ran.code, ran.json["result"]) == (0, [10, 20, 30])
    assert (engine.folder / "log").read_text() == "123"
    events = engine.events("latest")
    assert events[: len(before)] == before
    lost = [event for event in events if event["name"] == "LeaseExpired"]
    retried = [
        event["data"] for event in events if event["name"] == "TaskStarted" and event["data"]["redelivery"]
    ]
    assert len(lost) == 1
    assert [(data["task"], data["iteration"]) for data in retried] == [("two", 1)]
    assert engine.command_output("executions", "verify", "latest")["ok"]


@pytest.mark.spec("000 §11.1")
def test_a_failed_execution_goes_on_at_what_failed(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - {name: good, kind: noop, args: {n: 1}}
  - {name: bad, kind: python, code: "result = open('in').read()"}
  next: {arcs: [{step: end, when: "{{ event.name == 'step.done' }}"}]}
- step: end
  tool: {kind: noop}
""")
    assert (ran.status, ran.tasks()) == ("failed", ["good", "bad"])
    (engine.folder / "in").write_text("now")
    retried = engine.retry(ran.execution.execution_id)
    assert (retried.status, retried.result) == ("completed", "now")
    assert retried.tasks() == ["good", "bad", "bad", "task_0"]
    with pytest.raises(Refused):
        engine.retry(ran.execution.execution_id)


TIMED = """
executor: {kind: local, spec: {%s}}
workflow:
- step: start
  spec: {%s}
  tool: {name: hold, kind: wait, signal: never, spec: {%s}}
  next: {arcs: [{step: late, when: "{{ event.error.kind == 'timeout' }}"}]}
- step: late
  tool: {kind: noop, args: {late: true}}
"""


@pytest.mark.spec("000 §11.2")
@pytest.mark.parametrize(
    ("executor", "step", "task", "status"),
    [
        ("timeout: 0.05", "", "", "failed"),
        ("", "timeout: 0.05", "", "completed"),
        ("", "", "timeout: 0.05", "completed"),
    ],
)
def test_time_runs_out_for_the_execution_a_step_or_a_task(
    engine: Engine, executor: str, step: str, task: str, status: str
) -> None:
    ran = engine(TIMED % (executor, step, task))
    assert ran.status == status
    if status == "completed":
        assert ran.result == {"late": True}
    else:
        assert ran.error["kind"] == "timeout"


@pytest.mark.spec("000 §11.2")
def test_a_tool_is_stopped_when_its_time_is_over(engine: Engine) -> None:
    ran = engine("- step: start\n  tool: {kind: python, code: 'while True: pass', spec: {timeout: 0.1}}\n")
    assert (ran.status, ran.error["kind"]) == ("failed", "timeout")
    assert ran.data("TaskProcessed")[0]["outcome"]["error"]["retryable"] is True


@pytest.mark.spec("000 §11.1")
def test_a_request_may_bring_its_own_limit(engine: Engine) -> None:
    engine.write("p.yaml", WAITS % "")
    ran = engine.command("run", "p.yaml", "-q", "-o", "json", "--timeout", "0.05")
    assert (ran.code, ran.json["status"], ran.json["error"]["kind"]) == (1, "failed", "timeout")


@pytest.mark.spec("000 §11.1")
@pytest.mark.spec("000 §10.3")
def test_a_fork_goes_on_from_the_middle_with_other_values(engine: Engine) -> None:
    first = engine("""
workload: {n: 1}
workflow:
- step: start
  tool: {kind: noop, args: {n: "{{ workload.n }}"}, set: {ctx.n: "{{ outcome.result.n }}"}}
  next: {arcs: [{step: middle}]}
- step: middle
  tool: {kind: noop}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, args: {n: "{{ workload.n }}", ctx: "{{ ctx.n }}"}}
""")
    assert first.result == {"n": 1, "ctx": 1}
    seq = first.names.index("StepDone") + 1
    forked = engine.fork(first.execution.execution_id, at=seq, workload={"n": 2}, ctx={"n": 7})
    assert (forked.status, forked.result) == ("completed", {"n": 2, "ctx": 7})
    assert forked.execution.execution_id != first.execution.execution_id
    (fork,) = forked.of("ExecutionForked")
    assert fork["data"]["source"] == first.execution.execution_id
    assert [event["name"] for event in forked.events[: fork["data"]["at"]]] == first.names[
        : fork["data"]["at"]
    ]
    assert engine.events(first.execution.execution_id) == first.events
