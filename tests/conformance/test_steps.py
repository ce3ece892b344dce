"""Steps, loops and tasks (000 §2.2 to §2.4, 001 §6.1, §6.3, §6.6, §8)."""

import pytest

from noetl.dsl.document.playbook import Loop
from noetl.expr.expression import Expression
from tests.playbooks import (
    NOOP,
    ProblemPosition,
    error_codes,
    first_step,
    first_task,
    playbook_of,
    problem_positions,
    problems_of,
    step,
)

END = step(NOOP, name="end")


def loop_of(spec: str, items: str = "[1, 2]") -> Loop:
    loop = first_step(step(f"loop: {{ in: {items}, iterator: n, spec: {spec} }}\n{NOOP}")).loop
    assert loop is not None
    return loop


@pytest.mark.spec("000 §2.2 (1)")
@pytest.mark.parametrize(
    ("line", "position"),
    [
        ("- desc: no name", ProblemPosition(5, 3, "missing-key")),
        ("- step:", ProblemPosition(5, 3, "missing-key")),
        ("- step: 5", ProblemPosition(5, 9, "bad-name")),
        ("- step: two words", ProblemPosition(5, 9, "bad-name")),
        ("- step: [a]", ProblemPosition(5, 9, "wrong-type")),
    ],
)
def test_a_step_has_a_name(line: str, position: ProblemPosition) -> None:
    assert problem_positions(f"workflow:\n{line}\n  tool: {{ kind: noop }}\n") == [position]


@pytest.mark.spec("000 §2.2 (2)")
def test_a_step_has_a_pipeline_or_a_router_or_both() -> None:
    assert problem_positions(step("desc: nothing")) == [ProblemPosition(5, 9, "empty-step")]
    assert problem_positions(step("next:\ntool:")) == [ProblemPosition(5, 9, "empty-step")]
    assert problems_of(step(NOOP)) == ()
    assert problems_of(step("next: { arcs: [{ step: end }] }") + END) == ()
    assert problems_of(step(NOOP + "\nnext: { arcs: [{ step: end }] }") + END) == ()


@pytest.mark.spec("000 §2.2 (3)")
@pytest.mark.parametrize("when", ["true", '"{{ ctx.ready }}"', ""])
def test_a_step_has_no_when(when: str) -> None:
    assert problem_positions(step(f"when: {when}\n{NOOP}")) == [ProblemPosition(6, 3, "step-when")]


@pytest.mark.spec("000 §2.2 (4)")
@pytest.mark.parametrize(
    "key", ["admit: { rules: [] }", "spec: { admit: { rules: [] } }", "policy: { admit: {} }"]
)
def test_admission_stands_nowhere_else(key: str) -> None:
    assert error_codes(step(f"{key}\n{NOOP}")) == ["unknown-key"]


@pytest.mark.spec("000 §2.3")
def test_a_loop_is_sequential_and_local_unless_it_says_otherwise() -> None:
    plain = loop_of("{}")
    assert (plain.iterator, plain.mode, plain.placement, plain.max_in_flight) == (
        "n",
        "sequential",
        "local",
        10,
    )
    other = loop_of("{ mode: parallel, max_in_flight: 3, policy: { exec: distributed } }")
    assert (other.mode, other.placement, other.max_in_flight) == ("parallel", "distributed", 3)


@pytest.mark.spec("000 §2.3")
@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("{ mode: both }", "bad-value"),
        ("{ mode: true }", "bad-value"),
        ("{ max_in_flight: 0 }", "bad-value"),
        ("{ max_in_flight: many }", "wrong-type"),
        ("{ policy: { exec: remote } }", "bad-value"),
        ("{ policy: distributed }", "wrong-type"),
        ("{ max_inflight: 3 }", "unknown-key"),
    ],
)
def test_what_a_loop_spec_cannot_say(spec: str, code: str) -> None:
    assert error_codes(step(f"loop: {{ in: [1], iterator: n, spec: {spec} }}\n{NOOP}")) == [code]


@pytest.mark.spec("000 §2.3")
@pytest.mark.parametrize("items", ['"{{ range(3) }}"', "[1, 2]", "{ a: 1 }", '"[1, 2]"', "[]"])
def test_a_loop_runs_over_an_expression_a_list_or_a_mapping(items: str) -> None:
    assert problems_of(step(f"loop: {{ in: {items}, iterator: n }}\n{NOOP}")) == ()


@pytest.mark.spec("000 §2.3")
@pytest.mark.parametrize("items", ["5", "true", "items"])
def test_a_loop_does_not_run_over_anything_else(items: str) -> None:
    assert problem_positions(step(f"loop: {{ in: {items}, iterator: n }}\n{NOOP}")) == [
        ProblemPosition(6, 15, "wrong-type")
    ]


