"""The tasks of 004 §3 and their canonical form."""

import pytest

from tests.dialects.dialect_upgrade import case, v1_pipeline, yaml_values

GET = "type: http, method: GET, endpoint: 'http://x'"


CASES = [
    case(
        "004 §3.1.3",
        "http: endpoint is url, a mapping as payload is json",
        """
        - task: send
          type: http
          method: POST
          desc: Send it
          endpoint: "{{ workload.url }}/items"
          params: { q: "{{ workload.q }}" }
          payload: { item: "{{ workload.item }}" }
        """,
        "[{ task: send }]",
        """
        - name: send
          kind: http
          method: POST
          desc: Send it
          url: "{{ workload.url }}/items"
          params: { q: "{{ workload.q }}" }
          json: { item: "{{ workload.item }}" }
        """,
    ),
    case(
        "004 §3.1.3",
        "http: a template as payload is body, which sends mappings as JSON",
        """
        - { task: send, type: http, method: PUT, endpoint: "http://x", payload: "{{ workload.item }}" }
        """,
        "[{ task: send }]",
        """
        - { name: send, kind: http, method: PUT, url: "http://x", body: "{{ workload.item }}" }
        """,
    ),
    case(
        "004 §3.1",
        "type and method in any case",
        "- { task: a, type: HTTP, method: get, endpoint: 'http://x' }\n",
        "[{ task: a }]",
        "[{ name: a, kind: http, method: GET, url: 'http://x' }]",
    ),
    case(
        "004 §3.1.3",
        "retry, retry_delay and on_error",
        f"- {{ task: a, {GET}, retry: 3, retry_delay: 5, on_error: continue }}\n",
        "[{ task: a }]",
        """
        - name: a
          kind: http
          method: GET
          url: "http://x"
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and _attempt <= 3 }}"
                  then: { do: retry, attempts: 4, backoff: none, delay: 5 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: continue }
        """,
    ),
    case(
        "004 §3.1.3",
        "after the last try an error fails by default",
        f"- {{ task: a, {GET}, retry: 1 }}\n",
        "[{ task: a }]",
        """
        - name: a
          kind: http
          method: GET
          url: "http://x"
          spec:
            policy:
              rules:
                - when: "{{ outcome.status == 'error' and _attempt <= 1 }}"
                  then: { do: retry, attempts: 2, backoff: none, delay: 0 }
                - when: "{{ outcome.status == 'error' }}"
                  then: { do: fail }
        """,
    ),
    case(
        "004 §3.1.3",
        "no retry and no on_error is the default policy",
        f"- {{ task: a, {GET}, retry: 0 }}\n",
        "[{ task: a }]",
        "[{ name: a, kind: http, method: GET, url: 'http://x' }]",
    ),
    case(
        "004 §3.1.4",
        "python gets its inputs as args",
        """
        - task: p
          type: python
          desc: Add
          with: { a: "{{ workload.a }}", b: 2 }
          code: |
            def main(input):
                return input["a"] + input["b"]
        """,
        "[{ task: p }]",
        """
        - name: p
          kind: python
          args: { a: "{{ workload.a }}", b: 2 }
          desc: Add
          code: |
            def main(input):
                return input["a"] + input["b"]
        """,
    ),
    case(
        "004 §3.1.4",
        "a global result of the code does not hide what main gives",
        """
        - task: p
          type: python
          code: |
            result = None
            def main(input): return 1
        """,
        "[{ task: p }]",
        r"""
        - name: p
          kind: python
          code: "result = None\ndef main(input): return 1\n\nresult = main(args)\n"
        """,
    ),
    case(
        "004 §3.1",
        "a condition is a noop that jumps past the task",
        f"""
        - {{ task: a, {GET}, when: "{{{{ workload.on }}}}" }}
        - {{ task: b, {GET} }}
        """,
        "[{ task: a }, { task: b }]",
        """
        - name: a__when
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ workload.on }}"
                  then: { do: continue }
                - else: { then: { do: jump, to: b } }
        - { name: a, kind: http, method: GET, url: "http://x" }
        - { name: b, kind: http, method: GET, url: "http://x" }
        """,
    ),
    case(
        "004 §3.1",
        "before the last task it ends the pipeline",
        f"""
        - {{ task: a, {GET}, when: "{{{{ workload.on }}}}" }}
        """,
        "[{ task: a }]",
        """
        - name: a__when
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ workload.on }}"
                  then: { do: continue }
                - else: { then: { do: break } }
        - { name: a, kind: http, method: GET, url: "http://x" }
        """,
    ),
    case(
        "004 §3.1",
        "a condition sees the inputs of its task",
        f"""
        - {{ task: a, {GET}, with: {{ n: "{{{{ workload.n + 1 }}}}", m: 3 }}, when: "{{{{ n > m and n.x }}}}" }}
        """,
        "[{ task: a, with: { m: 4 } }]",
        """
        - name: a__when
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ (workload.n + 1) > (4) and (workload.n + 1).x }}"
                  then: { do: continue }
                - else: { then: { do: break } }
        - { name: a, kind: http, args: { n: "{{ workload.n + 1 }}", m: 4 }, method: GET, url: "http://x" }
        """,
    ),
    case(
        "004 §3.1.1",
        "a composite is flattened, and its tasks see each other and its inputs",
        """
        - task: p
          type: task
          with: { base: "{{ workload.base }}" }
          run:
            - { task: get, type: http, method: GET, endpoint: "{{ base }}/get" }
            - { task: put, type: http, method: PUT, endpoint: "http://x", payload: "{{ get.result.data }}" }
            - { task: sum, type: python, with: { n: "{{ get.result.n }}", u: "{{ base }}" }, code: "def main(input): return 1" }
        - { task: q, type: http, method: PUT, endpoint: "http://y", payload: "{{ p.result }} {{ p.get.result.n }} {{ get.result }}" }
        """,
        "[{ task: p }, { task: q }]",
        """
        - { name: p__get, kind: http, args: { base: "{{ workload.base }}" }, method: GET, url: "{{ base }}/get" }
        - { name: p__put, kind: http, method: PUT, url: "http://x", body: "{{ p__get.data }}" }
        - name: p__sum
          kind: python
          args: { base: "{{ workload.base }}", n: "{{ p__get.n }}", u: "{{ workload.base }}" }
          code: "def main(input): return 1"
        - { name: q, kind: http, method: PUT, url: "http://y", body: "{{ p__sum }} {{ p__get.n }} {{ get.result }}" }
        """,
    ),
    case(
        "004 §5",
        "composites nest, and repeats are numbered",
        """
        - task: a
          type: task
          run:
            - task: b
              type: task
              run: [{ task: c, type: python, code: "def main(input): return 1" }]
        """,
        "[{ task: a }, { task: a }]",
        """
        - { name: a__b__c, kind: python, code: "def main(input): return 1" }
        - { name: a_2__b__c, kind: python, code: "def main(input): return 1" }
        """,
    ),
    case(
        "004 §3.1.1",
        "the condition of a composite skips all of it, and one whose end is skipped still has a result",
        """
        - task: p
          type: task
          desc: Both
          when: "{{ workload.on }}"
          run:
            - { task: a, type: python, code: "def main(input): return 1" }
            - { task: b, type: python, when: "{{ a.result }}", code: "def main(input): return 2" }
        - { task: q, type: http, method: GET, endpoint: "{{ p.result }}" }
        """,
        "[{ task: p }, { task: q }]",
        """
        - name: p__when
          kind: noop
          desc: Both
          spec:
            policy:
              rules:
                - when: "{{ workload.on }}"
                  then: { do: continue }
                - else: { then: { do: jump, to: q } }
        - { name: p__a, kind: python, code: "def main(input): return 1" }
        - name: p__b__when
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ p__a }}"
                  then: { do: continue }
                - else: { then: { do: jump, to: p } }
        - { name: p__b, kind: python, code: "def main(input): return 2" }
        - { name: p, kind: noop }
        - { name: q, kind: http, method: GET, url: "{{ p }}" }
        """,
    ),
    case(
        "004 §5",
        "a task with type and run is executed by its type",
        f"- {{ task: a, {GET}, run: [{{ task: b, {GET} }}] }}\n",
        "[{ task: a }]",
        "[{ name: a, kind: http, method: GET, url: 'http://x' }]",
    ),
    case(
        "004 §4.2",
        "a task that is run twice has two labels, and its name means the latest",
        """
        - { task: a, type: python, code: "def main(input): return 1" }
        - { task: b, type: http, method: GET, endpoint: "{{ a.result }}" }
        """,
        "[{ task: a }, { task: b }, { task: a }, b]",
        """
        - { name: a, kind: python, code: "def main(input): return 1" }
        - { name: b, kind: http, method: GET, url: "{{ a }}" }
        - { name: a_2, kind: python, code: "def main(input): return 1" }
        - { name: b_2, kind: http, method: GET, url: "{{ a_2 }}" }
        """,
    ),
    case(
        "004 §3",
        "a name that means something else in canonical expressions is not used as a label",
        """
        - { task: run, type: python, code: "def main(input): return 1" }
        - { task: b, type: http, method: GET, endpoint: "{{ run.result }}/{{ steps }}", with: { steps: 3 } }
        """,
        "[{ task: run }, { task: b }]",
        """
        - { name: run_task, kind: python, code: "def main(input): return 1" }
        - { name: b, kind: http, args: { steps: 3 }, method: GET, url: "{{ run_task }}/{{ args.steps }}" }
        """,
    ),
]


