from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import inspect

from noetl.dsl.document.kinds import Fault, Kind
from noetl.tools.kind_registry import BUILTIN, builtin_kinds

# As the tools reference lists them; `args` belongs to every task.
INPUTS = {
    "noop": "",
    "http": "method url params headers json body form files auth",
    "postgres": "auth dsn command query commands params rows into",
    "mysql": "auth dsn command query commands params rows into",
    "snowflake": "auth dsn command query commands params rows into",
    "sqlite": "auth database command query commands params rows into",
    "duckdb": "auth database command query commands params rows into tables",
    "python": "code script libs",
    "shell": "command env cwd stdin",
    "container": "image command env mounts",
    "nats": "action auth",
    "playbook": "path version document return_step",
    "workbook": "task",
    "secrets": "name names provider",
    "artifact": "action ref key content format store",
    "s3": "action url auth",
    "file": "action url auth",
    "wait": "seconds until signal",
    "quantum": "action program backend shots seed parameters job_id",
}

KNOBS = {
    "http": "timeout verify follow_redirects proxy success save_as max_size",
    "postgres": "timeout transaction pool fetch",
    "mysql": "timeout transaction pool fetch",
    "snowflake": "timeout transaction pool fetch",
    "python": "timeout memory isolation env",
    "container": "timeout runtime memory cpus",
    "playbook": "wait on_failure",
}

QASM = "OPENQASM 3.0; qubit q; bit c; h q; c = measure q;"
SELECT = "SELECT 1"
CHILD = {"apiVersion": "noetl.io/v2", "kind": "Playbook"}

