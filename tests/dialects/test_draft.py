"""Each construct of 003 and its canonical form."""

from typing import Any

import pytest

from noetl.model import Json
from tests.dialects.upgrading import draft_document, draft_step, read, upgrade_text


def case(clause: str, name: str, source: str, expected: str) -> object:
    return pytest.param(source, expected, marks=pytest.mark.spec(clause), id=name)


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
    assert draft_step(source) == read(expected)


TASKS = [
    case(
        "003 §5.1",
        "the label of a task is its name",
        "fetch: { kind: http, url: u, spec: { timeout: { connect: 5 } } }",
        "{ name: fetch, kind: http, url: u, spec: { timeout: { connect: 5 } } }",
    ),
    case("003 §5.1", "a task may be named already", "{ name: a, kind: noop }", "{ name: a, kind: noop }"),
    case("003 §5.1", "a task may have no name", "kind: noop", "{ kind: noop }"),
    case(
        "003 §6.2",
        "expr is when, and what follows is then",
        """
        x:
          kind: noop
          eval:
            - expr: "{{ iter.more }}"
              do: jump
              to: x
              set_iter: { page: 2 }
              set_ctx: { seen: true }
            - else:
                do: break
        """,
        """
        name: x
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{ iter.more }}"
                then: { do: jump, to: x, set_iter: { page: 2 }, set_ctx: { seen: true } }
              - else: { then: { do: break } }
        """,
    ),
    case(
        "003 §6.2",
        "retry keeps its knobs, and a fixed backoff is none",
        """
        x:
          kind: noop
          eval:
            - expr: "{{ outcome.status == 'error' }}"
              do: retry
              attempts: 4
              backoff: fixed
              delay: "{{ outcome.error.retry_after | default(2) }}"
            - else: { do: continue }
        """,
        """
        name: x
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then:
                  do: retry
                  attempts: 4
                  backoff: none
                  delay: "{{ outcome.error.retry_after | default(2) }}"
              - else: { then: { do: continue } }
        """,
    ),
    case(
        "003 §6.3",
        "without else, an error that nothing matched fails",
        """
        x:
          kind: noop
          eval: [{ expr: "{{ outcome.result.n > 1 }}", do: break }]
        """,
        """
        name: x
        kind: noop
        spec:
          policy:
            rules:
              - { when: "{{ outcome.result.n > 1 }}", then: { do: break } }
              - { when: "{{ outcome.status == 'error' }}", then: { do: fail } }
        """,
    ),
    case(
        "003 §6.3",
        "no rule is added where one catches every error",
        """
        x:
          kind: noop
          eval: [{ expr: "{{ outcome.status == 'error' }}", do: continue }]
        """,
        """
        name: x
        kind: noop
        spec:
          policy:
            rules: [{ when: "{{ outcome.status == 'error' }}", then: { do: continue } }]
        """,
    ),
    case("003 §6.3", "an empty eval is none", "x: { kind: noop, eval: [] }", "{ name: x, kind: noop }"),
    case(
        "003 §6.2",
        "else may stand beside its directive",
        "x: { kind: noop, eval: [{ else: , do: continue, set_prev: 1 }] }",
        "{ name: x, kind: noop, spec: { policy: { rules: [{ else: { then: { do: continue, set_prev: 1 } } }] } } }",
    ),
    case(
        "003 §6.2",
        "else may have a then",
        "x: { kind: noop, eval: [{ else: { then: { do: fail } } }] }",
        "{ name: x, kind: noop, spec: { policy: { rules: [{ else: { then: { do: fail } } }] } } }",
    ),
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
    case(
        "003 §5.3",
        "the status of an outcome is success where it is ok",
        """
        x:
          kind: noop
          eval:
            - expr: "{{ outcome.status == 'success' }}"
              do: continue
              set_ctx: { last: "{{ outcome.status }}" }
            - else: { do: fail }
        """,
        """
        name: x
        kind: noop
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'ok' }}"
                then:
                  do: continue
                  set_ctx: { last: "{{ 'success' if outcome.status == 'ok' else outcome.status }}" }
              - else: { then: { do: fail } }
        """,
    ),
    case(
        "003 §5.3",
        "the helpers of an outcome keep their names",
        """
        x:
          kind: noop
          eval:
            - { expr: "{{ outcome.pg.message or outcome.py.exception or outcome.http.status }}", do: fail }
            - { else: { do: continue } }
        """,
        """
        name: x
        kind: noop
        spec:
          policy:
            rules:
              - { when: "{{ outcome.pg.message or outcome.py.exception or outcome.http.status }}", then: { do: fail } }
              - { else: { then: { do: continue } } }
        """,
    ),
    case(
        "003 §5.2",
        "code and nested documents are not read as expressions",
        "x: { kind: python, code: 'a = {{ vars.x }}', args: { b: '{{ vars.x }}' } }",
        "{ name: x, kind: python, code: 'a = {{ vars.x }}', args: { b: '{{ run.x }}' } }",
    ),
]