@pytest.mark.parametrize(("workbook", "run", "expected"), CASES)
def test_task(workbook: str, run: str, expected: str) -> None:
    assert v1_pipeline(workbook, run) == yaml_values(expected)


@pytest.mark.spec("004 §7")
def test_a_task_named_like_a_workload_key_is_told_apart_by_its_result() -> None:
    pipeline = v1_pipeline(
        """
        - { task: city, type: python, code: "def main(input): return 1" }
        - { task: b, type: http, method: GET, endpoint: "{{ city }} {{ city.result.n }}" }
        """,
        "[{ task: city }, { task: b }]",
        "{ city: Oslo }",
    )
    assert pipeline == yaml_values(
        """
        - { name: city_task, kind: python, code: "def main(input): return 1" }
        - { name: b, kind: http, method: GET, url: "{{ city }} {{ city_task.n }}" }
        """
    )


@pytest.mark.spec("004 §3.1.1")
def test_values_are_put_into_others_without_needless_brackets() -> None:
    pipeline = v1_pipeline(
        """
        - task: all
          type: task
          with: { who: "{{ workload.name }}", n: 7, either: "{{ workload.a or workload.b }}" }
          run:
            - task: some
              type: task
              with: { stage: "{{ who }}-stage" }
              run:
                - task: get
                  type: http
                  method: GET
                  endpoint: "http://x/{{ label }}"
                  with: { label: "{{ stage }}/{{ n }}", e: "{{ either }}", f: "{{ either and n.x }}" }
        """,
        "[all]",
    )
    assert isinstance(pipeline, list)
    assert isinstance(pipeline[0], dict)
    assert pipeline[0]["args"] == {
        "label": "{{ workload.name ~ '-stage' }}/{{ 7 }}",
        "e": "{{ workload.a or workload.b }}",
        "f": "{{ (workload.a or workload.b) and (7).x }}",
    }