GOOD: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("noop", {}, {}),
    ("http", {"url": "https://example.com"}, {}),
    (
        "http",
        {"url": "{{ workload.api_url }}/items", "method": "get", "params": {"page": 1, "tag": ["a"]}},
        {},
    ),
    ("http", {"url": "https://example.com", "json": {"a": 1}}, {"timeout": 5, "success": [200, "3xx", 404]}),
    ("http", {"url": "https://example.com", "method": "POST", "body": "text", "headers": {"x-n": 1}}, {}),
    ("http", {"url": "https://example.com", "form": {"a": "b"}, "files": {"f": "data.csv"}}, {}),
    ("http", {"url": "https://example.com", "files": {"f": {"content": "a", "filename": "a.txt"}}}, {}),
    ("http", {"url": "https://example.com", "auth": "api"}, {"timeout": {"connect": 5, "read": 15}}),
    ("http", {"url": "https://example.com", "auth": {"type": "bearer", "token": "t"}}, {"save_as": "file"}),
    ("http", {"url": "http://127.0.0.1"}, {"verify": False, "follow_redirects": True, "proxy": "http://p"}),
    ("postgres", {"auth": "pg", "command": SELECT}, {}),
    ("postgres", {"auth": "pg", "query": "SELECT %s", "params": [1]}, {"fetch": "one", "transaction": False}),
    ("postgres", {"dsn": "postgresql://h/d", "commands": [SELECT, SELECT]}, {"pool": {"min": 1, "max": 4}}),
    ("postgres", {"auth": "pg", "rows": [{"a": 1}], "into": "t"}, {"pool": "default"}),
    ("postgres", {"auth": "pg", "rows": [[1, 2]], "command": "INSERT INTO t VALUES (%s, %s)"}, {}),
    (
        "mysql",
        {"dsn": "mysql://h/d", "query": "SELECT ?", "params": [1]},
        {"pool": {"max": 4}, "fetch": "one"},
    ),
    ("mysql", {"auth": "my", "rows": [{"a": 1}], "into": "t"}, {"pool": "default"}),
    ("snowflake", {"auth": "snow", "commands": [SELECT, SELECT]}, {"transaction": False}),
    ("sqlite", {"database": "local.db", "query": "SELECT :a", "params": {"a": 1}}, {}),
    ("sqlite", {"command": SELECT}, {"timeout": 1.5}),
    ("duckdb", {"query": "SELECT * FROM events", "tables": {"events": "{{ ctx.events }}"}}, {}),
    ("duckdb", {"commands": "CREATE TABLE t (a int); SELECT 1", "auth": {"pg": {"type": "postgres"}}}, {}),
    ("python", {"code": "result = 1"}, {"isolation": "fork", "timeout": 5, "memory": "512MB"}),
    ("python", {"code": "return 1"}, {"isolation": "inline", "env": {"A": 1}}),
    (
        "python",
        {"script": "./clean.py", "libs": {"np": "numpy", "d": {"from": "datetime", "import": "date"}}},
        {},
    ),
    ("python", {"script": {"uri": "clean.py", "source": {"type": "file"}}}, {"memory": 1 << 30}),
    ("python", {"script": {"source": {"type": "http", "endpoint": "https://example.com/x.py"}}}, {}),
    ("python", {"script": {"source": {"type": "inline", "code": "return 1"}}}, {}),
    ("shell", {"command": "ls | wc -l", "cwd": "data", "env": {"N": 1}}, {"timeout": 5}),
    ("http", {"url": "https://example.com"}, {"cert": "own.pem"}),
    ("http", {"url": "https://example.com"}, {"cert": {"cert": "own.pem", "key": "own.key"}}),
    ("shell", {"command": ["sleep", 1], "stdin": {"a": 1}}, {}),
    ("shell", {"command": ["cat"], "stdin": 7}, {}),
    ("container", {"image": "debian", "command": "ls", "mounts": ["./a:/b:ro"]}, {"memory": "64MB"}),
    ("nats", {"action": "publish", "auth": "bus", "subject": "orders", "payload": {"id": 7}}, {}),
    ("playbook", {"path": "jobs/child", "version": 3}, {"wait": False, "on_failure": "continue"}),
    ("playbook", {"path": "jobs/child", "return_step": "end"}, {}),
    ("playbook", {"document": CHILD}, {}),
    ("workbook", {}, {}),
    ("workbook", {"task": "fetch", "url": "https://example.com"}, {"verify": False}),
    ("secrets", {}, {}),
    ("secrets", {"name": "api_key", "provider": "vault"}, {}),
    ("secrets", {"names": ["a", "b"]}, {}),
    ("artifact", {"action": "put", "content": [1], "key": "a", "format": "json"}, {}),
    ("artifact", {"action": "get", "ref": {"store": "file", "key": "k"}}, {}),
    ("artifact", {"action": "list", "store": "main"}, {}),
    ("artifact", {"action": "delete", "key": "a"}, {}),
    ("artifact", {"action": "{{ args.action }}"}, {}),
    ("s3", {"action": "get", "url": "s3://bucket/key", "auth": "aws"}, {}),
    ("s3", {"action": "copy", "url": "s3://bucket/a", "to": "s3://bucket/b"}, {}),
    ("s3", {"action": "list", "url": "s3://bucket/"}, {}),
    ("file", {"action": "put", "url": "out/a.json", "content": {"a": 1}}, {}),
    ("file", {"action": "put", "url": "file:///tmp/a.csv", "source": "b.csv"}, {}),
    ("file", {"action": "delete", "url": "{{ ctx.place }}"}, {}),
    ("wait", {"seconds": 1}, {}),
    ("wait", {"until": "2030-01-31T09:00:00Z"}, {}),
    ("wait", {"until": "{{ ctx.due }}"}, {}),
    ("wait", {"signal": "approved"}, {"timeout": 3600}),
    ("quantum", {"action": "submit", "program": QASM, "backend": "aer", "shots": 100, "seed": 1}, {}),
    ("quantum", {"action": "run", "program": QASM, "parameters": {"theta": 0.5}, "observables": ["Z"]}, {}),
    ("quantum", {"action": "status", "job_id": "j1"}, {}),
    ("quantum", {"action": "result", "job_id": "j1", "backend": "aer"}, {}),
    ("quantum", {"action": "result", "job_id": "j1", "backend": "{{ ctx.backend }}", "auth": "ibm"}, {}),
    ("quantum", {"action": "cancel", "job_id": "{{ submit.job_id }}"}, {}),
]

