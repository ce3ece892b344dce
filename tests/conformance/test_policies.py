"""Admission and task policies, and the patterns made of them (000 §4.2, §6.2; 001 §6.2, §9)."""

import pytest

from noetl.dsl.document.playbook import Break, Continue, Directive, Fail, Jump, Policy, RetryTask
from noetl.expr.expression import Expression
from tests.playbooks import NOOP, error_codes, first_step, first_task, problem_positions, problems_of, step


def with_rules(rules: str) -> str:
    """A pipeline of two tasks; the second has the rules."""
    return step(
        "tool:\n  - { name: fetch, kind: noop }\n"
        f"  - {{ name: check, kind: noop, spec: {{ policy: {{ rules: {rules} }} }} }}"
    )


def policy_of(rules: str) -> Policy:
    policy = first_step(with_rules(rules)).tasks[1].policy
    assert policy is not None
    return policy


def directive(then: str) -> Directive:
    otherwise = policy_of(f"[{{ else: {then} }}]").otherwise
    assert otherwise is not None
    return otherwise.do


def with_admission(admit: str) -> str:
    return step(f"spec: {{ policy: {{ admit: {admit} }} }}\n{NOOP}")


@pytest.mark.spec("000 §4.2 (4)")
@pytest.mark.spec("001 §6.2")
def test_admission_is_a_list_of_rules_that_allow_or_deny() -> None:
    text = step("""
        spec:
          policy:
            admit:
              rules:
                - when: "{{ args.enabled == true }}"
                  then: { allow: true }
                - else:
                    then: { allow: false }
        tool: { kind: noop }
        """)
    admit = first_step(text).admit
    assert admit is not None
    (rule,) = admit.rules
    assert isinstance(rule.when, Expression)
    assert rule.allow is True
    assert admit.otherwise is False


@pytest.mark.spec("000 §4.2 (4)")
@pytest.mark.parametrize(
    ("admit", "code"),
    [
        ("{}", "missing-key"),
        ("[]", "wrong-type"),
        ("{ rules: { when: true } }", "wrong-type"),
        ("{ rules: [{ when: true, then: { allow: maybe } }] }", "wrong-type"),
        ("{ rules: [{ when: true, then: { do: continue } }] }", "unknown-key"),
        ("{ rules: [{ when: true }] }", "rule-shape"),
        ("{ rules: [{ then: { allow: true } }] }", "rule-shape"),
        ("{ rules: [{ when: ready, then: { allow: true } }] }", "guard-form"),
        ("{ rules: [{ else: { allow: true } }, { else: { allow: false } }] }", "two-else"),
        ("{ rules: [], on_deny: ignore }", "bad-value"),
        ("{ rules: [], timeout: 5 }", "directive-option"),
    ],
)
def test_another_shape_of_admission_is_refused(admit: str, code: str) -> None:
    assert code in error_codes(with_admission(admit))


@pytest.mark.spec("000 §4.2 (5)")
@pytest.mark.spec("001 §6.2")
def test_a_step_without_admission_has_no_gate() -> None:
    assert first_step(step(NOOP)).admit is None
    assert first_step(step("spec: { policy: { join: all } }\n" + NOOP)).admit is None


@pytest.mark.spec("000 §6.2 (1)")
def test_a_policy_is_an_object_containing_rules() -> None:
    assert policy_of("[]").rules == ()
    assert len(policy_of("[{ when: true, then: { do: continue } }]").rules) == 1


@pytest.mark.spec("000 §6.2 (2)")
@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("{ do: continue }", Continue()),
        ("{ do: break }", Break()),
        ("{ do: fail }", Fail()),
        ("{ do: jump, to: fetch }", Jump("fetch")),
        ("{ do: retry }", RetryTask(attempts=3, backoff="none", delay=0.0)),
        (
            "{ do: retry, attempts: 5, backoff: linear, delay: 2 }",
            RetryTask(attempts=5, backoff="linear", delay=2.0),
        ),
        ("{ do: retry, backoff: exponential }", RetryTask(backoff="exponential")),
        ("{ do: retry, max_delay: 60, jitter: 0.5 }", RetryTask(max_delay=60.0, jitter=0.5)),
    ],
)
def test_each_directive_has_its_options(then: str, expected: Directive) -> None:
    assert directive(then) == expected


@pytest.mark.spec("000 §6.2 (2)")
def test_delay_and_attempts_may_be_expressions() -> None:
    retry = directive('{ do: retry, attempts: "{{ 2 + 3 }}", delay: "{{ outcome.error.retry_after }}" }')
    assert isinstance(retry, RetryTask)
    assert isinstance(retry.attempts, Expression)
    assert isinstance(retry.delay, Expression)


