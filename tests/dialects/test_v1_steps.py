"""The workflow of 004 §4 and §6 in canonical form."""

import pytest

from tests.dialects.dialect_upgrade import case, upgrade_text, v1_document, v1_steps, yaml_values

WORKBOOK = """
- { task: fetch, type: http, method: GET, endpoint: "http://x" }
- { task: calc, type: python, code: "def main(input): return 1" }
"""
FETCH = "{ name: fetch, kind: http, method: GET, url: 'http://x' }"


CASES = [
    case(
        "004 §4.1",
        "a step with tasks",
        "- { step: start, desc: First, run: [{ task: fetch }] }\n",
        f"[{{ step: start, desc: First, tool: [{FETCH}] }}]",
    ),
    case(
        "004 §6",
        "end, and a step with neither run nor next, do nothing",
        "[{ step: start }, { step: end, desc: Done }]\n",
        """
        - { step: start, tool: [{ name: done, kind: noop }] }
        - { step: end, desc: Done, tool: [{ name: done, kind: noop }] }
        """,
    ),
    case(
        "004 §4.3",
        "a transition without a condition fires unless the step failed",
        "[{ step: start, run: [fetch], next: [{ then: [{ step: end }] }] }, { step: end, run: [fetch] }]\n",
        f"""
        - step: start
          tool: [{FETCH}]
          next:
            spec: {{ mode: exclusive }}
            arcs: [{{ step: end, when: "{{{{ event.name != 'step.failed' }}}}" }}]
        - {{ step: end, tool: [{FETCH}] }}
        """,
    ),
    case(
        "004 §4.3",
        "a step that runs nothing cannot fail, so its transitions do not ask",
        """
        - step: start
          next: [{ when: "{{ workload.n > 1 or false }}", then: [a, end] }, { then: [end] }]
        - { step: a, next: [{ then: [end] }] }
        """,
        """
        - step: start
          next:
            spec: { mode: inclusive }
            arcs:
              - { step: a, when: "{{ workload.n > 1 or false }}" }
              - { step: end, when: "{{ workload.n > 1 or false }}" }
              - { step: end, when: "{{ not (workload.n > 1 or false) }}" }
        - step: a
          next: { spec: { mode: exclusive }, arcs: [{ step: end }] }
        """,
    ),
    case(
        "004 §4.3",
        "the first transition that holds, the one without a condition as fallback",
        """
        - step: start
          run: [{ task: fetch }]
          next:
            - when: "{{ result.n > 1 }}"
              then: [{ step: a, with: { n: "{{ result.n }}" } }]
            - when: "{{ result.m or workload.m }}"
              then: [{ step: b }]
            - then: [{ step: c }]
        """,
        f"""
        - step: start
          tool: [{FETCH}]
          next:
            spec: {{ mode: exclusive }}
            arcs:
              - step: a
                when: "{{{{ event.name != 'step.failed' and event.result.n > 1 }}}}"
                args: {{ n: "{{{{ event.result.n }}}}" }}
              - step: b
                when: "{{{{ event.name != 'step.failed' and (event.result.m or workload.m) }}}}"
              - step: c
                when: "{{{{ event.name != 'step.failed' }}}}"
        """,
    ),
    case(
        "004 §4.3",
        "a transition fires all its steps, so each excludes those before it",
        """
        - step: start
          run: [{ task: fetch }]
          next:
            - when: "{{ result.n > 1 }}"
              then: [{ step: a }, { step: b }]
            - when: "{{ result.m }}"
              then: [a]
            - then: { step: c }
        """,
        f"""
        - step: start
          tool: [{FETCH}]
          next:
            spec: {{ mode: inclusive }}
            arcs:
              - {{ step: a, when: "{{{{ event.name != 'step.failed' and event.result.n > 1 }}}}" }}
              - {{ step: b, when: "{{{{ event.name != 'step.failed' and event.result.n > 1 }}}}" }}
              - step: a
                when: "{{{{ event.name != 'step.failed' and not (event.result.n > 1) and event.result.m }}}}"
              - step: c
                when: "{{{{ event.name != 'step.failed' and not (event.result.n > 1) and not (event.result.m | bool) }}}}"
        """,
    ),
    case(
        "004 §6",
        "with an error handler, every step that can fail leads there",
        """
        - step: start
          run: [{ task: fetch }]
          next: [{ then: [{ step: end }] }]
        - step: error_handler
          run: [{ task: fetch }]
          next: [{ then: [{ step: tell }] }]
        - { step: tell, run: [{ task: fetch }] }
        - { step: end }
        """,
        f"""
        - step: start
          tool: [{FETCH}]
          next:
            spec: {{ mode: exclusive }}
            arcs:
              - {{ step: end, when: "{{{{ event.name != 'step.failed' }}}}" }}
              - {{ step: error_handler, when: "{{{{ event.name == 'step.failed' }}}}" }}
        - step: error_handler
          tool: [{FETCH}]
          next:
            spec: {{ mode: exclusive }}
            arcs: [{{ step: tell, when: "{{{{ event.name != 'step.failed' }}}}" }}]
        - {{ step: tell, tool: [{FETCH}] }}
        - {{ step: end, tool: [{{ name: done, kind: noop }}] }}
        """,
    ),
    case(
        "004 §6",
        "a transition to the error handler fires after failures only",
        """
        - step: start
          run: [{ task: fetch }]
          next:
            - when: "{{ workload.strict }}"
              then: [{ step: error_handler, with: { why: strict } }]
            - then: [{ step: end }, { step: error_handler }]
        - { step: error_handler }
        - { step: end }
        """,
        f"""
        - step: start
          tool: [{FETCH}]
          next:
            spec: {{ mode: exclusive }}
            arcs:
              - {{ step: end, when: "{{{{ event.name != 'step.failed' }}}}" }}
              - step: error_handler
                when: "{{{{ event.name == 'step.failed' and workload.strict }}}}"
                args: {{ why: strict }}
              - {{ step: error_handler, when: "{{{{ event.name == 'step.failed' }}}}" }}
        - {{ step: error_handler, tool: [{{ name: done, kind: noop }}] }}
        - {{ step: end, tool: [{{ name: done, kind: noop }}] }}
        """,
    ),
    case(
        "004 §4.1",
        "with of a step is its args, and python gets them",
        """
        - step: start
          with: { n: "{{ workload.n }}" }
          run: [{ task: calc, with: { m: "{{ n }}" } }]
        """,
        """
        - step: start
          args: { n: "{{ workload.n }}" }
          tool:
            - name: calc
              kind: python
              args: { n: "{{ args.n }}", m: "{{ n }}" }
              code: "def main(input): return 1"
        """,
    ),
    case(
        "004 §6",
        "the result of a step is read by its name, and context is ctx",
        """
        - step: one
          run: [{ task: fetch }]
          next: [{ when: "{{ one.result.ok and fetch.result.ok and context.go }}", then: [start] }]
        - step: start
          with: { n: "{{ one.result.n }}", m: "{{ one.m }}", f: "{{ fetch.result }}" }
          run: [{ task: calc }]
        """,
        f"""
        - step: one
          tool: [{FETCH}]
          next:
            spec: {{ mode: exclusive }}
            arcs:
              - step: start
                when: "{{{{ event.name != 'step.failed' and event.result.ok and event.result.ok and ctx.go }}}}"
        - step: start
          args: {{ n: "{{{{ one.n }}}}", m: "{{{{ one.m }}}}", f: "{{{{ one }}}}" }}
          tool:
            - name: calc
              kind: python
              args: {{ f: "{{{{ args.f }}}}", m: "{{{{ args.m }}}}", n: "{{{{ args.n }}}}" }}
              code: "def main(input): return 1"
        """,
    ),
    case(
        "004 §6",
        "the result of a task inside another pipeline is kept in ctx, for the step's own routing in run",
        """
        - step: start
          run: [{ task: fetch }, { task: calc }]
          next: [{ when: "{{ fetch.result.ok }}", then: [end] }]
        - step: end
          with: { n: "{{ fetch.result.n }}" }
        """,
        """
        - step: start
          tool:
            - name: fetch
              kind: http
              method: GET
              url: "http://x"
              spec:
                policy:
                  rules:
                    - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
                    - else:
                        then:
                          do: continue
                          set_run: { fetch: "{{ outcome.result }}" }
                          set_ctx: { task_results.fetch: "{{ outcome.result }}" }
            - { name: calc, kind: python, code: "def main(input): return 1" }
          next:
            spec: { mode: exclusive }
            arcs:
              - { step: end, when: "{{ event.name != 'step.failed' and run.fetch.ok }}" }
        - step: end
          args: { n: "{{ ctx.task_results.fetch.n }}" }
          tool: [{ name: done, kind: noop }]
        """,
    ),
    case(
        "004 §6",
        "the result of a step is spelt out where its name means something nearer",
        """
        - { step: fetch, run: [{ task: fetch }] }
        - { step: n, run: [{ task: fetch }] }
        - step: start
          run: [{ task: calc, with: { f: "{{ fetch.result }}", n: "{{ n.result }} {{ n }}" } }, { task: fetch }]
        """,
        f"""
        - {{ step: fetch, tool: [{FETCH}] }}
        - {{ step: n, tool: [{FETCH}] }}
        - step: start
          tool:
            - name: calc
              kind: python
              args: {{ f: "{{{{ steps.fetch.result }}}}", n: "{{{{ steps.n.result }}}} {{{{ n }}}}" }}
              code: "def main(input): return 1"
            - {FETCH}
        """,
    ),
]


