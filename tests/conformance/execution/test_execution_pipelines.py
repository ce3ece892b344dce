"""Pipelines: their order, their locals, and the policy of their tasks (000 §4.3, §6; 001 §6.3)."""

import pytest

from tests.conformance.execution.conformance_engine import Engine
from tests.web_server import WebAnswer, web_server

THREE = """
- step: start
  tool:
  - {name: one, kind: noop, args: {n: 1}%s}
  - {name: two, kind: noop, args: {n: 2, prev: "{{ _prev }}", task: "{{ _task }}", attempt: "{{ _attempt }}"}}
  - {name: three, kind: noop, args: {prev: "{{ _prev }}", one: "{{ one.n }}", two: "{{ two.n | default('skipped') }}"}}
"""


def with_rule(rule: str) -> str:
    return THREE % f", spec: {{policy: {{rules: [{rule}]}}}}"


@pytest.mark.spec("000 §4.3 (2)")
@pytest.mark.spec("000 §4.3 (4)")
@pytest.mark.spec("001 §6.3")
def test_tasks_run_in_order_and_prev_threads_results(engine: Engine) -> None:
    ran = engine(THREE % "")
    assert ran.tasks() == ["one", "two", "three"]
    assert ran.result == {
        "prev": {"n": 2, "prev": {"n": 1}, "task": "two", "attempt": 1},
        "one": 1,
        "two": 2,
    }
    own = [event["name"] for event in ran.events if event["source"] == "worker"]
    assert own == [*["TaskStarted", "TaskProcessed"] * 3, "StepDone"]


GOES_ON = """
- step: start
  tool:
  - name: ask
    kind: %s
    spec: {policy: {rules: [{else: {then: {do: continue}}}]}}
  - {name: read, kind: noop, args: {prev: "{{ _prev }}", ask: "{{ ask | default('no result') }}"}}
"""


@pytest.mark.spec("001 §6.3")
def test_prev_is_the_answer_of_a_request_whose_error_goes_on(engine: Engine) -> None:
    with web_server(lambda _: WebAnswer({"why": "gone"}, 404)) as web:
        ran = engine(GOES_ON % f"http\n    url: {web.url}/a")
    assert ran.status == "completed"
    assert ran.result["prev"]["status"] == 404
    assert ran.result["prev"]["data"] == {"why": "gone"}
    assert ran.result["ask"] == "no result"


@pytest.mark.spec("001 §6.3")
def test_prev_is_none_after_an_error_that_has_no_result(engine: Engine) -> None:
    ran = engine(GOES_ON % "python\n    code: raise ValueError('x')")
    assert (ran.status, ran.result) == ("completed", {"prev": None, "ask": "no result"})


@pytest.mark.spec("000 §4.3 (2)")
@pytest.mark.spec("000 §11.2")
def test_the_same_playbook_does_the_same_again(engine: Engine) -> None:
    def event_lines() -> list[tuple[object, ...]]:
        ran = engine(THREE % "")
        return [
            (event["name"], event["source"], event["entity_id"], event["status"])
            for event in ran.events[3:-2]
        ]

    assert event_lines() == event_lines() == event_lines()


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("000 §6.3 (1)")
@pytest.mark.spec("000 §11.2")
@pytest.mark.spec("002 §3 (4)")
@pytest.mark.parametrize(
    ("do", "tasks", "status"),
    [
        ("{do: continue}", ["one", "two", "three"], "completed"),
        ("{do: jump, to: three}", ["one", "three"], "completed"),
        ("{do: break}", ["one"], "completed"),
        ("{do: fail}", ["one"], "failed"),
        ("{do: retry, attempts: 2}", ["one", "one"], "failed"),
    ],
)
def test_each_directive(engine: Engine, do: str, tasks: list[str], status: str) -> None:
    ran = engine(with_rule(f'{{when: "{{{{ outcome.result.n == 1 }}}}", then: {do}}}'))
    assert (ran.tasks(), ran.status) == (tasks, status)
    processed = ran.data("TaskProcessed")[0]
    assert processed["rule"] == 0
    assert processed["do"] == do.strip("{}").split(",")[0].removeprefix("do: ")
    terminal = ran.of("StepDone", "StepFailed")[0]["name"]
    assert terminal == ("StepDone" if status == "completed" else "StepFailed")