@pytest.mark.spec("000 §2.4")
def test_a_task_has_a_label_a_kind_a_spec_and_inputs() -> None:
    task = first_task(
        step("tool:\n  - fetch:\n      kind: http\n      url: https://a.example\n      spec: { timeout: 5 }")
    )
    assert (task.label, task.kind) == ("fetch", "http")
    assert list(task.inputs) == ["url"]
    assert "timeout" in task.spec


@pytest.mark.spec("000 §2.4")
def test_a_kind_is_needed_and_is_text() -> None:
    assert problem_positions(step("tool:\n  - { name: fetch, url: x }")) == [
        ProblemPosition(7, 7, "missing-key")
    ]
    assert problem_positions(step("tool: { kind: [http] }")) == [ProblemPosition(6, 17, "wrong-type")]
    assert problem_positions(step("tool: { kind: '' }")) == [ProblemPosition(6, 17, "bad-value")]


@pytest.mark.spec("001 §6.3")
def test_a_pipeline_keeps_the_order_of_its_tasks() -> None:
    text = step(
        "tool:\n  - { name: c, kind: noop }\n  - { name: a, kind: noop }\n  - { name: b, kind: noop }"
    )
    assert [task.label for task in first_step(text).tasks] == ["c", "a", "b"]


@pytest.mark.spec("001 §6.3")
def test_a_task_reads_what_the_task_before_gave() -> None:
    text = step('tool:\n  - { name: a, kind: noop }\n  - { name: b, kind: noop, args: { x: "{{ _prev }}" } }')
    assert problems_of(text) == ()


@pytest.mark.spec("001 §6.6")
def test_the_loop_of_the_guide_is_accepted() -> None:
    text = """workload:
  endpoints: [{ path: /a }]
  api_url: https://api.example.com
workflow:
- step: per_endpoint
  loop:
    spec:
      mode: parallel
      max_in_flight: 10
    in: "{{ workload.endpoints }}"
    iterator: endpoint
  tool:
    - name: fetch
      kind: http
      url: "{{ workload.api_url }}{{ iter.endpoint.path }}"
"""
    assert problems_of(text) == ()
    loop = first_step(text).loop
    assert loop is not None
    assert isinstance(loop.items, Expression)
    assert loop.items.source == "{{ workload.endpoints }}"


@pytest.mark.spec("001 §8")
@pytest.mark.parametrize(
    "workbook",
    [
        "workbook: { tasks: { greet: { kind: noop, args: { a: 1 } } } }",
        "workbook: { tasks: [{ name: greet, kind: noop, args: { a: 1 } }] }",
        "workbook: [{ name: greet, kind: noop, args: { a: 1 } }]",
        "workbook: [{ greet: { kind: noop, args: { a: 1 } } }]",
    ],
)
@pytest.mark.parametrize(
    "use", ["{ name: greet, kind: workbook }", "{ kind: workbook, task: greet, name: greet }"]
)
def test_a_workbook_holds_tasks_that_steps_use_by_name(workbook: str, use: str) -> None:
    text = f"{workbook}\nworkflow:\n" + step(f"tool:\n  - {use}")
    assert problems_of(text) == ()
    task = first_task(text)
    assert (task.label, task.kind, list(task.args or ())) == ("greet", "noop", ["a"])


@pytest.mark.spec("001 §8")
def test_the_example_of_a_workbook_is_accepted() -> None:
    text = """workload: { api_url: https://api.example.com }
workbook:
  tasks:
    fetch_assessments:
      kind: http
      method: GET
      url: "{{ workload.api_url }}/api/v1/assessments"
workflow:
"""
    assert problems_of(text + step(NOOP)) == ()
    assert playbook_of(text + step("tool: { kind: workbook, task: fetch_assessments }")).workflow


@pytest.mark.spec("001 §8")
def test_a_definition_is_checked_whether_it_is_used_or_not() -> None:
    text = "workbook: { tasks: { fetch: { kind: http, ulr: x } } }\nworkflow:\n"
    assert problem_positions(text + step(NOOP)) == [ProblemPosition(4, 43, "unknown-key")]
    assert problem_positions(text + step("tool: { kind: workbook, task: fetch }")) == [
        ProblemPosition(4, 43, "unknown-key")
    ]
    assert error_codes("workbook: { tasks: { a: { kind: workbook } } }\nworkflow:\n" + step(NOOP)) == [
        "bad-value"
    ]
    assert error_codes("workbook: { fetch: { kind: noop } }\nworkflow:\n" + step(NOOP)) == ["unknown-key"]


@pytest.mark.spec("001 §9.3")
@pytest.mark.spec("003 §10.2")
def test_there_is_no_sink_kind() -> None:
    assert error_codes(step("tool: { kind: sink }")) == ["unknown-kind"]
