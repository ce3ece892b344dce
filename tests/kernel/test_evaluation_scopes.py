"""What expressions see, and what they do not."""

from typing import Any

import pytest

from noetl.kernel.net.commands import Signal
from noetl.kernel.pipeline.interpreter import advance
from noetl.kernel.pipeline.moves import RunTask
from noetl.kernel.pipeline.task_inputs import Secrets
from tests.kernel.driver import Driver, run

SECRET = """
keychain: [{name: db, kind: static, value: x}]
workflow:
- step: start
  tool: [{t: {kind: shell, command: "login {{ keychain.db.value | upper }}", env: {U: "{{ workload.user }}"}}}]
""".lstrip()


@pytest.mark.spec("000 §3.2 (5)")
def test_a_tool_gets_the_real_secret_and_the_event_what_stands_for_it() -> None:
    driver = Driver(SECRET).start(workload={"user": "me"})
    state = driver.claim(driver.state.ready.first)
    mask_calls = []

    def mask(inputs: dict[str, Any], decoy_inputs: dict[str, Any] | None) -> dict[str, Any]:
        mask_calls.append((inputs, decoy_inputs))
        return {"command": "***"}

    secrets = Secrets(
        {"db": {"value": "hunter2"}},
        {"db": {"value": "<db>"}},
        decoys={"db": {"value": "abcdefg"}},
        disguise=str,
        revealed={},
        failures={},
        mask=mask,
        mask_message=lambda message, _: message,
    )
    move = advance(state, driver.now, secrets)
    assert isinstance(move, RunTask)
    assert move.inputs == {"command": "login HUNTER2", "env": {"U": "me"}}
    assert move.started.input == {"command": "***"}
    assert mask_calls == [(move.inputs, {"command": "login ABCDEFG", "env": {"U": "me"}})]


@pytest.mark.spec("000 §3.2 (1)")
@pytest.mark.spec("000 §3.3")
def test_bare_names_are_looked_for_in_args_ctx_iter_workload_tasks_and_steps() -> None:
    text = """
workload: {a: workload, b: workload, c: workload, d: workload}
workflow:
- step: first
  tool: {kind: noop, args: {x: 1}}
  next: {arcs: [{step: second, args: {a: args}}]}
- step: second
  loop: {in: "{{ ['iter'] }}", iterator: c}
  tool:
    - t: {kind: noop, args: {y: 2}}
    - u: {kind: noop, args: {all: "{{ [a, b, c, d, t.y, first.x, steps.first.status, execution_id | length] }}"}}
""".lstrip()
    driver = run(text, ctx={"a": "ctx", "b": "ctx"})
    assert driver.state.result == [{"all": ["args", "ctx", "iter", "workload", 2, 1, "completed", 36]}]


@pytest.mark.spec("000 §3.2 (2)")
def test_iter_exists_outside_of_loops_too() -> None:
    text = """
- step: start
  tool:
    - a: {kind: noop, set: {iter.n: 4}}
    - b: {kind: noop, args: {n: "{{ iter.n }}", i: "{{ iter.index }}"}}
""".lstrip()
    assert run(text).state.result == {"n": 4, "i": 0}


def test_now_is_the_time_of_the_decision() -> None:
    driver = run('- step: start\n  tool: {kind: noop, args: {at: "{{ now() }}"}}\n')
    assert driver.state.result == {"at": "2023-11-14T22:13:20Z"}


@pytest.mark.spec("000 §3.2 (4)")
def test_arcs_see_the_whole_event() -> None:
    text = """
- step: start
  tool: {kind: noop, args: {n: 1}}
  next: {arcs: [{step: b, args: {e: "{{ event }}"}}]}
- step: b
  tool: {kind: noop, args: {e: "{{ args.e }}"}}
""".lstrip()
    event = run(text).state.result["e"]
    assert event["event_id"].endswith("/9")
    assert (event["source"], event["name"], event["entity"], event["status"]) == (
        "worker",
        "step.done",
        "step",
        "success",
    )
    assert (event["step"], event["result"], event["error"], event["result_ref"]) == (
        "start",
        {"n": 1},
        None,
        None,
    )


def test_only_results_that_somebody_reads_are_kept() -> None:
    text = """
- step: start
  tool: {kind: noop, args: {n: 1}}
  next: {arcs: [{step: b}]}
- step: b
  tool: {kind: noop, args: {n: "{{ start.n }}"}}
""".lstrip()
    assert set(run(text).state.outcomes) == {"start"}


def test_a_task_reads_its_own_idempotency_key() -> None:
    driver = run(
        """workflow:
- step: start
  tool:
    kind: noop
    args: {key: "{{ _idempotency_key }}"}
    spec: {policy: {rules: [{when: "{{ args.key == outcome.result.key }}", then: {do: continue}}, {else: {then: {do: fail}}}]}}
"""
    )
    assert driver.state.result == {"key": driver.calls[0].idempotency_key}


def test_a_whole_namespace_is_given_as_it_was_then() -> None:
    driver = run("""\
- step: start
  tool:
  - a: {kind: noop, set: {ctx.n: 1}}
  - snap: {kind: noop, args: {all: "{{ ctx }}", listed: "{{ [ctx] }}"}}
  - b: {kind: noop, set: {ctx.n: 2, ctx.copy: "{{ ctx }}"}}
  - c: {kind: noop, set: {ctx.copy: "{{ ctx }}"}}
  - end: {kind: noop, args: {snap: "{{ snap }}"}}
  next: {spec: {mode: inclusive}, arcs: [{step: later, args: {all: "{{ ctx }}"}}, {step: other}]}
- step: other
  tool: {kind: noop, set: {ctx.n: 3}}
  next: {arcs: [{step: another}]}
- step: another
  tool: {kind: noop, set: {ctx.n: 4}}
- step: later
  tool: [{w: {kind: wait, signal: go}}, {t: {kind: noop, args: {all: "{{ args.all }}"}}}]
""")
    snap = next(call.inputs["args"]["snap"] for call in driver.calls if call.task.label == "end")
    assert snap == {"all": {"n": 1}, "listed": [{"n": 1}]}
    assert driver.ctx == {"n": 4, "copy": {"n": 2, "copy": {"n": 2}}}
    driver.submit(Signal("go", 1))
    driver.run()
    assert driver.state.result == {"all": {"n": 2, "copy": {"n": 2, "copy": {"n": 2}}}}
