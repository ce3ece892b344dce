"""The forms of a task, and what each may leave out."""

import pytest

from noetl.dsl.document.playbook import Task
from noetl.expr.template import Constant
from tests.playbooks import (
    ProblemPosition,
    error_codes,
    first_step,
    problem_of,
    problem_positions,
    problems_of,
    step,
)

SAME = {
    "name and kind": "tool:\n  - name: fetch\n    kind: http\n    url: https://a.example",
    "name and kind in a line": "tool: [{ name: fetch, kind: http, url: 'https://a.example' }]",
    "kind before name": "tool:\n  - kind: http\n    url: https://a.example\n    name: fetch",
    "label": "tool:\n  - fetch:\n      kind: http\n      url: https://a.example",
    "label in a line": "tool:\n  - fetch: { kind: http, url: 'https://a.example' }",
    "single": "tool: { name: fetch, kind: http, url: 'https://a.example' }",
    "single by label": "tool: { fetch: { kind: http, url: 'https://a.example' } }",
}


def tasks_of(body: str) -> list[tuple[str, str, object]]:
    return [(task.label, task.kind, task.inputs) for task in first_step(step(body)).tasks]


@pytest.mark.parametrize("form", SAME)
def test_all_forms_of_a_task_are_equal(form: str) -> None:
    assert problems_of(step(SAME[form])) == ()
    assert tasks_of(SAME[form]) == [("fetch", "http", {"url": Constant("https://a.example")})]


@pytest.mark.parametrize(
    ("body", "labels"),
    [
        ("tool: { kind: noop }", ["task_0"]),
        ("tool: [{ kind: noop }]", ["task_0"]),
        ("tool: [{ kind: noop }, { kind: noop }]", ["task_0", "task_1"]),
        ("tool: [{ name: a, kind: noop }, { kind: noop }, { b: { kind: noop } }]", ["a", "task_1", "b"]),
        ("tool: [{ name: , kind: noop }]", ["task_0"]),
    ],
)
def test_a_task_without_a_name_is_labelled_by_its_position(body: str, labels: list[str]) -> None:
    assert [label for label, _, _ in tasks_of(body)] == labels


def test_the_place_of_a_task_is_its_label() -> None:
    tasks: tuple[Task, ...] = first_step(
        step("tool:\n  - name: a\n    kind: noop\n  - b: { kind: noop }\n  - kind: noop")
    ).tasks
    assert [(task.position.line, task.position.column) for task in tasks] == [(7, 13), (9, 7), (10, 7)]


@pytest.mark.parametrize(
    ("body", "position"),
    [
        ("tool: noop", ProblemPosition(6, 9, "wrong-type")),
        ("tool: []", ProblemPosition(6, 9, "bad-value")),
        ("tool: [noop]", ProblemPosition(6, 10, "wrong-type")),
        ("tool: [[]]", ProblemPosition(6, 10, "wrong-type")),
        ("tool: {}", ProblemPosition(6, 9, "missing-key")),
        ("tool: [{ fetch: }]", ProblemPosition(6, 12, "missing-key")),
        ("tool: [{ fetch: http }]", ProblemPosition(6, 10, "missing-key")),
        ("tool: [{ a: { kind: noop }, b: { kind: noop } }]", ProblemPosition(6, 10, "missing-key")),
        ("tool: [{ name: fetch, kind: }]", ProblemPosition(6, 25, "missing-key")),
        ("tool: [{ name: 5, kind: noop }]", ProblemPosition(6, 18, "bad-name")),
        ("tool: [{ fetch page: { kind: noop } }]", ProblemPosition(6, 12, "bad-name")),
        ("tool: [{ ctx: { kind: noop } }]", ProblemPosition(6, 12, "reserved-name")),
        ("tool: [{ a: { kind: noop, name: b } }]", ProblemPosition(6, 29, "unknown-key")),
    ],
)
def test_what_is_no_task_is_refused_at_its_place(body: str, position: ProblemPosition) -> None:
    assert problem_positions(step(body)) == [position]


def test_labels_are_unique_in_a_pipeline_but_not_beyond() -> None:
    text = step("tool: [{ name: a, kind: noop }, { a: { kind: noop } }]")
    problem = problem_of(text)
    assert (problem.line, problem.column, problem.code) == (6, 37, "duplicate-task")
    assert "line 6" in problem.hint
    assert error_codes(step("tool: [{ name: task_1, kind: noop }, { kind: noop }]")) == ["duplicate-task"]
    two = step("tool: { name: a, kind: noop }\nnext: { arcs: [{ step: end }] }")
    assert problems_of(two + step("tool: { name: a, kind: noop }", name="end")) == ()


def test_inputs_may_be_empty_and_then_count_as_absent() -> None:
    assert (
        first_step(step("tool: { kind: http, url: 'https://a.example', headers: , args: }")).tasks[0].args
        is None
    )


