"""What is wrong in a dialect is said once, at its place in the user's own file."""

import pytest

from noetl.loader import examine
from tests.dialects.dialect_upgrade import ReportedProblem, draft_document, upgrade_text, v1_document

HTTP = "type: http, method: GET, endpoint: 'http://x'"

SOUND = v1_document(
    f"""\
    - {{ task: a, {HTTP}, with: {{ k: 1 }} }}
    - {{ task: b, type: python, code: 'def main(input): return 1' }}
    - {{ task: c, type: loop, in: [1], iterator: i, run: [{{ task: n, {HTTP} }}] }}
    """,
    """\
    - { step: start, run: [{ task: a }, { task: b }, { task: c }], next: [{ then: [{ step: end }] }] }
    - { step: end }
    """,
)

# What is replaced in the sound document, and by what; § stands where the problem is.
V1 = [
    ("004 §1", "unknown-key", "name: a", "§nome: a", ["missing-key"]),
    ("004 §1", "missing-key", "apiVersion: noetl.io/v1\nkind: Playbook\nname: a\n", "§apiVersion: noetl.io/v1\nkind: Playbook\n", []),
    ("004 §1", "wrong-type", "path: b", "path: §[b]", []),
    ("004 §3", "wrong-type", "workbook:\n  - ", "workbook: §3\nx:\n  - ", ["unknown-key", *["unknown-task"] * 3]),
    ("004 §3", "duplicate-task", "- { task: b", "- §{ task: a", ["unknown-task"]),
    ("004 §3.1", "missing-key", "{ task: b, type: python, ", "§{ task: b, ", []),
    ("004 §3.1", "bad-value", "type: python", "type: §pyton", []),
    ("004 §3.1", "wrong-type", "with: { k: 1 }", "with: §1", []),
    ("004 §3.1.3", "bad-value", "method: GET", "method: §FETCH", []),
    ("004 §3.1.3", "missing-key", "{ task: a, type: http, method: GET, endpoint: 'http://x'", "§{ task: a, type: http, method: GET", []),
    ("004 §3.1.3", "unknown-key", "with: { k: 1 }", "§paramz: {}", []),
    ("004 §3.1.3", "wrong-type", "with: { k: 1 }", "retry: §many", []),
    ("004 §3.1.3", "wrong-type", "with: { k: 1 }", "retry_delay: §true", []),
    ("004 §3.1.3", "bad-value", "with: { k: 1 }", "retry: §-1", []),
    ("004 §3.1.3", "bad-value", "with: { k: 1 }", "on_error: §ignore", []),
    ("004 §3.1.3", "wrong-type", "with: { k: 1 }", "on_error: §[]", []),
    ("004 §3.1.4", "v1-python-main", "'def main(input)", "§'def main(data)", []),
    ("004 §3.1.4", "v1-python-main", "'def main(input): return 1'", "§'x = 1'", []),
    ("004 §3.1.4", "missing-key", "{ task: b, type: python, code: 'def main(input): return 1' }", "§{ task: b, type: python }", []),
    ("004 §3.1.2", "missing-key", "{ task: c, type: loop, in: [1], ", "§{ task: c, type: loop, ", []),
    ("004 §3.1.2", "wrong-type", "iterator: i", "iterator: §3", []),
    ("004 §3.1.2", "bad-value", "run: [{ task: n,", "run: §[], x: [{ task: n,", ["unknown-key"]),
    ("004 §3.1.1", "duplicate-task", "[{ task: n,", f"[{{ task: n, {HTTP} }}, §{{ task: n,", []),
    ("004 §5", "v1-nested-reference", "[{ task: n,", "[§{ task: a }, { task: n,", []),
    ("004 §4.2", "unknown-task", "run: [{ task: a }", "run: [{ task: §aa }", ["v1-unused-task"]),
    ("004 §5", "v1-nested-reference", "run: [{ task: a }", "run: [{ task: §n }", ["v1-unused-task"]),
    ("004 §4.2", "unknown-key", "run: [{ task: a }", "run: [{ task: a, §type: http }", []),
    ("004 §4.1", "unknown-key", "step: start, ", "step: start, §tool: [], ", []),
    ("004 §4.1", "missing-key", "- { step: end }", "- { step: end }\n  - §{ desc: x }", []),
    ("004 §4.1", "wrong-type", "run: [{ task: a }", "run: §{ task: a }, x: [{ task: a }", ["unknown-key", *["v1-unused-task"] * 3]),
    ("004 §4.1", "wrong-type", "- { step: end }", "- { step: end }\n  - §3", []),
    ("004 §4.3", "missing-key", "next: [{ then", "next: [§{ than", ["unknown-key"]),
    ("004 §4.3", "wrong-type", "next: [{ then: [{ step: end }] }]", "next: §end", []),
    ("004 §4.3", "unknown-key", "next: [{ then", "next: [{ §else: true, then", []),
    ("004 §4.3", "unknown-key", "next: [{ then:", "next: [{ §else:", []),
    ("004 §4.3", "wrong-type", "then: [{ step: end }]", "then: [§3]", []),
    ("004 §4.3", "wrong-type", "then: [{ step: end }]", "then: [{ step: end, with: §3 }]", []),
    ("004 §6", "missing-start", "  - { step: start", "  §- { step: begin", []),
    ("004 §6", "v1-end-next", "- { step: end }", "- { step: end, §next: [{ then: [start] }] }", []),
]  # fmt: skip