@pytest.mark.spec("000 §6.2 (2)")
@pytest.mark.parametrize(
    ("then", "code"),
    [
        ("{ do: stop }", "bad-value"),
        ("{ attempts: 3 }", "missing-key"),
        ("continue", "wrong-type"),
        ("{ do: retry, attempts: 0 }", "bad-value"),
        ("{ do: retry, attempts: 1.5 }", "wrong-type"),
        ("{ do: retry, backoff: cubic }", "bad-value"),
        ("{ do: retry, delay: -1 }", "bad-value"),
        ("{ do: retry, delay: soon }", "wrong-type"),
        ("{ do: retry, to: fetch }", "directive-option"),
        ("{ do: continue, attempts: 3 }", "directive-option"),
        ("{ do: jump }", "missing-key"),
        ("{ do: jump, to: nowhere }", "jump-target"),
        ("{ do: jump, to: fetch, message: no }", "directive-option"),
        ("{ do: break, delay: 1 }", "directive-option"),
        ("{ do: continue, set_vars: { a: 1 } }", "draft-vars"),
        ("{ do: continue, set_shared: { a: 1 } }", "draft-shared"),
        ("{ do: continue, set_ctx: 5 }", "wrong-type"),
    ],
)
def test_another_directive_or_option_is_refused(then: str, code: str) -> None:
    assert error_codes(with_rules(f"[{{ else: {then} }}]")) == [code]


@pytest.mark.spec("000 §6.2 (3)")
def test_a_rule_writes_to_the_iteration_and_to_the_execution() -> None:
    otherwise = policy_of(
        "[{ else: { do: continue, set_iter: { a: 1 }, set_ctx: { b.c: 2 }, set_run: { d: 3 } } }]"
    ).otherwise
    assert otherwise is not None
    assert [(write.scope, write.path) for write in otherwise.writes] == [
        ("iter", ("a",)),
        ("ctx", ("b", "c")),
        ("run", ("d",)),
    ]


@pytest.mark.spec("000 §7.2 (1)")
@pytest.mark.spec("000 §7.2 (2)")
def test_a_parallel_loop_writes_to_its_iterations_but_to_ctx_only_with_a_reducer() -> None:
    def loop(write: str, reduce: str = "") -> str:
        rules = f'[{{ else: {{ do: continue, {write}: {{ total: "{{{{ iter.n }}}}" }} }} }}]'
        return step(
            f"loop: {{ in: [1], iterator: n, spec: {{ mode: parallel{reduce} }} }}\n"
            f"tool: {{ kind: noop, spec: {{ policy: {{ rules: {rules} }} }} }}"
        )

    assert error_codes(loop("set_iter")) == []
    assert error_codes(loop("set_ctx")) == ["parallel-set-ctx"]
    assert error_codes(loop("set_ctx", ", reduce: { total: sum }")) == []
    assert error_codes(loop("set_ctx").replace("parallel", "sequential")) == []


@pytest.mark.spec("001 §9.1")
def test_the_retry_pattern_is_accepted() -> None:
    text = "workload: { api_url: https://api.example.com }\nworkflow:\n" + step("""
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
        """)
    assert problems_of(text) == ()
    policy = first_task(text).policy
    assert policy is not None
    assert [rule.then.do for rule in policy.rules] == [RetryTask(10, "exponential", 2.0), Fail()]
    assert policy.otherwise is not None
    assert policy.otherwise.do == Continue()


@pytest.mark.spec("001 §9.2")
def test_the_pagination_pattern_is_accepted() -> None:
    text = step("""
        tool:
          - name: fetch_page
            kind: http
            url: "https://api.example.com/data?page={{ iter.page | default(1) }}"
            set: { iter.page: "{{ iter.page | default(1) }}", iter.has_more: "{{ outcome.result.data.more }}" }
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
                        page: "{{ (iter.page | int) + 1 }}"
                  - else:
                      then: { do: break }
        """)
    assert problems_of(text) == ()
    policy = first_step(text).tasks[1].policy
    assert policy is not None
    assert policy.rules[0].then.do == Jump("fetch_page")
    assert policy.rules[0].then.writes[0].scope == "iter"
    assert policy.otherwise is not None
    assert policy.otherwise.do == Break()


@pytest.mark.spec("001 §9.2")
def test_a_jump_leaves_no_pipeline() -> None:
    text = with_rules("[{ else: { do: jump, to: end } }]") + step(NOOP, name="end")
    assert "jump-target" in [problem.code for problem in problem_positions(text)]
