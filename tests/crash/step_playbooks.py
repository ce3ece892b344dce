"""Playbooks that go from step to step: pipelines, loops, joins, admission, and how they end."""

CHAIN = """
workload: {n: 3}
workflow:
- step: start
  tool:
  - {name: a, kind: effect, label: a, give: "{{ workload.n }}", set: {ctx.first: "{{ outcome.result }}"}}
  - {name: b, kind: noop}
  - {name: c, kind: effect, label: "c {{ _prev }}", give: "{{ a + 1 }}"}
  next: {arcs: [{step: middle, args: {n: "{{ event.result }}"}}]}
- step: middle
  next: {arcs: [{step: last, args: {n: "{{ n * 2 }}"}}]}
- step: last
  tool: {kind: effect, label: "last {{ n }}", give: {n: "{{ n }}", ctx: "{{ ctx.first }}"}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop}
"""

PAGES = """
workflow:
- step: start
  tool:
  - name: page
    kind: effect
    label: "page {{ iter.page | default(0) }}"
    give: {n: "{{ iter.page | default(0) }}", more: "{{ iter.page | default(0) < 2 }}"}
    spec:
      policy:
        rules:
        - when: "{{ outcome.result.more }}"
          then: {do: continue, set_iter: {page: "{{ outcome.result.n + 1 }}"}, set_ctx: {seen: "{{ outcome.result.n }}"}}
        - else: {then: {do: break}}
  - name: keep
    kind: effect
    label: "keep {{ iter.page }}"
    spec: {policy: {rules: [{else: {then: {do: jump, to: page}}}]}}
  next: {arcs: [{step: poll}]}
- step: poll
  tool:
    kind: effect
    label: poll
    give: {ready: "{{ _attempt >= 3 }}"}
    spec:
      policy:
        rules:
        - when: "{{ not outcome.result.ready }}"
          then: {do: retry, attempts: 5}
"""

RETRY = """
workflow:
- step: start
  tool:
    kind: effect
    label: flaky
    fail: "{{ _attempt < 3 }}"
    spec:
      policy:
        rules:
        - when: "{{ outcome.status == 'error' }}"
          then: {do: retry, attempts: 4, delay: 0.01, backoff: exponential}
  next: {arcs: [{step: hopeless}]}
- step: hopeless
  tool:
    kind: effect
    label: hopeless
    fail: true
    spec:
      policy:
        rules:
        - when: "{{ outcome.status == 'error' }}"
          then: {do: retry, attempts: 3, delay: 0.002, backoff: linear, set_ctx: {tries: "{{ _attempt }}"}}
  next:
    arcs:
    - {step: fine, when: "{{ event.name == 'step.done' }}"}
    - {step: rescue, when: "{{ event.name == 'step.failed' }}", args: {n: "{{ event.error.attempts }}"}}
- step: fine
  tool: {kind: noop}
- step: rescue
  tool: {kind: effect, label: "rescue {{ n }}"}
"""

SEQUENTIAL = """
workload: {items: [3, 1, 2]}
workflow:
- step: start
  loop: {in: "{{ workload.items }}", iterator: x}
  tool:
  - {name: a, kind: effect, label: "a {{ iter.x }}", give: "{{ iter.x * 10 }}"}
  - name: b
    kind: effect
    label: "b {{ iter.x }} after {{ ctx.before | default('nothing') }}"
    give: "{{ a + 1 }}"
    spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {before: "{{ iter.x }}"}}}}]}}
  next: {arcs: [{step: end, args: {all: "{{ event.result }}"}}]}
- step: end
  tool: {kind: effect, label: "end {{ all }}"}
"""

PARALLEL = """
workflow:
- step: start
  loop:
    in: "{{ range(7) | list }}"
    iterator: x
    spec: {mode: parallel, max_in_flight: 3, reduce: {total: sum, names: append}}
  tool:
  - {name: a, kind: effect, label: "a {{ iter.x }}", give: "{{ iter.x * iter.x }}", turns: "{{ (iter.x * 5) % 7 }}"}
  - name: b
    kind: effect
    label: "b {{ iter.x }}"
    turns: "{{ iter.x % 3 }}"
    spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {total: "{{ a }}", names: "{{ iter.x }}"}}}}]}}
  next: {arcs: [{step: end, when: "{{ event.name == 'loop.done' }}"}]}
- step: end
  tool: {kind: effect, label: "total {{ ctx.total }}", give: "{{ ctx.names }}"}
"""

BEST_EFFORT = """
workflow:
- step: start
  loop:
    in: [a, b, c, d]
    iterator: x
    spec: {mode: parallel, max_in_flight: 2, policy: {failure: {mode: best_effort}}}
  tool: {kind: effect, label: "{{ iter.x }}", fail: "{{ iter.x in ['b', 'd'] }}", turns: "{{ iter.index }}"}
  next: {arcs: [{step: quick, args: {failed: "{{ event.loop.failed }}"}}]}
- step: quick
  loop: {in: [1, 2, 3], iterator: x}
  tool: {kind: effect, label: "quick {{ iter.x }}", fail: "{{ iter.x == 2 }}"}
  next:
    arcs:
    - {step: rescue, when: "{{ event.name == 'step.failed' }}", args: {why: "{{ event.error.kind }}"}}
- step: rescue
  tool: {kind: effect, label: "rescue {{ why }}"}
"""