ROWS = [pytest.param(*row, marks=pytest.mark.spec(clause)) for clause, *row in V1]


def marked(old: str, new: str) -> tuple[str, int, int]:
    """The document with the replacement, and line and column of the mark in it."""
    assert SOUND.count(old) >= 1
    text = SOUND.replace(old, new, 1)
    before, after = text.split("§")
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


def test_the_document_behind_the_table_is_sound() -> None:
    assert examine(SOUND, "x").problems == ()


@pytest.mark.parametrize(("code", "old", "new", "other_codes"), ROWS)
def test_v1(code: str, old: str, new: str, other_codes: list[str]) -> None:
    text, line, column = marked(old, new)
    problems = upgrade_text(text, "v1").problems
    assert ReportedProblem(code, line, column) in problems
    assert sorted(problem.code for problem in problems) == sorted([code, *other_codes])


@pytest.mark.parametrize(("code", "old", "new", "other_codes"), ROWS)
def test_what_a_dialect_reported_the_reader_does_not_report_again(
    code: str, old: str, new: str, other_codes: list[str]
) -> None:
    text, _, _ = marked(old, new)
    codes = {problem.code for problem in examine(text, "x").problems if problem.severity == "error"}
    assert codes <= {code, *other_codes}


DRAFT = [
    ("unknown-key", "- { step: a, tool: [{ kind: noop }] }\nkeychain: []", (6, 1)),
    ("reserved-name", "- { step: a, loop: { in: [1], iterator: run }, tool: [{ kind: noop }] }", (5, 43)),
    ("wrong-type", "- { step: a, tool: [{ kind: noop, eval: yes }] }", (5, 43)),
    ("wrong-type", "- { step: a, tool: [{ kind: noop, eval: [3] }] }", (5, 44)),
    ("missing-key", "- { step: a, tool: [{ kind: noop, eval: [{ do: fail }] }] }", (5, 44)),
    ("wrong-type", "- { step: a, tool: [{ kind: noop, eval: [{ else: 3 }] }] }", (5, 52)),
    ("wrong-type", "- { step: a, tool: [{ kind: noop, eval: [{ else: { do: fail, set_vars: [] } }] }] }", (5, 74)),
    ("bad-value", "- { step: a, spec: { next_mode: some }, tool: [{ kind: noop }] }", (5, 35)),
    ("conflicting-keys", "- { step: a, tool: [{ kind: noop, eval: [{ else: { do: fail }, do: fail }] }] }", (5, 66)),
    ("conflicting-keys", "- { step: a, when: '{{ 1 }}', spec: { policy: { admit: { rules: [] } } }, tool: [] }", (5, 16)),
    ("conflicting-keys", "- { step: a, tool: [{ kind: noop, spec: { policy: { rules: [] } }, eval: [{ else: { do: fail } }] }] }", (5, 70)),
    ("conflicting-keys", "- { step: a, spec: { next_mode: inclusive }, next: { spec: { mode: exclusive }, arcs: [] } }", (5, 24)),
    ("bad-value", "- { step: a, tool: [{ kind: noop, eval: [{ else: { set_shared: { k: { sum: '{% if a %}1{% endif %}' } } } }] }] }", (5, 73)),
    ("bad-value", "- { step: a, loop: { spec: { mode: parallel } }, tool: [{ eval: [{ else: { set_shared: { k: { sum: 1 } } } }, { else: { set_shared: { k: { max: 1 } } } }] }] }", (5, 137)),
]  # fmt: skip


