"""Steps of 003 and their canonical form."""

import pytest

from tests.dialects.dialect_upgrade import case, draft_step, yaml_values

STEPS = [
    case(
        "003 §3.4",
        "what an iteration reads and writes stays as it is",
        """
        - step: a
          loop: { in: "{{ workload.items }}", iterator: item }
          tool:
            - x:
                kind: noop
                args: { value: "{{ iter.item }}", at: "{{ iter.index }}" }
                eval: [{ else: { do: continue, set_iter: { page: "{{ iter.page + 1 }}" } } }]
        """,
        """
        step: a
        loop: { in: "{{ workload.items }}", iterator: item }
        tool:
          - name: x
            kind: noop
            args: { value: "{{ iter.item }}", at: "{{ iter.index }}" }
            spec:
              policy:
                rules:
                  - else:
                      then: { do: continue, set_iter: { page: "{{ iter.page + 1 }}" } }
        """,
    ),
    case(
        "003 §8.3",
        "the args of an arc stay as they are",
        """
        - step: a
          next: [{ step: a, args: { n: 1, m: "{{ event.result }}" } }]
        """,
        """
        step: a
        next: { spec: { mode: exclusive }, arcs: [{ step: a, args: { n: 1, m: "{{ event.result }}" } }] }
        """,
    ),
    case(
        "003 §4.1",
        "a step without the draft's own constructs stays as it is",
        """
        - step: a
          desc: First
          tool:
            - name: x
              kind: noop
        """,
        """
        step: a
        desc: First
        tool: [{ name: x, kind: noop }]
        """,
    ),
    case(
        "003 §2.2",
        "a guard on a step is its admission, and denied tokens are parked",
        """
        - step: a
          when: "{{ ctx.ready }}"
          tool: [{ x: { kind: noop } }]
        """,
        """
        step: a
        spec:
          policy:
            admit:
              rules:
                - when: "{{ ctx.ready }}"
                  then: { allow: true }
                - else:
                    then: { allow: false }
              on_deny: park
        tool: [{ name: x, kind: noop }]
        """,
    ),
    case(
        "003 §4.3",
        "a guard that is always true needs no admission",
        """
        - step: a
          when: "{{ true }}"
          tool: [{ x: { kind: noop } }]
        """,
        "{ step: a, tool: [{ name: x, kind: noop }] }",
    ),
    case(
        "003 §4.3",
        "a guard of false denies",
        """
        - step: a
          when: false
          spec: { timeout: 9 }
          tool: [{ x: { kind: noop } }]
        """,
        """
        step: a
        spec:
          timeout: 9
          policy:
            admit:
              rules: [{ when: false, then: { allow: true } }, { else: { then: { allow: false } } }]
              on_deny: park
        tool: [{ name: x, kind: noop }]
        """,
    ),
    case(
        "003 §4.1",
        "timeout and lease of a step stay in its spec",
        """
        - step: a
          spec: { timeout: 300, lease: { mode: single_owner, ttl: 30, heartbeat: 5 } }
          tool: [{ x: { kind: noop } }]
        """,
        """
        step: a
        spec: { timeout: 300, lease: { mode: single_owner, ttl: 30, heartbeat: 5 } }
        tool: [{ name: x, kind: noop }]
        """,
    ),
    case(
        "003 §4.2",
        "a list under next is a router, exclusive by default",
        """
        - step: a
          next:
            - step: b
              when: "{{ event.name == 'step.done' }}"
              args: { n: 1 }
            - step: c
        """,
        """
        step: a
        next:
          spec: { mode: exclusive }
          arcs:
            - step: b
              when: "{{ event.name == 'step.done' }}"
              args: { n: 1 }
            - step: c
        """,
    ),
    case(
        "003 §4.2",
        "next_mode is the router's mode",
        """
        - step: a
          spec: { next_mode: inclusive }
          next: [{ step: b }]
        """,
        """
        step: a
        next: { spec: { mode: inclusive }, arcs: [{ step: b }] }
        """,
    ),
    case(
        "003 §8.2",
        "arcs read step variables from run",
        """
        - step: a
          next:
            - step: b
              when: "{{ vars.n > 1 and event.status == 'success' }}"
              args: { n: "{{ vars.n }}" }
        """,
        """
        step: a
        next:
          spec: { mode: exclusive }
          arcs:
            - step: b
              when: "{{ run.n > 1 and event.status == 'success' }}"
              args: { n: "{{ run.n }}" }
        """,
    ),
    case(
        "003 §4.1",
        "a single arc and a bare step name are lists of one",
        """
        - step: a
          next: b
        """,
        "{ step: a, next: { spec: { mode: exclusive }, arcs: [{ step: b }] } }",
    ),
    case(
        "003 §7.1",
        "a loop keeps its form",
        """
        - step: a
          loop:
            spec: { mode: parallel, max_in_flight: 10 }
            in: "{{ workload.items }}"
            iterator: item
          tool: [{ x: { kind: noop } }]
        """,
        """
        step: a
        loop:
          spec: { mode: parallel, max_in_flight: 10 }
          in: "{{ workload.items }}"
          iterator: item
        tool: [{ name: x, kind: noop }]
        """,
    ),
    case(
        "003 §12",
        "what no dialect has is passed on to be refused",
        """
        - step: a
          case: [{ when: "{{ true }}", then: {} }]
          pipe: [{ x: { kind: noop } }]
        """,
        """
        step: a
        case: [{ when: "{{ true }}", then: {} }]
        pipe: [{ x: { kind: noop } }]
        """,
    ),
]


@pytest.mark.parametrize(("source", "expected"), STEPS)
def test_step(source: str, expected: str) -> None:
    assert draft_step(source) == yaml_values(expected)
