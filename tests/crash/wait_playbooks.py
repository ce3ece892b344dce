"""Playbooks that wait: for a time, a signal, the next attempt."""

WAIT = """
workflow:
- step: start
  tool:
  - {name: pause, kind: wait, seconds: 0.03}
  - {name: a, kind: effect, label: a}
  next: {arcs: [{step: each}]}
- step: each
  loop: {in: [0.03, 0.01], iterator: s, spec: {mode: parallel}}
  tool:
  - {name: before, kind: effect, label: "before {{ iter.s }}"}
  - {name: pause, kind: wait, seconds: "{{ iter.s }}"}
  - {name: a, kind: effect, label: "after {{ iter.s }}"}
"""

SIGNAL = """
workflow:
- step: start
  tool:
  - {name: before, kind: effect, label: before}
  - {name: ready, kind: effect, label: ready}
  - {name: hold, kind: wait, signal: go}
  - {name: after, kind: effect, label: "after {{ _prev.by }}"}
"""

SIGNAL_GATE = """
workflow:
- step: start
  tool: {kind: effect, label: before}
  next: {arcs: [{step: gated}]}
- step: gated
  spec: {policy: {admit: {rules: [{when: "{{ ctx.signals.go }}", then: {allow: true}}]}}}
  tool: {kind: effect, label: "gated {{ ctx.signals.go.by }}"}
"""

SLOW_RETRY = """
workflow:
- step: start
  loop: {in: [1, 2], iterator: x, spec: {mode: parallel}}
  tool:
    kind: effect
    label: "slow {{ iter.x }}"
    fail: "{{ _attempt < 2 }}"
    spec:
      policy:
        rules:
        - when: "{{ outcome.status == 'error' }}"
          then: {do: retry, attempts: 3, delay: 0.05}
"""

DEADLINES = """
workflow:
- step: start
  spec: {timeout: 0.04}
  tool: {kind: wait, signal: never}
  next: {arcs: [{step: task, when: "{{ event.name == 'step.failed' }}", args: {why: "{{ event.error.kind }}"}}]}
- step: task
  tool:
  - {name: hold, kind: wait, signal: never, spec: {timeout: 0.02, policy: {rules: [{else: {then: {do: continue}}}]}}}
  - {name: after, kind: effect, label: "after {{ why }}"}
  next: {arcs: [{step: gate}]}
- step: gate
  spec:
    policy:
      admit: {on_deny: wait, timeout: 0.02, rules: [{when: "{{ ctx.signals.never }}", then: {allow: true}}]}
  tool: {kind: noop}
  next: {arcs: [{step: end, when: "{{ event.name == 'step.failed' }}", args: {why: "{{ event.error.kind }}"}}]}
- step: end
  tool: {kind: effect, label: "end {{ why }}"}
"""

PAUSED = """
workflow:
- step: start
  tool:
  - {name: a, kind: effect, label: a}
  - {name: hold, kind: wait, seconds: 0.01}
  - {name: b, kind: effect, label: b}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: effect, label: end}
"""
