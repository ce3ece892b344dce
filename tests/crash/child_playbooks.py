"""Playbooks that call others, and those they call."""

CHILDREN = """
workflow:
- step: start
  tool:
    kind: playbook
    args: {n: 3}
    document:
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: inline, path: inline}
      workload: {n: 0}
      workflow:
      - step: start
        tool:
        - {name: one, kind: effect, label: "inline {{ workload.n }}", give: "{{ workload.n + 1 }}"}
        - {name: two, kind: effect, label: "inline again", give: "{{ one }}"}
  next: {arcs: [{step: named, args: {n: "{{ event.result }}"}}]}
- step: named
  tool:
    kind: playbook
    path: named
    args: {n: "{{ n }}"}
  next: {arcs: [{step: end, args: {n: "{{ event.result }}"}}]}
- step: end
  tool: {kind: effect, label: "end {{ n }}", give: "{{ n }}"}
"""

NAMED = """
workload: {n: 0}
workflow:
- step: start
  tool: {kind: effect, label: "named {{ workload.n }}"}
  next: {arcs: [{step: deeper}]}
- step: deeper
  tool: {kind: playbook, path: leaf, args: {n: "{{ workload.n * 2 }}"}}
"""

LEAF = """
workload: {n: 0}
workflow:
- step: start
  tool: {kind: effect, label: "leaf {{ workload.n }}", give: "{{ workload.n }}", fail: "{{ workload.n == 13 }}"}
"""

CHILD = """
workload: {n: 3}
workflow:
- step: start
  tool:
  - {name: child, kind: playbook, path: leaf, args: {n: "{{ workload.n }}"}}
  - {name: after, kind: effect, label: "after {{ child }} {{ ctx.first | default('first') }}"}
"""

CHILD_LOOP = """
workflow:
- step: start
  loop: {in: [11, 12, 13, 14], iterator: x, spec: {mode: parallel, max_in_flight: 2, policy: {failure: {mode: best_effort}}}}
  tool:
  - {name: child, kind: playbook, path: leaf, args: {n: "{{ iter.x }}"}}
  - {name: after, kind: effect, label: "after {{ child }}", give: "{{ child }}"}
"""

MENDED_CHILD = """
workflow:
- step: start
  tool:
  - {name: before, kind: effect, label: before}
  - {name: child, kind: playbook, path: mending}
  - {name: after, kind: effect, label: "after {{ child }}"}
"""
"""Its child fails, and the child of that."""

MENDING = """
workflow:
- step: start
  tool: {kind: effect, label: charge}
  next: {arcs: [{step: deeper, when: "{{ event.name == 'step.done' }}"}]}
- step: deeper
  tool:
    name: call
    kind: playbook
    document:
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: lowest, path: lowest}
      workflow:
      - step: start
        tool:
        - {name: a, kind: effect, label: reserve}
        - {name: b, kind: effect, label: book, unless: mended}
"""

DETACHED = """
workflow:
- step: start
  tool:
  - {name: off, kind: playbook, path: named, args: {n: 4}, spec: {wait: false}}
  - {name: refused, kind: playbook, path: "{{ 'no' ~ 'where' }}", spec: {wait: false}}
  - {name: on, kind: effect, label: on}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: effect, label: end}
"""

CANCELLED = """
workflow:
- step: start
  tool:
    kind: playbook
    document:
      apiVersion: noetl.io/v2
      kind: Playbook
      metadata: {name: held, path: held}
      workflow:
      - step: start
        tool: [{kind: effect, label: held}, {kind: wait, signal: never}]
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: effect, label: end}
"""
