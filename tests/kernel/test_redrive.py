"""The failed iterations of a loop that has ended run again: `redrive`."""

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings

from noetl.dsl.document.playbook import Playbook
from noetl.events.bodies import (
    IterationsRedriven,
    LoopDone,
    LoopIterationStarted,
    StepScheduled,
)
from noetl.events.event import Event
from noetl.kernel.errors import Refused
from noetl.kernel.net.commands import Cancel, LeaseLost, Pause, Redrive, Resume, Retry, Signal, SkipStep
from noetl.kernel.pipeline.moves import Record, RunTask, Wait
from noetl.kernel.state.execution_state import new_state
from noetl.kernel.state.fold import evolve
from noetl.kernel.state.invariants import violations
from noetl.kernel.state.marking import REDRIVABLE_KEPT
from tests.kernel.driver import EXECUTION, Driver, error, run
from tests.kernel.random_playbooks import Chaos, as_stored, choices, outcomes, playbooks
from tests.kernel.state_comparison import differences
from tests.kernel.test_end_by_hand import checked

BEST_EFFORT = "policy: {failure: {mode: best_effort}}"
LOOP = """
- step: each
  loop: {in: "{{ range(ITEMS) | list }}", iterator: n, spec: {SPEC}}
  tool:
  - first: {kind: python, code: "1", args: {n: "{{ n }}"}, set: {ctx.sum: "{{ n }}"}}
  - second: {kind: python, code: "1", args: {n: "{{ n }}", got: "{{ _prev }}"}}
  next: {arcs: [{step: after, args: {failed: "{{ event.loop.failed }}", all: "{{ event.result }}"}, when: "{{ event.name == 'loop.done' }}"}]}
- step: after
  tool: [{tell: {kind: noop, args: {failed: "{{ args.failed }}", all: "{{ args.all }}", sum: "{{ ctx.sum | default(0) }}"}}}]
""".lstrip()


def loop(items: int = 4, spec: str = "mode: parallel, max_in_flight: 4, reduce: {sum: sum}") -> str:
    return LOOP.replace("ITEMS", str(items)).replace("SPEC", f"{spec}, {BEST_EFFORT}")


class Repairable:
    """Work that fails for some numbers until it is repaired."""

    def __init__(self, *bad: int) -> None:
        self.bad = set(bad)

    def __call__(self, call: RunTask) -> Any:
        return error() if call.args["n"] in self.bad else call.args["n"] * 10


def failed(*bad: int, text: str = "") -> tuple[Driver, Repairable]:
    work = Repairable(*bad)
    driver = run(text or loop(), {"first": lambda call: call.args["n"], "second": work})
    assert driver.status == "completed"
    return driver, work


def test_only_failed_iterations_run_again_and_the_loop_is_routed_again() -> None:
    driver, work = failed(1, 3)
    assert driver.state.result == {"failed": 2, "all": [0, None, 20, None], "sum": 2}
    work.bad = {3}
    before = len(driver.calls)
    driver.submit(Redrive(by="ada"))
    assert driver.status == "running"
    checked(driver.run())
    assert driver.status == "completed"
    assert driver.state.result == {"failed": 1, "all": [0, 10, 20, None], "sum": 2 + 1}, "reducers add theirs"
    again = [(call.started.task, call.iteration) for call in driver.calls[before:]]
    assert again == [("second", 1), ("second", 3), ("tell", 0)]
    (event,) = driver.bodies(IterationsRedriven)
    assert (event.iterations, event.by, event.steps) == (2, "ada", ("after",))
    assert [done.failed for done in driver.bodies(LoopDone)] == [2, 1]
    assert driver.state.summaries["each"].runs == 1
    assert driver.state.summaries["after"].runs == 2


def test_an_iteration_goes_on_with_the_task_that_failed_and_with_its_key() -> None:
    driver, work = failed(1)
    first = next(call for call in driver.calls if call.iteration == 1 and call.started.task == "second")
    work.bad = set()
    driver.submit(Redrive())
    driver.run()
    again = [call for call in driver.calls if call.iteration == 1 and call.started.task == "second"][-1]
    assert again.idempotency_key == first.idempotency_key
    assert again.args == {"n": 1, "got": 1}
    assert [body.index for body in driver.bodies(LoopIterationStarted)] == [0, 1, 2, 3, 1]


