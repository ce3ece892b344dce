"""Tasks of 003 and their canonical form."""

from typing import Any

import pytest

from tests.dialects.dialect_upgrade import case, draft_step, draft_task, yaml_values

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
    assert draft_task(source) == yaml_values(expected)


@pytest.mark.spec("003 §6.2")
def test_what_a_rule_does_keeps_its_order() -> None:
    step: Any = draft_step(
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
    then = step["tool"][0]["spec"]["policy"]["rules"][0]["else"]["then"]
    assert list(then.items()) == [
        ("set_iter", {"a": 1}),
        ("set_run", {"b": 2, "d": 4, "e": 5}),
        ("do", "jump"),
        ("set_ctx", {"c": 3}),
        ("to", "x"),
    ]
