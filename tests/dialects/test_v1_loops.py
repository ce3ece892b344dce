"""Loops of 004 §3.1.2: a step's own loop, or a nested document."""

from typing import Any

import pytest

from tests.dialects.dialect_upgrade import v1_pipeline, v1_steps, yaml_values

PYTHON = 'type: python, code: "def main(input): return 1"'


@pytest.mark.spec("004 §3.1.2")
def test_a_loop_alone_is_the_loop_of_its_step() -> None:
    steps = v1_steps(
        f"""
        - task: each
          type: loop
          desc: All cities
          in: "{{{{ places }}}}"
          iterator: city
          with: {{ places: "{{{{ workload.cities }}}}", base: "{{{{ workload.base }}}}" }}
          run:
            - {{ task: get, type: http, method: GET, endpoint: "{{{{ base }}}}/{{{{ city.name }}}}" }}
            - {{ task: sum, {PYTHON}, with: {{ got: "{{{{ get.result }}}}", of: "{{{{ city }}}}" }} }}
        """,
        """
        - step: start
          run: [{ task: each }]
          next: [{ when: "{{ each.result and result and start.result }}", then: [start] }]
        """,
    )
    assert steps == yaml_values(
        """
        - step: start
          loop: { desc: All cities, in: "{{ workload.cities }}", iterator: city }
          tool:
            - name: get
              kind: http
              args: { base: "{{ workload.base }}" }
              method: GET
              url: "{{ base }}/{{ iter.city.name }}"
            - name: sum
              kind: python
              args:
                city: "{{ iter.city }}"
                places: "{{ workload.cities }}"
                base: "{{ workload.base }}"
                got: "{{ get }}"
                of: "{{ iter.city }}"
              code: "def main(input): return 1"
          next:
            spec: { mode: exclusive }
            arcs:
              - step: start
                when: "{{ event.name != 'step.failed' and event.result and event.result and event.result }}"
        """
    )


@pytest.mark.spec("004 §3.1.2")
def test_a_loop_beside_other_tasks_is_a_nested_document_whose_free_names_travel() -> None:
    pipeline = v1_pipeline(
        """
        - { task: list, type: http, method: GET, endpoint: "http://x" }
        - task: each
          type: loop
          in: "{{ list.result.rows }}"
          iterator: row
          with: { base: "{{ workload.base }}" }
          run:
            - { task: get, type: http, method: GET, endpoint: "{{ base }}/{{ row.id }}/{{ workload.key }}/{{ units }}" }
            - { task: put, type: http, method: PUT, endpoint: "http://x", payload: "{{ get.result.data }}" }
        - { task: tell, type: http, method: GET, endpoint: "{{ each.result[0] }}" }
        """,
        "[{ task: list }, { task: each }, { task: tell }]",
        "{ units: metric }",
    )
    assert pipeline == yaml_values(
        """
        - { name: list, kind: http, method: GET, url: "http://x" }
        - name: each
          kind: playbook
          args:
            base: "{{ workload.base }}"
            key: "{{ workload.key }}"
            units: "{{ units }}"
            list: "{{ list }}"
          document:
            apiVersion: noetl.io/v2
            kind: Playbook
            metadata: { name: each, path: b/start/each }
            workflow:
              - step: each
                loop: { in: "{{ workload.list.rows }}", iterator: row }
                tool:
                  - name: get
                    kind: http
                    method: GET
                    url: "{{ workload.base }}/{{ iter.row.id }}/{{ workload.key }}/{{ workload.units }}"
                  - { name: put, kind: http, method: PUT, url: "http://x", body: "{{ get.data }}" }
        - { name: tell, kind: http, method: GET, url: "{{ each[0] }}" }
        """
    )


@pytest.mark.spec("004 §3.1.2")
def test_a_loop_in_a_loop_carries_what_both_need() -> None:
    steps = v1_steps(
        f"""
        - task: outer
          type: loop
          in: "{{{{ workload.rows }}}}"
          iterator: row
          run:
            - task: inner
              type: loop
              in: "{{{{ row.cells }}}}"
              iterator: cell
              run:
                - task: deepest
                  type: loop
                  in: "{{{{ cell.parts }}}}"
                  iterator: index
                  run: [{{ task: calc, {PYTHON}, with: {{ r: "{{{{ row.id }}}}", c: "{{{{ cell.id }}}}" }} }}]
        """,
        "- { step: start, run: [{ task: outer }] }\n",
    )
    assert steps == yaml_values(
        """
        - step: start
          loop: { in: "{{ workload.rows }}", iterator: row }
          tool:
            - name: inner
              kind: playbook
              args: { row: "{{ iter.row }}" }
              document:
                apiVersion: noetl.io/v2
                kind: Playbook
                metadata: { name: inner, path: b/start/inner }
                workflow:
                  - step: inner
                    loop: { in: "{{ workload.row.cells }}", iterator: cell }
                    tool:
                      - name: deepest
                        kind: playbook
                        args: { row: "{{ workload.row }}", cell: "{{ iter.cell }}" }
                        document:
                          apiVersion: noetl.io/v2
                          kind: Playbook
                          metadata: { name: deepest, path: b/start/inner/deepest }
                          workflow:
                            - step: deepest
                              loop: { in: "{{ workload.cell.parts }}", iterator: index_item }
                              tool:
                                - name: calc
                                  kind: python
                                  args:
                                    row: "{{ workload.row }}"
                                    cell: "{{ workload.cell }}"
                                    index: "{{ iter.index_item }}"
                                    r: "{{ workload.row.id }}"
                                    c: "{{ workload.cell.id }}"
                                  code: "def main(input): return 1"
        """
    )


