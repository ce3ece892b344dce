"""Playbooks with every part of the language in them, and all that one is made of."""

from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from noetl.expr.expression import Expression

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted(
    path for path in (ROOT / "examples").rglob("*.yaml") if "kind: Playbook" in path.read_text()
)

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
