"""Spellings found in playbooks in the wild mean the same as the canonical ones."""

import pytest

from noetl.dsl.document.playbook import Continue, Playbook, RetryTask, Write
from noetl.expr.expression import Expression
from noetl.expr.runtime.scope import EvaluationSite, Scope
from noetl.expr.template import Constant
from tests.playbooks import (
    NOOP,
    ProblemPosition,
    error_codes,
    first_step,
    first_task,
    playbook_of,
    problem_positions,
    problems_of,
    step,
)

END = step(NOOP, name="end")


def rules(text: str) -> str:
    return step(f"tool: {{ kind: noop, spec: {{ policy: {{ rules: {text} }} }} }}")


def write_values(writes: tuple[Write, ...]) -> list[tuple[str, tuple[str, ...], object]]:
    return [(write.scope, write.path, write.value) for write in writes]


def without_positions(playbook: Playbook) -> object:
    step_ = playbook.workflow[0]
    return step_.args, [(task.label, task.args, task.inputs, task.spec) for task in step_.tasks]


@pytest.mark.parametrize(
    ("spelling", "canonical"),
    [
        ("tool: { kind: noop, input: { a: 1 } }", "tool: { kind: noop, args: { a: 1 } }"),
        ("input: { a: 1 }\n" + NOOP, "args: { a: 1 }\n" + NOOP),
        (
            "tool: { kind: noop, output_select: [$.a, { path: $.b, as: b }] }",
            "tool: { kind: noop, spec: { result: { select: [$.a, { path: $.b, as: b }] } } }",
        ),
        ("output_select: [$.a]\n" + NOOP, "spec: { result: { select: [$.a] } }\n" + NOOP),
        (
            "tool: { kind: http, endpoint: 'https://a.example', payload: { a: 1 } }",
            "tool: { kind: http, url: 'https://a.example', json: { a: 1 } }",
        ),
        (
            "tool: { kind: http, url: 'https://a.example', data: text }",
            "tool: { kind: http, url: 'https://a.example', body: text }",
        ),
        (
            "tool: { kind: playbook, path: a/b, payload: { a: 1 } }",
            "tool: { kind: playbook, path: a/b, args: { a: 1 } }",
        ),
        (
            "tool: { kind: postgres, credential: pg, query: SELECT 1 }",
            "tool: { kind: postgres, auth: pg, query: SELECT 1 }",
        ),
    ],
)
def test_another_spelling_is_the_same_playbook(spelling: str, canonical: str) -> None:
    assert error_codes(step(spelling)) == []
    assert without_positions(playbook_of(step(spelling))) == without_positions(playbook_of(step(canonical)))


@pytest.mark.parametrize(
    ("body", "column"),
    [
        ("tool: { kind: noop, args: { a: 1 }, input: { b: 2 } }", 39),
        ("tool: { kind: http, url: 'https://a.example', endpoint: 'https://b.example' }", 49),
        ("tool: { kind: http, url: 'https://a.example', payload: { a: 1 }, data: { b: 1 } }", 68),
    ],
)
def test_two_spellings_of_one_key_are_refused(body: str, column: int) -> None:
    assert problem_positions(step(body)) == [ProblemPosition(6, column, "duplicate-key")]


def test_args_and_input_of_a_step_are_refused_together() -> None:
    assert problem_positions(step("args: { a: 1 }\ninput: { b: 2 }\n" + NOOP)) == [
        ProblemPosition(7, 3, "duplicate-key")
    ]


def test_output_is_the_outcome_where_there_is_one() -> None:
    text = rules(
        "[{ when: \"{{ output.status == 'ok' and output.data.n > 1 }}\", then: { do: continue } }, { else: { do: fail } }]"
    )
    assert problems_of(text) == ()
    policy = first_task(text).policy
    assert policy is not None
    guard = policy.rules[0].when
    assert isinstance(guard, Expression)
    scope = Scope({"outcome": {"status": "ok", "result": {"n": 2}}})
    assert guard.evaluate(scope, EvaluationSite.GUARD) is True


def test_set_in_a_rule_is_set_ctx_and_set_iter() -> None:
    policies = [
        first_task(rules(f"[{{ else: {{ do: continue, {writes} }} }}]")).policy
        for writes in (
            "set: { ctx.a: 1, iter.b.c: 2, run.d: 3 }",
            "set_ctx: { a: 1 }, set_iter: { b.c: 2 }, set_run: { d: 3 }",
        )
    ]
    written = [write_values(policy.otherwise.writes) for policy in policies if policy and policy.otherwise]
    assert sorted(map(str, written[0])) == sorted(map(str, written[1]))
    assert len(written[0]) == 3


def test_set_in_a_task_a_step_and_an_arc() -> None:
    text = (
        step(
            "set: { ctx.s: 1 }\ntool: { kind: noop, set: { ctx.t: 1, iter.u: 1 } }\n"
            "next: { arcs: [{ step: end, set: { ctx.v: 1, w: 2, args.x: 3 }, args: { w: 1, y: 4 } }] }"
        )
        + END
    )
    parsed = first_step(text)
    assert write_values(parsed.writes) == [("ctx", ("s",), Constant(1))]
    assert write_values(parsed.tasks[0].writes) == [
        ("ctx", ("t",), Constant(1)),
        ("iter", ("u",), Constant(1)),
    ]
    (arc,) = parsed.arcs
    assert write_values(arc.writes) == [("ctx", ("v",), Constant(1))]
    assert arc.args == {"w": Constant(2), "y": Constant(4), "x": Constant(3)}