@pytest.mark.spec("004 §3.1.2")
def test_a_conditional_loop_is_skipped_as_a_whole() -> None:
    pipeline = v1_pipeline(
        f"""
        - task: each
          type: loop
          when: "{{{{ workload.on }}}}"
          in: [1, 2]
          iterator: n
          run: [{{ task: calc, {PYTHON} }}]
        """,
        "[{ task: each }]",
    )
    assert pipeline == yaml_values(
        """
        - name: each__when
          kind: noop
          spec:
            policy:
              rules:
                - when: "{{ workload.on }}"
                  then: { do: continue }
                - else: { then: { do: break } }
        - name: each
          kind: playbook
          document:
            apiVersion: noetl.io/v2
            kind: Playbook
            metadata: { name: each, path: b/start/each }
            workflow:
              - step: each
                loop: { in: [1, 2], iterator: n }
                tool:
                  - { name: calc, kind: python, args: { n: "{{ iter.n }}" }, code: "def main(input): return 1" }
        """
    )


@pytest.mark.spec("004 §3.1.2")
def test_a_nested_task_may_share_its_name_with_one_outside() -> None:
    pipeline = v1_pipeline(
        """
        - { task: get, type: http, method: GET, endpoint: "http://x" }
        - task: each
          type: loop
          in: "{{ get.result.rows }}"
          iterator: row
          run:
            - { task: get, type: http, method: GET, endpoint: "{{ get.result.base }}" }
            - { task: put, type: http, method: GET, endpoint: "{{ get.result.base }}" }
        """,
        "[{ task: get }, { task: each }]",
    )
    assert isinstance(pipeline, list)
    assert isinstance(pipeline[1], dict)
    assert pipeline[1]["args"] == {"get_2": "{{ get }}"}
    text = str(pipeline[1]["document"])
    assert "'url': '{{ workload.get_2.base }}'" in text
    assert "'url': '{{ get.base }}'" in text
    assert "'in': '{{ workload.get_2.rows }}'" in text


@pytest.mark.spec("004 §3.1.2")
@pytest.mark.parametrize(("iterator", "canonical"), [("city", "city"), ("index", "index_item")])
def test_a_task_named_like_the_iterator_does_not_lose_its_result(iterator: str, canonical: str) -> None:
    (step,) = v1_steps(
        f"""
        - task: each
          type: loop
          in: "{{{{ workload.cities }}}}"
          iterator: {iterator}
          run:
            - {{ task: {iterator}, type: http, method: GET, endpoint: "http://x/{{{{ {iterator} }}}}" }}
            - task: tell
              type: http
              method: GET
              endpoint: "http://x/{{{{ {iterator}.result.data }}}}/{{{{ {iterator} }}}}"
        """,
        "- { step: start, run: [each] }\n",
    )
    assert isinstance(step, dict)
    assert step["tool"] == yaml_values(
        f"""
        - {{ name: {iterator}_task, kind: http, method: GET, url: "http://x/{{{{ iter.{canonical} }}}}" }}
        - name: tell
          kind: http
          method: GET
          url: "http://x/{{{{ {iterator}_task.data }}}}/{{{{ iter.{canonical} }}}}"
        """
    )


@pytest.mark.spec("004 §3.1.2")
def test_nothing_travels_into_a_loop_that_is_given_anew_there() -> None:
    steps: Any = v1_steps(
        f"""
        - {{ task: first, {PYTHON} }}
        - task: each
          type: loop
          in: "{{{{ [1] }}}}"
          iterator: day
          with: {{ limit: "{{{{ limit }}}}" }}
          run: [{{ task: sum, {PYTHON} }}]
        """,
        """
        - { step: start, next: [{ then: [{ step: work, with: { day: Monday, limit: 3 } }] }] }
        - { step: work, run: [first, each] }
        """,
    )
    loop = steps[1]["tool"][1]
    assert loop["args"] == {"limit": "{{ args.limit }}"}
