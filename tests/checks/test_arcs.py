import sys
from collections.abc import Mapping

import pytest

from noetl.dsl.checks.flow import guard_verdicts
from noetl.expr.analysis.partial_evaluation import Facts, verdicts
from noetl.expr.expression import Expression
from noetl.loader import examine
from tests.checks.check_fragments import assert_clean, assert_found, document_text

ENDS = """
- step: a
  tool: { kind: noop }
- step: b
  tool: { kind: noop }
"""


def step(arcs: str, mode: str = "exclusive", tool: str = "tool: { kind: python, code: result = 1 }") -> str:
    listed = "".join(f"      {line}\n" for line in arcs.strip().splitlines())
    return (
        f"- step: start\n  {tool}\n  next:\n    spec: {{ mode: {mode} }}\n    arcs:\n{listed}{ENDS.lstrip()}"
    )


@pytest.mark.spec("000 §8.2")
@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            "- step: a\n- step: b\n  when: §\"{{ event.name == 'step.done' }}\"",
            "- step: b\n  when: \"{{ event.name == 'step.done' }}\"\n- step: a",
            id="behind an arc without a guard",
        ),
        pytest.param(
            "- step: a\n- step: §b",
            '- step: a\n  when: "{{ ctx.x }}"\n- step: b',
            id="a second arc without a guard",
        ),
        pytest.param(
            "- step: a\n  when: \"{{ event.name == 'step.done' }}\"\n"
            "- step: b\n  when: §\"{{ event.name == 'step.done' and ctx.x }}\"",
            "- step: b\n  when: \"{{ event.name == 'step.done' and ctx.x }}\"\n"
            "- step: a\n  when: \"{{ event.name == 'step.done' }}\"",
            id="behind the general case",
        ),
        pytest.param(
            "- step: a\n  when: \"{{ event.name == 'step.done' }}\"\n"
            "- step: b\n  when: \"{{ event.name == 'step.failed' }}\"\n"
            "- step: §b",
            "- step: a\n  when: \"{{ event.name == 'step.done' }}\"\n"
            "- step: b\n  when: \"{{ event.name == 'step.failed' }}\"",
            id="every ending is taken already",
        ),
        pytest.param(
            '- step: a\n  when: "{{ ctx.x > 1 }}"\n- step: b\n  when: §"{{ ctx.x > 1 }}"',
            '- step: a\n  when: "{{ ctx.x > 1 }}"\n- step: b\n  when: "{{ ctx.x > 2 }}"',
            id="the same guard again",
        ),
        pytest.param(
            "- step: §a\n  when: false\n- step: b",
            '- step: a\n  when: "{{ ctx.x }}"\n- step: b',
            id="a constant",
        ),
        pytest.param(
            '- step: a\n  when: §"{{ 1 == 2 }}"\n- step: b',
            '- step: a\n  when: "{{ ctx.x == 2 }}"\n- step: b',
            id="constants",
        ),
        pytest.param(
            "- step: a\n  when: §\"{{ event.name == 'step.finished' }}\"\n- step: b",
            "- step: a\n  when: \"{{ event.name == 'step.done' }}\"\n- step: b",
            id="no event has that name",
        ),
        pytest.param(
            "- step: a\n  when: §\"{{ event.status == 'ok' }}\"\n- step: b",
            "- step: a\n  when: \"{{ event.status == 'success' }}\"\n- step: b",
            id="no event has that status",
        ),
    ],
)
def test_arcs_that_are_never_taken(bad: str, good: str) -> None:
    assert_found("dead-arc", step(bad))
    assert_clean(step(good))


def test_a_step_that_only_routes_has_no_failure_to_handle() -> None:
    arcs = "- step: a\n  when: \"{{ event.name == 'step.done' }}\"\n- step: b\n  when: §\"{{ event.name == 'step.failed' }}\""
    (problem,) = assert_found("dead-arc", step(arcs, tool="desc: routes"))
    assert "nothing in `start` can fail" in problem.message


