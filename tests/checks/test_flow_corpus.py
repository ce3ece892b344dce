"""Good playbooks, in which the flow of names finds nothing."""

from pathlib import Path

import pytest

from noetl.loader import examine
from tests.checks.flow_playbooks import CODES, HEADER, findings

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("*.yaml")), ids=lambda file: file.stem)
def test_the_examples_are_clean(file: Path) -> None:
    problems = examine(file.read_text("utf-8"), file.name).problems
    assert [problem for problem in problems if problem.code in CODES] == []


GUIDE = """\
keychain: [{ name: pg_k8s, kind: postgres_credential }]
workload: { api_url: "https://api.example.com", page_size: 50 }
workflow:
  - step: start
    next: { spec: { mode: exclusive }, arcs: [{ step: fetch_transform_store }] }
  - step: fetch_transform_store
    tool:
      - name: fetch_page
        kind: http
        method: GET
        url: "{{ workload.api_url }}/data"
        params: { page: 1, pageSize: "{{ workload.page_size }}" }
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}"
                then: { do: retry, attempts: 5, backoff: exponential, delay: 2 }
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail }
              - else: { then: { do: continue } }
      - name: transform
        kind: python
        args: { data: "{{ _prev }}" }
        code: |
          result = {"items": data}
      - name: store
        kind: postgres
        auth: pg_k8s
        command: "INSERT INTO items VALUES (1)"
    next:
      arcs: [{ step: end, when: "{{ event.name == 'step.done' }}" }]
  - step: end
    tool: [{ name: done, kind: noop }]
"""

POLLING = """\
workload: { url: "http://127.0.0.1" }
workflow:
  - step: start
    tool:
      - { name: submit, kind: http, method: POST, url: "{{ workload.url }}", json: {} }
      - name: poll
        kind: http
        url: "{{ workload.url }}/{{ submit.data.id }}"
        spec:
          policy:
            rules:
              - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
              - { when: "{{ outcome.result.data.state == 'running' }}", then: { do: retry, attempts: 50, delay: 1 } }
              - else: { do: continue, set_ctx: { job: "{{ outcome.result.data }}" } }
    next:
      arcs:
        - { step: report, when: "{{ event.name == 'step.done' }}", args: { id: "{{ submit_id | default(0) }}" } }
        - { step: alarm, when: "{{ event.name == 'step.failed' }}", args: { why: "{{ event.error.message }}" } }
  - step: report
    tool: [{ kind: noop, args: { state: "{{ ctx.job.state }}", all: "{{ steps.start.result }}", id: "{{ args.id }}" } }]
  - step: alarm
    tool: [{ kind: noop, args: { why: "{{ args.why }}", state: "{{ steps.start.status }}" } }]
"""

RETRY_OVER_STEPS = """\
workflow:
  - step: start
    tool: [{ kind: noop, set: { ctx.tries: 0 } }]
    next: { arcs: [{ step: attempt }] }
  - step: attempt
    tool: [{ name: get, kind: http, url: "http://127.0.0.1" }]
    set: { ctx.tries: "{{ ctx.tries + 1 }}" }
    next:
      arcs:
        - { step: end, when: "{{ event.name == 'step.done' }}" }
        - { step: attempt, when: "{{ event.name == 'step.failed' and ctx.tries < 3 }}" }
        - { step: give_up, when: "{{ event.name == 'step.failed' }}" }
  - step: give_up
    tool: [{ kind: noop, args: { tries: "{{ ctx.tries }}", why: "{{ steps.attempt.error }}" } }]
  - step: end
    tool: [{ kind: noop, args: { rows: "{{ attempt.data }}", tries: "{{ ctx.tries }}" } }]
"""

FAN_OUT = """\
workload: { regions: [eu, us] }
workflow:
  - step: start
    next:
      spec: { mode: inclusive }
      arcs:
        - { step: orders, args: { kind: orders } }
        - { step: users, args: { kind: users } }
  - step: orders
    loop:
      in: "{{ workload.regions }}"
      iterator: region
      spec: { mode: parallel, reduce: { orders: sum } }
    tool:
      - name: count
        kind: http
        url: "http://127.0.0.1/{{ args.kind }}/{{ iter.region }}/{{ region }}/{{ iter.index }}"
        spec:
          policy:
            rules:
              - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
              - else: { do: continue, set_ctx: { orders: "{{ outcome.result.data.count }}" } }
    next: { arcs: [{ step: compare, when: "{{ event.name == 'loop.done' }}" }] }
  - step: users
    tool:
      - { name: count, kind: http, url: "http://127.0.0.1/{{ kind }}" }
      - { name: keep, kind: noop, set: { ctx.users: "{{ count.data.count }}" } }
    next: { arcs: [{ step: compare, when: "{{ event.name == 'step.done' }}" }] }
  - step: compare
    spec: { policy: { join: all } }
    tool: [{ kind: noop, args: { ratio: "{{ ctx.orders / ctx.users }}", who: "{{ joined | length }}" } }]
"""


@pytest.mark.parametrize("text", [GUIDE, POLLING, RETRY_OVER_STEPS, FAN_OUT])
def test_common_patterns_are_clean(text: str) -> None:
    assert findings(text) == []
    assert [
        problem for problem in examine(HEADER + text, "good").problems if problem.severity == "error"
    ] == []
