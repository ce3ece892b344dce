"""What is wrong in a dialect is said once, at its place in the user's own file."""

import pytest

from noetl.loading import examine
from tests.dialects.upgrading import Finding, draft_document, upgrade_text, v1_document

HTTP = "type: http, method: GET, endpoint: x"

# Lines: the workbook's first task is in line 7, the workflow's first step two lines below its end.
V1 = [
    ("004 §1", "unknown-key", "name: a", "nome: a", (3, 1), ["missing-key"]),
    ("004 §1", "missing-key", "path: b\n", "", (1, 1), []),
    ("004 §1", "wrong-type", "name: a", "name: [a]", (3, 7), []),
    ("004 §3", "wrong-type", "workbook:\n  - ", "workbook: 3\nx: ", (6, 11), ["unknown-key", "unknown-task"]),
    ("004 §3", "duplicate-task", "task: b", "task: a", (8, 5), ["unknown-task"]),
    ("004 §3.1", "missing-key", "type: python, ", "", (8, 5), []),
    ("004 §3.1", "bad-value", "type: python", "type: pyton", (8, 22), []),
    ("004 §3.1", "wrong-type", "with: { k: 1 }", "with: 1", (7, 57), []),
    ("004 §3.1.3", "bad-value", "method: GET", "method: FETCH", (7, 34), []),
    ("004 §3.1.3", "missing-key", ", endpoint: x", "", (7, 5), []),
    ("004 §3.1.3", "unknown-key", "endpoint: x", "endpoint: x, paramz: {}", (7, 52), []),
    ("004 §3.1.3", "wrong-type", "endpoint: x", "endpoint: x, retry: many", (7, 59), []),
    ("004 §3.1.3", "bad-value", "endpoint: x", "endpoint: x, retry: -1", (7, 59), []),
    ("004 §3.1.3", "bad-value", "endpoint: x", "endpoint: x, on_error: ignore", (7, 62), []),
    ("004 §3.1.4", "v1-python-main", "def main(input)", "def main(data)", (8, 36), []),
    ("004 §3.1.4", "v1-python-main", "def main(input): return 1", "x = 1", (8, 36), []),
    ("004 §3.1.4", "missing-key", ", code: 'def main(input): return 1'", "", (8, 5), []),
    ("004 §3.1.2", "missing-key", "iterator: i, ", "", (9, 5), []),
    ("004 §3.1.2", "bad-value", "run: [{ task: n,", "run: [], x: [{ task: n,", (9, 59), ["unknown-key"]),
    ("004 §3.1.1", "duplicate-task", "type: http, method: GET, endpoint: y }", f"{HTTP} }}, {{ task: n, {HTTP} }}", (9, 108), []),
    ("004 §5", "v1-nested-reference", "type: http, method: GET, endpoint: y", "", (9, 61), []),
    ("004 §4.2", "unknown-task", "run: [{ task: a }", "run: [{ task: aa }", (11, 34), ["v1-unused-task"]),
    ("004 §5", "v1-nested-reference", "run: [{ task: a }", "run: [{ task: n }", (11, 34), ["v1-unused-task"]),
    ("004 §4.2", "unknown-key", "run: [{ task: a }", "run: [{ task: a, type: http }", (11, 37), []),
    ("004 §4.1", "unknown-key", "step: start, ", "step: start, tool: [], ", (11, 18), []),
    ("004 §4.1", "missing-key", "step: start, ", "", (11, 5), ["missing-start", "v1-unused-task"]),
    ("004 §4.1", "wrong-type", "run: [{ task: a }", "run: { task: a }, x: [{ task: a }", (11, 23), ["unknown-key", "v1-unused-task"]),
    ("004 §4.3", "missing-key", "next: [{ then", "next: [{ than", (11, 77), ["unknown-key"]),
    ("004 §4.3", "wrong-type", "next: [{ then: [{ step: end }] }]", "next: end", (11, 76), []),
    ("004 §4.3", "unknown-key", "next: [{ then", "next: [{ else: true, then", (11, 79), []),
    ("004 §6", "missing-start", "step: start", "step: begin", (11, 3), []),
    ("004 §6", "v1-end-next", "step: end }", "step: end, next: [{ then: [start] }] }", (12, 16), []),
]  # fmt: skip

SOUND = v1_document(
    f"""\
    - {{ task: a, {HTTP}, with: {{ k: 1 }} }}
    - {{ task: b, type: python, code: 'def main(input): return 1' }}
    - {{ task: c, type: loop, in: [1], iterator: i, run: [{{ task: n, type: http, method: GET, endpoint: y }}] }}
    """,
    """\
    - { step: start, run: [{ task: a }, { task: b }, { task: c }], next: [{ then: [{ step: end }] }] }
    - { step: end }
    """,
)


def test_the_document_behind_the_table_is_sound() -> None:
    assert examine(SOUND, "x").problems == ()