# The last column is the key a fault must stand at; TYPE where the model itself refuses the sample.
TYPE = "(type)"
WRONG: list[tuple[str, dict[str, Any], dict[str, Any], str | None]] = [
    ("noop", {"value": 1}, {}, TYPE),
    ("http", {}, {}, TYPE),
    ("http", {"url": "https://example.com", "method": "FETCH"}, {}, TYPE),
    ("http", {"url": "https://example.com", "params": "a=b"}, {}, TYPE),
    ("http", {"url": "https://example.com"}, {"success": [99]}, TYPE),
    ("http", {"url": "https://example.com"}, {"success": ["ok"]}, TYPE),
    ("http", {"url": "https://example.com"}, {"timeout": {"conect": 1}}, TYPE),
    ("http", {"url": "https://example.com"}, {"timeout": -1}, TYPE),
    ("http", {"url": "https://example.com"}, {"save_as": "disk"}, TYPE),
    ("http", {"url": "https://example.com"}, {"cert": {"key": "own.key"}}, TYPE),
    ("http", {"url": "example.com"}, {}, "url"),
    ("http", {"url": "https://example.com", "json": {}, "body": "a"}, {}, "body"),
    ("http", {"url": "https://example.com", "json": {}, "form": {"a": "b"}}, {}, "form"),
    ("http", {"url": "https://example.com", "json": {}, "files": {"f": "a.txt"}}, {}, "json"),
    ("http", {"url": "https://example.com", "body": "a", "files": {"f": "a.txt"}}, {}, "body"),
    ("http", {"url": "https://example.com", "files": {"f": {"filename": "a.txt"}}}, {}, "files"),
    ("postgres", {"command": SELECT}, {}, None),
    ("postgres", {"auth": "pg", "dsn": "postgresql://h/d", "command": SELECT}, {}, "dsn"),
    ("postgres", {"auth": "pg"}, {}, None),
    ("postgres", {"auth": "pg", "command": SELECT, "query": SELECT}, {}, "query"),
    ("postgres", {"auth": "pg", "rows": [{"a": 1}]}, {}, "rows"),
    ("postgres", {"auth": "pg", "into": "t", "command": SELECT}, {}, "into"),
    ("postgres", {"auth": "pg", "rows": [[1]], "into": "t", "command": SELECT}, {}, "into"),
    ("postgres", {"auth": "pg", "rows": [[1]], "into": "t", "params": [1]}, {}, "params"),
    ("postgres", {"auth": "pg", "command": SELECT}, {"fetch": "some"}, TYPE),
    ("postgres", {"auth": "pg", "command": SELECT}, {"pool": {"max": 0}}, TYPE),
    ("postgres", {"auth": "pg", "commands": []}, {}, TYPE),
    ("postgres", {"auth": "pg", "command": SELECT, "params": 1}, {}, TYPE),
    ("mysql", {"command": SELECT}, {}, None),
    ("mysql", {"auth": "my", "dsn": "mysql://h/d", "command": SELECT}, {}, "dsn"),
    ("mysql", {"auth": "my", "command": SELECT}, {"pool": {"min": 2, "max": 1}}, "pool"),
    ("snowflake", {"command": SELECT}, {}, None),
    ("snowflake", {"auth": "snow", "into": "t", "command": SELECT}, {}, "into"),
    ("snowflake", {"auth": "snow", "account": "a", "command": SELECT}, {}, TYPE),
    ("sqlite", {"database": "a.db"}, {}, None),
    ("sqlite", {"database": "a.db", "auth": "lite", "command": SELECT}, {}, "auth"),
    ("sqlite", {"dsn": "a.db", "command": SELECT}, {}, TYPE),
    ("duckdb", {"tables": {"t": []}}, {}, None),
    ("duckdb", {"query": SELECT, "tables": ["t"]}, {}, TYPE),
    ("python", {}, {}, None),
    ("python", {"code": "result = 1", "script": "a.py"}, {}, "script"),
    ("python", {"code": "result = 1"}, {"isolation": "inline", "timeout": 5}, "timeout"),
    ("python", {"code": "result = 1"}, {"isolation": "inline", "memory": "1GB"}, "memory"),
    ("python", {"code": "result ="}, {}, "code"),
    ("python", {"code": "result = 1"}, {"memory": "much"}, TYPE),
    ("python", {"code": "result = 1"}, {"isolation": "thread"}, TYPE),
    ("python", {"script": {"source": {"type": "file"}}}, {}, "script"),
    ("python", {"script": {"source": {"type": "inline"}}}, {}, "script"),
    ("python", {"script": {"source": {"type": "inline", "code": "("}}}, {}, "script"),
    ("python", {"script": {"uri": "a.py", "source": {"type": "ftp"}}}, {}, TYPE),
    ("python", {"code": "result = 1", "libs": {"np": "num py"}}, {}, "libs"),
    ("python", {"code": "result = 1", "libs": {"n-p": "numpy"}}, {}, "libs"),
    ("shell", {}, {}, TYPE),
    ("shell", {"command": []}, {}, TYPE),
    ("shell", {"command": " "}, {}, "command"),
    ("shell", {"command": "ls", "env": {"A=B": 1}}, {}, "env"),
    ("playbook", {}, {}, None),
    ("playbook", {"path": "a", "document": CHILD}, {}, "document"),
    ("playbook", {"document": CHILD, "version": 1}, {}, "version"),
    ("playbook", {"path": "a"}, {"on_failure": "ignore"}, TYPE),
    ("workbook", {"task": 1}, {}, TYPE),
    ("secrets", {"name": "a", "names": ["b"]}, {}, "names"),
    ("secrets", {"names": []}, {}, TYPE),
    ("artifact", {}, {}, TYPE),
    ("artifact", {"action": "move"}, {}, TYPE),
    ("artifact", {"action": "put", "key": "a"}, {}, None),
    ("artifact", {"action": "put", "content": 1, "ref": "r"}, {}, "ref"),
    ("artifact", {"action": "get"}, {}, None),
    ("artifact", {"action": "get", "key": "a", "ref": "r"}, {}, "ref"),
    ("artifact", {"action": "get", "key": "a", "content": 1}, {}, "content"),
    ("artifact", {"action": "put", "content": 1, "format": "xml"}, {}, TYPE),
    ("s3", {"action": "get"}, {}, TYPE),
    ("s3", {"action": "get", "url": "bucket/key"}, {}, "url"),
    ("s3", {"action": "put", "url": "s3://b/k"}, {}, None),
    ("s3", {"action": "put", "url": "s3://b/k", "content": 1, "source": "f"}, {}, "source"),
    ("s3", {"action": "copy", "url": "s3://b/k"}, {}, None),
    ("s3", {"action": "copy", "url": "s3://b/k", "to": "b/l"}, {}, "to"),
    ("s3", {"action": "list", "url": "s3://b", "content": "x"}, {}, "content"),
    ("file", {"action": "get", "url": "s3://b/k"}, {}, "url"),
    ("file", {"action": "get", "url": "a", "auth": "share"}, {}, "auth"),
    ("wait", {}, {}, None),
    ("wait", {"seconds": 1, "signal": "go"}, {}, "signal"),
    ("wait", {"seconds": -1}, {}, TYPE),
    ("wait", {"until": "tomorrow"}, {}, "until"),
    ("wait", {"signal": ""}, {}, TYPE),
    ("quantum", {"program": QASM}, {}, TYPE),
    ("quantum", {"action": "run"}, {}, None),
    ("quantum", {"action": "status"}, {}, None),
    ("quantum", {"action": "status", "job_id": "j", "program": QASM}, {}, "program"),
    ("quantum", {"action": "submit", "program": QASM, "job_id": "j"}, {}, "job_id"),
    ("quantum", {"action": "run", "program": QASM, "shots": 0}, {}, TYPE),
    ("quantum", {"action": "run", "program": QASM, "parameters": {"theta": "much"}}, {}, TYPE),
    ("quantum", {"action": "run", "program": QASM, "seed": -1}, {}, TYPE),
    ("quantum", {"action": "run", "program": QASM, "auth": "ibm"}, {}, "auth"),
    ("quantum", {"action": "run", "program": QASM, "auth": "ibm", "backend": "aer"}, {}, "auth"),
    ("quantum", {"action": "run", "program": "qubit q;"}, {}, "program"),
    ("quantum", {"action": "run", "program": "OPENQASM 1.0;"}, {}, "program"),
    ("quantum", {"action": "run", "program": QASM, "observables": ["ZQ"]}, {}, "observables"),
    ("quantum", {"action": "run", "program": QASM, "backend": "moon"}, {}, "backend"),
    ("quantum", {"action": "status", "job_id": "j", "memory": True}, {}, "memory"),
]

