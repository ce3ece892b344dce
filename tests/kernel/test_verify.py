"""Deciding a history again: no false alarm, and what a difference says."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import (
    LoopIterationCompleted,
    LoopStarted,
    NextEvaluated,
    Patch,
    RunSuspended,
    TaskProcessed,
    TaskStarted,
)
from noetl.events.event import Event
from noetl.kernel.net import decider
from noetl.kernel.net.commands import Fork, PatchCtx, Report, Request, Signal
from noetl.kernel.net.execution_request import DECIDER
from noetl.kernel.pipeline.interpreter import advance
from noetl.kernel.pipeline.moves import Finish, RunTask
from noetl.kernel.pipeline.policy import SECOND, judge, judge_with_policy
from noetl.kernel.pipeline.task_inputs import Secrets
from noetl.kernel.state.replay import replay
from noetl.kernel.verify import verifier as walk
from noetl.kernel.verify.verification import Difference, verify
from noetl.model.json import Json
from noetl.model.outcome import succeeded
from noetl.model.secret import SecretOrigin
from tests.kernel.driver import EXECUTION, Driver, run
from tests.kernel.random_playbooks import Chaos, as_stored, choices, outcomes, playbooks


def difference(driver: Driver, events: list[Event] | None = None) -> Difference:
    verification = verify(driver.plan, EXECUTION, driver.events if events is None else events)
    assert verification.differences
    return verification.differences[0]


def nothing(driver: Driver) -> None:
    verification = verify(
        driver.plan, driver.state.execution_id, [as_stored(event) for event in driver.events]
    )
    assert (verification.differences, verification.notes) == ((), ())


def changed(event: Event, **fields: Any) -> Event:
    return Event(event.seq, event.ts, msgspec.structs.replace(event.body, **fields))


@settings(max_examples=150)
@given(playbooks(), outcomes, choices)
def test_no_history_raises_a_false_alarm(playbook: Playbook, turns: list[int], order: list[int]) -> None:
    driver = Chaos(playbook, turns)
    driver.run_in_order(order).retry_if_failed()
    verification = verify(driver.plan, EXECUTION, [as_stored(event) for event in driver.events])
    assert (verification.differences, verification.notes, verification.unjudged) == ((), (), 0)


@settings(max_examples=30)
@given(playbooks(), outcomes, choices, st.floats(0, 1), st.booleans())
def test_no_fork_raises_a_false_alarm(
    playbook: Playbook, turns: list[int], order: list[int], where: float, patched: bool
) -> None:
    source = Chaos(playbook, turns).run_in_order(order)
    appends_before = source.appends[: 1 + round(where * (len(source.appends) - 1))]
    driver = Chaos(playbook, turns)
    driver.appends = list(appends_before)
    driver.state = replay(driver.plan, "another", driver.events)
    driver.now = source.now
    patches = (Patch(scope="ctx", path=("flag",), value=True),) if patched else ()
    driver.submit(Fork(EXECUTION, driver.state.version, patches, "me"))
    if not driver.state.over:
        driver.settle()
    nothing(driver)


class Slow(Chaos):
    """A worker whose clock is not the server's: what it decides is recorded a while later."""

    def report(self, run: Any, *bodies: Any, shard: Any = None) -> list[Event]:
        self.now += 1_234_567
        return super().report(run, *bodies, shard=shard)


@settings(max_examples=50)
@given(playbooks(), outcomes, choices)
def test_a_worker_has_a_clock_of_its_own(playbook: Playbook, turns: list[int], order: list[int]) -> None:
    nothing(Slow(playbook, turns).run_in_order(order).retry_if_failed())


RANDOM = """
executor: {kind: local, spec: {output: "{{ [ctx.drawn, range(1000000) | random] }}"}}
workload: {pick: "{{ range(1000000) | random }}", other: "{{ range(1000000) | random }}"}
workflow:
- step: start
  spec: {policy: {admit: {rules: [{when: "{{ [true] | random }}", then: {allow: true}}]}}}
  loop: {in: "{{ [range(1000000) | random, 1, 2] }}", iterator: item}
  tool:
  - draw:
      kind: shell
      command: draw
      args: {same: "{{ range(1000000) | random }}"}
      env: {A: "{{ range(1000000) | random }}", B: "{{ range(1000000) | random }}", C: "{{ args.same }}"}
      spec:
        policy:
          rules:
          - when: "{{ _attempt < 2 }}"
            then: {do: retry, delay: "{{ range(1000) | random }}"}
          - else: {then: {do: continue, set_iter: {same: "{{ args.same }}", drawn: "{{ range(1000000) | random }}"}}}
  set: {ctx.drawn: "{{ range(1000000) | random }}"}
  next:
    spec: {mode: inclusive}
    arcs:
    - {step: a, when: "{{ [true, false] | random }}", args: {n: "{{ range(1000000) | random }}"}}
    - {step: a, args: {n: "{{ range(1000000) | random }}"}}
- step: a
  tool: {kind: noop, args: {n: "{{ [args.n, range(1000000) | random] }}"}}
""".lstrip()


