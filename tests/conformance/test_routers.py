"""The router of a step (000 §8.1, §8.2; 001 §6.5)."""

import pytest

from noetl.dsl.document.playbook import Router
from noetl.expr.expression import Expression
from noetl.expr.template import Constant
from tests.playbooks import (
    NOOP,
    ProblemPosition,
    error_codes,
    first_step,
    problem_positions,
    problems_of,
    step,
)

ENDS = step(NOOP, name="one") + step(NOOP, name="two")


def routed(router: str) -> str:
    return step(f"next: {router}") + ENDS


def router_of(router: str) -> Router:
    parsed = first_step(routed(router)).router
    assert parsed is not None
    return parsed


@pytest.mark.spec("000 §8.1")
@pytest.mark.spec("001 §6.5")
def test_an_arc_has_a_step_a_guard_and_args() -> None:
    (arc,) = router_of(
        "{ arcs: [{ step: one, when: \"{{ event.name == 'step.done' }}\", args: { n: 1 }, desc: on, spec: { a: 1 } }] }"
    ).arcs
    assert arc.step == "one"
    assert isinstance(arc.when, Expression)
    assert arc.is_guarded
    assert arc.args == {"n": Constant(1)}
    assert (arc.desc, arc.spec) == ("on", {"a": 1})


@pytest.mark.spec("000 §8.1")
@pytest.mark.parametrize("arc", ["{ step: one }", "{ step: one, when: true }", "{ step: one, when: }"])
def test_the_guard_of_an_arc_is_true_if_omitted(arc: str) -> None:
    (parsed,) = router_of(f"{{ arcs: [{arc}] }}").arcs
    assert parsed.when is True
    assert not parsed.is_guarded


@pytest.mark.spec("000 §8.1")
@pytest.mark.parametrize(
    ("router", "position"),
    [
        ("{ spec: { mode: exclusive } }", ProblemPosition(6, 9, "missing-key")),
        ("{ arcs: { step: one } }", ProblemPosition(6, 17, "wrong-type")),
        ("{ arcs: [one] }", ProblemPosition(6, 18, "wrong-type")),
        ("{ arcs: [{ when: true }] }", ProblemPosition(6, 18, "missing-key")),
        ("{ arcs: [{ step: one, whn: true }] }", ProblemPosition(6, 31, "unknown-key")),
        ("{ arcs: [{ step: one, when: ready }] }", ProblemPosition(6, 37, "guard-form")),
        ("{ arcs: [{ step: one, when: 5 }] }", ProblemPosition(6, 37, "guard-form")),
        ("{ arcs: [{ step: one, when: [] }] }", ProblemPosition(6, 37, "guard-form")),
        ("{ arcs: [{ step: one, args: [1] }] }", ProblemPosition(6, 37, "wrong-type")),
        ("{ arks: [] }", ProblemPosition(6, 11, "unknown-key")),
        ("[{ step: one }]", ProblemPosition(6, 3, "draft-next-list")),
    ],
)
def test_another_router_is_refused(router: str, position: ProblemPosition) -> None:
    assert problem_positions(routed(router)) == [position]


@pytest.mark.spec("000 §8.2")
@pytest.mark.spec("001 §6.5")
def test_a_router_is_exclusive_unless_it_says_otherwise() -> None:
    assert router_of("{ arcs: [{ step: one }] }").mode == "exclusive"
    assert router_of("{ spec: {}, arcs: [{ step: one }] }").mode == "exclusive"
    assert (
        router_of("{ spec: { mode: inclusive }, arcs: [{ step: one }, { step: two }] }").mode == "inclusive"
    )
    assert error_codes(routed("{ spec: { mode: both }, arcs: [{ step: one }] }")) == ["bad-value"]


@pytest.mark.spec("000 §8.2")
@pytest.mark.spec("001 §6.5")
def test_arcs_keep_the_order_of_the_document() -> None:
    router = router_of("{ spec: { mode: inclusive }, arcs: [{ step: two }, { step: one }] }")
    assert [arc.step for arc in router.arcs] == ["two", "one"]


@pytest.mark.spec("001 §6.5")
def test_the_router_of_the_guide_is_accepted() -> None:
    text = step("""
        tool: { kind: http, url: "https://api.example.com" }
        next:
          spec:
            mode: exclusive
          arcs:
            - step: success
              when: "{{ event.name == 'step.done' }}"
              args: { from: start }
            - step: failure
              when: "{{ event.name == 'step.failed' }}"
        """)
    assert problems_of(text + step(NOOP, name="success") + step(NOOP, name="failure")) == ()
