"""Whatever a document says, loading it gives a playbook or problems, and never raises."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.document.composer import compose
from noetl.dsl.document.problem_codes import CODES
from noetl.dsl.document.source import node_value
from noetl.loader import examine
from noetl.model.json import Json

EXAMPLES = Path(__file__).parents[2] / "examples"

_VOCABULARY = """
apiVersion kind metadata name path keychain executor workload workflow workbook tasks step desc spec
loop tool next in iterator mode policy rules when then else do attempts backoff delay to set set_ctx
set_iter set_run set_prev arcs args input admit allow on_deny join count failure exec reduce
max_in_flight window timeout result select url method code command document task output_select
entry_step final_step output vars eval expr case pipe auth params action script libs files env
signal until seconds on_unmatched
"""
_KEYS = st.sampled_from(_VOCABULARY.split())
_WORDS = st.sampled_from(
    [
        "start", "end", "http", "python", "noop", "workbook", "playbook", "postgres", "retry", "jump", "previous",
        "continue", "parallel", "all", "{{ ctx.a }}", "{{ a + }}", "{{", "{% if x %}", "{{ event.name }}", "x = (",
        "noetl.io/v2", "noetl.io/v1", "Playbook", "ctx.a", "a..b", "", " ", "é\u2028", "{{ outcome.status }}",
    ]
)  # fmt: skip
_SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 10**20) | st.floats(allow_nan=False, allow_infinity=False)
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS | _WORDS | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_KEYS | st.text(max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)


def load(document: Json, dialect: str | None) -> None:
    """Loads the document as JSON, which is YAML, and holds what always holds."""
    loaded = examine(json.dumps(document), "any.json", dialect=dialect)
    errors = [problem for problem in loaded.problems if problem.severity == "error"]
    assert (loaded.playbook is None) == bool(errors)
    assert list(loaded.problems) == sorted(set(loaded.problems))
    for problem in loaded.problems:
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message
        assert problem.severity == CODES[problem.code].severity


@given(_VALUES, st.sampled_from([None, "draft"]))
def test_any_value(value: Json, dialect: str | None) -> None:
    load(value, dialect)


@given(
    st.lists(st.dictionaries(_KEYS, _VALUES, max_size=5), max_size=3),
    st.sampled_from(["noetl.io/v2", "noetl.io/v1"]),
)
def test_any_workflow(workflow: list[Json], version: str) -> None:
    steps: list[Json] = [{"step": f"s{number}", **_mapping(step)} for number, step in enumerate(workflow)]
    load(
        {
            "apiVersion": version,
            "kind": "Playbook",
            "metadata": {"name": "n", "path": "p"},
            "workflow": steps,
        },
        None,
    )


@given(
    st.dictionaries(_KEYS, _VALUES, max_size=6),
    st.sampled_from(["http", "python", "playbook", "wait", "noop"]),
)
def test_any_task(task: dict[str, Json], kind: str) -> None:
    steps: list[Json] = [{"step": "start", "tool": [{**task, "kind": kind}]}]
    load(
        {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"name": "n", "path": "p"},
            "workflow": steps,
        },
        None,
    )


@given(st.data())
def test_an_example_with_any_part_replaced(data: st.DataObject) -> None:
    document = json.loads(data.draw(st.sampled_from(_examples())))
    container: Any = {"": document}
    key: Any = ""
    for _ in range(data.draw(st.integers(1, 9))):
        inside = container[key]
        if not inside or not isinstance(inside, dict | list):
            break
        container = inside
        key = data.draw(st.sampled_from(sorted(inside) if isinstance(inside, dict) else range(len(inside))))
    container[key] = data.draw(_VALUES)
    load(document, None)


@cache
def _examples() -> list[str]:
    documents = []
    for file in sorted(EXAMPLES.rglob("*.yaml")):
        root = compose(file.read_text("utf-8"))
        assert root is not None
        documents.append(json.dumps(node_value(root)))
    return documents


def _mapping(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}
