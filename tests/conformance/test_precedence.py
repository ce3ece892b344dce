"""Which `spec` wins: kind defaults, executor, step, loop, task (001 §6.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.dsl.document.playbook import Task
from noetl.dsl.document.source import Mapping, Scalar, node_of, node_value
from noetl.dsl.document.spec import NOT_INHERITED, NOT_INHERITED_POLICY, inheritable_spec, merge_specs
from noetl.expr.template import Constant
from noetl.model.json import Json
from tests.playbooks import first_task, playbook_of, step

AT = Scalar(None, 1, 1)
_VALUES = st.recursive(
    st.none() | st.integers(0, 9) | st.text("ab", max_size=2) | st.lists(st.integers(0, 9), max_size=3),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)
_SPECS = st.dictionaries(st.sampled_from("abcd"), _VALUES, max_size=4)


def node(value: dict[str, Json]) -> Mapping:
    mapping = node_of(value, AT)
    assert isinstance(mapping, Mapping)
    return mapping


def merged(*specs: dict[str, Json]) -> Json:
    merged_node = merge_specs(*(node(spec) for spec in specs))
    return None if merged_node is None else node_value(merged_node)


def merge_values(outer: Json, inner: Json) -> Json:
    """The law: mappings merge key by key, anything else is replaced."""
    if not isinstance(outer, dict) or not isinstance(inner, dict):
        return inner
    merged_entries = {key: merge_values(outer[key], inner[key]) for key in outer.keys() & inner.keys()}
    return {**outer, **inner, **merged_entries}


def spec_of(task: Task) -> dict[str, Json]:
    return {key: value.value for key, value in task.spec.items() if isinstance(value, Constant)}


def scoped(
    executor: str = "{}", step_: str = "{}", loop: str = "{}", task: str = "{}", kind: str = "http"
) -> Task:
    url = "url: https://a.example, " if kind == "http" else ""
    return first_task(
        f"executor: {{ kind: local, spec: {executor} }}\nworkflow:\n"
        + step(
            f"spec: {step_}\nloop: {{ in: [1], iterator: n, spec: {loop} }}\n"
            f"tool: {{ kind: {kind}, {url}spec: {task} }}"
        )
    )


@pytest.mark.spec("001 §6.4")
@given(st.lists(_SPECS, min_size=1, max_size=5))
def test_inner_specs_win_and_mappings_merge_deep(specs: list[dict[str, Json]]) -> None:
    expected: Json = {}
    for spec in specs:
        expected = merge_values(expected, spec)
    assert merged(*specs) == expected


@pytest.mark.spec("001 §6.4")
@given(_SPECS)
def test_a_spec_over_itself_is_itself(spec: dict[str, Json]) -> None:
    assert merged(spec, spec) == spec
    assert merge_specs(None, node(spec), None) is not None
    assert merge_specs(None, None) is None


@pytest.mark.spec("001 §6.4")
@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": {"x": 1, "y": 1}}, {"a": {"y": 2, "z": 2}}, {"a": {"x": 1, "y": 2, "z": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"x": 1}}, {"a": [3]}, {"a": [3]}),
        ({"a": [3]}, {"a": {"x": 1}}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": None}, {"a": None}),
    ],
)
def test_lists_are_replaced_and_mappings_merged(
    outer: dict[str, Json], inner: dict[str, Json], expected: dict[str, Json]
) -> None:
    assert merged(outer, inner) == expected


@pytest.mark.spec("001 §6.4")
@pytest.mark.parametrize("key", sorted(NOT_INHERITED))
def test_a_key_that_a_scope_owns_is_never_inherited(key: str) -> None:
    inherited = inheritable_spec(node({key: 1, "pool": "small"}))
    assert inherited is not None
    assert node_value(inherited) == {"pool": "small"}
    assert inheritable_spec(node({key: 1})) is None


@pytest.mark.spec("001 §6.4")
@pytest.mark.parametrize("key", sorted(NOT_INHERITED_POLICY))
def test_a_policy_that_a_scope_owns_is_never_inherited(key: str) -> None:
    inherited = inheritable_spec(node({"policy": {key: {}, "rules": []}}))
    assert inherited is not None
    assert node_value(inherited) == {"policy": {"rules": []}}
    assert inheritable_spec(node({"policy": {key: {}}})) is None


@pytest.mark.spec("001 §6.4")
def test_the_defaults_of_a_kind_are_below_everything() -> None:
    assert spec_of(scoped())["verify"] is True
    assert spec_of(scoped(executor="{ verify: false }"))["verify"] is False


@pytest.mark.spec("001 §6.4")
def test_each_scope_wins_over_those_around_it() -> None:
    def pool(**scopes: str) -> Json:
        return spec_of(scoped(**{scope: f"{{ pool: {value} }}" for scope, value in scopes.items()})).get(
            "pool"
        )

    assert pool() is None
    assert pool(executor="e") == "e"
    assert pool(executor="e", step_="s") == "s"
    assert pool(executor="e", step_="s", loop="l") == "l"
    assert pool(executor="e", step_="s", loop="l", task="t") == "t"
    assert pool(executor="e", loop="l") == "l"
    assert pool(executor="e", task="t") == "t"


@pytest.mark.spec("001 §6.4")
def test_mappings_of_all_scopes_become_one() -> None:
    task = scoped(
        executor="{ result: { inline_max_bytes: 1, ttl: 1 } }",
        step_="{ result: { ttl: 2, scope: step } }",
        loop="{ result: { store: auto } }",
        task="{ result: { scope: permanent, select: [$.a] } }",
    )
    assert spec_of(task)["result"] == {
        "inline_max_bytes": 1,
        "ttl": 2,
        "store": "auto",
        "scope": "permanent",
        "select": ["$.a"],
    }


@pytest.mark.spec("001 §6.4")
def test_the_limits_of_requests_are_inherited_by_those_that_send_them() -> None:
    def timeout(**scopes: str) -> Json:
        return spec_of(scoped(**{scope: f"{{ timeout: {value} }}" for scope, value in scopes.items()})).get(
            "timeout"
        )

    assert timeout(executor="{ connect: 5, read: 15 }") == {"connect": 5, "read": 15}
    assert timeout(step_="{ connect: 4 }") == {"connect": 4}
    assert timeout(loop="{ read: 3 }") == {"read": 3}
    scopes = {"executor": "{ connect: 5, read: 15 }", "step_": "{ connect: 4 }", "loop": "{ read: 3 }"}
    assert timeout(**scopes) == {"connect": 4, "read": 3}
    assert timeout(**scopes, task="{ read: 2 }") == {"connect": 4, "read": 2}
    assert timeout(**scopes, task="1") == 1
    assert timeout(executor="{ connect: 5 }", step_="100") == {"connect": 5}


@pytest.mark.spec("001 §6.4")
def test_the_limits_of_requests_bound_neither_their_scope_nor_other_tasks() -> None:
    text = "executor: { kind: local, spec: { timeout: { connect: 5 } } }\nworkflow:\n" + step(
        "spec: { timeout: { read: 5 } }\ntool: [{ kind: noop }, { kind: wait, seconds: 1 }]"
    )
    playbook = playbook_of(text)
    assert (playbook.executor.timeout, playbook.workflow[0].timeout) == (None, None)
    assert ["timeout" in task.spec for task in playbook.workflow[0].tasks] == [False, False]


@pytest.mark.spec("001 §6.4")
def test_a_timeout_belongs_to_its_scope() -> None:
    text = "executor: { kind: local, spec: { timeout: 1000 } }\nworkflow:\n" + step(
        "spec: { timeout: 100, task_timeout: 10 }\ntool:\n  - kind: noop\n  - { kind: noop, spec: { timeout: 1 } }"
    )
    playbook = playbook_of(text)
    first, second = playbook.workflow[0].tasks
    assert playbook.executor.timeout == 1000
    assert playbook.workflow[0].timeout == 100
    assert spec_of(first) == {"task_timeout": 10}
    assert spec_of(second) == {"task_timeout": 10, "timeout": 1}


@pytest.mark.spec("001 §6.4")
def test_a_task_takes_only_the_knobs_that_its_kind_has() -> None:
    assert "verify" in spec_of(scoped(step_="{ verify: false }"))
    assert "verify" not in spec_of(scoped(step_="{ verify: false }", kind="noop"))
    assert "queue" not in spec_of(scoped(executor="{ queue: nats }"))


@pytest.mark.spec("001 §6.4")
def test_rules_are_inherited_whole_and_replaced_whole() -> None:
    outer = "{ policy: { rules: [{ else: { do: break } }] } }"
    inner = "{ policy: { rules: [] } }"
    inherited, own_rules = scoped(step_=outer).policy, scoped(step_=outer, task=inner).policy
    assert inherited is not None
    assert inherited.otherwise is not None
    assert own_rules is not None
    assert own_rules.otherwise is None


@pytest.mark.spec("001 §6.4")
def test_a_workbook_definition_stands_between_the_scopes_and_the_task() -> None:
    text = (
        "workbook: { tasks: { work: { kind: noop, spec: { pool: w, task_timeout: 5 } } } }\nworkflow:\n"
        + step(
            "spec: { pool: s, task_timeout: 1, max_transitions: 9 }\n"
            "tool: { kind: workbook, task: work, spec: { task_timeout: 7 } }"
        )
    )
    assert spec_of(first_task(text)) == {"pool": "w", "task_timeout": 7, "max_transitions": 9}
