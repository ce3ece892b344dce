"""What a v1 task gets: definition < step < token args < invocation."""

from itertools import product

import pytest

from noetl.expr.runtime.scope import Scope
from noetl.expr.template import render
from noetl.model.json import Json
from tests.dialects.dialect_upgrade import v1_steps, yaml_values
from tests.templates import parse_template

LAYERS = ("definition", "step", "token", "invocation")


def with_key(key: str, *, present: bool) -> str:
    return f", with: {{ k: {key} }}" if present else ""


def inputs(step: Json, token: dict[str, Json], task: int = 0) -> dict[str, Json]:
    """What the engine makes of a step's defaults, a token's args and a task's args."""
    assert isinstance(step, dict)
    tool = step["tool"]
    assert isinstance(tool, list)
    canonical_task = tool[task]
    assert isinstance(canonical_task, dict)
    defaults = render(parse_template(step.get("args", {})), Scope({"args": token, "workload": {}}))
    assert isinstance(defaults, dict)
    args = {**defaults, **token}
    own = render(parse_template(canonical_task.get("args", {})), Scope({"args": args, "workload": {"w": 7}}))
    assert isinstance(own, dict)
    return own if canonical_task["kind"] == "python" else {**args, **own}


@pytest.mark.spec("004 §5")
@pytest.mark.parametrize("kind", ["http", "python"])
@pytest.mark.parametrize("brought", [True, False])
@pytest.mark.parametrize("present", list(product([True, False], repeat=4)))
def test_the_nearest_value_counts(present: tuple[bool, ...], brought: bool, kind: str) -> None:
    definition, step, token, invocation = present
    body = {
        "http": "type: http, method: GET, endpoint: 'http://x'",
        "python": "type: python, code: 'def main(input): return 1'",
    }[kind]
    steps = v1_steps(
        f"- {{ task: t, {body}{with_key('definition', present=definition)} }}\n",
        f"""
        - step: start
          next:
            - {{ when: "{{{{ workload.w }}}}", then: [{{ step: s{with_key("token", present=token)} }}] }}
            - {{ then: [{{ step: s }}] }}
        - {{ step: s{with_key("step", present=step)}, run: [{{ task: t{with_key("invocation", present=invocation)} }}] }}
        """,
    )
    carried: dict[str, Json] = {"k": "token"} if token and brought else {}
    there = [
        layer
        for layer, is_there in zip(LAYERS, (definition, step, bool(carried), invocation), strict=True)
        if is_there
    ]
    assert inputs(steps[1], carried).get("k") == (there[-1] if there else None)


def steps_with(definition: str, invocation: str) -> list[Json]:
    return v1_steps(
        f"- {{ task: t, type: http, method: GET, endpoint: x, with: {definition} }}\n",
        f"""
        - step: start
          next: [{{ when: "{{{{ workload.w }}}}", then: [{{ step: s, with: {{ k: 1 }} }}] }}, {{ then: [s] }}]
        - {{ step: s, run: [{{ task: t, with: {invocation} }}] }}
        """,
    )


@pytest.mark.spec("004 §5")
@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ('"{{ workload.w }}"', "{{ args.k if args.k is defined else workload.w }}"),
        ('"{{ workload.w or 3 }}"', "{{ args.k if args.k is defined else (workload.w or 3) }}"),
        ('"a {{ workload.w }} b"', "{{ args.k if args.k is defined else 'a ' ~ workload.w ~ ' b' }}"),
        ('"it\'s"', "{{ args.k if args.k is defined else 'it\\'s' }}"),
        ("5", "{{ args.k if args.k is defined else 5 }}"),
        ("true", "{{ args.k if args.k is defined else true }}"),
        ("null", "{{ args.k if args.k is defined else none }}"),
        ('[1, "{{ workload.w }}"]', "{{ args.k if args.k is defined else [1, workload.w] }}"),
        (
            '{ a: { b: "{{ workload.w }}" } }',
            "{{ args.k if args.k is defined else {'a': {'b': workload.w}} }}",
        ),
    ],
)
def test_a_default_stands_behind_what_a_token_may_bring(definition: str, expected: str) -> None:
    (_, step) = steps_with("{ k: " + definition + " }", "{}")
    assert isinstance(step, dict)
    assert step["tool"] == [
        {"name": "t", "kind": "http", "args": {"k": expected}, "method": "GET", "url": "x"},
    ]
    assert inputs(step, {"k": "brought"})["k"] == "brought"
    wanted = yaml_values(definition.replace("{{ workload.w or 3 }}", "7").replace("{{ workload.w }}", "7"))
    assert str(inputs(step, {})["k"]).replace("'7'", "7") == str(wanted).replace("'7'", "7")


@pytest.mark.spec("004 §5")
def test_a_definition_may_build_on_what_the_invocation_gives() -> None:
    (_, step) = steps_with(
        '{ url: "{{ base }}/x", full: "{{ base.path }}" }', '{ base: "{{ workload.w ~ 1 }}" }'
    )
    assert isinstance(step, dict)
    assert step["tool"] == [
        {
            "name": "t",
            "kind": "http",
            "args": {
                "url": "{{ workload.w ~ 1 }}/x",
                "full": "{{ (workload.w ~ 1).path }}",
                "base": "{{ workload.w ~ 1 }}",
            },
            "method": "GET",
            "url": "x",
        }
    ]


@pytest.mark.spec("004 §3.1.1")
def test_a_nested_task_has_the_last_word_about_its_own_inputs() -> None:
    steps = v1_steps(
        """
        - task: p
          type: task
          with: { k: definition, other: "{{ k }}" }
          run: [{ task: c, type: python, with: { k: "nested, not {{ k }}" }, code: "def main(input): return 1" }]
        """,
        "- { step: start, run: [{ task: p, with: { k: invocation } }] }\n",
    )
    assert inputs(steps[0], {}) == {"k": "nested, not invocation", "other": "invocation"}