@pytest.mark.parametrize(("workflow", "expected"), CASES)
def test_workflow(workflow: str, expected: str) -> None:
    assert v1_steps(WORKBOOK, workflow, "{ n: 1 }") == yaml_values(expected)


@pytest.mark.spec("004 §1")
def test_the_root_becomes_metadata_and_the_workload_stays() -> None:
    upgraded = upgrade_text(
        """
apiVersion: noetl.io/v1
kind: Playbook
name: weather
path: examples/weather
workload:
  base: "https://example.com"
  url: "{{ workload.base }}/v1"
  cities: [{ name: Oslo }]
workflow: [{ step: start }]
""",
        "v1",
    )
    assert upgraded.problems == []
    assert upgraded.document == yaml_values(
        """
        apiVersion: noetl.io/v2
        kind: Playbook
        metadata: { name: weather, path: examples/weather }
        workload:
          base: "https://example.com"
          url: "{{ workload.base }}/v1"
          cities: [{ name: Oslo }]
        workflow: [{ step: start, tool: [{ name: done, kind: noop }] }]
        """
    )


@pytest.mark.spec("004 §4.3")
def test_what_follows_a_fallback_never_fires() -> None:
    text = v1_document("[]\n", "- step: start\n  next: [{ then: [a] }, { when: '{{ true }}', then: [b] }]\n")
    upgraded = upgrade_text(text, "v1")
    assert [problem.code for problem in upgraded.problems] == ["dead-arc"]
    assert "b" not in str(upgraded.steps[0])


@pytest.mark.spec("004 §4.3")
def test_many_transitions_stay_short_expressions() -> None:
    transitions = "".join(f"    - {{ when: '{{{{ result.n == {n} }}}}', then: [s{n}] }}\n" for n in range(60))
    steps = v1_steps("[]\n", "- step: start\n  next:\n" + transitions)
    assert "{{ event.result.n == 59 }}" in str(steps)
