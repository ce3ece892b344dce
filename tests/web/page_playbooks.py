"""Playbooks whose executions the tests of their page look at."""

ORDERS = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: orders, path: page/orders}
keychain:
- {name: desk, kind: static, value: page-secret-4711}
workload: {count: 3, limit: 10, broken: false}
workflow:
- step: start
  loop: {in: "{{ range(workload.count) | list }}", iterator: order, spec: {mode: parallel, max_in_flight: 2}}
  tool:
    name: price
    kind: python
    args: {order: "{{ iter.order }}", token: "{{ keychain.desk.value }}"}
    code: |
      def main(order, token):
          print("priced order", order, token)
          return {"order": order, "token": token}
  next:
    arcs:
    - {step: big, when: "{{ event.name == 'loop.done' and event.loop.total >= workload.limit }}"}
    - {step: report, when: "{{ event.name == 'loop.done' }}"}
- step: big
  tool: {kind: noop, args: {}}
- step: report
  tool:
    name: total
    kind: python
    args: {broken: "{{ workload.broken }}", count: "{{ workload.count }}"}
    code: |
      def main(broken, count):
          if broken:
              raise ValueError("no total for the orders")
          return {"total": count * 10}
    spec:
      policy:
        rules:
        - {when: "{{ outcome.status == 'error' }}", then: {do: retry, attempts: 2, delay: 0.01}}
        - {else: {then: {do: continue}}}
    set: {ctx.total: "{{ outcome.result.total }}"}
"""
SAVING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: saving, path: page/saving}
workload: {broken: true}
workflow:
- step: start
  tool: {kind: noop, args: {}}
  next: {arcs: [{step: save}]}
- step: save
  tool: {name: copy, kind: shell, command: "exit {{ 3 if workload.broken else 0 }}"}
"""
GATED = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: gated, path: page/gated}
workflow:
- step: start
  tool: {kind: wait, signal: go}
  next: {arcs: [{step: middle}]}
- step: middle
  tool: {name: log, kind: python, code: "def main():\\n    print('in the middle')"}
  next: {arcs: [{step: last}]}
- step: last
  tool: {kind: wait, signal: end}
"""
PARENT = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parent, path: page/parent}
workflow:
- step: start
  tool: {name: order, kind: playbook, path: page/orders, args: {count: 2}}
  next: {arcs: [{step: rows}]}
- step: rows
  tool:
    name: list
    kind: python
    code: |
      def main():
          for number in range(300):
              print("line", number)
          return [{"number": number, "text": "x" * 90} for number in range(20_000)]
  next: {arcs: [{step: talk}]}
- step: talk
  tool: {kind: wait, signal: go}
  next: {arcs: [{step: more}]}
- step: more
  tool: {name: say, kind: python, code: "def main():\\n    print('the last line')"}
"""
MANY = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: many, path: page/many}
workflow:
- step: start
  loop: {in: "{{ range(2500) | list }}", iterator: n, spec: {mode: parallel, max_in_flight: 50}}
  tool: {name: add, kind: noop, args: {n: "{{ iter.n }}"}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, args: {}}
"""
LARGEST = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: largest, path: page/largest}
workflow:
- step: start
  tool:
    name: rows
    kind: python
    code: "def main():\\n    return [{'number': n, 'text': 'x' * 1000} for n in range(60_000)]"
"""
PARTS = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: parts, path: page/parts}
workflow:
- step: start
  spec: {result: {inline_max_bytes: 100}}
  loop: {in: "{{ range(250) | list }}", iterator: n}
  tool: {name: add, kind: noop, args: {n: "{{ iter.n }}", text: "row {{ iter.n }} of those that are stored in parts"}}
  set: {ctx.all: "{{ event.result }}"}
"""


def thousand_steps() -> str:
    """Twenty chains of fifty steps from one beginning."""
    lines = [
        "apiVersion: noetl.io/v2",
        "kind: Playbook",
        "metadata: {name: thousand, path: page/thousand}",
        "workflow:",
        "- step: start",
        "  tool: {kind: noop, args: {}}",
        "  next:",
        "    spec: {mode: inclusive}",
        "    arcs:",
        *(f"    - step: chain_{chain:02}_00" for chain in range(20)),
    ]
    for chain in range(20):
        for link in range(50):
            arc = f"  next: {{arcs: [{{step: chain_{chain:02}_{link + 1:02}}}]}}" if link < 49 else ""
            lines += [f"- step: chain_{chain:02}_{link:02}", "  tool: {kind: noop, args: {}}", arc]
    return "\n".join(line for line in lines if line) + "\n"
