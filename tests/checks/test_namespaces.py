import pytest

from noetl.loader import examine
from tests.checks.check_fragments import assert_clean, assert_found, document_text

WHOLE = """
    keychain: [{{ name: api, kind: env, env: API }}]
    workload: {{ url: http://127.0.0.1, default: {workload} }}
    executor: {{ spec: {{ output: {output} }} }}
    workflow:
      - step: start
        args: {{ given: {step_args} }}
        spec: {{ policy: {{ admit: {{ rules: [{{ when: {admit}, then: {{ allow: true }} }}] }} }} }}
        loop: {{ in: {loop}, iterator: item }}
        tool:
          - name: fetch
            kind: http
            url: {input}
            args: {{ a: {task_args} }}
            set: {{ iter.a: {task_set} }}
            spec:
              timeout: {spec}
              policy:
                rules:
                  - {{ when: {rule}, then: {{ do: break, set_iter: {{ b: {rule_set} }} }} }}
                  - else: {{ do: fail }}
        set: {{ ctx.a: {step_set} }}
        next:
          arcs:
            - step: end
              when: {arc}
              args: {{ a: {arc_args} }}
              set: {{ ctx.b: {arc_set} }}
      - step: end
        tool: {{ kind: noop }}
    """

ROLES = [
    "workload",
    "output",
    "step_args",
    "admit",
    "loop",
    "input",
    "task_args",
    "task_set",
    "spec",
    "rule",
    "rule_set",
    "step_set",
    "arc",
    "arc_args",
    "arc_set",
]

STATE = set(ROLES) - {"workload"}
RUN = STATE - {"output", "admit", "step_args"}
PIPELINE = {"input", "task_args", "task_set", "spec", "rule", "rule_set"}
OUTCOME = {"task_set", "rule", "rule_set"}
ROUTING = {"step_set", "arc", "arc_args", "arc_set"}

HOMES = {
    "workload.url": set(ROLES),
    "execution_id": set(ROLES),
    "ctx.a": STATE,
    "steps.start": STATE,
    "args.a": STATE - {"output"},
    "run.a": RUN,
    "iter.item": PIPELINE,
    "_prev": PIPELINE,
    "_task": PIPELINE,
    "_attempt": PIPELINE,
    "_idempotency_key": {"input", "task_args", "spec"},
    "outcome.result": OUTCOME,
    "output.data": OUTCOME,
    "event.result": ROUTING,
    "joined": set(),
}


def playbook(role: str, expression: str) -> str:
    filled = dict.fromkeys(ROLES, '"{{ workload.url }}"')
    # The guard tells endings apart, so that nothing is said about the arc itself.
    filled["arc"] = "\"{{ event.name == 'loop.done' }}\""
    filled[role] = f'"{{{{ {expression} }}}}"'
    if role == "arc":
        filled["arc"] = f"\"{{{{ event.name == 'loop.done' and {expression} }}}}\""
    return WHOLE.format(**filled)


@pytest.mark.spec("000 §3.2 (1)")
@pytest.mark.spec("000 §3.2 (2)")
@pytest.mark.spec("000 §3.2 (3)")
@pytest.mark.spec("000 §3.2 (4)")
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("path", HOMES)
def test_every_namespace_exists_in_its_own_places_alone(path: str, role: str) -> None:
    if role in HOMES[path]:
        assert_clean(playbook(role, path))
    else:
        assert_found("namespace-scope", playbook(role, f"§{path}"))


@pytest.mark.spec("000 §3.2 (1)")
def test_every_use_is_pointed_at_inside_its_text() -> None:
    (first, second) = assert_found(
        "namespace-scope", playbook("input", "ctx.a ~ §outcome.result ~ §event.name")
    )
    assert first.hint == "use `_prev` or the label of an earlier task"
    assert second.hint == "it exists in arcs and in a step's `set`"


def test_joined_needs_a_join() -> None:
    fragment = """
        - step: start
          next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
        - step: a
          next: { arcs: [{ step: end }] }
        - step: b
          next: { arcs: [{ step: end }] }
        - step: end
          %s
          tool: { kind: noop, args: { n: "{{ %sjoined | length }}" } }
        """
    assert_found("namespace-scope", fragment % ("desc: no join", "§"))
    assert_clean(fragment % ("spec: { policy: { join: all } }", ""))


def test_output_is_a_name_like_any_other_where_there_is_no_outcome() -> None:
    step = """
workload: {{ {workload} }}
workflow:
  - step: start
    tool: {{ kind: shell, command: [echo, "{{{{ {use} }}}}"] }}
"""
    assert_found("namespace-scope", step.format(workload="a: 1", use="§output.status"))
    assert_clean(step.format(workload="output: { status: 1 }", use="output.status"))
    assert_clean(step.format(workload="a: 1", use="output.folder"))


@pytest.mark.spec("000 §3.2 (5)")
@pytest.mark.parametrize("role", ROLES)
def test_the_keychain_is_for_tool_inputs(role: str) -> None:
    if role in ("input", "task_args"):
        assert_clean(playbook(role, "keychain.api.value"))
    else:
        (problem,) = assert_found("keychain-scope", playbook(role, "§keychain.api.value"))
        assert problem.severity == "error"


def test_the_keychain_has_what_it_declares() -> None:
    (problem,) = assert_found("unknown-keychain", playbook("input", "§keychain.apy.value"))
    assert problem.hint == "did you mean `api`?"
    assert problem.severity == "error"
    assert_clean(playbook("input", "keychain['api'].value"))


@pytest.mark.parametrize("name", ["run", "steps", "joined"])
def test_the_item_of_a_loop_may_hide_a_namespace_in_its_tasks_alone(name: str) -> None:
    text = """
    workload: {{ plan: [{{ n: 1 }}] }}
    workflow:
      - step: start
        loop: {{ in: "{{{{ workload.plan }}}}", iterator: {name} }}
        tool:
          name: use
          kind: noop
          args: {{ n: "{{{{ {name}.n }}}}" }}
          spec: {{ policy: {{ rules: [{{ when: "{{{{ {name}.n == 2 }}}}", then: {{ do: break }} }}] }} }}
        next: {{ arcs: [{{ step: end{args} }}] }}
      - step: end
        tool: {{ kind: noop }}
    """

    def codes(args: str) -> list[str]:
        return [
            problem.code
            for problem in examine(document_text(text.format(name=name, args=args)), "test.yaml").problems
        ]

    assert codes("") == []
    outside = f', args: {{ n: "{{{{ {name}.nobody }}}}" }}'
    code = {"run": "unset-name", "steps": "unknown-name", "joined": "namespace-scope"}[name]
    assert codes(outside) == [code]
