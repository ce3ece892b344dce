import pytest

from tests.checks.check_fragments import assert_clean, assert_found

SHIP = """
- step: ship
  tool: { kind: shell, command: [ship, it] }
- step: sorry
  tool: { kind: noop }
"""


@pytest.mark.spec("000 §8.1")
@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            "- step: §ship\n- step: sorry\n  when: \"{{ event.name == 'step.failed' }}\"",
            "- step: ship\n  when: \"{{ event.name == 'step.done' }}\"\n"
            "- step: sorry\n  when: \"{{ event.name == 'step.failed' }}\"",
            id="beside the arc for failures",
        ),
        pytest.param(
            '- step: ship\n  when: §"{{ ctx.eager }}"\n- step: sorry\n  when: "{{ event.error }}"',
            "- step: ship\n  when: \"{{ event.name == 'step.done' and ctx.eager }}\"\n"
            '- step: sorry\n  when: "{{ event.error }}"',
            id="guarded by something else",
        ),
    ],
)
def test_an_inclusive_arc_that_fires_beside_the_one_for_failures(bad: str, good: str) -> None:
    assert_found("swallowed-failure", start(bad, "inclusive"))
    assert_clean(start(good, "inclusive"))


def start(arcs: str, mode: str = "exclusive", tool: str = "{ kind: shell, command: [build] }") -> str:
    listed = "".join(f"      {line}\n" for line in arcs.strip().splitlines())
    head = f"- step: start\n  tool: {tool}\n  next:\n    spec: {{ mode: {mode} }}\n    arcs:\n"
    return head + listed + SHIP.lstrip()


@pytest.mark.spec("000 §8.1")
def test_an_arc_that_may_be_taken_instead_of_the_one_for_failures() -> None:
    handler = "- step: sorry\n  when: \"{{ event.name == 'step.failed' }}\"\n"
    assert_found("swallowed-failure", start('- step: ship\n  when: §"{{ ctx.eager }}"\n' + handler))
    assert_clean(start(handler + '- step: ship\n  when: "{{ ctx.eager }}"'))
    assert_clean(start(handler + "- step: ship"))


@pytest.mark.spec("000 §8.1")
@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            "- step: §ship\n- step: sorry # noetl: ignore dead-arc",
            "- step: ship\n  when: \"{{ event.name == 'step.done' }}\"\n- step: sorry",
            id="no guard",
        ),
        pytest.param(
            '- step: ship\n  when: §"{{ workload.really }}"\n- step: sorry',
            "- step: ship\n  when: \"{{ event.name == 'step.done' and workload.really }}\"\n- step: sorry",
            id="a guard that does not ask",
        ),
    ],
)
def test_work_that_goes_on_after_a_failure(bad: str, good: str) -> None:
    (problem,) = assert_found("swallowed-failure", start(bad))
    assert problem.message == "`ship` runs even if `start` failed, and needs nothing of it"
    assert_clean(start(good))


def test_work_behind_a_step_that_only_routes() -> None:
    fragment = """
        - step: start
          tool: { kind: shell, command: [build] }
          next: { arcs: [{ step: §route }] }
        - step: route
          next: { arcs: [{ step: ship }] }
        - step: ship
          tool: { kind: shell, command: [ship] }
        """
    assert_found("swallowed-failure", fragment)
    assert_clean(fragment.replace("§route", "route, when: \"{{ event.name == 'step.done' }}\""))


