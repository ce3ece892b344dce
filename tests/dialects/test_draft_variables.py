"""The variables of 003: `vars` and what is shared, in a run and in a parallel loop."""

from typing import Any

import pytest

from tests.dialects.dialect_upgrade import (
    case,
    draft_document,
    draft_step,
    draft_task,
    upgrade_text,
    yaml_values,
)

TASKS = [
    case(
        "003 §3.3",
        "vars are the scope of the run",
        """
        x:
          kind: http
          url: "{{ vars.base }}/x"
          eval:
            - else:
                do: continue
                set_vars: { total: "{{ (vars.total | default(0)) + outcome.result.n }}" }
        """,
        """
        name: x
        kind: http
        url: "{{ run.base }}/x"
        spec:
          policy:
            rules:
              - else:
                  then:
                    do: continue
                    set_run: { total: "{{ (run.total | default(0)) + outcome.result.n }}" }
        """,
    ),
    case(
        "003 §6.2",
        "a shared write outside a parallel loop is a write of the run, applied at once",
        """
        x:
          kind: noop
          eval:
            - else:
                do: continue
                set_shared:
                  a: "{{ outcome.result }}"
                  b: { sum: "{{ outcome.result.n }}" }
                  c: { append: 1 }
                  d: { count: 1 }
                  e: { max: "{{ outcome.result.n }}" }
                  f: { first: x }
                  g: { merge: { k: 1, l: 2 } }
                  h: { neither: 1 }
                  i: { last: "{{ 1 if outcome.result else 2 }}" }
                  j: { min: "{{ 1, 2 }}" }
                  k: { concat: [1, 2] }
                  l: { union: "{{ outcome.result or [] }}" }
        """,
        """
        name: x
        kind: noop
        spec:
          policy:
            rules:
              - else:
                  then:
                    do: continue
                    set_run:
                      a: "{{ outcome.result }}"
                      b: "{{ (run.b | default(0)) + outcome.result.n }}"
                      c: "{{ (run.c | default([])) + [1] }}"
                      d: "{{ (run.d | default(0)) + 1 }}"
                      e: "{{ [run.e | default(outcome.result.n), outcome.result.n] | max }}"
                      f: "{{ run.f | default('x') }}"
                      g.k: 1
                      g.l: 2
                      h: { neither: 1 }
                      i: "{{ 1 if outcome.result else 2 }}"
                      j: "{{ [run.j | default((1, 2)), (1, 2)] | min }}"
                      k: "{{ (run.k | default([])) + [1, 2] }}"
                      l: "{{ ((run.l | default([])) + (outcome.result or [])) | unique | list }}"
        """,
    ),
]


@pytest.mark.parametrize(("source", "expected"), TASKS)
def test_task(source: str, expected: str) -> None:
    assert draft_task(source) == yaml_values(expected)


@pytest.mark.spec("003 §6.5")
def test_in_a_parallel_loop_variables_belong_to_the_iteration_and_shared_ones_are_reduced() -> None:
    step = draft_step(
        """
        - step: a
          loop: { spec: { mode: parallel }, in: "{{ vars.items }}", iterator: item }
          tool:
            - x:
                kind: http
                url: "{{ vars.url }}/{{ vars.total }}/{{ vars.item }}"
                eval:
                  - else:
                      do: continue
                      set_iter: { page: 1 }
                      set_vars: { url: u, page: 2, item: 3 }
                      set_shared: { total: { sum: "{{ outcome.result.n }}" }, seen: "{{ vars.page }}" }
          next: [{ step: b, when: "{{ vars.total > 1 }}" }]
        """
    )
    assert step == yaml_values(
        """
        step: a
        loop:
          spec: { mode: parallel, reduce: { run.total: sum, run.seen: last } }
          in: "{{ run.items }}"
          iterator: item
        tool:
          - name: x
            kind: http
            url: "{{ iter.url }}/{{ run.total }}/{{ iter.vars_item }}"
            spec:
              policy:
                rules:
                  - else:
                      then:
                        do: continue
                        set_iter: { page: 1, url: u, vars_page: 2, vars_item: 3 }
                        set_run: { total: "{{ outcome.result.n }}", seen: "{{ iter.vars_page }}" }
        next:
          spec: { mode: exclusive }
          arcs: [{ step: b, when: "{{ run.total > 1 }}" }]
        """
    )


@pytest.mark.spec("003 §6.5")
def test_a_workbook_task_of_parallel_loops_writes_to_their_iterations() -> None:
    loop = '{ spec: { mode: parallel }, in: "{{ workload.x }}", iterator: i }'
    text = draft_document(f"- {{ step: s, loop: {loop}, tool: [{{ t: {{ kind: workbook }} }}] }}\n")
    text += (
        "workbook: { tasks: { t: { kind: noop, eval: [{ else: { do: continue, set_vars: { n: 1 } } }] } } }\n"
    )
    workbook = upgrade_text(text, "draft").document["workbook"]
    assert "set_iter" in str(workbook)
    assert "set_run" not in str(workbook)


@pytest.mark.spec("003 §6.5")
def test_what_a_named_task_shares_in_a_parallel_loop_gets_its_reducer_there() -> None:
    upgraded = upgrade_text(
        draft_document(
            """
            - step: start
              loop: { spec: { mode: parallel }, in: "{{ [1] }}", iterator: x }
              tool:
                - tally: { kind: workbook }
                - use: { kind: noop, args: { n: "{{ vars.n }}", m: "{{ vars.m }}" } }
            """
        )
        + "workbook: { tasks: { tally: { kind: noop, eval: "
        + "[{ else: { do: continue, set_shared: { n: { count: 1 } }, set_vars: { m: 1 } } }] } } }\n",
        "draft",
    )
    assert upgraded.problems == []
    step: Any = upgraded.steps[0]
    assert step["loop"]["spec"]["reduce"] == {"run.n": "count"}
    assert step["tool"][1]["args"] == {"n": "{{ run.n }}", "m": "{{ iter.m }}"}