def test_what_fails_again_can_be_redriven_again() -> None:
    driver, work = failed(0, 2)
    for bad in ({0}, {0}, set[int]()):
        work.bad = bad
        driver.submit(Redrive(step="each"))
        driver.run()
    checked(driver)
    assert driver.state.result == {"failed": 0, "all": [0, 10, 20, 30], "sum": 6}
    with pytest.raises(Refused, match="no loop has ended with failed iterations"):
        driver.submit(Redrive())


@pytest.mark.parametrize(("mode", "most"), [("mode: parallel, max_in_flight: 2", 2), ("mode: sequential", 1)])
def test_no_more_are_in_flight_than_the_loop_allows(mode: str, most: int) -> None:
    driver, work = failed(*range(6), text=loop(6, f"{mode}, reduce: {{sum: sum}}"))
    work.bad = set()
    driver.submit(Redrive())
    run_state = driver.claim(driver.state.ready.first)
    in_flight = []
    while not isinstance(move := driver.advance(run_state), Wait):
        match move:
            case RunTask():
                in_flight.append(move.iteration)
                driver.report(run_state, *move.begins)
            case Record():
                driver.report(run_state, move.body)
    assert in_flight == list(range(most))
    assert violations(driver.state) == []
    driver.submit(LeaseLost(run_state.id, run_state.fence, "released"))
    checked(driver.run())
    assert driver.state.result["all"] == [0, 10, 20, 30, 40, 50]


@pytest.mark.no_cover
def test_results_that_are_stored_in_parts_get_theirs_between_them() -> None:
    text = f"""
- step: each
  loop: {{in: "{{{{ range(120) | list }}}}", iterator: n, spec: {{mode: parallel, max_in_flight: 4, {BEST_EFFORT}}}}}
  tool: [{{work: {{kind: python, code: "1", args: {{n: "{{{{ n }}}}"}}}}}}]
  next: {{arcs: [{{step: again, args: {{rows: "{{{{ event.result }}}}"}}}}]}}
- step: again
  loop: {{in: "{{{{ args.rows }}}}", iterator: row}}
  tool: [{{tell: {{kind: python, code: "1", args: {{row: "{{{{ row }}}}"}}}}}}]
""".lstrip()
    bad = {0, 3, 4, 60, 119}

    def work(call: RunTask) -> Any:
        return error() if call.args["n"] in bad else {"n": call.args["n"], "pad": "y" * 8_000}

    driver = run(text, {"work": work, "tell": lambda call: (call.args["row"] or {}).get("n")})
    assert [n for n, value in enumerate(driver.state.result) if value is None] == sorted(bad)
    assert len(driver.bodies(LoopDone)[0].result["chunks"]) > 2
    bad.clear()
    driver.submit(Redrive())
    checked(driver.run())
    assert driver.state.result == list(range(120))
    redone = driver.bodies(LoopDone)[2]
    assert [row["n"] for row in driver.resolve(redone.result)] == list(range(120))


def test_other_branches_may_still_run() -> None:
    text = """
- step: start
  tool: [{begin: {kind: noop}}]
  next: {spec: {mode: inclusive}, arcs: [{step: each}, {step: hold}]}
- step: hold
  tool: [{wait: {kind: wait, signal: go}}]
  next: {arcs: [{step: meet}]}
- step: each
  loop: {in: "{{ [1, 2] }}", iterator: n, spec: {policy: {failure: {mode: best_effort}}}}
  tool: [{work: {kind: python, code: "1", args: {n: "{{ n }}"}}}]
  next: {arcs: [{step: meet}]}
- step: meet
  spec: {policy: {join: all}}
  tool: [{tell: {kind: noop, args: {count: "{{ joined | length }}"}}}]
""".lstrip()
    work = Repairable(2)
    driver = run(text, {"work": work})
    assert driver.status == "running"
    work.bad = set()
    driver.submit(Redrive())
    driver.run()
    driver.submit(Signal("go"))
    checked(driver.run())
    assert (driver.status, driver.state.result) == ("completed", {"count": 3})
    assert [body.step for body in driver.bodies(StepScheduled)].count("meet") == 1


