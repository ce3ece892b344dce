"""The JSON Schema accepts what the reader accepts and rejects the same wrong shapes."""

from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from msgspec import Struct

from noetl.dsl.document.composer import compose
from noetl.dsl.document.kinds import Kind, Kinds
from noetl.dsl.document.schema import document_schema
from noetl.dsl.document.source import Mapping, node_value
from noetl.dsl.reader.playbook_reader import read_playbook
from noetl.tools.kind_registry import builtin_kinds

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
CANONICAL = sorted(
    {*EXAMPLES.rglob("*.yaml")} - {*EXAMPLES.glob("in_use/*.yaml")} | {*EXAMPLES.rglob("*_canonical.yaml")}
)
HEADER = "apiVersion: noetl.io/v2\nkind: Playbook\nmetadata: { name: n, path: p }\n"

SCHEMA = document_schema(builtin_kinds())
VALIDATOR = Draft202012Validator(SCHEMA)


def root_of(text: str) -> Mapping:
    root = compose(text)
    assert isinstance(root, Mapping)
    return root


def reader_errors(text: str) -> list[str]:
    reads = read_playbook(root_of(text), "file", text, builtin_kinds())
    problems = [problem for read in reads for problem in read.context.problems]
    return [problem.code for problem in problems if problem.severity == "error"]


def schema_errors(text: str) -> list[str]:
    return [error.message for error in VALIDATOR.iter_errors(node_value(root_of(text)))]


def step(body: str) -> str:
    indented = "\n".join("    " + line for line in body.strip().split("\n"))
    return f"{HEADER}workflow:\n  - step: start\n{indented}\n"


def test_the_schema_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_every_key_has_a_description_for_editors() -> None:
    kinds = {name for name in SCHEMA["$defs"] if name.endswith(" task")}
    assert kinds == {f"{kind.name} task" for kind in builtin_kinds()}
    for name in kinds:
        for key, schema in SCHEMA["$defs"][name]["properties"].items():
            assert "description" in schema or key in ("payload", "data"), (name, key)


@pytest.mark.parametrize("path", CANONICAL, ids=lambda path: path.stem)
def test_every_example_is_valid(path: Path) -> None:
    assert schema_errors(path.read_text("utf-8")) == []


GOOD = {
    "named task": "tool: [{ name: a, kind: noop }]",
    "labelled task": "tool: [{ a: { kind: noop } }]",
    "unnamed task": "tool: [{ kind: noop }]",
    "one task": "tool: { kind: noop }",
    "empty keys": "desc:\ntool: { kind: noop, args: , spec: }\nnext:",
    "expression for a number": 'tool: { kind: http, url: "{{ workload.u }}", spec: { timeout: "{{ workload.t }}" } }',
    "timeout in parts": "tool: { kind: http, url: 'http://h', spec: { timeout: { connect: 1, read: 2 } } }",
    "another spelling": "tool: { kind: http, endpoint: 'http://h', payload: { a: 1 } }",
    "else under": "tool: { kind: noop, spec: { policy: { rules: [{ else: { do: continue } }] } } }",
    "else then": "tool: { kind: noop, spec: { policy: { rules: [{ else: { then: { do: continue } } }] } } }",
    "else beside": "tool: { kind: noop, spec: { policy: { rules: [{ else: , then: { do: continue } }] } } }",
    "when true": "tool: { kind: noop }\nnext: { arcs: [{ step: start, when: true }] }",
    "inherited knob": "spec: { task_timeout: 5, policy: { join: { count: 2 } } }\ntool: { kind: noop }",
    "loop": (
        "loop: { in: [1, 2], iterator: x, spec: { mode: parallel, max_in_flight: '{{ workload.n }}' } }\n"
        "tool: { kind: noop }"
    ),
    "admission": (
        "spec: { policy: { admit: { rules: [{ when: '{{ ctx.x }}', then: { allow: true } },"
        " { else: { allow: false } }], on_deny: drop } } }\ntool: { kind: noop }"
    ),
    "set": "tool: { kind: noop, set: { ctx.a: 1 } }\nset: { ctx.b: 2 }\nnext: { arcs: [{ step: start, set: { c: 3 } }] }",
    "inline document": (
        "tool: { kind: playbook, document: { apiVersion: noetl.io/v2, kind: Playbook,"
        " metadata: { name: c, path: c }, workflow: [{ step: s, tool: { kind: noop } }] } }"
    ),
}


@pytest.mark.parametrize("name", GOOD)
def test_what_the_reader_accepts_the_schema_accepts(name: str) -> None:
    text = step(GOOD[name])
    assert reader_errors(text) == []
    assert schema_errors(text) == []


