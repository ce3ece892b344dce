import pytest

from noetl.loader import examine
from tests.checks.check_fragments import assert_clean, assert_found, document_text

PAGES = """
    - step: start
      tool:
        - name: fetch
          kind: http
          url: http://127.0.0.1
          {fetch}
        - name: turn
          kind: noop
          spec:
            policy:
              rules:
                {rules}
    """


def pages(rules: str, fetch: str = "method: GET") -> str:
    return PAGES.format(rules=rules, fetch=fetch)


@pytest.mark.spec("000 §6.4")
@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            "- else: { then: §{ do: jump, to: fetch } }",
            '- { when: "{{ iter.more }}", then: { do: jump, to: fetch } }\n'
            "                - else: { then: { do: break } }",
            id="the else jumps",
        ),
        pytest.param(
            "- { when: true, then: §{ do: jump, to: fetch } }",
            '- { when: "{{ iter.more }}", then: { do: jump, to: fetch } }',
            id="it always jumps",
        ),
        pytest.param(
            "- else: §{ do: jump, to: turn }",
            '- { when: "{{ iter.done }}", then: { do: fail } }\n'
            "                - else: { do: jump, to: turn }",
            id="to itself",
        ),
    ],
)
def test_jumps_that_never_end(bad: str, good: str) -> None:
    assert_found("endless-jump", pages(bad))
    assert_clean(pages(good))


def test_a_way_out_that_only_an_error_takes_does_not_count() -> None:
    rules = "spec: { policy: { rules: [{ when: \"{{ outcome.status == 'error' }}\", then: { do: %s } }] } }"
    assert_found("endless-jump", pages("- else: §{ do: jump, to: fetch }", rules % "fail"))
    assert_found("endless-jump", pages("- else: §{ do: jump, to: fetch }", rules % "retry"))
    assert_clean(pages("- else: { do: jump, to: fetch }", rules % "break"))


def test_jumps_forward_and_past() -> None:
    assert_clean("""
        - step: start
          tool:
            - name: gate
              kind: noop
              spec: { policy: { rules: [{ when: "{{ ctx.skip }}", then: { do: jump, to: last } }] } }
            - name: work
              kind: shell
              command: [work]
            - name: last
              kind: noop
        """)


@pytest.mark.spec("000 §6.3 (4)")
@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            '§rules: [{ when: "{{ outcome.error.retryable }}", then: { do: retry } }]',
            'rules: [{ when: "{{ outcome.error.retryable }}", then: { do: retry } }, { else: { do: fail } }]',
            id="only some errors",
        ),
        pytest.param(
            "§rules: [{ when: \"{{ outcome.status == 'ok' }}\", then: { do: break } }]",
            "on_unmatched: fail\n          rules: [{ when: \"{{ outcome.status == 'ok' }}\", then: { do: break } }]",
            id="only success",
        ),
        pytest.param(
            '§rules: [{ when: "{{ outcome.result.n == 0 }}", then: { do: break } }]',
            "rules: [{ when: \"{{ outcome.status == 'error' }}\", then: { do: continue } }]",
            id="only results",
        ),
        pytest.param(
            '§rules: [{ when: "{{ ctx.x }}", then: { do: fail } }]',
            "rules: [{ when: \"{{ outcome.status != 'ok' }}\", then: { do: fail } }]",
            id="something else",
        ),
    ],
)
def test_errors_that_no_rule_matches(bad: str, good: str) -> None:
    step = """
- step: start
  tool:
    - name: fetch
      kind: http
      url: http://127.0.0.1
      spec:
        policy:
          {policy}
"""
    assert_found("error-falls-through", step.format(policy=bad))
    assert_clean(step.format(policy=good))


def test_a_tool_that_has_no_errors_needs_no_rule_for_them() -> None:
    assert_clean("""
        - step: start
          tool: { kind: noop, spec: { policy: { rules: [{ when: "{{ ctx.x }}", then: { do: break } }] } } }
        """)


def test_an_inherited_policy_is_reported_once_where_it_stands() -> None:
    assert_found(
        "error-falls-through",
        """
        - step: start
          spec: { policy: §{ rules: [{ when: "{{ outcome.error.retryable }}", then: { do: retry } }] } }
          tool:
            - { name: a, kind: shell, command: [a] }
            - { name: b, kind: shell, command: [b] }
        """,
    )


LOOP = """
    - step: start
      loop:
        in: [1, 2, 3]
        iterator: n
        spec:
          mode: {mode}
          {reduce}
      tool:
        - name: add
          kind: noop
          {task}
      {step}
    """


def loop(
    task: str, mode: str = "parallel", reduce: str = "max_in_flight: 2", step: str = "desc: adds"
) -> str:
    return LOOP.format(mode=mode, task=task, reduce=reduce, step=step)


@pytest.mark.spec("000 §7.2 (2)")
@pytest.mark.parametrize(
    ("task", "key", "safe"),
    [
        ("spec: { policy: { rules: [{ else: { do: continue, set_ctx: { §n: 1 } } }] } }", "n", "set_iter"),
        (
            "spec: { policy: { rules: [{ else: { do: continue, set_run: { §n: 1 } } }] } }",
            "run.n",
            "set_iter",
        ),
        (
            "spec: { policy: { rules: [{ when: true, then: { do: break, set: { §ctx.n: 1 } } }] } }",
            "ctx.n",
            "",
        ),
        ("set: { §ctx.a.b: 1 }", "a.b", ""),
    ],
)
def test_parallel_writes_need_a_reducer(task: str, key: str, safe: str) -> None:
    (problem,) = assert_found("parallel-set-ctx", loop(task))
    assert problem.severity == "error"
    plain = task.replace("§", "")
    assert_clean(loop(plain, reduce=f"reduce: {{ {key}: sum }}"))
    assert_clean(loop(plain, mode="sequential"))
    if safe:
        assert_clean(loop(plain.replace("set_ctx", safe).replace("set_run", safe)))


@pytest.mark.spec("000 §7.2 (1)")
def test_what_is_written_once_or_in_each_iteration_is_safe() -> None:
    assert_clean(loop("set: { iter.n: 1 }"))
    assert_clean(loop("desc: nothing", step="set: { ctx.n: 1 }"))


def test_a_reducer_of_something_that_is_not_written() -> None:
    task = "set: { ctx.total: 1 }"
    assert_found("unused-reducer", loop(task, reduce="reduce: { total: sum, §sum: sum }"))
    assert_clean(loop(task, reduce="reduce: { total: sum }"))


@pytest.mark.parametrize("rule", ["when: outcome.ok", "expr: x", "when: '{{ }}'"])
def test_nothing_is_said_about_rules_that_cannot_be_read(rule: str) -> None:
    fragment = "- step: start\n  tool: { kind: shell, command: [a], spec: { policy: { rules: [{ %s, then: { do: fail } }] } } }\n"
    problems = examine(document_text(fragment % rule), "test.yaml").problems
    assert {problem.severity for problem in problems} == {"error"}