@pytest.mark.parametrize(
    ("body", "column"),
    [
        ("set: { total: 1 }\n" + NOOP, 10),
        ("tool: { kind: noop, set: { total: 1 } }", 30),
        (
            "tool: { kind: noop, spec: { policy: { rules: [{ else: { do: continue, set: { a: 1 } } }] } } }",
            80,
        ),
        ("tool: { kind: noop, set: { ctx.: 1 } }", 30),
        ("tool: { kind: noop, set: { ctx.a..b: 1 } }", 30),
        ("tool: { kind: noop, set: { ctx: 1 } }", 30),
    ],
)
def test_a_write_that_names_no_place_is_refused(body: str, column: int) -> None:
    assert problem_positions(step(body)) == [ProblemPosition(6, column, "bad-write")]


@pytest.mark.parametrize("when", ["true", "True", '"{{ true }}"'])
def test_a_condition_may_be_true(when: str) -> None:
    text = rules(f"[{{ when: {when}, then: {{ do: continue }} }}]")
    policy = first_task(text).policy
    assert policy is not None
    assert policy.rules[0].then.do == Continue()


def test_backoff_fixed_is_none() -> None:
    policy = first_task(rules("[{ when: true, then: { do: retry, backoff: fixed, delay: 5 } }]")).policy
    assert policy is not None
    assert policy.rules[0].then.do == RetryTask(backoff="none", delay=5.0)


def test_an_executor_profile_is_accepted_with_a_warning() -> None:
    (problem,) = problems_of("executor: { kind: local, profile: small }\nworkflow:\n" + step(NOOP))
    assert (problem.line, problem.column, problem.code, problem.severity) == (
        4,
        26,
        "executor-profile",
        "warning",
    )


@pytest.mark.parametrize(
    ("name", "loop", "holds"),
    [
        ("call.done", "", {"step.done": True, "step.failed": False}),
        ("call.error", "", {"step.done": False, "step.failed": True}),
        ("call.done", "loop: { in: [1], iterator: n }\n", {"loop.done": True, "step.failed": False}),
    ],
)
def test_the_older_names_of_events(name: str, loop: str, holds: dict[str, bool]) -> None:
    text = step(
        f"{loop}tool: {{ kind: shell, command: ls }}\nnext: {{ arcs: [{{ step: end, when: \"{{{{ event.name == '{name}' }}}}\" }}] }}"
    )
    assert problems_of(text + END) == ()
    guard = first_step(text + END).arcs[0].when
    assert isinstance(guard, Expression)
    for event, expected in holds.items():
        assert guard.evaluate(Scope({"event": {"name": event}}), EvaluationSite.GUARD) is expected


@pytest.mark.parametrize(
    "otherwise",
    ["{ else: { then: { do: break } } }", "{ else: { do: break } }", "{ else: , then: { do: break } }"],
)
@pytest.mark.parametrize("order", ["[{0}, {1}]", "[{1}, {0}]"])
def test_all_forms_of_else_are_equal_wherever_they_stand(otherwise: str, order: str) -> None:
    rule = '{ when: "{{ _attempt < 3 }}", then: { do: continue } }'
    text = rules(order.replace("{0}", rule).replace("{1}", otherwise))
    assert problems_of(text) == ()
    policy = first_task(text).policy
    assert policy is not None
    assert len(policy.rules) == 1
    assert policy.otherwise is not None
    assert str(policy.otherwise.do) == "Break()"


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("[{ else: { do: break } }, { else: { do: fail } }]", ProblemPosition(6, 76, "two-else")),
        ("[{ else: }]", ProblemPosition(6, 49, "rule-shape")),
        ("[{ else: { do: break }, then: { do: fail } }]", ProblemPosition(6, 72, "rule-shape")),
        ("[{ when: true, else: { do: break } }]", ProblemPosition(6, 51, "rule-shape")),
        ("[{ when: true }]", ProblemPosition(6, 49, "rule-shape")),
        ("[{ then: { do: break } }]", ProblemPosition(6, 49, "rule-shape")),
        ("[{ when: , then: { do: break } }]", ProblemPosition(6, 49, "rule-shape")),
        ("[retry]", ProblemPosition(6, 49, "rule-shape")),
        ("[{ when: true, do: break }]", ProblemPosition(6, 63, "draft-eval")),
    ],
)
def test_what_is_no_rule_is_refused_at_its_place(text: str, position: ProblemPosition) -> None:
    assert position in problem_positions(rules(text))


def test_a_description_may_stand_on_every_part() -> None:
    text = step("""
        desc: a step
        loop: { in: [1], iterator: n, desc: a loop }
        tool:
          - name: a
            kind: noop
            desc: a task
            spec: { policy: { rules: [{ else: { do: continue }, desc: a rule }] } }
        next:
          arcs:
            - { step: end, desc: an arc, when: "{{ event.name == 'loop.done' }}" }
        """)
    assert problems_of(text + END) == ()
    parsed = first_step(text + END)
    assert parsed.loop is not None
    assert (parsed.desc, parsed.loop.desc, parsed.tasks[0].desc, parsed.arcs[0].desc) == (
        "a step",
        "a loop",
        "a task",
        "an arc",
    )