@pytest.mark.parametrize(("source", "expected"), TASKS)
def test_task(source: str, expected: str) -> None:
    document = read(source)
    assert isinstance(document, dict)
    assert _task(document) == read(expected)


def _task(task: Json) -> Json:
    import json

    step = draft_step(f"- step: s\n  tool: [{json.dumps(task)}]\n")
    assert isinstance(step, dict)
    tool = step["tool"]
    assert isinstance(tool, list)
    return tool[0]


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
    assert step == read(
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


@pytest.mark.spec("003 §1.1")
def test_root_sections_stay_and_the_word_draft_goes() -> None:
    upgraded = upgrade_text(
        """
apiVersion: noetl.io/v2
kind: Playbook
metadata: { name: a, path: b, version: "2.0", dialect: draft }
executor: { kind: distributed, spec: { pool: default } }
workload: { url: "https://example.com" }
workflow: [{ step: start, tool: [{ x: { kind: noop } }] }]
workbook:
  tasks:
    fetch:
      kind: http
      url: "{{ vars.url }}"
      eval: [{ else: { do: continue, set_vars: { n: 1 } } }]
""",
        "draft",
    )
    assert upgraded.findings == []
    assert upgraded.document == read(
        """
        apiVersion: noetl.io/v2
        kind: Playbook
        metadata: { name: a, path: b, version: "2.0" }
        executor: { kind: distributed, spec: { pool: default } }
        workload: { url: "https://example.com" }
        workflow: [{ step: start, tool: [{ name: x, kind: noop }] }]
        workbook:
          tasks:
            fetch:
              kind: http
              url: "{{ run.url }}"
              spec: { policy: { rules: [{ else: { then: { do: continue, set_run: { n: 1 } } } }] } }
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


@pytest.mark.spec("003 §12")
def test_root_vars_are_passed_on_to_be_refused() -> None:
    upgraded = upgrade_text(
        draft_document("- { step: a, next: [{ step: a }] }\n") + "vars: { a: 1 }\n", "draft"
    )
    assert upgraded.document["vars"] == {"a": 1}


@pytest.mark.spec("003 §6.2")
def test_what_a_rule_does_keeps_its_order() -> None:
    step = draft_step(
        """
        - step: start
          tool:
            - x:
                kind: noop
                eval:
                  - else:
                      set_iter: { a: 1 }
                      set_vars: { b: 2 }
                      do: jump
                      set_ctx: { c: 3 }
                      set_shared: { d: 4 }
                      to: x
                      set_run: { e: 5 }
        """
    )
    then = step["tool"][0]["spec"]["policy"]["rules"][0]["else"]["then"]  # type: ignore[call-overload, index]
    assert list(then.items()) == [  # type: ignore[union-attr]
        ("set_iter", {"a": 1}),
        ("set_run", {"b": 2, "d": 4, "e": 5}),
        ("do", "jump"),
        ("set_ctx", {"c": 3}),
        ("to", "x"),
    ]


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
    assert upgraded.findings == []
    step: Any = upgraded.steps[0]
    assert step["loop"]["spec"]["reduce"] == {"run.n": "count"}
    assert step["tool"][1]["args"] == {"n": "{{ run.n }}", "m": "{{ iter.m }}"}
