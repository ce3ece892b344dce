"""Playbooks whose values leave the log: as results of their own, as objects, through children and forks."""

STORED = """
executor: {kind: local, spec: {result: {inline_max_bytes: 40, preview_max_bytes: 8}}}
workflow:
- step: start
  tool:
  - {name: a, kind: effect, label: a, give: "{{ 'long ' * 20 }}", set: {ctx.text: "{{ outcome.result }}"}}
  - {name: b, kind: effect, label: "b {{ a | length }}", object: "{{ a }}"}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: effect, label: "end {{ ctx.text | length }}", give: "{{ [ctx.text, ctx.text] }}"}
"""

STORED_CHILD = """
executor: {kind: local, spec: {result: {inline_max_bytes: 40, preview_max_bytes: 8}}}
workflow:
- step: start
  loop: {in: [1, 2, 3], iterator: x, spec: {mode: parallel}}
  tool: {kind: effect, label: "a {{ iter.x }}", give: "{{ ('%d ' | format(iter.x)) * 40 }}"}
  next: {arcs: [{step: child, args: {texts: "{{ event.result }}"}}]}
- step: child
  tool:
  - {name: call, kind: playbook, path: echo, args: {text: "{{ texts | join('') }}"}}
  - {name: after, kind: effect, label: "after {{ call | length }}", give: "{{ call }}"}
"""

ECHO = """
executor: {kind: local, spec: {result: {inline_max_bytes: 40, preview_max_bytes: 8}}}
workload: {text: ""}
workflow:
- step: start
  tool: {kind: effect, label: "echo {{ workload.text | length }}", give: "{{ workload.text }}"}
"""

LARGE = """
workflow:
- step: start
  loop: {in: "{{ range(12) | list }}", iterator: x, spec: {mode: parallel, max_in_flight: 4}}
  tool:
  - {name: a, kind: effect, label: "a {{ iter.x }}", give: "{{ ('%d ' | format(iter.x)) * 40000 }}", turns: "{{ iter.x % 3 }}"}
  - {name: b, kind: effect, label: "b {{ iter.x }} {{ a | length }}", object: "{{ a }}"}
  next: {arcs: [{step: end, args: {all: "{{ event.result }}"}}]}
- step: end
  tool: {kind: effect, label: "end {{ all | length }}"}
"""