def test_a_workbook_task_takes_its_inputs_and_policy_from_the_definition_unless_it_has_its_own() -> None:
    text = """workbook:
  tasks:
    fetch:
      kind: http
      url: https://a.example
      method: POST
      args: { a: 1, b: 1 }
      spec: { timeout: 5, policy: { rules: [{ else: { do: continue } }] } }
workflow:
- step: start
  tool:
    - name: fetch
      kind: workbook
    - name: other
      kind: workbook
      task: fetch
      method: GET
      args: { b: 2 }
      spec: { timeout: 9 }
"""
    assert problems_of(text) == ()
    first, second = first_step(text).tasks
    assert (first.label, second.label) == ("fetch", "other")
    assert first.inputs == {"url": Constant("https://a.example"), "method": Constant("POST")}
    assert second.inputs == {"url": Constant("https://a.example"), "method": Constant("GET")}
    assert first.args == {"a": Constant(1), "b": Constant(1)}
    assert second.args == {"a": Constant(1), "b": Constant(2)}
    assert (first.spec["timeout"], second.spec["timeout"]) == (Constant(5), Constant(9))
    assert first.policy is not None
    assert second.policy is not None


def test_a_jump_in_a_definition_is_judged_in_the_pipeline_that_uses_it() -> None:
    definition = 'workbook: { tasks: { poll: { kind: noop, spec: { policy: { rules: [{ when: "{{ _attempt < 3 }}", then: { do: jump, to: submit } }] } } } } }\nworkflow:\n'
    assert (
        error_codes(definition + step("tool: [{ name: submit, kind: noop }, { name: poll, kind: workbook }]"))
        == []
    )
    assert error_codes(definition + step("tool: [{ name: poll, kind: workbook }]")) == ["jump-target"]


def test_previous_names_the_task_before() -> None:
    rules = 'spec: { policy: { rules: [{ when: "{{ _attempt < 3 }}", then: { do: jump, to: previous } }, { else: { do: continue } }] } }'
    text = step(f"tool: [{{ name: a, kind: noop }}, {{ name: b, kind: noop, {rules} }}]")
    policy = first_step(text).tasks[1].policy
    assert policy is not None
    assert str(policy.rules[0].then.do) == "Jump(to='a')"
    assert error_codes(step(f"tool: [{{ name: a, kind: noop, {rules} }}]")) == ["jump-target"]


def test_an_inline_document_is_checked_in_place() -> None:
    text = step("""
        tool:
          - name: child
            kind: playbook
            document:
              apiVersion: noetl.io/v2
              kind: Playbook
              metadata: { name: child, path: docs/child }
              workflow:
                - step: start
                  tool: { kind: htpp }
                  next:
                    arcs:
                      - step: nowhere
        """)
    assert problem_positions(text) == [
        ProblemPosition(15, 27, "unknown-kind"),
        ProblemPosition(18, 25, "unknown-step"),
    ]


def test_documents_inside_documents_are_checked_too() -> None:
    inner = (
        "{ apiVersion: noetl.io/v2, kind: Playbook, metadata: { name: c, path: p }, workflow: [{ step: s }] }"
    )
    outer = inner.replace("{ step: s }", f"{{ step: s, tool: {{ kind: playbook, document: {inner} }} }}")
    assert error_codes(step(f"tool: {{ kind: playbook, document: {outer} }}")) == ["empty-step"]


def test_an_inline_document_is_a_playbook() -> None:
    assert error_codes(step("tool: { kind: playbook, document: { a: 1 } }"))[0] == "missing-key"
    assert error_codes(step("tool: { kind: playbook, document: text }")) == ["wrong-type"]


def test_the_writes_of_a_rule_keep_their_order() -> None:
    then = "{ do: continue, set_ctx: { a: 1 }, set_iter: { b: 2 }, set: { run.c: 3, ctx.d: 4 } }"
    parsed = first_step(
        step(f"tool: {{ kind: noop, spec: {{ policy: {{ rules: [{{ else: {then} }}] }} }} }}")
    )
    policy = parsed.tasks[0].policy
    assert policy is not None
    assert policy.otherwise is not None
    assert [(write.scope, *write.path) for write in policy.otherwise.writes] == [
        ("ctx", "a"),
        ("iter", "b"),
        ("run", "c"),
        ("ctx", "d"),
    ]


@pytest.mark.parametrize("select", ["['$.a[']", "[{path: '$..', as: x}]", "['$.ok', 'a b']"])
def test_a_selection_is_a_jsonpath(select: str) -> None:
    problem = problem_of(step(f"tool: {{ kind: noop, spec: {{ result: {{ select: {select} }} }} }}"))
    assert problem.code == "bad-value"
    assert "is not a JSONPath" in problem.message


@pytest.mark.parametrize("select", ["[$.a.id, $.b.id]", "[{path: $.a, as: x}, {path: $.b, as: x}]"])
def test_two_selections_have_two_names(select: str) -> None:
    problem = problem_of(step(f"tool: {{ kind: noop, spec: {{ result: {{ select: {select} }} }} }}"))
    assert (problem.code, "two things the name" in problem.message) == ("bad-value", True)


def test_a_selection_may_leave_out_the_root() -> None:
    assert (
        problems_of(
            step("tool: { kind: noop, output_select: [data.total, {path: '$.rows[*].id', as: ids}] }")
        )
        == ()
    )


@pytest.mark.parametrize("knob", ["store", "compression", "scope"])
def test_how_a_result_is_kept_is_no_expression(knob: str) -> None:
    text = step(
        f'tool: {{ name: a, kind: noop, spec: {{ result: {{ {knob}: "{{{{ execution_id }}}}" }} }} }}'
    )
    messages = [problem.message for problem in problems_of(text)]
    assert any(f"`{knob}` must be known before the task runs" in message for message in messages), messages
