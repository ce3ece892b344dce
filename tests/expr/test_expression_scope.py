"""Namespaces, bare names, aliases."""

from typing import Any

import pytest

from noetl.expr.expression import parse
from noetl.expr.runtime.scope import BUILTIN_ITER_KEYS, NAMESPACES, EvaluationSite, Scope
from noetl.model.errors import ExpressionError

ORDER = ("args", "ctx", "iter", "workload", "results", "steps")


def value(scope: Scope, source: str) -> Any:
    return parse("{{ " + source + " }}").evaluate(scope)


def scope_with(spaces: tuple[str, ...], name: str = "x") -> Scope:
    namespaces: dict[str, Any] = {
        space: {name: space} for space in spaces if space not in ("results", "steps")
    }
    if "steps" in spaces:
        namespaces["steps"] = {name: {"status": "completed", "result": "steps"}}
    return Scope(namespaces, results={name: "results"} if "results" in spaces else {})


@pytest.mark.spec("000 §3.2 (1)")
def test_every_namespace_is_reached_by_its_name() -> None:
    scope = Scope({name: {"n": name} for name in NAMESPACES})
    assert {name: value(scope, f"{name}.n") for name in NAMESPACES} == {name: name for name in NAMESPACES}


@pytest.mark.spec("000 §3.3")
@pytest.mark.parametrize("first", range(len(ORDER)))
def test_bare_names_are_looked_for_in_order(first: int) -> None:
    assert value(scope_with(ORDER[first:]), "x") == ORDER[first]


def test_a_namespace_that_is_not_there_is_never_a_bare_name() -> None:
    scope = Scope({"ctx": {"event": 1, "outcome": 2, "_prev": 3}})
    for name in ("event", "outcome", "_prev"):
        with pytest.raises(ExpressionError, match=f"`{name}` is undefined"):
            value(scope, name)


def test_none_is_a_value() -> None:
    assert value(Scope({"_prev": None, "args": {"x": None}, "ctx": {"x": 1}}), "[_prev, x]") == [None, None]


def test_built_in_keys_of_iter_have_no_bare_name() -> None:
    scope = Scope({"iter": {**dict.fromkeys(BUILTIN_ITER_KEYS, 1), "row": 2}})
    assert value(scope, "row + iter.index") == 3
    for name in BUILTIN_ITER_KEYS:
        assert value(scope, f"{name} is defined") is False


def test_a_step_is_its_result_and_so_is_its_data() -> None:
    scope = Scope({"steps": {"fetch": {"status": "completed", "result": {"rows": [1]}}}})
    assert value(scope, "fetch.rows") == [1]
    assert value(scope, "fetch.data.rows") == [1]
    assert value(scope, "fetch.data") == {"rows": [1]}
    assert value(scope, "fetch['data'].rows | length") == 1
    assert value(scope, "steps.fetch.status") == "completed"
    assert value(scope, "steps.fetch.result.rows") == [1]


def test_a_result_with_a_key_data_keeps_it() -> None:
    scope = Scope(
        {"steps": {"fetch": {"result": {"data": 1}}, "raw": {"result": [1, 2]}}}, results={"task": "text"}
    )
    assert value(scope, "fetch.data") == 1
    assert value(scope, "raw.data | length") == 2
    assert value(scope, "task.data") == "text"


def test_data_of_anything_else_is_an_ordinary_key() -> None:
    scope = Scope({"ctx": {"page": {"rows": 1}}, "steps": {"page": {"result": {"rows": 2}}}})
    with pytest.raises(ExpressionError, match=r"`page\.data` is undefined"):
        value(scope, "page.data")
    assert parse("{% set page = {'a': 1} %}{{ page.data | d('none') }}").evaluate(scope) == "none"


def test_output_is_the_outcome_where_there_is_one() -> None:
    scope = Scope({"outcome": {"status": "ok", "result": {"n": 1}}, "ctx": {"output": 2}})
    assert value(scope, "output.status") == "ok"
    assert value(scope, "output.data.n") == 1
    assert value(scope, "output.data") == {"n": 1}
    assert value(scope, "output.result.n") == 1
    assert value(Scope({"ctx": {"output": 2}}), "output") == 2


def test_job_is_the_last_resort_for_the_execution() -> None:
    assert value(Scope({"execution_id": "e1"}), "job.uuid") == "e1"
    assert value(Scope({"execution_id": "e1", "workload": {"job": {"uuid": 2}}}), "job.uuid") == 2


def test_a_child_sees_its_own_args_and_everything_else() -> None:
    parent = Scope({"args": {"a": 1}, "ctx": {"c": 3}}, results={"t": 4}, now=lambda: "now")
    child = parent.child({"args": {"a": 2}})
    assert value(child, "[a, c, t, now()]") == [2, 3, 4, "now"]
    assert value(parent, "a") == 1
    assert value(parent.child({}, results={"t": 5}), "t") == 5


def test_a_mapping_as_scope_holds_all_names_there_are() -> None:
    assert parse("{{ ctx.a }}{{ b }}").evaluate({"ctx": {"a": 1}, "b": 2}) == "12"
    assert parse("{{ a }}").evaluate({"ctx": {"a": 1}}, EvaluationSite.GUARD) is None


@pytest.mark.parametrize(
    ("source", "name", "expected"),
    [
        ("event.name == 'call.done'", "step.done", True),
        ("event.name == 'call.done'", "loop.done", True),
        ("event.name == 'call.done'", "step.failed", False),
        ("'call.done' == event.name", "loop.done", True),
        ("event['name'] != 'call.done'", "loop.done", False),
        ("event.name == 'call.error'", "step.failed", True),
        ("'call.error' != event.name", "step.failed", False),
        ("event.name in ['call.error', 'loop.done']", "step.failed", True),
        ("event.name in ('call.done',)", "loop.done", True),
        ("event.name not in ['call.done']", "step.done", False),
        ("event.name == 'step.done'", "step.done", True),
        ("args.name == 'call.done'", "step.done", False),
    ],
)
def test_older_event_names_mean_the_present_ones(source: str, name: str, expected: object) -> None:
    scope = Scope({"event": {"name": name}, "args": {"name": name}})
    assert parse("{{ " + source + " }}").evaluate(scope, EvaluationSite.GUARD) is expected