@pytest.mark.parametrize(("code", "workflow", "at"), DRAFT)
def test_draft(code: str, workflow: str, at: tuple[int, int]) -> None:
    text = draft_document(workflow.split("\nkeychain", maxsplit=1)[0] + "\n")
    if "keychain" in workflow:
        text += "keychain: []\n"
    assert upgrade_text(text, "draft").problems == [ReportedProblem(code, *at)]


@pytest.mark.spec("004 §3.1")
def test_a_value_with_statements_cannot_be_built_on() -> None:
    text = v1_document(
        f"- {{ task: a, {HTTP}, with: {{ k: '{{% if 1 %}}x{{% endif %}}' }}, when: '{{{{ k }}}}' }}\n",
        "- { step: start, run: [{ task: a }] }\n",
    )
    assert [problem.code for problem in upgrade_text(text, "v1").problems] == ["v1-inexpressible"]


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
    assert [problem.code for problem in upgrade_text(text, "v1").problems] == ["v1-error-condition"]


def test_problems_of_the_canonical_reader_point_into_the_older_file() -> None:
    text = SOUND.replace("then: [{ step: end }]", "then: [{ step: nowhere }]").replace(
        "in: [1]", "in: '{{ 1 + }}'"
    )
    problem_lines = {
        (problem.code, problem.line) for problem in examine(text, "x").problems if problem.severity == "error"
    }
    assert problem_lines == {("unknown-step", 11), ("expression-syntax", 9)}


NULLS = [
    "workload:\nworkbook:\nworkflow: [{ step: start }]",
    "workflow: [{ step: start, desc: , run: , with: , next: }]",
    "workflow: [{ step: start, next: [{ when: , then: [{ step: end, with: }] }] }, { step: end, next: [] }]",
    (
        f"workbook: [{{ task: a, {HTTP}, when: , with: , retry: , on_error: , payload: }}]\n"
        "workflow: [{ step: start, run: [{ task: a, with: }] }]"
    ),
]


@pytest.mark.parametrize("document", NULLS)
def test_a_key_with_nothing_behind_it_counts_as_absent_in_v1(document: str) -> None:
    text = f"apiVersion: noetl.io/v1\nkind: Playbook\nname: a\npath: b\n{document}\n"
    assert examine(text, "x").problems == ()


@pytest.mark.parametrize("keys", ["when: ", "spec: ", "desc: ", "next: "])
def test_a_key_with_nothing_behind_it_counts_as_absent_in_a_draft(keys: str) -> None:
    text = draft_document(f"- {{ step: a, {keys}, tool: [{{ t: {{ kind: noop, eval: }} }}] }}\n")
    assert examine(text, "x").problems == ()


def test_what_is_read_as_a_draft_is_not_told_to_be_read_as_one() -> None:
    text = draft_document("- { step: a, vars: { b: 1 }, tool: [{ t: { kind: noop } }] }\n")
    (drafted,) = examine(text, "x").problems
    (canonical, *_) = examine(text.replace(", dialect: draft", ""), "x").problems
    assert drafted.code == canonical.code == "draft-vars"
    assert (
        canonical.hint == f"{drafted.hint}; or run `noetl upgrade --dialect draft`, or pass `--dialect draft`"
    )
