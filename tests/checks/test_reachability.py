import pytest

from tests.checks.check_fragments import HEADER, assert_clean, assert_found, problems

NOOP = "tool: { kind: noop }"


@pytest.mark.spec("000 §8.1")
@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            """
            - step: start
              tool: { kind: noop }
            - step: §lost
              tool: { kind: noop }
            """,
            """
            - step: start
              next: { arcs: [{ step: lost }] }
            - step: lost
              tool: { kind: noop }
            """,
            id="no arc leads to it",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: noop }
            - step: §again
              tool: { kind: noop }
              next: { arcs: [{ step: again, when: "{{ ctx.more }}" }] }
            """,
            """
            - step: start
              next: { arcs: [{ step: again }] }
            - step: again
              tool: { kind: noop }
              next: { arcs: [{ step: again, when: "{{ ctx.more }}" }] }
            """,
            id="only its own arc leads to it",
        ),
        pytest.param(
            """
            - step: §first
              tool: { kind: noop }
              next: { arcs: [{ step: start }] }
            - step: start
              tool: { kind: noop }
            """,
            """
            executor: { kind: local, spec: { entry_step: first } }
            workflow:
              - step: first
                tool: { kind: noop }
                next: { arcs: [{ step: start }] }
              - step: start
                tool: { kind: noop }
            """,
            id="execution starts elsewhere",
        ),
        pytest.param(
            """
            - step: start
              tool: { kind: noop }
            - step: §a
              next: { arcs: [{ step: b, when: "{{ ctx.go }}" }] }
            - step: §b
              next: { arcs: [{ step: a, when: "{{ ctx.go }}" }] }
            """,
            """
            - step: a
              next: { arcs: [{ step: b, when: "{{ ctx.go }}" }] }
            - step: b
              next: { arcs: [{ step: a, when: "{{ ctx.go }}" }] }
            """,
            id="an island",
        ),
    ],
)
def test_steps_that_no_token_reaches(bad: str, good: str) -> None:
    assert_found("unreachable-step", bad)
    assert_clean(good)


def test_the_final_step_needs_no_arc() -> None:
    assert_clean("""
        executor: { kind: local, spec: { final_step: tidy } }
        workflow:
          - step: start
            tool: { kind: noop }
          - step: tidy
            tool: { kind: noop }
        """)


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        pytest.param(
            """
            - step: start
              next: { arcs: [{ step: poll }] }
            - step: §poll
              tool: { kind: wait, seconds: 5 }
              next: { arcs: [{ step: check }] }
            - step: check
              next: { arcs: [{ step: poll }] }
            """,
            """
            - step: start
              next: { arcs: [{ step: poll }] }
            - step: poll
              tool: { kind: wait, seconds: 5 }
              next: { arcs: [{ step: check, when: "{{ event.name == 'step.done' }}" }] }
            - step: check
              next: { arcs: [{ step: poll, when: "{{ not ctx.ready }}" }] }
            """,
            id="arcs without guards go round",
        ),
        pytest.param(
            """
            - step: §start
              tool: { kind: wait, seconds: 5 }
              next: { arcs: [{ step: start, when: "{{ event.name == 'step.done' }}" }] }
            """,
            """
            - step: start
              tool: { kind: wait, seconds: 5 }
              next:
                arcs:
                  - step: start
                    when: "{{ event.name == 'step.done' and ctx.more }}"
            """,
            id="only a failure ends it",
        ),
        pytest.param(
            """
            - step: §start
              next: { arcs: [{ step: start }, { step: end, when: false }] } # noetl: ignore dead-arc
            - step: end
              tool: { kind: noop }
            """,
            """
            - step: start
              next: { arcs: [{ step: end, when: "{{ ctx.go }}" }, { step: start }] }
            - step: end
              tool: { kind: noop }
            """,
            id="the way out is dead",
        ),
    ],
)
def test_steps_from_which_no_end_is_reached(bad: str, good: str) -> None:
    assert_found("no-way-out", bad)
    assert_clean(good)


@pytest.mark.parametrize(
    "fragment",
    [
        pytest.param(
            """
            - step: start
              tool: { kind: python, code: "result = 1" }
              next:
                arcs:
                  - { step: end, when: "{{ event.name == 'step.done' }}" }
                  - { step: pause, when: "{{ event.name == 'step.failed' }}" }
            - step: pause
              tool: { kind: wait, seconds: 5 }
              next: { arcs: [{ step: start, when: "{{ event.name == 'step.done' }}" }] }
            - step: end
              tool: { kind: noop }
            """,
            id="try again after a failure",
        ),
        pytest.param(
            """
            - step: start
              spec:
                policy:
                  admit:
                    rules:
                      - when: "{{ ctx.n | default(0) < 3 }}"
                        then: { allow: true }
              tool: { kind: noop }
              next: { arcs: [{ step: start }] }
            """,
            id="a gate ends it",
        ),
    ],
)
def test_rounds_that_end(fragment: str) -> None:
    assert_clean(fragment)


def test_a_thousand_steps_in_a_chain() -> None:
    chain = "".join(
        f"  - step: s{number}\n    next: {{ arcs: [{{ step: s{number + 1} }}] }}\n" for number in range(1_000)
    )
    assert problems(f"{HEADER}workflow:\n{chain}  - step: s1000\n    {NOOP}\n") == []
