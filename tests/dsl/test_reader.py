"""What the reader keeps, refuses and says once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.document.context import ExpressionRole, PlaybookPart
from noetl.dsl.document.kinds import Kinds
from noetl.dsl.document.playbook import Policy
from noetl.dsl.document.source import Scalar, node_of
from noetl.dsl.reader.reader_context import ReaderContext
from noetl.expr.expression import parse
from noetl.expr.template import Constant, ListTemplate, MappingTemplate, Template, render
from noetl.loader import examine
from noetl.model.json import Json
from noetl.model.reference import MARKER, escape_key
from tests.playbooks import (
    NOOP,
    ProblemPosition,
    document_of,
    error_codes,
    first_step,
    first_task,
    playbook_of,
    problem_of,
    problem_positions,
    problems_of,
    step,
)


@pytest.mark.parametrize(
    "spec",
    [
        '{ mode: "{{ ctx.mode }}" }',
        '{ window: "{{ 5 }}" }',
        '{ reduce: "{{ ctx.reduce }}" }',
        '{ policy: "{{ ctx.policy }}" }',
        '{ policy: { exec: "{{ ctx.where }}" } }',
        '{ policy: { failure: { mode: "{{ ctx.mode }}" } } }',
    ],
)
def test_the_structure_of_a_loop_is_never_an_expression(spec: str) -> None:
    codes = error_codes(step(f"loop: {{ in: [1], iterator: n, spec: {spec} }}\n{NOOP}"))
    assert codes in (["wrong-type"], ["bad-value"])


@pytest.mark.parametrize(
    "spec",
    [
        '{ policy: { join: "{{ ctx.join }}" } }',
        '{ policy: { admit: { rules: [], on_deny: "{{ ctx.deny }}" } } }',
        '{ lease: { ttl: "{{ ctx.ttl }}" } }',
    ],
)
def test_the_structure_of_a_step_is_never_an_expression(spec: str) -> None:
    assert error_codes(step(f"spec: {spec}\n{NOOP}")) in (["wrong-type"], ["bad-value"])


@pytest.mark.parametrize("key", ["args", "input", "set", "spec", "output_select"])
def test_an_expression_for_a_whole_part_of_a_task_is_refused_not_dropped(key: str) -> None:
    problem = problem_of(step(f'tool: {{ kind: noop, {key}: "{{{{ ctx.all }}}}" }}'))
    assert problem.code == "wrong-type"
    assert "expression" in problem.hint


def test_knobs_of_a_task_may_be_expressions() -> None:
    text = step('spec: { task_timeout: "{{ 2 * 30 }}" }\nloop: { in: [1], iterator: n }\n' + NOOP)
    assert "task_timeout" in first_task(text).spec


def test_an_empty_loop_or_policy_is_refused() -> None:
    assert problem_positions(step(f"loop:\n{NOOP}")) == [ProblemPosition(6, 3, "loop-incomplete")]
    assert problem_positions(step("tool: { kind: noop, spec: { policy: } }")) == [
        ProblemPosition(6, 31, "policy-shape")
    ]


def test_on_unmatched_of_a_scope_makes_no_policy_by_itself() -> None:
    text = step("spec: { policy: { on_unmatched: fail } }\n" + NOOP)
    assert first_task(text).policy is None
    rules = "{ rules: [{ when: true, then: { do: continue } }] }"
    text = step(
        f"spec: {{ policy: {{ on_unmatched: fail }} }}\ntool: {{ kind: noop, spec: {{ policy: {rules} }} }}"
    )
    policy = first_task(text).policy
    assert isinstance(policy, Policy)
    assert policy.on_unmatched == "fail"


def test_rules_that_no_task_inherits_are_checked() -> None:
    rules = "{ rules: [{ when: ready, then: { do: continue } }] }"
    own_policy = "{ kind: noop, spec: { policy: { rules: [] } } }"
    assert error_codes(step(f"spec: {{ policy: {rules} }}\ntool: {own_policy}")) == ["guard-form"]
    assert error_codes(
        f"executor: {{ spec: {{ policy: {rules} }} }}\nworkflow:\n" + step(f"tool: {own_policy}")
    ) == ["guard-form"]


def test_rules_that_no_task_inherits_are_checked_in_every_step_of_a_long_workflow() -> None:
    inherited = "spec: { policy: { rules: [{ when: true, then: { do: continue } }] } }\ntool: { kind: noop }"
    ignored = (
        "spec: { policy: { rules: [{ when: ready, then: { do: continue } }] } }\n"
        "tool: { kind: noop, spec: { policy: { rules: [] } } }"
    )
    text = "".join(step(inherited, f"a{number}") + step(ignored, f"b{number}") for number in range(20))
    assert error_codes(text) == ["guard-form"] * 20


def test_what_tasks_inherit_from_the_executor_has_its_type() -> None:
    text = "executor: { kind: local, spec: { task_timeout: fast, free: thing } }\nworkflow:\n" + step(NOOP)
    assert problem_positions(text) == [ProblemPosition(4, 48, "wrong-type")]


@pytest.mark.spec("001 §4")
def test_an_executor_with_a_spec_and_no_kind_is_warned_about() -> None:
    workflow = "\nworkflow:\n" + step(NOOP)
    for executor in (
        "{ spec: { pool: a } }",
        "{ profile: small, spec: { pool: a } }",
        "{ kind: , spec: { pool: a } }",
    ):
        codes = [problem.code for problem in problems_of("executor: " + executor + workflow)]
        assert "executor-kind" in codes, executor
    for executor in ("{ kind: local, spec: { pool: a } }", "{ kind: hybrid }", "{}", "{ spec: }"):
        assert problems_of("executor: " + executor + workflow) == (), executor


def test_a_draft_needs_no_kind_of_executor() -> None:
    text = document_of("executor: { spec: { pool: a } }\nworkflow:\n" + step(NOOP))
    assert examine(text, "t.yaml", dialect="draft").problems == ()


def test_the_steps_of_a_wrong_name_are_there_for_their_arcs() -> None:
    text = step("next: { arcs: [{ step: 2nd }] }") + step(NOOP, name="2nd")
    assert error_codes(text) == ["bad-name"]


def test_the_arcs_of_a_duplicate_step_are_checked() -> None:
    text = step(NOOP) + step("next: { arcs: [{ step: nowhere }] }")
    assert error_codes(text) == ["duplicate-step", "unknown-step"]


def test_a_wrong_router_is_not_also_a_missing_one() -> None:
    assert error_codes(step("next: end") + step(NOOP, name="end")) == ["draft-next-list"]
    assert error_codes(step("next: [{ step: end }]") + step(NOOP, name="end")) == ["draft-next-list"]


def test_a_misspelt_key_that_is_needed_is_told_once() -> None:
    assert error_codes(step("tool: { kind: http, ulr: 'https://example.com' }")) == ["unknown-key"]
    assert error_codes(step("tool: { knd: http, url: 'https://example.com' }")) == ["unknown-key"]


def test_a_task_that_is_not_indented_below_its_label_is_recognised() -> None:
    text = step("tool:\n  - fetch:\n    kind: http\n    url: https://example.com")
    problem = problem_of(text)
    assert problem.code == "unknown-key"
    assert "indent" in problem.hint


def test_problems_of_a_playbook_without_metadata_are_all_told() -> None:
    text = "apiVersion: noetl.io/v2\nkind: Playbook\nworkflow:\n" + step(
        "next: { arcs: [{ step: nowhere }] }"
    )
    assert error_codes(text) == ["missing-key", "unknown-step"]


def test_the_line_of_a_fault_in_code_is_the_line_in_the_file() -> None:
    first = step("tool:\n  kind: python\n  code: |\n    result = (")
    assert problem_positions(first) == [ProblemPosition(9, 7, "bad-input")]
    second = step("tool:\n  kind: python\n  code: |\n    x = 1\n    if x:\n      result = )")
    assert problem_positions(second) == [ProblemPosition(11, 9, "bad-input")]
    assert problem_positions(step('tool: { kind: python, code: "x = (" }')) == [
        ProblemPosition(6, 32, "bad-input")
    ]


def test_code_may_count_lines_otherwise() -> None:
    assert error_codes(step('tool: { kind: python, code: "x = 1\\rresult = (" }')) == ["bad-input"]


def test_a_label_leaves_the_name_of_a_secret_to_the_tool() -> None:
    task = first_task(step("tool:\n  - token: { kind: secrets, name: prod/api }"))
    assert task.label == "token"
    assert list(task.inputs) == ["name"]
    assert error_codes(step("tool:\n  - token: { kind: noop, name: other }")) == ["unknown-key"]


def test_a_definition_and_its_use_may_spell_an_input_differently() -> None:
    text = "workbook: { tasks: { fetch: { kind: http, endpoint: 'https://a.example', input: { a: 1, b: 2 } } } }\n"
    text += "workflow:\n" + step(
        "tool:\n  - { name: fetch, kind: workbook, url: 'https://b.example', args: { b: 3 } }"
    )
    task = first_task(text)
    assert task.kind == "http"
    assert str(task.inputs["url"]).find("b.example") > 0
    assert list(task.args or ()) == ["a", "b"]


def test_the_spec_of_a_definition_is_checked_with_its_users() -> None:
    text = "workbook: { tasks: { fetch: { kind: http, url: 'https://a.example', spec: { timeoutt: 5 } } } }\n"
    text += "workflow:\n" + step("tool:\n  - { name: fetch, kind: workbook }")
    assert error_codes(text) == ["unknown-key"]


def test_an_unknown_definition_is_told_without_its_inputs() -> None:
    assert error_codes(step("tool: { kind: workbook, task: nope, url: 'https://a.example' }")) == [
        "unknown-task"
    ]


def test_a_message_is_one_line_of_bounded_length() -> None:
    text = step('next: { arcs: [{ step: "a\\nb" }] }') + step(NOOP, name="x" * 3000 + "!")
    problems = problems_of(text)
    assert problems
    for problem in problems:
        assert "\n" not in problem.message + problem.hint
        assert len(problem.message) <= 500


def test_a_name_has_no_line_break() -> None:
    assert error_codes('- step: "start\\n"\n  tool: { kind: noop }\n') == ["bad-name"]


def test_the_document_and_its_hash_do_not_depend_on_the_text() -> None:
    playbook = playbook_of(step("tool: { kind: noop, args: { a: 1 } }"))
    same_playbook = playbook_of("# a comment\n" + document_of(step("tool:\n  kind: noop\n  args:\n    a: 1")))
    assert playbook.document == same_playbook.document
    assert playbook.hash == same_playbook.hash
    assert playbook.hash != playbook_of(step("tool: { kind: noop, args: { a: 2 } }")).hash


def test_a_step_selects_for_its_tasks() -> None:
    text = step(
        "output_select: [$.a]\ntool:\n  - { name: one, kind: noop }\n  - { name: two, kind: noop, output_select: [$.b] }"
    )
    first, second = first_step(text).tasks
    assert "$.a" in str(first.spec["result"])
    assert "$.b" in str(second.spec["result"])
    assert "$.a" not in str(second.spec["result"])


def test_no_step_is_called_unreachable_while_an_arc_leads_nowhere() -> None:
    text = step("next: { arcs: [{ step: reprot }] }") + step(NOOP, name="report")
    assert [problem.code for problem in problem_positions(text)] == ["unknown-step"]
    text = step("next: [{ step: report }]") + step(NOOP, name="report")
    assert [problem.code for problem in problem_positions(text)] == ["draft-next-list"]


_VALUES = st.recursive(
    st.none() | st.integers() | st.sampled_from(["text", "{{ 1 + 1 }}"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", MARKER]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(_VALUES)
def test_a_value_without_expressions_is_one_constant_and_renders_as_its_parts_would(value: Json) -> None:
    context = ReaderContext("file", "", Kinds())
    template = context.read_template(node_of(value, Scalar(None, 1, 1)), PlaybookPart(ExpressionRole.INPUT))
    assert isinstance(template, Constant) == ("{{" not in str(value))
    assert render(template, {}) == render(unfolded(value), {})


def unfolded(value: Json) -> Template:
    """The template with a node for each part of the value."""
    if isinstance(value, dict):
        return MappingTemplate({escape_key(key): unfolded(item) for key, item in value.items()})
    if isinstance(value, list):
        return ListTemplate(tuple(map(unfolded, value)))
    return parse(value) if isinstance(value, str) and "{{" in value else Constant(value)