SPELT: list[tuple[str, str, Any, str]] = [
    ("http", "endpoint", "https://example.com", "url"),
    ("http", "payload", {"a": 1}, "json"),
    ("http", "payload", [1], "json"),
    ("http", "payload", "{{ ctx.order }}", "body"),
    ("http", "data", {"a": 1}, "json"),
    ("http", "data", "a=1", "body"),
    ("http", "credential", "api", "auth"),
    ("postgres", "credential", "pg", "auth"),
    ("mysql", "credential", "my", "auth"),
    ("snowflake", "credential", "snow", "auth"),
    ("sqlite", "credential", "lite", "auth"),
    ("duckdb", "credential", "pg", "auth"),
    ("s3", "credential", "aws", "auth"),
    ("file", "credential", "share", "auth"),
    ("file", "path", "a.txt", "url"),
    ("quantum", "credential", "ibm", "auth"),
    ("playbook", "payload", {"a": 1}, "args"),
]


def kind(name: str) -> Kind:
    registered = builtin_kinds().get(name)
    assert registered is not None
    return registered


def faults(name: str, inputs: Mapping[str, Any], spec: Mapping[str, Any]) -> list[Fault]:
    check = kind(name).check
    return list(check(inputs, spec)) if check else []


def _is_expression(value: Any) -> bool:
    return isinstance(value, str) and "{{" in value


