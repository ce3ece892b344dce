"""Whatever stands in an older document, upgrading it ends, and ends well."""

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noetl.dsl.dialects import upgrade_document
from noetl.dsl.document.composer import compose
from noetl.dsl.document.source import Mapping, Scalar, node_of
from noetl.model.json import Json
from tests.dialects.dialect_upgrade import upgrade_text, v1_document

WORDS = st.sampled_from(
    ["start", "end", "error_handler", "a", "b", "http", "python", "loop", "task", "{{ a }}", "{{ a.result.b }}",
     "{{ vars.x }}", "{{ outcome.status == 'success' }}", "{{ a", "{% if a %}b{% endif %}", "GET", "fail", "run",
     "def main(input): return 1", "def main(", "{{ result.n > 1 }}", "{{ context }}", "parallel", "noetl.io/v1"]
)  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS | st.text(max_size=8)
V1_KEYS = st.sampled_from(
    ["task", "type", "desc", "with", "when", "run", "method", "endpoint", "payload", "retry", "on_error", "code",
     "in", "iterator", "step", "next", "then", "name", "path", "workload", "workbook", "workflow", "a", "b", "start"]
)  # fmt: skip
DRAFT_KEYS = st.sampled_from(
    ["step", "when", "spec", "next_mode", "loop", "tool", "next", "eval", "expr", "else", "do", "set_iter", "mode",
     "set_vars", "set_shared", "set_ctx", "kind", "name", "policy", "admit", "rules", "arcs", "in", "iterator", "sum",
     "metadata", "workflow", "workbook", "tasks", "keychain", "reduce", "then", "a", "backoff"]
)  # fmt: skip


def values(keys: st.SearchStrategy[str]) -> st.SearchStrategy[Json]:
    return st.recursive(
        SCALARS,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(keys | st.text(max_size=4), inner, max_size=6)
        ),
        max_leaves=15,
    )


def run(document: dict[str, Json], dialect: Literal["v1", "draft"]) -> None:
    root = node_of(document, Scalar(None, 1, 1))
    assert isinstance(root, Mapping)
    assert isinstance(upgrade_document(root, dialect, lambda *_args, **_more: None), Mapping)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(V1_KEYS, values(V1_KEYS), max_size=6))
def test_any_value_anywhere_in_v1(document: dict[str, Json]) -> None:
    run(document, "v1")


TASK = st.recursive(
    st.fixed_dictionaries(
        {"task": st.sampled_from("abc"), "type": st.sampled_from(["http", "python", "loop", "task"])},
        optional={
            "method": st.just("GET"),
            "endpoint": WORDS,
            "code": WORDS,
            "in": WORDS,
            "iterator": st.sampled_from(["a", "x"]),
            "with": st.dictionaries(st.sampled_from("abx"), WORDS, max_size=2) | SCALARS,
            "when": WORDS,
        },
    ),
    lambda inner: st.fixed_dictionaries(
        {
            "task": st.sampled_from("abc"),
            "type": st.sampled_from(["loop", "task"]),
            "in": st.just("{{ a.result }}"),
            "iterator": st.sampled_from("ax"),
            "run": st.lists(inner, max_size=3),
        },
        optional={"with": st.dictionaries(st.sampled_from("abx"), WORDS, max_size=2), "when": WORDS},
    ),
    max_leaves=8,
)
STEP = st.fixed_dictionaries(
    {"step": st.sampled_from(["start", "a", "b", "end", "error_handler"])},
    optional={
        "run": st.lists(st.fixed_dictionaries({"task": st.sampled_from("abcd")}), max_size=3) | SCALARS,
        "with": st.dictionaries(st.sampled_from("abx"), WORDS, max_size=2),
        "next": st.lists(
            st.fixed_dictionaries(
                {"then": st.lists(st.sampled_from(["a", "b", "error_handler"]) | SCALARS, max_size=3)},
                optional={"when": WORDS | SCALARS},
            ),
            max_size=3,
        ),
    },
)


@settings(max_examples=150, deadline=None)
@given(st.lists(TASK, max_size=4), st.lists(STEP, max_size=5))
def test_documents_that_are_nearly_right(workbook: list[Json], workflow: list[Json]) -> None:
    run({"name": "a", "path": "b", "workload": {"x": 1}, "workbook": workbook, "workflow": workflow}, "v1")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.dictionaries(DRAFT_KEYS, values(DRAFT_KEYS), max_size=6), max_size=3), values(DRAFT_KEYS))
def test_any_value_anywhere_in_a_draft(workflow: list[Json], workbook: Json) -> None:
    run({"metadata": workbook, "workflow": workflow, "workbook": workbook}, "draft")
    run({"workflow": workbook, "keychain": workbook}, "draft")


HTTP = "type: http, method: GET, endpoint: x"


@pytest.mark.timeout(60)
@pytest.mark.no_cover
def test_a_document_that_would_explode_is_refused() -> None:
    many = ", ".join(f"{{ task: t{number}, {HTTP} }}" for number in range(500))
    text = v1_document(
        f"- {{ task: all, type: task, run: [{many}] }}\n",
        f"- {{ step: start, run: [{', '.join(['all'] * 2000)}] }}\n",
    )
    assert "upgrade-limit" in {problem.code for problem in upgrade_text(text, "v1").problems}


@pytest.mark.timeout(60)
def test_values_that_double_with_every_level_are_refused() -> None:
    task = f"{{ task: t, {HTTP}, with: {{ a: '{{{{ a ~ a }}}}' }} }}"
    for _ in range(25):
        task = f"{{ task: t, type: task, with: {{ a: '{{{{ a ~ a }}}}' }}, run: [{task}] }}"
    text = v1_document(
        f"- {task}\n", f"- {{ step: start, run: [{{ task: t, with: {{ a: {'x' * 3000} }} }}] }}\n"
    )
    codes = {problem.code for problem in upgrade_text(text, "v1").problems}
    assert codes & {"upgrade-limit", "v1-inexpressible"}


@pytest.mark.timeout(60)
@pytest.mark.no_cover
def test_many_runs_of_one_task_take_no_time() -> None:
    text = v1_document(
        f"- {{ task: a, {HTTP} }}\n", f"- {{ step: start, run: [{', '.join(['a'] * 30000)}] }}\n"
    )
    assert upgrade_text(text, "v1").problems == []


def test_tasks_may_nest_as_deep_as_yaml_can() -> None:
    task = f"{{ task: t, {HTTP} }}"
    for _ in range(29):
        task = f"{{ task: t, type: task, run: [{task}] }}"
    assert upgrade_text(v1_document(f"- {task}\n", "- { step: start, run: [t] }\n"), "v1").problems == []


def test_deeper_nesting_than_yaml_has_is_refused() -> None:
    task: Json = {"task": "t", "type": "http", "method": "GET", "endpoint": "x"}
    for _ in range(60):
        task = {"task": "t", "type": "task", "run": [task]}
    run({"name": "a", "path": "b", "workbook": [task], "workflow": [{"step": "start", "run": ["t"]}]}, "v1")


@pytest.mark.parametrize(
    "code", ["\0", "def main(input):\n" + "(" * 5000, "x = '\\d'\ndef main(input): return 1", "é" * 9]
)
def test_any_code_is_read_without_harm(code: str) -> None:
    task: Json = {"task": "t", "type": "python", "code": code}
    run({"name": "a", "path": "b", "workbook": [task], "workflow": [{"step": "start", "run": ["t"]}]}, "v1")


def test_an_empty_document_is_no_surprise() -> None:
    root = compose("{}")
    assert isinstance(root, Mapping)
    run({}, "v1")
    run({}, "draft")
