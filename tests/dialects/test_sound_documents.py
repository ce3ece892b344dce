"""Every sound v1 document becomes a playbook that loads."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from noetl.dsl.dialects.yaml_writer import to_yaml
from noetl.loader import examine
from noetl.model.json import Json

NAMES = ["a", "b", "run", "iter", "city", "x"]
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    ["{{ a.result }}", "{{ b.result.n }} and {{ city }}", "{{ x }}", "{{ workload.x + 1 }}", "{{ context.n }}", "plain",
     "{{ a.b.result }}", "{{ city.name | default('x') }}", "{{ start.result.n }}", 3, None, True,
     "{{ [x, 2] | length }}", "{% set b = x %}{{ b }}", "{{ x if x else city }}"]
)  # fmt: skip
CONDITIONS: st.SearchStrategy[Any] = st.sampled_from(
    [
        "{{ x > 1 }}",
        "{{ a.result.ok or x }}",
        "{{ result.n == 1 }}",
        True,
        False,
        "{{ not city }}",
        "{{ x in [1, 2] }}",
    ]
)
GIVEN: st.SearchStrategy[Any] = st.dictionaries(
    st.sampled_from(NAMES), VALUES.filter(lambda value: "{%" not in str(value)), max_size=3
)
HTTP: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.just("http"), "method": st.just("GET"), "endpoint": st.just("http://x/{{ x }}/{{ city }}")},
    optional={
        "with": GIVEN,
        "when": CONDITIONS,
        "retry": st.just(2),
        "payload": VALUES,
        "desc": st.just("d"),
    },
)
PYTHON: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.just("python"), "code": st.just("def main(input):\n    return 1\n")},
    optional={"with": GIVEN, "when": CONDITIONS},
)


def named(bodies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    pairs = st.dictionaries(st.sampled_from(NAMES), bodies, min_size=1, max_size=3)
    return pairs.map(lambda body_by_name: [{"task": name, **body} for name, body in body_by_name.items()])


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    more: dict[str, st.SearchStrategy[Any]] = {"with": GIVEN, "when": CONDITIONS}
    loop: dict[str, st.SearchStrategy[Any]] = {
        "type": st.just("loop"),
        "in": VALUES.filter(lambda value: "{{" in str(value)),
        "iterator": st.sampled_from(NAMES),
    }
    return st.fixed_dictionaries(
        {"type": st.just("task"), "run": named(inner)}, optional=more
    ) | st.fixed_dictionaries({**loop, "run": named(inner)}, optional=more)


TASKS: st.SearchStrategy[Any] = named(st.recursive(HTTP | PYTHON, containers, max_leaves=4))
STEP_NAMES = ["start", "a", "other", "error_handler", "end"]
TARGETS: st.SearchStrategy[Any] = st.lists(
    st.fixed_dictionaries({"step": st.sampled_from(STEP_NAMES)}, optional={"with": GIVEN}),
    min_size=1,
    max_size=2,
)
NEXT: st.SearchStrategy[Any] = st.lists(
    st.fixed_dictionaries({"then": TARGETS}, optional={"when": CONDITIONS}), max_size=3
)


@st.composite
def documents(draw: st.DrawFn) -> Json:
    workbook = draw(TASKS)
    calls = st.fixed_dictionaries(
        {"task": st.sampled_from([task["task"] for task in workbook if isinstance(task, dict)])},
        optional={"with": GIVEN},
    )
    steps: list[Json] = []
    for name in STEP_NAMES:
        optional: dict[str, st.SearchStrategy[Any]] = {
            "run": st.lists(calls, max_size=3),
            "with": GIVEN,
            **({} if name == "end" else {"next": NEXT}),
        }
        steps.append({"step": name, **draw(st.fixed_dictionaries({}, optional=optional))})
    head: dict[str, Json] = {"apiVersion": "noetl.io/v1", "kind": "Playbook", "name": "n", "path": "p"}
    return {**head, "workload": {"x": 1}, "workbook": workbook, "workflow": steps}


@pytest.mark.spec("004 §7")
# Shrinking documents of this size takes longer than a test may.
@settings(
    max_examples=80, deadline=None, phases=(Phase.generate,), suppress_health_check=[HealthCheck.too_slow]
)
@given(documents())
def test_a_sound_document_becomes_one_that_loads_and_stays_the_same(document: Json) -> None:
    loaded = examine(to_yaml(document), "v1.yaml")
    assert [problem for problem in loaded.problems if problem.severity == "error"] == []
    again = examine(to_yaml(loaded.document), "canonical.yaml")
    assert again.playbook is not None
    assert loaded.playbook is not None
    assert again.playbook.hash == loaded.playbook.hash
