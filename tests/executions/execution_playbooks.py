"""Playbooks that end, fail and wait."""

from tests.kernel.driver import error

GREET = """\
- step: start
  tool:
    - {name: say, kind: python, code: "result = 1"}
  next:
    arcs:
      - {step: finish, when: "{{ event.result.a == 1 }}"}
      - {step: start, when: "{{ event.result.a == 2 }}"}
- step: finish
  tool:
    - {name: end, kind: python, code: "result = 1"}
"""
GREETED = {"say": {"a": 1}, "end": "bye"}
BREAK = """\
- step: start
  tool:
    - {name: say, kind: python, code: "result = 1"}
"""
BROKEN = {"say": error(message="it broke\nbadly")}
HOLD = """\
- step: start
  tool:
    - {name: hold, kind: wait, signal: go}
"""
GATES = """\
- step: start
  tool: {kind: noop}
  next:
    spec: {mode: inclusive}
    arcs: [{step: hold}, {step: gate}, {step: gone}, {step: meet}]
- step: hold
  tool:
    - {name: hold, kind: wait, signal: go}
  next: {arcs: [{step: meet}]}
- step: gate
  spec: {policy: {admit: {rules: [{when: "{{ ctx.ok }}", then: {allow: true}}], on_deny: wait}}}
  tool: {kind: noop}
- step: gone
  spec: {policy: {admit: {rules: [{when: "{{ ctx.ok }}", then: {allow: true}}], on_deny: drop}}}
  tool: {kind: noop}
- step: meet
  spec: {policy: {join: all}}
  tool: {kind: noop}
"""
MEET = """\
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}]}
- step: a
  tool: [{name: ta, kind: python, code: "result = 1"}]
  next: {spec: {mode: inclusive}, arcs: [{step: meet}, {step: after}]}
- step: b
  tool: [{name: tb, kind: noop, args: {n: 2}}]
  next: {arcs: [{step: meet}]}
- step: after
  tool: {kind: noop}
- step: meet
  spec: {policy: {join: all}}
  tool: [{name: sum, kind: noop, args: {n: "{{ joined | length }}"}}]
"""