@pytest.mark.spec("000 §2.4")
def test_the_public_kinds_are_built_in() -> None:
    public = {"http", "postgres", "duckdb", "python", "secrets", "playbook", "workbook", "noop", "quantum"}
    assert public <= set(builtin_kinds().names)
    assert set(INPUTS) == set(builtin_kinds().names)


@pytest.mark.parametrize("name", INPUTS)
def test_every_documented_input_and_knob_exists(name: str) -> None:
    fields = set(kind(name).inputs.__struct_encode_fields__)
    assert set(INPUTS[name].split()) <= fields
    assert set(KNOBS.get(name, "").split()) <= set(kind(name).spec.__struct_encode_fields__)


@pytest.mark.parametrize(("name", "inputs", "spec"), GOOD)
def test_a_good_task_is_accepted(name: str, inputs: dict[str, Any], spec: dict[str, Any]) -> None:
    if not any(map(_is_expression, inputs.values())):
        msgspec.convert(inputs, kind(name).inputs)
    msgspec.convert(spec, kind(name).spec)
    assert faults(name, inputs, spec) == []


@pytest.mark.parametrize(("name", "inputs", "spec", "key"), WRONG)
def test_a_wrong_task_is_refused(
    name: str, inputs: dict[str, Any], spec: dict[str, Any], key: str | None
) -> None:
    if key == TYPE:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(inputs, kind(name).inputs), msgspec.convert(spec, kind(name).spec)
        return
    msgspec.convert(inputs, kind(name).inputs)
    msgspec.convert(spec, kind(name).spec)
    assert [fault.key for fault in faults(name, inputs, spec)] == [key]


