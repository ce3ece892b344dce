"""Good playbooks, about which the checks have nothing to say."""

from pathlib import Path

import pytest

from tests.checks.check_fragments import assert_clean

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))

GOOD = {
    "one step": """
        - step: only
          tool: { kind: shell, command: [date] }
        """,
    "a chain of steps that do nothing": """
        - step: start
          tool: { kind: noop }
          next: { arcs: [{ step: middle }] }
        - step: middle
          next: { arcs: [{ step: end }] }
        - step: end
          tool: { kind: noop }
        """,
    "success and failure": """
        - step: start
          tool: { kind: http, url: "http://127.0.0.1" }
          next:
            arcs:
              - { step: success, when: "{{ event.name == 'step.done' }}", args: { n: "{{ event.result.n }}" } }
              - { step: failure, when: "{{ event.name == 'step.failed' }}" }
        - step: success
          tool: { kind: noop }
        - step: failure
          tool: { kind: noop }
        """,
    "failure first, then the rest": """
        - step: start
          tool: { kind: http, url: "http://127.0.0.1" }
          next:
            arcs:
              - { step: failure, when: "{{ event.error }}" }
              - { step: empty, when: "{{ event.result.data | length == 0 }}" }
              - { step: success }
        - step: success
          tool: { kind: shell, command: [celebrate] }
        - step: empty
          tool: { kind: noop }
        - step: failure
          tool: { kind: noop }
        """,
    "older names of events": """
        - step: start
          loop: { in: [1], iterator: n }
          tool: { kind: shell, command: [go] }
          next:
            arcs:
              - { step: success, when: "{{ event.name == 'call.done' }}" }
              - { step: failure, when: "{{ event.name == 'call.error' }}" }
        - step: success
          tool: { kind: shell, command: [celebrate] }
        - step: failure
          tool: { kind: noop }
        """,
    "admission": """
        - step: start
          next: { arcs: [{ step: do_work, args: { enabled: true } }] }
        - step: do_work
          spec:
            policy:
              admit:
                rules:
                  - when: "{{ args.enabled == true }}"
                    then: { allow: true }
                  - else:
                      then: { allow: false }
          tool: { kind: shell, command: [work] }
        """,
    "a parallel loop": """
        workload: { api_url: "http://127.0.0.1", endpoints: [{ path: /a }, { path: /b }] }
        workflow:
          - step: per_endpoint
            loop:
              spec:
                mode: parallel
                max_in_flight: 10
              in: "{{ workload.endpoints }}"
              iterator: endpoint
            tool:
              - name: fetch
                kind: http
                url: "{{ workload.api_url }}{{ iter.endpoint.path }}"
        """,
    "retry": """
        - step: start
          tool:
            - name: fetch
              kind: http
              url: "{{ workload.api_url }}/data"
              spec:
                policy:
                  rules:
                    - when: "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}"
                      then: { do: retry, attempts: 10, backoff: exponential, delay: 2 }
                    - when: "{{ outcome.status == 'error' }}"
                      then: { do: fail }
                    - else:
                        then: { do: continue }
        """,
    "pagination": """
        - step: start
          tool:
            - name: fetch_page
              kind: http
              url: "{{ workload.api_url }}/data"
              params: { page: "{{ iter.page | default(1) }}" }
              set: { iter.has_more: "{{ outcome.result.data.has_more }}" }
            - name: paginate
              kind: noop
              spec:
                policy:
                  rules:
                    - when: "{{ iter.has_more == true }}"
                      then:
                        do: jump
                        to: fetch_page
                        set_iter:
                          page: "{{ (iter.page | default(1) | int) + 1 }}"
                    - else:
                        then: { do: break }
        """,
    "a round of steps with an end": """
        - step: start
          tool: { kind: noop, set: { ctx.n: 0 } }
          next: { arcs: [{ step: work }] }
        - step: work
          tool: { kind: shell, command: [work, "{{ ctx.n }}"], set: { ctx.n: "{{ ctx.n + 1 }}" } }
          next:
            arcs:
              - { step: work, when: "{{ event.name == 'step.done' and ctx.n < 3 }}" }
              - { step: end, when: "{{ event.name == 'step.done' }}" }
        - step: end
          tool: { kind: noop }
        """,
    "fan out and in, twice": """
        - step: start
          next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }] }
        - step: a
          next: { arcs: [{ step: first }] }
        - step: b
          next: { arcs: [{ step: first }] }
        - step: first
          spec: { policy: { join: all } }
          tool: { kind: noop, args: { parts: "{{ joined | length }}" } }
          next: { spec: { mode: inclusive }, arcs: [{ step: c }, { step: d, when: "{{ ctx.also }}" }] }
        - step: c
          next: { arcs: [{ step: second }] }
        - step: d
          next: { arcs: [{ step: second }] }
        - step: second
          spec: { policy: { join: { count: 2 } } }
          tool: { kind: noop }
        """,
    "set at every level": """
        - step: start
          tool:
            kind: python
            code: 'result = {"n": 1}'
            set: { ctx.n: "{{ output.data.n }}", iter.status: "{{ output.status }}" }
          set: { ctx.ended: "{{ event.name }}", ctx.result: "{{ event.result }}" }
          next:
            arcs:
              - step: end
                when: "{{ event.name == 'step.done' }}"
                set: { ctx.way: "{{ event.result.n }}", extra: "{{ run.n | default(0) }}" }
        - step: end
          tool: { kind: noop }
        """,
    "a policy that everything inherits": """
        executor:
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and outcome.error.retryable and _attempt < 3 }}"
                  then: { do: retry, delay: 1 }
              on_unmatched: fail
        workflow:
          - step: start
            tool:
              - { name: a, kind: http, url: "http://127.0.0.1" }
              - { name: b, kind: shell, command: [b, "{{ a.status }}"] }
        """,
    "best effort and its failures": """
        - step: start
          loop:
            in: "{{ workload.hosts | default([]) }}"
            iterator: host
            spec: { mode: parallel, policy: { failure: { mode: best_effort } } }
          tool: { kind: shell, command: [ping, "{{ host }}"] }
          next:
            arcs:
              - { step: report, when: "{{ event.loop.failed > 0 }}", args: { failures: "{{ event.loop.failures }}" } }
        - step: report
          tool: { kind: shell, command: [report, "{{ args.failures }}"] }
        """,
    "secrets where they are needed": """
        keychain:
          - { name: api, kind: bearer, env: TOKEN }
          - { name: db, kind: postgres_credential }
        workflow:
          - step: start
            tool:
              - name: call
                kind: http
                url: "http://127.0.0.1"
                headers: { x-key: "{{ keychain.api.value }}" }
                auth: { type: bearer, token: "{{ keychain['api'].value }}" }
              - name: hash
                kind: python
                args: { key: "{{ keychain.api.value }}" }
                code: result = len(key)
              - name: store
                kind: postgres
                auth: db
                command: INSERT INTO size VALUES (%s)
                params: ["{{ hash }}"]
        """,
    "a final step and an output": """
        executor: { kind: local, spec: { final_step: tidy, output: "{{ steps.start.result }}" } }
        workload: { run_id: "{{ execution_id }}", folder: "/tmp/{{ workload.run_id }}" }
        workflow:
          - step: start
            tool: { kind: shell, command: [work, "{{ workload.folder }}"] }
          - step: tidy
            tool: { kind: shell, command: [rm, "-r", "{{ workload.folder }}"] }
        """,
    "waiting for a person": """
        - step: start
          next: { arcs: [{ step: gate }] }
        - step: gate
          spec:
            policy:
              admit:
                on_deny: wait
                timeout: 60
                rules: [{ when: "{{ ctx.signals.go }}", then: { allow: true } }]
          next:
            arcs:
              - { step: late, when: "{{ event.name == 'step.failed' }}" }
              - { step: go }
        - step: go
          tool: { kind: shell, command: [go] }
        - step: late
          tool: { kind: noop }
        """,
    "reducers": """
        - step: start
          loop:
            in: [1, 2, 3]
            iterator: n
            spec: { mode: parallel, reduce: { total: sum, run.seen: append, ctx.by.day: merge } }
          tool:
            kind: noop
            set: { ctx.total: "{{ iter.n }}", run.seen: "{{ n }}", ctx.by.day: { a: 1 } }
          next: { arcs: [{ step: end, args: { seen: "{{ run.seen }}" } }] }
        - step: end
          tool: { kind: noop }
        """,
    "a workbook": """
        workbook:
          tasks:
            greet: { kind: shell, command: [echo, "{{ args.name }}", "{{ joined | default([]) }}"] }
        workflow:
          - step: start
            tool: { kind: workbook, task: greet, args: { name: Ada } }
        """,
}


@pytest.mark.spec("001 §2")
@pytest.mark.spec("001 §9.1")
@pytest.mark.spec("001 §9.2")
@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_wrong_with(name: str) -> None:
    assert_clean(GOOD[name])


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_nothing_is_wrong_with_the_examples(file: Path) -> None:
    assert_clean(file.read_text("utf-8"))
