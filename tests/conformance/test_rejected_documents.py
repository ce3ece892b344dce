"""What an implementation MUST reject, and what it must not (000 §13)."""

import pytest

from tests.playbooks import (
    NOOP,
    ProblemPosition,
    playbook_of,
    problem_of,
    problem_positions,
    problems_of,
    step,
)

END = step(NOOP, name="end")


@pytest.mark.spec("000 §13 (1)")
def test_step_names_are_unique() -> None:
    text = step(NOOP) + step(NOOP, name="load") + step(NOOP, name="load")
    problem = problems_of(text)[-1]
    assert (problem.line, problem.column, problem.code) == (9, 9, "duplicate-step")
    assert "`load`" in problem.message
    assert "line 7" in problem.hint


@pytest.mark.spec("000 §13 (1)")
def test_names_that_differ_in_case_are_different() -> None:
    text = step("next: { arcs: [{ step: End }] }") + step("next: { arcs: [{ step: end }] }", name="End") + END
    assert list(playbook_of(text).steps) == ["start", "End", "end"]


@pytest.mark.spec("000 §13 (2)")
def test_an_arc_leads_to_a_step_that_exists() -> None:
    text = step("next: { arcs: [{ step: edn }] }") + END
    problem = next(problem for problem in problems_of(text) if problem.severity == "error")
    assert (problem.line, problem.column, problem.code) == (6, 26, "unknown-step")
    assert problem.hint == "did you mean `end`?"
    assert problems_of(step("next: { arcs: [{ step: end }] }") + END) == ()


@pytest.mark.spec("000 §13 (2)")
def test_an_arc_may_lead_back() -> None:
    text = step(NOOP + '\nnext: { arcs: [{ step: start, when: "{{ ctx.n == 1 }}" }] }\nset: { ctx.n: 1 }')
    assert [problem for problem in problems_of(text) if problem.severity == "error"] == []


@pytest.mark.spec("000 §13 (3)")
@pytest.mark.parametrize(
    ("loop", "positions"),
    [
        ("loop: { in: [1] }", [ProblemPosition(6, 9, "loop-incomplete")]),
        ("loop: { iterator: n }", [ProblemPosition(6, 9, "loop-incomplete")]),
        ("loop: { in: , iterator: n }", [ProblemPosition(6, 11, "loop-incomplete")]),
        ("loop: { in: [1], iterator: }", [ProblemPosition(6, 20, "loop-incomplete")]),
        ("loop: {}", [ProblemPosition(6, 9, "loop-incomplete"), ProblemPosition(6, 9, "loop-incomplete")]),
        ("loop:", [ProblemPosition(6, 3, "loop-incomplete")]),
    ],
)
def test_a_loop_has_both_in_and_iterator(loop: str, positions: list[ProblemPosition]) -> None:
    assert problem_positions(step(f"{loop}\n{NOOP}")) == positions
    assert problem_positions(step(f"loop: {{ in: [1], iterator: n }}\n{NOOP}")) == []


@pytest.mark.spec("000 §13 (4)")
@pytest.mark.parametrize("kind", ["htpp", "telegraph", "HTTP"])
def test_a_kind_that_is_not_recognised_is_refused(kind: str) -> None:
    problem = problem_of(step(f"tool:\n  - name: send\n    kind: {kind}"))
    assert (problem.line, problem.column, problem.code) == (8, 13, "unknown-kind")
    assert problem.hint


@pytest.mark.spec("000 §13 (4)")
def test_a_kind_is_accepted_when_extension_handling_is_enabled_for_it() -> None:
    text = step("tool: { kind: telegraph, to: home, spec: { wire: 3 } }")
    assert [problem.code for problem in problem_positions(text)] == ["unknown-kind"]
    assert problem_positions(text, allow_kinds=["telegraph"]) == []
    assert [problem.code for problem in problem_positions(text, allow_kinds=["semaphore"])] == [
        "unknown-kind"
    ]


@pytest.mark.spec("000 §13 (5)")
def test_vars_at_the_root_are_refused() -> None:
    assert problem_positions("workload: {}\nvars: { a: 1 }\nworkflow:\n" + step(NOOP)) == [
        ProblemPosition(5, 1, "root-vars")
    ]
    assert problem_positions("workload: { vars: { a: 1 } }\nworkflow:\n" + step(NOOP)) == []


@pytest.mark.spec("000 §13 (6)")
def test_a_step_with_when_is_refused() -> None:
    assert problem_positions(step('when: "{{ args.ready }}"\n' + NOOP)) == [
        ProblemPosition(6, 3, "step-when")
    ]


@pytest.mark.spec("000 §13 (7)")
@pytest.mark.parametrize(
    ("policy", "column"),
    [
        ("[]", 39),
        ("retry", 39),
        ("{}", 39),
        ("{ on_unmatched: fail }", 39),
        ("{ rules: }", 39),
        ("{ rules: 5 }", 39),
        ("", 31),
    ],
)
def test_a_task_policy_is_an_object_containing_rules(policy: str, column: int) -> None:
    text = step(f"tool: {{ kind: noop, spec: {{ policy: {policy} }} }}")
    assert problem_positions(text) == [ProblemPosition(6, column, "policy-shape")]


@pytest.mark.spec("000 §13 (7)")
def test_a_policy_with_rules_is_accepted() -> None:
    assert problem_positions(step("tool: { kind: noop, spec: { policy: { rules: [] } } }")) == []
    assert (
        problem_positions(
            step("tool: { kind: noop, spec: { policy: { rules: [{ else: { do: continue } }] } } }")
        )
        == []
    )