@pytest.mark.parametrize("name", [name for name in INPUTS if name != "workbook"])
def test_a_misspelt_input_or_knob_is_refused(name: str) -> None:
    good_inputs, good_spec = next((i, s) for n, i, s in GOOD if n == name)
    with pytest.raises(msgspec.ValidationError, match="unknown field `mispelt`"):
        msgspec.convert({**good_inputs, "mispelt": 1}, kind(name).inputs)
    with pytest.raises(msgspec.ValidationError, match="unknown field `mispelt`"):
        msgspec.convert({**good_spec, "mispelt": 1}, kind(name).spec)


@pytest.mark.parametrize(("name", "spelt", "value", "canonical"), SPELT)
def test_an_input_spelt_otherwise_is_known(name: str, spelt: str, value: Any, canonical: str) -> None:
    spelling = kind(name).spellings[spelt]
    assert (spelling if isinstance(spelling, str) else spelling(value)) == canonical


@pytest.mark.parametrize("builtin", BUILTIN, ids=lambda builtin: builtin.name)
def test_spellings_lead_to_inputs_and_never_hide_one(builtin: Kind) -> None:
    fields = {*builtin.inputs.__struct_encode_fields__, "args"}
    assert fields.isdisjoint(builtin.spellings)
    targets = {s if isinstance(s, str) else s({}) for s in builtin.spellings.values()}
    assert targets <= fields
    assert ("credential" in builtin.spellings) == ("auth" in fields)


def _undescribed(info: inspect.Type, path: str) -> Iterator[str]:
    """Paths of the fields below this type that have no description."""
    match info:
        case inspect.Metadata():
            yield from _undescribed(info.type, path)
        case inspect.UnionType():
            for option in info.types:
                yield from _undescribed(option, path)
        case inspect.ListType():
            yield from _undescribed(info.item_type, path)
        case inspect.DictType():
            yield from _undescribed(info.value_type, path)
        case inspect.StructType():
            for field in info.fields:
                below = f"{path}.{field.encode_name}"
                described = field.type.extra_json_schema if isinstance(field.type, inspect.Metadata) else None
                if not (described or {}).get("description", "").endswith("."):
                    yield below
                yield from _undescribed(field.type, below)


@pytest.mark.parametrize("builtin", BUILTIN, ids=lambda builtin: builtin.name)
def test_every_kind_and_every_field_is_described(builtin: Kind) -> None:
    assert builtin.summary.endswith(".")
    assert list(_undescribed(inspect.type_info(builtin.inputs), "inputs")) == []
    assert list(_undescribed(inspect.type_info(builtin.spec), "spec")) == []


@pytest.mark.parametrize("builtin", BUILTIN, ids=lambda builtin: builtin.name)
def test_defaults_are_knobs_of_the_kind(builtin: Kind) -> None:
    msgspec.convert(builtin.defaults, builtin.spec)


def test_only_noop_is_pure() -> None:
    assert [builtin.name for builtin in BUILTIN if builtin.effect == "pure"] == ["noop"]


def test_all_models_go_into_one_json_schema() -> None:
    models = [model for builtin in BUILTIN for model in (builtin.inputs, builtin.spec)]
    schemas, components = msgspec.json.schema_components(models)
    assert len(schemas) == len(models)
    assert not [name for name in components if "." in name]


words = st.text("ab./:={%} \n", max_size=6)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)


@given(data=st.data(), builtin=st.sampled_from(BUILTIN))
def test_a_check_survives_values_of_any_type(data: st.DataObject, builtin: Kind) -> None:
    names = (*builtin.inputs.__struct_encode_fields__, "other")
    inputs = data.draw(st.dictionaries(st.sampled_from(names), json_values))
    spec = data.draw(st.dictionaries(st.sampled_from(builtin.spec.__struct_encode_fields__), json_values))
    for fault in faults(builtin.name, inputs, spec):
        assert fault.message


@pytest.mark.parametrize(("name", "inputs", "spec"), GOOD)
def test_any_value_may_be_an_expression(name: str, inputs: dict[str, Any], spec: dict[str, Any]) -> None:
    literal = {"code", "document", "action"}  # what an action needs cannot be told without it
    later = {key: value if key in literal else "{{ ctx.value }}" for key, value in inputs.items()}
    assert faults(name, later, {}) == []