JOINS = """
workflow:
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: a}, {step: b}, {step: c}]}
- step: a
  tool: {kind: effect, label: a, turns: 3}
  next: {spec: {mode: inclusive}, arcs: [{step: all, args: {a: 1}}, {step: first, args: {by: x}}, {step: two}]}
- step: b
  tool: {kind: effect, label: b, turns: 1}
  next: {spec: {mode: inclusive}, arcs: [{step: all, args: {b: 2}}, {step: first, args: {by: x}}, {step: two}]}
- step: c
  tool: {kind: effect, label: c}
  next: {spec: {mode: inclusive}, arcs: [{step: all, args: {c: 3}}, {step: first, args: {by: x}}, {step: two}]}
- step: all
  spec: {policy: {join: all}}
  tool: {kind: effect, label: "all {{ a + b + c }} of {{ joined | length }}"}
- step: first
  spec: {policy: {join: any}}
  tool: {kind: effect, label: "any {{ by }}"}
- step: two
  spec: {policy: {join: {count: 2}}}
  tool: {kind: effect, label: "two"}
"""

ADMISSION = """
workflow:
- step: start
  next: {spec: {mode: inclusive}, arcs: [{step: gated}, {step: opener}, {step: never}]}
- step: opener
  tool: {kind: effect, label: opener, set: {ctx.open: true}}
  next: {arcs: [{step: late}]}
- step: gated
  spec: {policy: {admit: {rules: [{when: "{{ ctx.open }}", then: {allow: true}}]}}}
  tool: {kind: effect, label: gated}
- step: never
  spec: {policy: {admit: {rules: [{when: "{{ ctx.shut }}", then: {allow: true}}]}}}
  tool: {kind: effect, label: never}
- step: late
  tool:
  - {name: first, kind: effect, label: nearly late}
  - {name: then, kind: effect, label: late}
"""

FINAL = """
executor: {kind: local, spec: {final_step: tidy, output: "{{ ctx.made }}"}}
workflow:
- step: start
  tool: {kind: effect, label: make, give: 7, set: {ctx.made: "{{ outcome.result }}"}}
  next: {arcs: [{step: fails}]}
- step: fails
  tool: {kind: effect, label: fails, fail: true}
- step: tidy
  tool:
  - {name: a, kind: effect, label: "tidy {{ status }}"}
  - {name: b, kind: effect, label: "tidied {{ error.kind }}"}
"""

MENDED = """
workflow:
- step: start
  tool: {kind: effect, label: start}
  next: {spec: {mode: inclusive}, arcs: [{step: sound}, {step: broken}, {step: looped}]}
- step: sound
  tool: {kind: effect, label: sound}
- step: broken
  tool:
  - {name: a, kind: effect, label: a}
  - {name: b, kind: effect, label: b, unless: mended}
  - {name: c, kind: effect, label: c}
- step: looped
  loop: {in: [effects.jsonl, mended], iterator: file, spec: {mode: parallel}}
  tool: {kind: effect, label: "loop {{ iter.index }}", unless: "{{ iter.file }}"}
"""
"""Of the loop only the last iteration fails: whether one begins after a failure depends on the machine."""

PYTHON = """
workflow:
- step: start
  loop: {in: [1, 2], iterator: x, spec: {mode: parallel}}
  tool:
    kind: python
    args: {label: "python {{ iter.x }}"}
    code: |
      import json, os
      file = os.open("effects.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
      os.write(file, json.dumps({"label": label}).encode() + b"\\n")
      os.fsync(file)
      result = label
  next: {arcs: [{step: end, args: {all: "{{ event.result }}"}}]}
- step: end
  tool:
  - {name: first, kind: effect, label: nearly}
  - {name: then, kind: effect, label: "{{ all | join(' ') }}"}
"""

CONTAINED = """
workflow:
- step: start
  tool:
  - {name: a, kind: python, code: "result = sorted([3, 1])"}
  - {name: b, kind: effect, label: b, give: "{{ a | length }}"}
  - {name: c, kind: python, args: {n: "{{ b }}"}, code: "result = n + 1"}
  - {name: d, kind: python, args: {n: "{{ c }}"}, code: "result = n + 1"}
  next: {arcs: [{step: end, args: {n: "{{ event.result }}"}}]}
- step: end
  tool: {kind: effect, label: "end {{ n }}"}
"""

LONG = """
workflow:
- step: start
  loop: {in: "{{ range(40) | list }}", iterator: x, spec: {mode: parallel, max_in_flight: 4, reduce: {total: sum}}}
  tool:
  - {name: a, kind: effect, label: "a {{ iter.x }}", turns: "{{ iter.x % 5 }}"}
  - {name: pause, kind: wait, seconds: 0.001}
  - name: b
    kind: effect
    label: "b {{ iter.x }}"
    spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {total: "{{ iter.x }}"}}}}]}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: effect, label: "total {{ ctx.total }}"}
"""
