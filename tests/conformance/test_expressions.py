"""Where expressions stand and which names they see, as far as a document shows it (000 §3)."""

import pytest

from noetl.dsl.document.playbook import Task
from noetl.expr.expression import Expression
from noetl.expr.template import Constant
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
NAMES = {
    "workload": ("workload: { a: 1 }", "workload.a"),
    "keychain": ("keychain: [{ name: a, kind: env, env: A }]", "keychain.a.value"),
    "execution_id": ("workload: {}", "execution_id"),
    "iter": ("workload: {}", "iter.index"),
    "_prev": ("workload: {}", "_prev"),
    "_task": ("workload: {}", "_task"),
    "_attempt": ("workload: {}", "_attempt"),
}


def policy(when: str, then: str = "{ do: continue }") -> str:
    rules = f'[{{ when: "{{{{ {when} }}}}", then: {then} }}, {{ else: {{ do: continue }} }}]'
    return step(f"tool: {{ kind: noop, spec: {{ policy: {{ rules: {rules} }} }} }}")


def arc(when: str) -> str:
    return step(f'{NOOP}\nnext: {{ arcs: [{{ step: end, when: "{{{{ {when} }}}}" }}] }}') + END


@pytest.mark.spec("000 §3.1")
def test_every_text_with_braces_is_an_expression_and_any_other_is_itself() -> None:
    task: Task = first_task(
        "workload: { host: a.example }\nworkflow:\n"
        + step('tool: { kind: http, url: "https://{{ workload.host }}/x", headers: { Accept: text/csv } }')
    )
    assert isinstance(task.inputs["url"], Expression)
    assert task.inputs["headers"] == Constant({"Accept": "text/csv"})


@pytest.mark.spec("000 §3.1")
@pytest.mark.parametrize(
    "body",
    [
        'args: { a: "{{ 1 + }}" }\ntool: { kind: noop }',
        'set: { ctx.a: "{{ 1 + }}" }\ntool: { kind: noop }',
        'loop: { in: "{{ 1 + }}", iterator: n }\ntool: { kind: noop }',
        'spec: { timeout: "{{ 1 + }}" }\ntool: { kind: noop }',
        'spec: { policy: { admit: { rules: [{ when: "{{ 1 + }}", then: { allow: true } }] } } }\ntool: { kind: noop }',
        'tool: { kind: noop, args: { a: [{ b: "{{ 1 + }}" }] } }',
        'tool: { kind: noop, set: { ctx.a: "{{ 1 + }}" } }',
        'tool: { kind: noop, spec: { task_timeout: "{{ 1 + }}" } }',
        'tool: { kind: http, url: "{{ 1 + }}" }',
        'tool: { kind: noop, spec: { policy: { rules: [{ when: "{{ 1 + }}", then: { do: continue } }] } } }',
        'tool: { kind: noop }\nnext: { arcs: [{ step: start, when: "{{ 1 + }}" }] }',
        'tool: { kind: noop }\nnext: { arcs: [{ step: start, when: false, args: { a: "{{ 1 + }}" } }] }',
    ],
)
def test_an_expression_is_parsed_wherever_it_stands(body: str) -> None:
    assert error_codes(step(body)) == ["expression-syntax"]


@pytest.mark.spec("000 §3.1")
def test_workload_defaults_and_the_output_hold_expressions() -> None:
    text = (
        'executor: { kind: local, spec: { output: "{{ 1 + }}" } }\nworkload: { a: "{{ 1 + }}" }\nworkflow:\n'
        + step(NOOP)
    )
    assert problem_positions(text) == [
        ProblemPosition(4, 50, "expression-syntax"),
        ProblemPosition(5, 24, "expression-syntax"),
    ]


@pytest.mark.spec("000 §3.2 (1)")
@pytest.mark.parametrize("name", NAMES)
def test_tool_inputs_see_the_namespaces(name: str) -> None:
    head, read = NAMES[name]
    text = f"{head}\nworkflow:\n" + step(f'tool: {{ kind: http, url: "https://a.example/{{{{ {read} }}}}" }}')
    assert error_codes(text) == []


@pytest.mark.spec("000 §3.2 (1)")
def test_args_and_ctx_are_seen_by_steps_and_arcs() -> None:
    start = step(
        "set: { ctx.a: 1 }\n"
        + NOOP
        + '\nnext: { arcs: [{ step: end, when: "{{ ctx.a == 1 }}", args: { b: 2 } }] }'
    )
    text = start + step('tool: { kind: noop, args: { c: "{{ args.b + ctx.a }}" } }', name="end")
    assert problems_of(text) == ()


@pytest.mark.spec("000 §3.2 (2)")
def test_an_iteration_reads_its_element_and_its_own_writes() -> None:
    then = '{ do: continue, set_iter: { page: "{{ iter.n + 1 }}" } }'
    text = step(
        f"loop: {{ in: [1, 2], iterator: n }}\ntool:\n"
        f"  - {{ name: a, kind: noop, spec: {{ policy: {{ rules: [{{ else: {then} }}] }} }} }}\n"
        '  - { name: b, kind: noop, args: { page: "{{ iter.page }}", same: "{{ n }}" } }'
    )
    assert problems_of(text) == ()


@pytest.mark.spec("000 §3.2 (3)")
def test_outcome_exists_only_in_task_policies() -> None:
    assert error_codes(policy("outcome.status == 'error'")) == []
    assert error_codes(arc("outcome.status == 'error'")) == ["namespace-scope"]
    assert error_codes(step('tool: { kind: noop, args: { a: "{{ outcome.status }}" } }')) == [
        "namespace-scope"
    ]


@pytest.mark.spec("000 §3.2 (4)")
def test_event_exists_only_in_routing() -> None:
    assert error_codes(arc("event.name == 'step.done'")) == []
    assert error_codes(policy("event.name == 'step.done'")) == ["namespace-scope"]
    assert error_codes(step('tool: { kind: noop, args: { a: "{{ event.name }}" } }')) == ["namespace-scope"]


@pytest.mark.spec("000 §3.2 (5)")
def test_the_keychain_is_read_in_inputs_and_written_nowhere() -> None:
    head = "keychain: [{ name: a, kind: env, env: A }]\nworkflow:\n"
    header = '{ Authorization: "{{ keychain.a.value }}" }'
    assert (
        error_codes(head + step(f"tool: {{ kind: http, url: 'https://a.example', headers: {header} }}")) == []
    )
    assert error_codes(head + arc("keychain.a.value")) == ["keychain-scope"]
    assert error_codes(head + step("set: { keychain.a: 1 }\n" + NOOP)) == ["bad-write"]


@pytest.mark.spec("000 §3.3")
def test_bare_names_of_every_scope_are_known() -> None:
    text = "workload: { w: 1 }\nworkflow:\n" + step(
        "args: { a: 1 }\nset: { ctx.c: 1 }\nloop: { in: [1], iterator: n }\n"
        'tool: { kind: noop, args: { x: "{{ a + n + w }}" } }'
    )
    assert error_codes(text) == []
    assert playbook_of(text).workflow[0].args == {"a": Constant(1)}


@pytest.mark.spec("000 §3.3")
def test_a_step_offers_defaults_below_the_args_of_its_token() -> None:
    assert first_step(step("input: { size: 50 }\n" + NOOP)).args == {"size": Constant(50)}
