"""All problems of a document at once, each at its own line and column."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.compiler import ignored_codes
from noetl.dsl.document.problem import PlaybookInvalid
from noetl.dsl.document.problem_codes import CODES
from noetl.loader import load
from tests.playbooks import (
    NOOP,
    ProblemPosition,
    document_of,
    problem_of,
    problem_positions,
    problems_of,
    remove_marks,
    step,
)

FIFTEEN, POSITIONS = remove_marks("""\
apiVersion: noetl.io/v2
kind: Playbook
metadata:
  §name: faults
  pfad: docs/faults
executor:
  kind: §remote
workload:
  url: "{{ 1 + §}}"
§vars: {}
workflow:
  - step: start
    §when: true
    tool:
      - name: fetch
        kind: http
        §methd: GET
        url: "{{ workload.url }}"
        spec: { timeout: §fast }
      - name: send
        kind: §htpp
      - name: §fetch
        kind: python
        code: |
          x = 1
          §result = (
    next:
      arcs:
        - step: §ende
          when: §"event.name == 'step.done'"
  - step: end
    loop: §{ in: [1] }
    tool:
      - kind: noop
        set: { §total: 1 }
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: jump, to: §nowhere }
""")
CODES_OF_FIFTEEN = [
    "missing-key",
    "bad-value",
    "expression-syntax",
    "root-vars",
    "step-when",
    "unknown-key",
    "wrong-type",
    "unknown-kind",
    "duplicate-task",
    "bad-input",
    "unknown-step",
    "guard-form",
    "loop-incomplete",
    "bad-write",
    "jump-target",
]
FIFTEEN_FOUND = [
    ProblemPosition(*position, code) for position, code in zip(POSITIONS, CODES_OF_FIFTEEN, strict=True)
]


def test_fifteen_faults_are_fifteen_problems() -> None:
    errors = [problem for problem in problems_of(FIFTEEN) if problem.severity == "error"]
    assert [
        ProblemPosition(problem.line, problem.column, problem.code) for problem in errors
    ] == FIFTEEN_FOUND
    assert len(FIFTEEN_FOUND) == len(set(CODES_OF_FIFTEEN)) == 15


def test_every_problem_says_what_is_wrong_and_most_what_to_do() -> None:
    problems = problems_of(FIFTEEN)
    assert all(problem.message and problem.file == "playbook.yaml" for problem in problems)
    assert all(problem.severity == CODES[problem.code].severity for problem in problems)
    silent = {problem.code for problem in problems if not problem.hint}
    assert silent <= {"expression-syntax", "bad-input", "wrong-type"}, silent


def test_the_error_of_loading_holds_them_all() -> None:
    with pytest.raises(PlaybookInvalid) as caught:
        load(FIFTEEN)
    assert len([problem for problem in caught.value.problems if problem.severity == "error"]) == 15
    assert str(caught.value).startswith("<text>:4:3 missing-key ")
    assert str(caught.value).endswith("(and 14 more)")


@pytest.mark.parametrize(
    ("body", "position"),
    [
        ("tool:\n  - name: fetch\n    kind: htpp", ProblemPosition(8, 13, "unknown-kind")),
        (
            "tool:\n  - name: fetch\n    kind: http\n    url: https://a.example\n    methd: GET",
            ProblemPosition(10, 7, "unknown-key"),
        ),
        (
            "tool:\n  - name: fetch\n    kind: http\n    url: https://a.example\n    spec:\n      timeout: fast",
            ProblemPosition(11, 18, "wrong-type"),
        ),
        (
            "tool:\n  - name: fetch\n    kind: http\n    url: https://a.example\n    spec:\n      timeout: { conect: 5 }",
            ProblemPosition(11, 20, "unknown-key"),
        ),
        (
            "tool:\n  - name: fetch\n    kind: http\n    url: https://a.example\n    method: GTE",
            ProblemPosition(10, 15, "bad-value"),
        ),
    ],
)
def test_a_fault_is_told_at_its_own_line_and_column(body: str, position: ProblemPosition) -> None:
    assert problem_positions(step(body)) == [position]


EXPRESSIONS = {
    "plain": "args:\n  a: x {{ 1 + §}} y",
    "single quotes": "args:\n  a: 'it''s {{ 1 + §}}'",
    "double quotes": 'args:\n  a: "tab\\t{{ 1 + §}}"',
    "escaped characters": 'args:\n  a: "\\u00e9{{ 1 + §}}"',
    "over two lines": 'args:\n  a: "one\n    two {{ 1 + §}}"',
    "block": "args:\n  a: |\n    one\n    two {{ 1 + §}}",
    "block with indentation": "args:\n  a: |\n    one\n      two {{ 1 + §}}",
    "block inside an expression": "args:\n  a: |\n    {{\n      1 +\n    §}}",
    "folded": "args:\n  a: >\n    one\n    two {{ 1 + §}}",
    "folded with a blank line": "args:\n  a: >-\n    one\n\n    two {{ 1 + §}}",
    "flow": 'args: { a: [1, "{{ 1 + §}}"] }',
}


@pytest.mark.parametrize("style", EXPRESSIONS)
def test_a_wrong_expression_is_told_at_its_character(style: str) -> None:
    text, (position,) = remove_marks(document_of(step(f"{EXPRESSIONS[style]}\n{NOOP}")))
    assert problem_positions(text) == [ProblemPosition(*position, "expression-syntax")]


def test_a_wrong_guard_is_told_at_its_character() -> None:
    body = "next:\n  arcs:\n    - step: start\n      when: >-\n        {{ event.name ==\n           §}}"
    text, (position,) = remove_marks(document_of(step(f"{NOOP}\n{body}")))
    assert problem_positions(text)[0] == ProblemPosition(*position, "expression-syntax")


@pytest.mark.parametrize(
    "code",
    [
        "|\n      §result = (",
        "|\n      x = 1\n      §result = )",
        "|\n\n      x = 1\n      §result = )",
        "|\n      if x:\n        §y = )",
        ">-\n      §x = )",
        '"x = 1\\n§result = )"',
        "§x = )",
    ],
)
def test_code_that_does_not_compile_is_told_at_its_line_in_the_file(code: str) -> None:
    text, (position,) = remove_marks(document_of(step(f"tool:\n  - kind: python\n    code: {code}")))
    assert problem_positions(text) == [ProblemPosition(*position, "bad-input")]


def test_a_comment_silences_a_code_on_its_line_only() -> None:
    text = "executor:\n  profile: smallCOMMENT\nworkflow:\n" + step(NOOP)
    assert problem_positions(text.replace("COMMENT", "")) == [ProblemPosition(5, 3, "executor-profile")]
    assert problem_positions(text.replace("COMMENT", " # noetl: ignore executor-profile")) == []
    assert problem_positions(text.replace("COMMENT", " # noetl: ignore dead-arc")) == [
        ProblemPosition(5, 3, "executor-profile")
    ]
    assert problem_positions(text.replace("COMMENT", " # noetl: ignore dead-arc, executor-profile")) == []
    above = text.replace("COMMENT", "").replace("executor:\n", "executor: # noetl: ignore executor-profile\n")
    assert problem_positions(above) == [ProblemPosition(5, 3, "executor-profile")]
    below = text.replace("COMMENT", "\n  # noetl: ignore executor-profile")
    assert problem_positions(below) == [ProblemPosition(5, 3, "executor-profile")]


def test_a_silenced_line_keeps_its_other_problems() -> None:
    text = document_of(
        "executor: { profile: small, kind: remote } # noetl: ignore executor-profile\nworkflow:\n"
        + step(NOOP)
    )
    assert problem_positions(text) == [ProblemPosition(4, 35, "bad-value")]


def test_an_error_that_would_leave_a_part_out_is_never_silenced() -> None:
    text = document_of("workflow:\n" + step("tool: { kind: nop } # noetl: ignore unknown-kind"))
    assert [problem.code for problem in problem_positions(text)] == ["unknown-kind"]


def test_an_error_that_leaves_the_playbook_whole_can_be_silenced() -> None:
    body = "tool: { kind: http, url: 'http://h', headers: { X: '{{ keychain.key.value }}' } }COMMENT"
    text = document_of("workflow:\n" + step(body))
    assert [problem.code for problem in problem_positions(text.replace("COMMENT", ""))] == [
        "unknown-keychain"
    ]
    assert problem_positions(text.replace("COMMENT", " # noetl: ignore unknown-keychain")) == []


def test_problems_stand_in_document_order_each_once() -> None:
    text = 'workload:\n  a: &a { b: "{{ 1 + }}" }\n  c: *a\nworkflow:\n' + step(NOOP)
    assert problem_positions(text) == [ProblemPosition(5, 22, "expression-syntax")]
    problems = problems_of(FIFTEEN)
    assert list(problems) == sorted(set(problems))


def test_a_file_with_windows_line_ends_has_the_same_places() -> None:
    errors = [
        problem for problem in problems_of(FIFTEEN.replace("\n", "\r\n")) if problem.severity == "error"
    ]
    assert [
        ProblemPosition(problem.line, problem.column, problem.code) for problem in errors
    ] == FIFTEEN_FOUND


@pytest.mark.parametrize("text", ["", "# only a comment\n", "- a\n- list\n", "text", "5", "null"])
def test_a_text_without_a_mapping_is_no_document(text: str) -> None:
    problem = problem_of(text)
    assert (problem.line, problem.column, problem.code) == (1, 1, "empty-document")
    assert "apiVersion" in problem.hint


@given(st.lists(st.sampled_from(["a: 1", "b: 2  # noetl: ignore dead-arc, unset-name", "# ignore all", ""])))
def test_a_text_that_silences_nothing_is_not_taken_apart(lines: list[str]) -> None:
    text = "\n".join(lines)
    # One more line that names noetl makes every line be looked at.
    assert ignored_codes(text) == ignored_codes(f"{text}\n# noetl:")
    assert set(ignored_codes(text)) == {number for number, line in enumerate(lines, 1) if "noetl" in line}