def test_the_failures_of_others_stay() -> None:
    text = loop() + "- step: other\n  tool: [{bad: {kind: python, code: '1'}}]\n"
    text = text.replace(
        "next: {arcs: [{step: after", "next: {spec: {mode: inclusive}, arcs: [{step: other}, {step: after"
    )
    work = Repairable(1)
    driver = run(text, {"first": 1, "second": work, "bad": error()})
    assert driver.status == "failed"
    work.bad = set()
    driver.submit(Redrive())
    driver.run()
    assert driver.status == "failed"
    driver.script["bad"] = 1
    driver.submit(Retry())
    checked(driver.run())
    assert driver.status == "completed"


def test_what_cannot_be_redriven_is_refused_with_the_reason() -> None:
    driver, _ = failed(1)
    for step, why in (("eahc", "did you mean `each`"), ("after", "no loop at `after`")):
        with pytest.raises(Refused, match=why):
            driver.submit(Redrive(step=step))
    assert driver.status == "completed"
    driver.submit(Redrive())
    driver.submit(Pause())
    with pytest.raises(Refused, match="paused"):
        driver.submit(Redrive())
    driver.submit(Resume())
    driver.submit(Cancel())
    driver.run()
    with pytest.raises(Refused, match="cancelled"):
        driver.submit(Redrive())


def test_a_loop_that_somebody_ended_by_hand_is_not_redriven() -> None:
    work = Repairable(1)
    driver = Driver(loop(spec="mode: sequential, reduce: {sum: sum}"), {"first": 1, "second": work}).start()
    run_state = driver.claim(driver.state.ready.first)
    while not run_state.loop or run_state.loop.failed == 0:
        driver.move(run_state)
    driver.submit(SkipStep("each"))
    driver.run()
    with pytest.raises(Refused, match="no loop"):
        driver.submit(Redrive())


def test_loops_that_end_again_and_again_are_not_all_kept() -> None:
    text = f"""
- step: each
  loop: {{in: "{{{{ [1] }}}}", iterator: n, spec: {{{BEST_EFFORT}}}}}
  tool: [{{work: {{kind: python, code: "1"}}}}]
  next: {{arcs: [{{step: each, set: {{ctx.i: "{{{{ ctx.i | default(0) + 1 }}}}"}}, when: "{{{{ ctx.i | default(0) < 150 }}}}"}}]}}
""".lstrip()
    driver = run(text, {"work": error()})
    last_runs = [body.run for body in driver.bodies(LoopDone)][-REDRIVABLE_KEPT:]
    assert list(driver.state.redrivable) == last_runs
    driver.submit(Redrive())
    assert driver.bodies(IterationsRedriven)[0].iterations == REDRIVABLE_KEPT


@settings(max_examples=60)
@given(playbooks(), outcomes, choices)
def test_whenever_iterations_are_redriven_the_history_stays_sound(
    playbook: Playbook, turns: list[int], order: list[int]
) -> None:
    driver = Chaos(playbook, turns)
    mirror = new_state(driver.plan, EXECUTION)

    def check(events: list[Event]) -> None:
        for event in events:
            evolve(mirror, as_stored(event))
            assert violations(mirror) == []
        assert differences(mirror, driver.state) == []

    driver.on_append = check
    driver.start()
    for number, choice in enumerate(order):
        if driver.state.over or not (driver.act(choice) or driver.unblock()):
            break
        if number % 4 == 3:
            with suppress(Refused):
                driver.submit(Redrive())
    for _ in range(3):
        driver.settle()
        assert driver.state.over
        with suppress(Refused):
            driver.submit(Redrive())
    driver.settle()
    assert driver.state.over
