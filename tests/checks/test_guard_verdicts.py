import pytest

from noetl.dsl.checks.flow.guard_verdicts import (
    can_fail,
    certain_events,
    matches_on,
    possible_events,
)
from noetl.dsl.document.playbook import Admission, Arc, Loop, Position, Step, Task
from noetl.expr.expression import parse
from noetl.expr.template import Constant

HERE = Position(1, 1)
WORK = Step("work", HERE, tasks=(Task("t", "python", HERE),))
LOOP = Step("each", HERE, tasks=WORK.tasks, loop=Loop(Constant([]), "item", HERE))
ROUTE = Step("route", HERE)

DONE, LOOPED, FAILED = "step.done", "loop.done", "step.failed"


@pytest.mark.parametrize(
    ("guard", "possible", "certain"),
    [
        ("event.name == 'step.done'", {DONE}, {DONE}),
        ("'step.done' == event.name", {DONE}, {DONE}),
        ("event['name'] == 'step.failed'", {FAILED}, {FAILED}),
        ("event.name != 'step.failed'", {DONE}, {DONE}),
        ("not event.name == 'step.failed'", {DONE}, {DONE}),
        ("event.name in ['step.done', 'loop.done']", {DONE}, {DONE}),
        ("event.name not in ('step.failed',)", {DONE}, {DONE}),
        ("event.name == 'step.done' and ctx.n > 3", {DONE}, set()),
        ("event.name == 'step.done' or ctx.n > 3", {DONE, FAILED}, {DONE}),
        ("ctx.n > 3 and event.name == 'step.failed'", {FAILED}, set()),
        ("ctx.n > 3 or event.name == 'step.failed'", {DONE, FAILED}, {FAILED}),
        ("event.status == 'error'", {FAILED}, {FAILED}),
        ("event.status == 'success'", {DONE}, {DONE}),
        ("event.status == 'ok'", set(), set()),
        ("event.error", {FAILED}, {FAILED}),
        ("not event.error", {DONE}, {DONE}),
        ("event.error.kind == 'timeout'", {FAILED}, set()),
        ("event.error.kind != 'timeout'", {DONE, FAILED}, {DONE}),
        ("event.error.kind in ['timeout', 'sql']", {FAILED}, set()),
        ("event.error is defined", {DONE, FAILED}, {FAILED}),
        ("event.error is none", {DONE}, set()),
        ("event.result.n > 0", {DONE}, set()),
        ("event.result.state != 'ok'", {DONE, FAILED}, {FAILED}),
        ("event.name.endswith('.done')", {DONE}, {DONE}),
        ("event.name.startswith('step')", {DONE, FAILED}, {DONE, FAILED}),
        ("(event.name | upper) == 'STEP.DONE'", {DONE}, {DONE}),
        ("event.name is eq 'step.done'", {DONE}, {DONE}),
        ("'yes' if event.name == 'step.done' else 'no'", {DONE}, {DONE}),
        ("event.error.kind | default('none') == 'none'", {DONE, FAILED}, {DONE}),
        ("true", {DONE, FAILED}, {DONE, FAILED}),
        ("'false'", set(), set()),
        ("1 > 2", set(), set()),
        ("1 < 2 < 3", {DONE, FAILED}, {DONE, FAILED}),
        ("ctx.a and false", set(), set()),
        ("ctx.a", {DONE, FAILED}, set()),
        ("now() > ctx.a", {DONE, FAILED}, set()),
        ("event.name == 'loop.done'", set(), set()),
        ("event.name == 'step.failed' and event.error", {FAILED}, {FAILED}),
        ("event.name == 'step.done' and event.status == 'error'", set(), set()),
        ("event.name != 'step.done' and event.error.kind == 'sql'", {FAILED}, set()),
    ],
)
def test_a_guard_is_judged_for_each_event_that_can_end_the_step(
    guard: str, possible: set[str], certain: set[str]
) -> None:
    parsed = parse("{{ " + guard + " }}")
    assert possible_events(parsed, WORK) == possible
    assert certain_events(parsed, WORK) == certain