class Late(Driver):
    """A worker whose reports are recorded a while after what it decided."""

    def report(self, run: Any, *bodies: Any, shard: Any = None) -> list[Event]:
        self.now += 1_234_567
        return super().report(run, *bodies, shard=shard)


def test_random_gives_the_same_when_it_is_decided_again() -> None:
    driver = Late(RANDOM).run()
    assert driver.state.status == "completed"
    nothing(driver)


def test_random_differs_from_draw_to_draw_attempt_to_attempt_and_iteration_to_iteration() -> None:
    driver = run(RANDOM)
    tasks = [event.body for event in driver.events if isinstance(event.body, TaskStarted)]
    inputs = [started.input["env"] for started in tasks if started.task == "draw"]
    drawn = [number for env in inputs for number in env.values()]
    assert len(drawn) == len(set(drawn)) == 3 * 2 * 3
    assert driver.state.inputs.workload["pick"] != driver.state.inputs.workload["other"]
    writes = [
        event.body.patches[0].value
        for event in driver.events
        if isinstance(event.body, TaskProcessed) and event.body.task == "draw" and event.body.patches
    ]
    # A task's policy sees the `args` that its inputs saw.
    assert writes == [env["C"] for env in inputs[1::2]]


def test_a_difference_says_what_where_and_in_which_line() -> None:
    driver = run(
        "- step: start\n  tool: {kind: noop, args: {n: 1}}\n  next:\n    arcs:\n"
        '    - {step: a, when: "{{ event.result.n > 1 }}"}\n    - {step: b}\n'
        "- step: a\n  tool: {kind: noop}\n- step: b\n  tool: {kind: noop}\n"
    )
    events = driver.events
    at = next(i for i, event in enumerate(events) if isinstance(event.body, NextEvaluated))
    events[at] = changed(events[at], verdicts=(True, True))
    first = difference(driver, events)
    assert (first.seq, first.event, first.what) == (events[at].seq, "NextEvaluated", "verdicts[0]")
    assert (first.recorded, first.decided, first.step, first.line) == (True, False, "start", 9)
    assert "decides otherwise" in first.why
    assert msgspec.json.encode(first)


def test_a_history_that_ends_too_early_is_found() -> None:
    driver = run("- step: start\n  tool: {kind: noop}\n")
    first = difference(driver, driver.events[:-1])
    assert (first.seq, first.decided) == (driver.state.version, "PlaybookProcessed")


def test_another_version_of_the_rules_is_a_note() -> None:
    driver = run("- step: start\n  tool: {kind: noop}\n")
    events = [changed(driver.events[0], decider=99), *driver.events[1:]]
    verification = verify(driver.plan, EXECUTION, events)
    assert verification.differences == ()
    message = f"version 99 of the rules decided; they were tried with version {DECIDER}"
    assert verification.notes == (message,)


def test_another_playbook_is_a_difference_but_not_before_a_fork() -> None:
    text = "- step: start\n  tool: [{%s: {kind: python, code: '1'}}]\n"
    source, fork = run(text % "a"), Driver(text % "b")
    assert difference(fork, source.events).what == "hash"
    fork.appends = source.appends[:1]
    fork.state = replay(fork.plan, "another", fork.events)
    fork.submit(Fork(EXECUTION, fork.state.version))
    fork.run()
    verification = verify(fork.plan, "another", fork.events)
    assert verification.differences == ()
    assert verification.notes == (
        f"the first {source.appends[0][-1].seq + 1} events came about with another playbook and are not judged",
    )


def test_no_history_is_no_difference() -> None:
    driver = Driver("- step: start\n  tool: {kind: noop}\n")
    assert verify(driver.plan, EXECUTION, []).differences == ()


PARKED = """
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: gate}, {step: work}]}
- step: gate
  spec: {policy: {admit: {rules: [{when: "{{ ctx.go }}", then: {allow: true}}]}}}
  tool: {kind: noop}
- step: work
  tool:
    - a: {kind: python, code: "1", set: {ctx.go: true}}
    - b: {kind: python, code: "1"}
""".lstrip()


def test_a_report_is_recorded_as_a_whole_before_anything_follows_from_it() -> None:
    driver = Driver(PARKED).start()
    state = driver.claim(driver.state.ready.first)
    move = advance(state, driver.now)
    assert isinstance(move, RunTask)
    driver.report(state, *move.begins)
    shadow = replay(driver.plan, EXECUTION, driver.events)
    first = judge(state, 0, succeeded(1), driver.now)
    decider.handle(shadow, Report(state.id, state.fence, state.reported, (first,)), driver.now)
    second = advance(shadow.runs[state.id], driver.now)
    assert isinstance(second, RunTask)
    driver.report(state, first, second.started)
    assert driver.names[-4:] != driver.names[-2:], "the parked token is let in after the report"
    driver.report(state, judge(state, 0, succeeded(2), driver.now))
    driver.run()
    nothing(driver)