BAD = {
    "unknown kind": "tool: { kind: htpp, url: 'http://h' }",
    "unknown input": "tool: { kind: http, url: 'http://h', methd: GET }",
    "missing input": "tool: { kind: http, method: GET }",
    "wrong knob": "tool: { kind: http, url: 'http://h', spec: { timeout: fast } }",
    "unknown knob": "tool: { kind: http, url: 'http://h', spec: { tmeout: 1 } }",
    "wrong method": "tool: { kind: http, url: 'http://h', method: FETCH }",
    "no kind": "tool: [{ name: a, url: 'http://h' }]",
    "empty pipeline": "tool: []",
    "text for a pipeline": "tool: noop",
    "list for next": "tool: { kind: noop }\nnext: [{ step: start }]",
    "arc without step": "tool: { kind: noop }\nnext: { arcs: [{ when: true }] }",
    "unknown arc key": "tool: { kind: noop }\nnext: { arcs: [{ step: start, if: true }] }",
    "router mode": "tool: { kind: noop }\nnext: { spec: { mode: both }, arcs: [] }",
    "guard without braces": "tool: { kind: noop }\nnext: { arcs: [{ step: start, when: ctx.n == 1 }] }",
    "step when": "when: true\ntool: { kind: noop }",
    "next_mode": "spec: { next_mode: inclusive }\ntool: { kind: noop }",
    "eval": "tool: { kind: noop, eval: [] }",
    "policy list": "tool: { kind: noop, spec: { policy: [] } }",
    "policy without rules": "tool: { kind: noop, spec: { policy: {} } }",
    "rule without then": "tool: { kind: noop, spec: { policy: { rules: [{ when: true }] } } }",
    "rule with expr": "tool: { kind: noop, spec: { policy: { rules: [{ expr: '{{ 1 }}', then: { do: fail } }] } } }",
    "unknown directive": "tool: { kind: noop, spec: { policy: { rules: [{ else: { do: stop } }] } } }",
    "no directive": "tool: { kind: noop, spec: { policy: { rules: [{ else: { set_ctx: { a: 1 } } }] } } }",
    "attempts of zero": "tool: { kind: noop, spec: { policy: { rules: [{ else: { do: retry, attempts: 0 } }] } } }",
    "loop without in": "loop: { iterator: x }\ntool: { kind: noop }",
    "loop without iterator": "loop: { in: [1] }\ntool: { kind: noop }",
    "loop mode": "loop: { in: [1], iterator: x, spec: { mode: fast } }\ntool: { kind: noop }",
    "reducer": "loop: { in: [1], iterator: x, spec: { reduce: { a: avg } } }\ntool: { kind: noop }",
    "bad iterator": "loop: { in: [1], iterator: 1x }\ntool: { kind: noop }",
    "reserved label": "tool: [{ ctx: { kind: noop } }]",
    "bad join": "spec: { policy: { join: some } }\ntool: { kind: noop }",
    "admission verdict": "spec: { policy: { admit: { rules: [{ else: { do: continue } }] } } }\ntool: { kind: noop }",
}


@pytest.mark.parametrize("name", BAD)
def test_what_the_reader_rejects_the_schema_rejects(name: str) -> None:
    text = step(BAD[name])
    assert reader_errors(text)
    assert schema_errors(text)


BAD_ROOTS = {
    "api version": HEADER.replace("v2", "v3") + "workflow: [{ step: s, next: { arcs: [] } }]",
    "kind": HEADER.replace("Playbook", "Workflow") + "workflow: [{ step: s, next: { arcs: [] } }]",
    "metadata": HEADER.replace(", path: p", "") + "workflow: [{ step: s, next: { arcs: [] } }]",
    "no workflow": HEADER,
    "empty workflow": HEADER + "workflow: []",
    "vars": HEADER + "vars: {}\nworkflow: [{ step: s, next: { arcs: [] } }]",
    "unknown section": HEADER + "steps: []\nworkflow: [{ step: s, next: { arcs: [] } }]",
    "executor": HEADER + "executor: { kind: remote }\nworkflow: [{ step: s, next: { arcs: [] } }]",
    "keychain": HEADER + "keychain: [{ name: k }]\nworkflow: [{ step: s, next: { arcs: [] } }]",
    "keychain kind": HEADER
    + "keychain: [{ name: k, kind: enviroment }]\nworkflow: [{ step: s, next: { arcs: [] } }]",
    "keychain field": HEADER
    + "keychain: [{ name: k, kind: env, evn: A }]\nworkflow: [{ step: s, next: { arcs: [] } }]",
    "workload": HEADER + "workload: [1]\nworkflow: [{ step: s, next: { arcs: [] } }]",
    "workbook": HEADER + "workbook: { task: {} }\nworkflow: [{ step: s, next: { arcs: [] } }]",
    "empty step": HEADER + "workflow: [{ step: s }]",
    "step name": HEADER + "workflow: [{ step: 1st, tool: { kind: noop } }]",
}


@pytest.mark.parametrize("name", BAD_ROOTS)
def test_wrong_roots_are_rejected_by_both(name: str) -> None:
    assert reader_errors(BAD_ROOTS[name])
    assert schema_errors(BAD_ROOTS[name])


class Upload(Struct, forbid_unknown_fields=True):
    """A Struct of a package of others, called like one of ours."""

    target: str


class ParcelInputs(Struct, forbid_unknown_fields=True):
    parcel: Upload


def test_structs_of_one_name_do_not_meet() -> None:
    kinds = Kinds([*builtin_kinds(), Kind(name="parcel", summary="Sends a parcel.", inputs=ParcelInputs)])
    validator = Draft202012Validator(document_schema(kinds))
    ours = step("tool: { kind: http, url: 'http://h', files: { a: { path: b } } }")
    theirs = step("tool: { kind: parcel, parcel: { target: Rome } }")
    wrong = step("tool: { kind: parcel, parcel: { path: Rome } }")
    assert [validator.is_valid(node_value(root_of(text))) for text in (ours, theirs, wrong)] == [
        True,
        True,
        False,
    ]