@pytest.mark.spec("000 §6.4")
def test_break_gives_the_result_of_the_task_that_broke(engine: Engine) -> None:
    assert engine(with_rule("{else: {then: {do: break}}}")).result == {"n": 1}


@pytest.mark.spec("000 §6.4")
def test_fail_on_a_good_outcome_says_why(engine: Engine) -> None:
    ran = engine(with_rule('{when: true, then: {do: fail, message: "n is {{ outcome.result.n }}"}}'))
    assert ran.error == {"step": "start", "task": "one", "attempt": 1, "kind": "policy", "message": "n is 1"}


@pytest.mark.spec("000 §6.3 (1)")
def test_the_first_rule_that_holds_wins(engine: Engine) -> None:
    ran = engine(
        with_rule(
            '{when: "{{ outcome.result.n == 2 }}", then: {do: fail}},'
            '{when: "{{ outcome.result.n == 1 }}", then: {do: jump, to: three}},'
            "{when: true, then: {do: break}}"
        )
    )
    assert ran.tasks() == ["one", "three"]
    assert ran.data("TaskProcessed")[0]["rule"] == 1


@pytest.mark.spec("000 §6.3 (2)")
@pytest.mark.parametrize("otherwise", ["{else: {then: {do: break}}}", "{else: {do: break}}"])
def test_else_applies_if_nothing_else_does(engine: Engine, otherwise: str) -> None:
    ran = engine(with_rule(f'{otherwise}, {{when: "{{{{ outcome.result.n == 2 }}}}", then: {{do: fail}}}}'))
    assert ran.tasks() == ["one"]
    assert ran.data("TaskProcessed")[0]["rule"] == -1


ERROR = """
- step: start
  tool:
  - {name: work, kind: python, code: "%s"%s}
  - {name: after, kind: noop, args: {prev: "{{ _prev }}"}}
"""


@pytest.mark.spec("000 §6.3 (3)")
@pytest.mark.spec("000 §6.3 (4)")
@pytest.mark.parametrize(
    ("code", "policy", "tasks", "status"),
    [
        ("result = 1", "", ["work", "after"], "completed"),
        ("1 / 0", "", ["work"], "failed"),
        (
            "1 / 0",
            ", spec: {policy: {rules: [{when: false, then: {do: fail}}]}}",
            ["work", "after"],
            "completed",
        ),
        (
            "1 / 0",
            ", spec: {policy: {on_unmatched: fail, rules: [{when: false, then: {do: break}}]}}",
            ["work"],
            "failed",
        ),
    ],
)
def test_what_happens_where_no_rule_says(
    engine: Engine, code: str, policy: str, tasks: list[str], status: str
) -> None:
    ran = engine(ERROR % (code, policy))
    assert (ran.tasks(), ran.status) == (tasks, status)
    if status == "completed":
        assert ran.result == {"prev": 1 if code == "result = 1" else None}