def test_inclusive_arcs_do_not_hide_each_other() -> None:
    assert_clean(step('- step: a\n- step: b\n  when: "{{ ctx.x }}"', mode="inclusive"))
    assert_clean(step('- step: a\n  when: "{{ ctx.x }}"\n- step: b\n  when: "{{ ctx.x }}"', mode="inclusive"))


LOOP = "loop: { in: [1, 2], iterator: item }\n  tool: { kind: python, code: result = 1 }"


@pytest.mark.spec("000 §7.3")
@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("{{ event.name == '§step.done' }}", "{{ event.name == 'loop.done' }}"),
        ("{{ event.name == '§step.done' and ctx.x }}", "{{ event.name == 'loop.done' and ctx.x }}"),
        (
            "{{ event.name in ['§step.done', 'step.failed'] }}",
            "{{ event.name in ['loop.done', 'step.failed'] }}",
        ),
        ("{{ event.name != '§step.done' }}", "{{ event.name != 'loop.done' }}"),
        ("{{ event.name == '§step.done' }}", "{{ event.name == 'call.done' }}"),
        ("{{ event.name == '§step.done' }}", "{{ event.name in ['step.done', 'loop.done'] }}"),
        (
            "{{ event.name == '§step.done' }}",
            "{{ event.name == 'step.done' or (event.name == 'loop.done' and event.loop.failed == 0) }}",
        ),
    ],
)
def test_a_loop_never_ends_with_step_done(bad: str, good: str) -> None:
    (problem,) = assert_found("loop-step-done", step(f'- step: a\n  when: "{bad}"\n- step: b', tool=LOOP))
    assert problem.hint == "compare with `loop.done`"
    other = "- step: b\n  when: \"{{ event.name == 'loop.done' and ctx.y }}\""
    assert_clean(step(f'{other}\n- step: a\n  when: "{good}"', mode="inclusive", tool=LOOP))


@pytest.mark.spec("000 §7.3")
def test_a_step_without_a_loop_never_ends_with_loop_done() -> None:
    (problem,) = assert_found(
        "loop-step-done", step("- step: a\n  when: \"{{ event.name == '§loop.done' }}\"\n- step: b")
    )
    assert problem.hint == "compare with `step.done`"


@pytest.mark.parametrize("guard", ["event.name == 'step.done'", "{{ event.name == }}"])
def test_nothing_is_said_about_guards_that_cannot_be_read(guard: str) -> None:
    problems = examine(document_text(step(f'- step: a\n  when: "{guard}"\n- step: b')), "test.yaml").problems
    assert [problem.severity for problem in problems] == ["error"]


@pytest.mark.no_cover
def test_each_guard_of_a_large_router_is_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []

    def count(condition: Expression, cases: Mapping[str, Facts]) -> dict[str, bool | None]:
        judged.append(condition.source)
        return verdicts(condition, cases)

    monkeypatch.setattr(guard_verdicts, "verdicts", count)
    guards = [f"{{{{ ctx.n == {number} }}}}" for number in range(5_000)]
    assert_clean(router_of(guards))
    assert sorted(judged) == sorted(guards)
    assert guard_verdicts._on_events.cache_info().currsize == 0


@pytest.mark.no_cover
def test_the_work_for_an_arc_does_not_grow_with_their_number() -> None:
    few, many = calls_to_check(1_000), calls_to_check(6_000)
    assert many / 6_000 <= few / 1_000
    # A hundred thousand end within ten seconds; each guard that is parsed would take thousands of calls.
    assert many / 6_000 < 400


def calls_to_check(arcs: int) -> int:
    """How many functions are called to read and check a step with so many arcs, each with a guard of its own."""
    text = document_text(router_of([f"{{{{ ctx.m == {number} }}}}" for number in range(arcs)]))
    calls = 0

    def count(_frame: object, event: str, _value: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        examine(text, "test.yaml")
    finally:
        sys.setprofile(before)
    return calls


def router_of(guards: list[str]) -> str:
    arcs = "".join(f'\n        - {{ step: end, when: "{guard}" }}' for guard in guards)
    steps = "- step: start\n  next:\n    spec: { mode: inclusive }\n    arcs:" + arcs
    return steps + "\n- step: end\n  tool: { kind: noop }\n"