@pytest.mark.spec("000 §7.3")
def test_a_loop_ends_with_its_own_event() -> None:
    assert possible_events(parse("{{ event.name == 'loop.done' }}"), LOOP) == {LOOPED}
    assert possible_events(parse("{{ event.name == 'step.done' }}"), LOOP) == set()


@pytest.mark.parametrize("step", [WORK, LOOP])
def test_the_older_names_of_events_fit_steps_and_loops(step: Step) -> None:
    assert possible_events(parse("{{ event.name == 'call.done' }}"), step) == {step.done_event}
    assert possible_events(parse("{{ event.name in ['call.error'] }}"), step) == {FAILED}
    assert possible_events(parse("{{ event.name != 'call.done' and ctx.a }}"), step) == {FAILED}


@pytest.mark.spec("000 §8.1")
def test_no_guard_holds_on_every_ending() -> None:
    assert possible_events(True, WORK) == certain_events(True, WORK) == {DONE, FAILED}
    assert possible_events(False, WORK) == set()


def test_what_only_routes_cannot_fail() -> None:
    assert possible_events(True, ROUTE) == {DONE}
    assert can_fail(Step("end", HERE, tasks=(Task("t", "noop", HERE),)))
    assert can_fail(Step("route", HERE, args={"a": parse("{{ ctx.a }}")}))
    assert not can_fail(Step("route", HERE, args={"a": Constant(1)}))
    assert can_fail(Step("gate", HERE, admit=Admission((), None, "fail", HERE)))
    assert not can_fail(Step("gate", HERE, admit=Admission((), None, "park", HERE)))


@pytest.mark.parametrize(
    ("guard", "reads"),
    [
        ("event.name == 'step.done'", True),
        ("event.status", True),
        ("event.error.kind == 'x'", True),
        ("event is defined", True),
        ("event.result.name == 'x'", False),
        ("ctx.error", False),
    ],
)
def test_a_guard_handles_a_failure_if_it_looks_at_the_ending(guard: str, reads: bool) -> None:
    assert Arc("next", HERE, parse("{{ " + guard + " }}")).handles_failure is reads
    assert not Arc("next", HERE).handles_failure


@pytest.mark.spec("000 §6.3 (1)")
@pytest.mark.parametrize(
    ("guard", "possible", "surely_on_error"),
    [
        ("outcome.status == 'error'", {"error"}, True),
        ("output.status == 'error'", {"error"}, True),
        ("outcome.status != 'ok'", {"error"}, True),
        ("outcome.status == 'error' and outcome.http.status in [429]", {"error"}, None),
        ("outcome.status == 'error' and outcome.error", {"error"}, True),
        ("outcome.status == 'error' and outcome.result.n > 1", set(), False),
        ("outcome.error.retryable", {"error"}, None),
        ("outcome.error", {"error"}, True),
        ("outcome.status == 'ok'", {"ok"}, False),
        ("outcome.result.state != 'done'", {"ok", "error"}, True),
        ("output.data.state == 'done'", {"ok"}, False),
        ("iter.has_more", {"ok", "error"}, None),
    ],
)
def test_a_rule_is_judged_for_each_outcome(
    guard: str, possible: set[str], surely_on_error: bool | None
) -> None:
    parsed = parse("{{ " + guard + " }}")
    assert {status for status in ("ok", "error") if matches_on(parsed, status) is not False} == possible
    assert matches_on(parsed, "error") is surely_on_error


@pytest.mark.parametrize(
    "guard",
    [
        "event.name == 'step.done'",
        "event.name != 'step.done'",
        "event.name == 'call.done'",
        "event.name == 'call.error' and ctx.x",
        "event.status == 'error' and ctx.x == 'a' and ctx.y",
        "event.name == 'step.done' and ctx.x or ctx.y",
        "event.name == 'step.done' and (ctx.x if ctx.y else ctx.z)",
        "event.name == 'step.failed' == ctx.x",
    ],
)
def test_brackets_change_nothing(guard: str) -> None:
    bare, bracketed = parse("{{ " + guard + " }}"), parse("{{ (" + guard + ") }}")
    for step in (WORK, LOOP):
        assert possible_events(bare, step) == possible_events(bracketed, step)
        assert certain_events(bare, step) == certain_events(bracketed, step)