@pytest.mark.spec("000 §6.2 (3)")
@pytest.mark.spec("002 §3 (4)")
@pytest.mark.spec("003 §3.2")
def test_writes_are_patches_that_what_follows_sees_at_once(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - name: one
    kind: noop
    args: {n: 5}
    spec:
      policy:
        rules:
        - else:
            then:
              do: continue
              set_ctx: {n: "{{ outcome.result.n }}", twice: "{{ ctx.n * 2 }}", deep.er: 1}
              set_iter: {mine: "{{ ctx.twice + 1 }}"}
  - {name: two, kind: noop, args: {ctx: "{{ ctx }}", mine: "{{ iter.mine }}", bare: "{{ mine }}"}}
  next: {arcs: [{step: after}]}
- step: after
  tool: {kind: noop, args: {n: "{{ ctx.n }}", mine: "{{ iter.mine is defined }}", two: "{{ start }}"}}
""")
    assert ran.result["two"] == {"ctx": {"n": 5, "twice": 10, "deep": {"er": 1}}, "mine": 11, "bare": 11}
    assert (ran.result["n"], ran.result["mine"]) == (5, False)
    assert ran.data("TaskProcessed")[0]["patches"] == [
        {"scope": "ctx", "path": ["n"], "value": 5},
        {"scope": "ctx", "path": ["twice"], "value": 10},
        {"scope": "ctx", "path": ["deep", "er"], "value": 1},
        {"scope": "iter", "path": ["mine"], "value": 11},
    ]


@pytest.mark.spec("000 §6.2 (3)")
def test_a_value_replaces_and_a_path_writes_below(engine: Engine) -> None:
    ran = engine(
        """
- step: start
  tool:
  - {kind: noop, set: {ctx.a: {b: 1}}}
  - {kind: noop, set: {ctx.a.c: 2}}
  - {kind: noop, set: {ctx.d: {new: 1}, ctx.e.f: 3}}
""",
        ctx={"a": {"old": 1}, "d": {"old": 1}, "e": 7},
    )
    assert ran.ctx == {"a": {"b": 1, "c": 2}, "d": {"new": 1}, "e": {"f": 3}}


@pytest.mark.spec("000 §6.3 (1)")
@pytest.mark.parametrize(
    "then",
    [
        '{do: continue, set_ctx: {x: "{{ 1 / 0 }}"}}',
        '{do: retry, delay: "{{ 1 / 0 }}"}',
        "{do: retry, delay: soon}",
    ],
)
def test_a_rule_that_cannot_be_applied_fails_the_pipeline_and_can_be_routed(
    engine: Engine, then: str
) -> None:
    text = with_rule(f"{{when: true, then: {then}}}")
    if "soon" in then:
        text = text.replace("soon", "\"{{ 'soon' }}\"")
    ran = engine(
        text
        + "  next: {arcs: [{step: handler, when: \"{{ event.error.kind == 'expression' }}\"}]}\n"
        + "- step: handler\n  tool: {kind: noop}\n"
    )
    assert (ran.status, ran.tasks()) == ("completed", ["one", "task_0"])


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("001 §9.2")
def test_jump_makes_a_loop_of_visits(engine: Engine) -> None:
    ran = engine("""
workload: {pages: 4}
workflow:
- step: start
  tool:
  - {name: init, kind: noop, set: {iter.page: 1, iter.got: []}}
  - name: fetch
    kind: noop
    args: {page: "{{ iter.page }}"}
    set: {iter.got: "{{ iter.got + [outcome.result.page] }}"}
  - name: paginate
    kind: noop
    spec:
      policy:
        rules:
        - when: "{{ iter.page < workload.pages }}"
          then: {do: jump, to: fetch, set_iter: {page: "{{ (iter.page | int) + 1 }}"}}
        - else: {then: {do: continue}}
  - {name: all, kind: noop, args: {got: "{{ iter.got }}"}}
""")
    assert ran.result == {"got": [1, 2, 3, 4]}
    visits = [(data["visit"], data["attempt"]) for data in ran.data("TaskStarted") if data["task"] == "fetch"]
    assert visits == [(1, 1), (2, 1), (3, 1), (4, 1)]
    jumps = [data["to"] for data in ran.data("TaskProcessed") if data["do"] == "jump"]
    assert jumps == ["fetch"] * 3


@pytest.mark.spec("000 §6.4")
def test_endless_jumps_are_ended(engine: Engine) -> None:
    ran = engine("""
- step: start
  spec: {max_transitions: 10}
  tool:
  - {name: a, kind: noop, args: {n: 1}}
  - name: b
    kind: noop
    spec: {policy: {rules: [{when: "{{ ctx.stop is undefined }}", then: {do: jump, to: a}}]}}
""")
    assert (ran.status, ran.error["kind"]) == ("failed", "jump_limit")
    assert ran.tasks() == ["a", "b"] * 6


@pytest.mark.spec("000 §4.3 (4)")
@pytest.mark.spec("000 §6.4")
def test_what_a_failed_step_wrote_stays(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - {kind: noop, set: {ctx.a: 1}}
  - {kind: noop, args: {x: "{{ 1 / 0 }}"}}
""")
    assert (ran.status, ran.ctx) == ("failed", {"a": 1})