def test_very_long_appends_are_cut_and_somebody_may_come_between(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (decider, walk):
        monkeypatch.setattr(module, "MAX_EVENTS_AT_ONCE", 6)
    driver = Driver(PARKED)
    events = decider.handle(driver.state, Request(), driver.now)
    assert decider.decision_due(driver.state)
    events += decider.handle(driver.state, Signal("x"), driver.now)
    events += decider.handle(driver.state, PatchCtx((Patch(scope="ctx", path=("go",), value=1),)), driver.now)
    driver.appends = [events]
    driver.run()
    nothing(driver)


SECRET = """
keychain: [{name: door, kind: static}]
workflow:
- step: start
  tool:
    - open: {kind: http, url: "{{ args.url }}", headers: {x: "{{ keychain.door.value | upper }}"}, args: {url: "http://x/{{ keychain.door.value }}"}}
    - after: {kind: python, code: "1", args: {len: "{{ open.key | length }}"}}
""".lstrip()


def test_what_rests_on_secrets_is_left_out_and_counted() -> None:
    key: dict[str, Json] = {"key": {"$noetl": "secret", "name": "door"}}
    masked = {"door": {"value": "***"}}
    driver = Driver(SECRET).start()
    state = driver.claim(driver.state.ready.first)
    opens: dict[str, Json] = {SecretOrigin("door").key: "sesame"}
    secrets = Secrets(
        {"door": {"value": "sesame"}},
        masked,
        decoys=masked,
        disguise=str,
        revealed=opens,
        failures={},
        mask=lambda inputs, _: dict.fromkeys(inputs, "***"),
        mask_message=lambda message, _: message,
    )
    move = advance(state, driver.now, secrets)
    assert isinstance(move, RunTask)
    driver.report(state, *move.begins)
    driver.report(state, judge_with_policy(state, 0, succeeded(key), driver.now, masked, {}))
    second = advance(state, driver.now, secrets)
    assert isinstance(second, RunTask)
    assert second.inputs["args"] == {"len": 6}
    driver.report(state, msgspec.structs.replace(second.started, input={"code": "1", "len": 6}))
    driver.report(state, judge(state, 0, succeeded(1), driver.now))
    move_last = advance(state, driver.now)
    assert isinstance(move_last, Finish)
    driver.report(state, move_last.body)
    verification = verify(driver.plan, EXECUTION, driver.events)
    assert verification.differences == ()
    assert verification.unjudged == 1
    assert "secrets" in verification.notes[0]


def test_references_in_place_of_values_are_left_out() -> None:
    driver = run('- step: start\n  loop: {in: "{{ range(3) | list }}", iterator: n}\n  tool: {kind: noop}\n')
    events = driver.events
    at = next(i for i, event in enumerate(events) if isinstance(event.body, LoopStarted))
    events[at] = changed(events[at], items=[{"$noetl": "ref"}, 1, 2])
    verification = verify(driver.plan, EXECUTION, events)
    assert verification.differences == ()
    assert verification.unjudged == 1


def test_results_of_a_loop_in_chunks_are_decided_again() -> None:
    text = """- step: start
  spec: {result: {inline_max_bytes: 64}}
  loop: {in: "{{ range(100) | list }}", iterator: n}
  tool: {kind: noop, args: {n: "{{ n }}"}}
"""
    driver = run(text)
    found_at = ((i, getattr(event.body, "chunk", None)) for i, event in enumerate(driver.events))
    at, chunk = next((i, chunk) for i, chunk in found_at if chunk)
    verification = verify(
        driver.plan, EXECUTION, driver.events, lambda key: msgspec.json.decode(driver.stored[key])
    )
    assert (verification.differences, verification.unjudged) == ((), 0)
    other_chunk = {**chunk, "key": f"{EXECUTION}/{'0' * 64}"}
    events = [*driver.events[:at], changed(driver.events[at], chunk=other_chunk), *driver.events[at + 1 :]]
    assert difference(driver, events).what == "chunk.key"


def test_a_time_that_no_clock_explains_is_found() -> None:
    text = "- step: start\n  tool: [{w: {kind: wait, seconds: 60}}]\n"
    driver = Driver(text).start()
    driver.step()
    events = driver.events
    assert isinstance(events[-1].body, RunSuspended)
    until = events[-1].body.until
    assert until is not None
    near = [*events[:-1], changed(events[-1], until=until - SECOND)]
    assert verify(driver.plan, EXECUTION, near).differences == ()
    far = [*events[:-1], changed(events[-1], until=until + 3600 * SECOND)]
    assert difference(driver, far).what == "until"


def test_when_the_results_of_a_loop_were_stored_is_no_verdict() -> None:
    driver = run(
        "- step: start\n"
        "  spec: {result: {inline_max_bytes: 20}}\n"
        '  loop: {in: "{{ range(40) | list }}", iterator: x, spec: {mode: parallel}}\n'
        '  tool: {kind: noop, args: {n: "{{ iter.x }}"}}\n'
    )
    assert any(body.chunk for body in driver.bodies(LoopIterationCompleted))
    verification = verify(driver.plan, EXECUTION, driver.events)
    assert verification.differences == ()