@pytest.mark.parametrize(("clause", "code", "old", "new", "at", "others"), V1)
def test_v1(clause: str, code: str, old: str, new: str, at: tuple[int, int], others: list[str]) -> None:
    assert old in SOUND
    findings = upgrade_text(SOUND.replace(old, new, 1), "v1").findings
    assert Finding(code, *at) in findings, (clause, findings)
    assert sorted(finding.code for finding in findings) == sorted([code, *others])


@pytest.mark.parametrize(("clause", "code", "old", "new", "at", "others"), V1)
def test_what_a_dialect_reported_the_reader_does_not_report_again(
    clause: str, code: str, old: str, new: str, at: tuple[int, int], others: list[str]
) -> None:
    text = SOUND.replace(old, new, 1)
    found = [problem for problem in examine(text, "x").problems if problem.severity == "error"]
    known = {finding.code for finding in upgrade_text(text, "v1").findings}
    assert {problem.code for problem in found} <= known, (clause, found)


DRAFT = [
    ("unknown-key", "- { step: a, tool: [{ kind: noop }] }\nkeychain: []", (6, 1)),
    ("wrong-type", "- { step: a, tool: [{ kind: noop, eval: yes }] }", (5, 43)),
    ("wrong-type", "- { step: a, tool: [{ kind: noop, eval: [3] }] }", (5, 44)),
    ("missing-key", "- { step: a, tool: [{ kind: noop, eval: [{ do: fail }] }] }", (5, 44)),
    ("wrong-type", "- { step: a, tool: [{ kind: noop, eval: [{ else: 3 }] }] }", (5, 52)),
    ("conflicting-keys", "- { step: a, tool: [{ kind: noop, eval: [{ else: { do: fail }, do: fail }] }] }", (5, 66)),
    ("conflicting-keys", "- { step: a, when: '{{ 1 }}', spec: { policy: { admit: { rules: [] } } }, tool: [] }", (5, 16)),
    ("conflicting-keys", "- { step: a, tool: [{ kind: noop, spec: { policy: { rules: [] } }, eval: [{ else: { do: fail } }] }] }", (5, 70)),
    ("conflicting-keys", "- { step: a, spec: { next_mode: inclusive }, next: { spec: { mode: exclusive }, arcs: [] } }", (5, 24)),
    ("bad-value", "- { step: a, tool: [{ kind: noop, eval: [{ else: { set_shared: { k: { sum: '{% if a %}1{% endif %}' } } } }] }] }", (5, 73)),
    (
        "bad-value",
        "- { step: a, loop: { spec: { mode: parallel } }, tool: [{ eval: [{ else: { set_shared: { k: { sum: 1 } } } },"
        " { else: { set_shared: { k: { max: 1 } } } }] }] }",
        (5, 137),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("code", "workflow", "at"), DRAFT)
def test_draft(code: str, workflow: str, at: tuple[int, int]) -> None:
    text = draft_document(workflow.split("\nkeychain")[0] + "\n")
    if "keychain" in workflow:
        text += "keychain: []\n"
    assert upgrade_text(text, "draft").findings == [Finding(code, *at)]


@pytest.mark.spec("004 §3.1")
def test_a_value_with_statements_cannot_be_built_on() -> None:
    text = v1_document(
        f"- {{ task: a, {HTTP}, with: {{ k: '{{% if 1 %}}x{{% endif %}}' }}, when: '{{{{ k }}}}' }}\n",
        "- { step: start, run: [{ task: a }] }\n",
    )
    assert [finding.code for finding in upgrade_text(text, "v1").findings] == ["v1-inexpressible"]


@pytest.mark.spec("004 §5")
@pytest.mark.parametrize(
    ("code", "workbook", "run"),
    [
        ("v1-unused-task", f"- {{ task: a, {HTTP} }}\n", "[]"),
        ("v1-ignored-run", f"- {{ task: a, {HTTP}, run: [{{ task: b, {HTTP} }}] }}\n", "[a]"),
    ],
)
def test_what_has_no_effect_is_a_warning(code: str, workbook: str, run: str) -> None:
    text = v1_document(workbook, f"- {{ step: start, run: {run} }}\n")
    (problem,) = examine(text, "x").problems
    assert (problem.code, problem.severity) == (code, "warning")


@pytest.mark.spec("004 §6")
def test_a_condition_on_the_way_to_the_error_handler_is_a_warning() -> None:
    text = v1_document(
        f"- {{ task: a, {HTTP} }}\n",
        """
        - { step: start, run: [a], next: [{ when: "{{ result.bad }}", then: [error_handler] }] }
        - { step: error_handler }
        """,
    )
    assert ["v1-error-condition"] == [finding.code for finding in upgrade_text(text, "v1").findings]


def test_problems_of_the_canonical_reader_point_into_the_older_file() -> None:
    text = SOUND.replace("then: [{ step: end }]", "then: [{ step: nowhere }]").replace(
        "in: [1]", "in: '{{ 1 + }}'"
    )
    found = {
        (problem.code, problem.line) for problem in examine(text, "x").problems if problem.severity == "error"
    }
    assert found == {("unknown-step", 11), ("expression-syntax", 9)}
