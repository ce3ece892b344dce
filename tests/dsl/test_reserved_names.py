"""The names people may choose."""

import pytest

from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS, ITERATOR_NAMESPACES, NAMESPACES
from tests.playbooks import NOOP, ProblemPosition, error_codes, problem_positions, problems_of, step

GOOD = ["a", "Z", "_", "_private", "a1", "a-b", "a_b", "camelCase", "end"]
BAD = ["1a", "-a", "a b", "a.b", "a/b", "é", "a!", "''", "5", "true", "1.5"]


def named(role: str, name: str) -> str:
    return {
        "step": step(NOOP, name=name),
        "label": step(f"tool:\n  - {name}: {{ kind: noop }}"),
        "name": step(f"tool:\n  - {{ name: {name}, kind: noop }}"),
        "iterator": step(f"loop: {{ in: [1], iterator: {name} }}\n{NOOP}"),
        "keychain": f"keychain: [{{ name: {name}, kind: env, env: A }}]\nworkflow:\n" + step(NOOP),
        "workbook": f"workbook: {{ tasks: {{ {name}: {{ kind: noop }} }} }}\nworkflow:\n" + step(NOOP),
    }[role]


ROLES = ["step", "label", "name", "iterator", "keychain", "workbook"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", GOOD)
def test_a_name_has_letters_digits_underscores_and_hyphens(role: str, name: str) -> None:
    assert error_codes(named(role, name)) == []


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", BAD)
def test_any_other_name_is_refused(role: str, name: str) -> None:
    # A key of a mapping is always text, so `true` and the like are names there.
    expected = [] if role in ("label", "workbook") and name == "true" else ["bad-name"]
    assert error_codes(named(role, name)) == expected


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", sorted(NAMESPACES))
def test_the_namespaces_of_expressions_are_reserved(role: str, name: str) -> None:
    allowed = role == "iterator" and name in ITERATOR_NAMESPACES
    assert error_codes(named(role, name)) == ([] if allowed else ["reserved-name"])


@pytest.mark.parametrize("name", sorted(BUILTIN_ITER_KEYS))
def test_what_every_iteration_has_is_no_iterator(name: str) -> None:
    assert error_codes(named("iterator", name)) == ["reserved-name"]
    assert error_codes(named("step", name)) == []
    assert error_codes(named("label", name)) == []


def test_the_builtins_of_an_iteration_are_these() -> None:
    assert {"index", "count", "first", "last", "parent"} == BUILTIN_ITER_KEYS


@pytest.mark.parametrize(
    ("role", "position"),
    [
        ("step", ProblemPosition(5, 9, "bad-name")),
        ("label", ProblemPosition(7, 7, "bad-name")),
        ("name", ProblemPosition(7, 15, "bad-name")),
        ("iterator", ProblemPosition(6, 30, "bad-name")),
        ("keychain", ProblemPosition(4, 20, "bad-name")),
        ("workbook", ProblemPosition(4, 22, "bad-name")),
    ],
)
def test_a_wrong_name_is_told_where_it_stands(role: str, position: ProblemPosition) -> None:
    (problem,) = [problem for problem in problems_of(named(role, "a.b")) if problem.severity == "error"]
    assert problem.code == position.code
    assert (problem.line, problem.column) == position[:2]
    assert "a.b" in problem.message
    assert "letters" in problem.hint


def test_a_name_that_is_wrong_does_not_hide_other_problems() -> None:
    text = step("tool: { kind: htpp }\nnext: { arcs: [{ step: nowhere }] }", name="1a")
    assert [problem.code for problem in problem_positions(text)] == [
        "bad-name",
        "unknown-kind",
        "unknown-step",
    ]


def test_a_task_cannot_be_called_what_a_jump_calls_the_one_before() -> None:
    assert error_codes(step("tool: [{ previous: { kind: noop } }]")) == ["reserved-name"]
    assert error_codes(step("tool: [{ name: previous, kind: noop }]")) == ["reserved-name"]
