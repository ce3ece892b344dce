"""A playbook that is written and read back is the same playbook, in every part."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.dsl.document.playbook_codec import PARTS, PLAYBOOK_FORMAT, decode_playbook, encode_playbook
from noetl.expr.expression import Expression
from noetl.expr.use import Use
from noetl.kernel.explain.explainer import explain
from noetl.kernel.plan import Plan
from tests.golden.golden_files import history
from tests.golden.golden_scenarios import RECORDED
from tests.playbooks import playbook_of

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    path for path in (ROOT / "examples").rglob("*.yaml") if "kind: Playbook" in path.read_text()
)
RECORDINGS = sorted(path.stem for path in RECORDED.glob("*.yaml"))

EVERYTHING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: all, path: docs/all, version: "2", description: d, tags: [a, b], labels: {team: x}}
keychain: [{name: token, kind: env, env: TOKEN}]
executor:
  spec: {timeout: "{{ workload.n }}", output: {a: "{{ ctx.a }}"}, max_step_runs: 9, final_step: last}
workload: {n: 1, list: [1, {a: "{{ workload.n }}"}], "@": 1}
workflow:
- step: start
  desc: the first
  spec:
    timeout: 4.5
    policy:
      admit: {on_deny: wait, timeout: 3, rules: [{when: "{{ ctx.a or args.b is defined }}", then: {allow: true}}, {else: {then: {allow: false}}}]}
      join: {count: 2}
  loop: {in: "{{ workload.list }}", iterator: item, spec: {mode: parallel, max_in_flight: "{{ workload.n }}", reduce: {total: sum}}}
  tool:
  - name: fetch
    kind: http
    url: "{{ workload.url | default('x') }}"
    args: {}
    spec:
      policy:
        rules:
        - when: "{{ outcome.status == 'error' and _attempt < 2 }}"
          then: {do: retry, attempts: "{{ workload.n }}", delay: 1.5, backoff: linear}
        - when: true
          then: {do: jump, to: fetch, set_ctx: {total: "{{ outcome.result | length }}"}}
        - else: {then: {do: fail, message: "because {{ outcome.error }}"}}
  - name: code
    kind: python
    code: result = 1
  next:
    spec: {mode: inclusive}
    arcs:
    - {step: end, when: "{{ event.name == 'loop.done' }}", args: {a: ["{{ ctx.a }}", 1], b: {c: null}}}
- step: end
  tool: {kind: noop}
- step: last
  tool: {kind: noop}
"""


def everything(value: object) -> Iterator[object]:
    """All parts with their types, in order, expressions with all that is known of them."""
    yield type(value)
    match value:
        case Expression():
            yield from (value.source, value.single, value.uses, value.assigned, value.path)
        case Struct():
            for name in value.__struct_fields__:
                yield name
                yield from everything(getattr(value, name))
        case dict():
            for key, item in value.items():
                yield key
                yield from everything(item)
        case tuple() | list():
            for item in value:
                yield from everything(item)
        case _:
            yield value


def check_same(playbook: Playbook) -> None:
    copy = decode_playbook(encode_playbook(playbook))
    assert list(everything(copy)) == list(everything(playbook))
    assert all(copy.steps[step.name] is step for step in copy.workflow)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_is_the_same_when_read_back(path: Path) -> None:
    check_same(playbook_of(path.read_text()))


def test_every_part_of_the_language_is_the_same_when_read_back() -> None:
    check_same(playbook_of(EVERYTHING))


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_history_is_explained_alike_with_the_playbook_that_is_read_back(name: str) -> None:
    golden = history(name)
    check_same(golden.plan.playbook)
    plan = Plan(decode_playbook(encode_playbook(golden.plan.playbook)))
    assert explain(plan, golden.execution_id, golden.events) == explain(
        golden.plan, golden.execution_id, golden.events
    )


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"document": 1}',
        b'{"document": 1, "workflow": ["Nothing", {}]}',
        b'{"document": {}, "workflow": []}',
    ],
)
def test_what_is_no_playbook_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="not a playbook"):
        decode_playbook(data)


def test_the_format_is_raised_when_the_parts_change() -> None:
    """If this fails: raise PLAYBOOK_FORMAT and write the new digest here."""
    assert (PLAYBOOK_FORMAT, digest()) == (1, "eef94441dd037558")


def default_text(value: object) -> str:
    return str(sorted(value) if isinstance(value, frozenset) else value)


def digest() -> str:
    parts: dict[str, type[Struct]] = {**PARTS, "Use": Use}
    fields: list[Any] = [
        [name, field.name, str(field.type), default_text(field.default)]
        for name, part in sorted(parts.items())
        for field in msgspec.structs.fields(part)
    ]
    return hashlib.sha256(msgspec.json.encode(fields)).hexdigest()[:16]