@pytest.mark.parametrize(
    "fragment",
    [
        pytest.param(
            """
            - step: start
              next: { arcs: [{ step: a }] }
            - step: a
              tool: { kind: python, code: result = 1 }
              next: { arcs: [{ step: b }] }
            - step: b
              tool: { kind: python, args: { n: "{{ a }}" }, code: result = n }
              next: { arcs: [{ step: end }] }
            - step: end
              tool: { kind: noop }
            """,
            id="a chain that hands results on",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: python, code: result = 1 }
              next: { arcs: [{ step: b, args: { n: "{{ event.result.n }}" } }] }
            - step: b
              tool: { kind: shell, command: [go] }
            """,
            id="the token carries the result",
        ),
        pytest.param(
            """
            - step: start
              tool:
                kind: python
                code: result = 1
                spec:
                  policy:
                    rules:
                      - when: "{{ outcome.status == 'error' }}"
                        then: { do: fail }
                      - else: { do: continue, set_ctx: { n: "{{ outcome.result }}" } }
              next: { arcs: [{ step: b }] }
            - step: b
              loop: { in: "{{ ctx.n }}", iterator: item }
              tool: { kind: shell, command: [go] }
            """,
            id="the context carries it",
        ),
        pytest.param(
            """
            - step: start
              tool:
                kind: shell
                command: [try]
                spec: { policy: { rules: [{ else: { do: continue } }] } }
              next: { arcs: [{ step: b }] }
            - step: b
              tool: { kind: shell, command: [go] }
            """,
            id="the policy lets nothing fail",
        ),
        pytest.param(
            """
            - step: start
              loop:
                in: [1, 2]
                iterator: n
                spec: { policy: { failure: { mode: best_effort } } }
              tool: { kind: shell, command: [try] }
              next: { arcs: [{ step: b }] }
            - step: b
              tool: { kind: shell, command: [go] }
            """,
            id="failed iterations do not fail the loop",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: shell, command: [try] }
              next: { arcs: [{ step: b, when: "{{ event.result.n > 3 }}" }] }
            - step: b
              tool: { kind: shell, command: [go] }
            """,
            id="a failure has no result",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: shell, command: [try] }
              next: { arcs: [{ step: b }] }
            - step: b
              spec: { policy: { admit: { rules: [{ when: "{{ ctx.ok }}", then: { allow: true } }] } } }
              tool: { kind: shell, command: [go] }
            """,
            id="a gate decides",
        ),
    ],
)
def test_arcs_that_do_no_harm(fragment: str) -> None:
    assert_clean(fragment)


SPIN = """
    - step: start
      tool: { kind: shell, command: [poll] }
      next: { arcs: [{ step: start, when: §"{{ ctx.done != true }}" }] }
    """


@pytest.mark.parametrize(
    "fragment",
    [
        pytest.param(SPIN, id="to itself"),
        pytest.param(
            SPIN.replace("[poll]", "[poll], set: { ctx.done: true }"),
            id="its own task would write it, if it could",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: shell, command: [poll], set: { ctx.done: "{{ outcome.result.done }}" } }
              next:
                arcs:
                  - { step: end, when: "{{ event.name == 'step.done' and ctx.done }}" }
                  - { step: §start }
            - step: end
              tool: { kind: noop }
            """,
            id="what only its own task writes does not change while it fails",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: shell, command: [poll] }
              next: { arcs: [{ step: §route }] }
            - step: route
              next: { arcs: [{ step: start, when: "{{ workload.more }}" }] }
            """,
            id="over a step that only routes",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: shell, command: [poll] }
              next: { arcs: [{ step: §pause }] }
            - step: pause
              tool: { kind: wait, seconds: 1 }
              next: { arcs: [{ step: start, when: "{{ event.name == 'step.done' and workload.more }}" }] }
            """,
            id="over another step",
        ),
    ],
)
def test_an_arc_that_leads_back_to_a_step_as_long_as_it_fails(fragment: str) -> None:
    (problem,) = assert_found("failure-loop", fragment)
    assert problem.message == "while `start` fails, this arc leads back to it again and again"


@pytest.mark.parametrize(
    "fragment",
    [
        pytest.param(SPIN.replace('§"{{', "\"{{ event.name == 'step.done' and"), id="after a success only"),
        pytest.param(
            SPIN.replace('§"{{ ctx.done != true }}"', '"{{ ctx.n < 3 }}", set: { ctx.n: "{{ ctx.n + 1 }}" }'),
            id="the arc counts",
        ),
        pytest.param(
            SPIN.replace("next:", 'set: { ctx.done: "{{ ctx.n > 3 }}" }\n      next:').replace("§", ""),
            id="the step counts",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: shell, command: [poll], spec: { policy: { rules: [{ else: { do: continue } }] } } }
              next: { arcs: [{ step: start, when: "{{ ctx.done != true }}" }] }
            """,
            id="the policy lets nothing fail",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: shell, command: [poll] }
              next: { arcs: [{ step: count, when: "{{ event.result.more }}" }] }
            - step: count
              tool: { kind: noop }
              next: { arcs: [{ step: start }] }
            """,
            id="a failure has no result to go on with",
        ),
    ],
)
def test_cycles_that_a_failure_does_not_keep_going(fragment: str) -> None:
    assert_clean(fragment)


def test_a_cycle_that_another_step_ends_is_only_work_that_goes_on() -> None:
    fragment = """
        - step: start
          tool: { kind: shell, command: [count], set: { ctx.n: "{{ outcome.result.stdout }}" } }
          next: { arcs: [{ step: poll, when: "{{ event.name == 'step.done' }}" }] }
        - step: poll
          tool: { kind: shell, command: [poll] }
          next: { arcs: [{ step: start, when: §"{{ ctx.n != '3' }}" }] }
        """
    assert_found("swallowed-failure", fragment)
    assert_found("failure-loop", fragment.replace("ctx.n != '3'", "ctx.m != '3'"))
