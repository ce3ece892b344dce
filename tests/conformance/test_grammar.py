"""Every production of the structural grammar (000 Appendix A) is accepted."""

from itertools import product

import pytest

from tests.playbooks import NOOP, document_of, problems_of, step

END = step(NOOP, name="end")
OPTIONAL_SECTIONS = {
    "keychain": "keychain: [{ name: api, kind: bearer, env: TOKEN }]\n",
    "executor": "executor: { kind: local, spec: {} }\n",
    "workload": "workload: { a: 1 }\n",
    "workbook": "workbook: { tasks: {} }\n",
}
RULE = '{ when: "{{ _attempt == 1 }}", then: { do: continue } }'
ELSE = "{ else: { do: continue } }"


def accepted(text: str) -> None:
    assert problems_of(text) == ()


@pytest.mark.spec("000 §A")
@pytest.mark.parametrize("chosen", list(product([False, True], repeat=4)))
def test_root_keys(chosen: tuple[bool, ...]) -> None:
    sections = [text for text, taken in zip(OPTIONAL_SECTIONS.values(), chosen, strict=True) if taken]
    text = document_of("workflow:\n" + step(NOOP))
    accepted(text + "".join(sections))
    head, _, workflow = text.partition("workflow:")
    accepted(head + "".join(sections) + "workflow:" + workflow)


@pytest.mark.spec("000 §A")
@pytest.mark.parametrize(
    "present_keys",
    [
        ["tool"],
        ["next"],
        ["desc", "tool"],
        ["desc", "spec", "tool"],
        ["desc", "spec", "loop", "tool"],
        ["desc", "spec", "loop", "tool", "next"],
        ["next", "tool", "loop", "spec", "desc"],
        ["spec", "next"],
    ],
)
def test_step(present_keys: list[str]) -> None:
    guard = "\"{{ event.name == 'loop.done' }}\"" if "loop" in present_keys else "true"
    keys = {
        "desc": "desc: A step.",
        "spec": "spec: { timeout: 60 }",
        "loop": "loop: { in: [1], iterator: n }",
        "tool": "tool: [{ name: one, kind: noop }]",
        "next": f"next: {{ spec: {{}}, arcs: [{{ step: end, when: {guard} }}] }}",
    }
    body = "\n".join(keys[key] for key in present_keys)
    if "spec" in present_keys and "next" in present_keys and "loop" not in present_keys:
        body = body.replace("when: true", "when: \"{{ event.name == 'step.done' }}\"")
    accepted(step(body) + (END if "next" in present_keys else ""))


@pytest.mark.spec("000 §A")
@pytest.mark.parametrize("items", ['"{{ range(3) }}"', "[1, 2]"])
@pytest.mark.parametrize("spec", ["", ", spec: {}", ", spec: { mode: parallel }"])
def test_loop(items: str, spec: str) -> None:
    accepted(step(f"loop: {{ in: {items}, iterator: n{spec} }}\n{NOOP}"))


@pytest.mark.spec("000 §A")
@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("spec", ["", ", spec: {}", ", spec: { timeout: 5 }"])
@pytest.mark.parametrize("pairs", ["", ", args: { a: 1 }", ", args: { a: 1 }, desc: words"])
def test_tool_pipeline(count: int, spec: str, pairs: str) -> None:
    tasks = [f"  - label_{number}: {{ kind: noop{spec}{pairs} }}" for number in range(count)]
    accepted(step("tool:\n" + "\n".join(tasks)))


@pytest.mark.spec("000 §A")
@pytest.mark.parametrize(
    "spec", ["", "spec: {}, ", "spec: { mode: exclusive }, ", "spec: { mode: inclusive }, "]
)
@pytest.mark.parametrize("when", ["", ", when: \"{{ event.name == 'step.done' }}\""])
@pytest.mark.parametrize("args", ["", ", args: {}", ", args: { a: 1 }"])
@pytest.mark.parametrize("arc_spec", ["", ", spec: {}", ", spec: { note: x }"])
def test_next_router(spec: str, when: str, args: str, arc_spec: str) -> None:
    accepted(step(f"next: {{ {spec}arcs: [{{ step: end{when}{args}{arc_spec} }}] }}") + END)


@pytest.mark.spec("000 §A")
def test_next_arcs() -> None:
    arcs = '[{ step: end, when: "{{ workload.a == 1 }}" }, { step: other }]'
    steps = step(f"next: {{ arcs: {arcs} }}") + END + step(NOOP, name="other")
    accepted("workload: { a: 1 }\nworkflow:\n" + steps)


@pytest.mark.spec("000 §A")
@pytest.mark.parametrize(
    "rules", [f"[{RULE}, {ELSE}]", f"[{RULE}, {RULE}, {ELSE}]", f"[{ELSE}, {RULE}]", f"[{ELSE}]"]
)
def test_policy_rules(rules: str) -> None:
    accepted(step(f"tool: {{ kind: noop, spec: {{ policy: {{ rules: {rules} }} }} }}"))


@pytest.mark.spec("000 §A")
@pytest.mark.parametrize("name", ["a", "A", "_a", "a1", "a-b", "a_b", "x" * 200])
def test_identifiers(name: str) -> None:
    text = f"loop: {{ in: [1], iterator: {name} }}\ntool:\n  - {name}: {{ kind: noop }}"
    accepted(step(text, name=name))
