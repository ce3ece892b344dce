"""Where names come from: results of steps, args of arcs and tasks, the workload, labels."""

import pytest

from tests.checks.flow_playbooks import findings, messages, part_position

STEPS = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: fetch, when: "{{ workload.full }}" }
        - { step: report }
  - step: fetch
    tool: [{ name: get, kind: http, url: "http://127.0.0.1" }]
    next: { arcs: [{ step: report, when: "{{ event.name == 'step.done' }}" }] }
  - step: report
    tool: [{ kind: noop, args: { rows: "{{ NAME }}" } }]
"""


@pytest.mark.parametrize(
    ("name", "unset_path"),
    [
        ("steps.fetch.result.rows", "steps.fetch.result"),
        ("steps.fetch.status", "steps.fetch"),
        ("fetch.rows", "fetch"),
        ("fetch.data.rows", "fetch"),
    ],
)
def test_results_of_steps_that_have_not_run_are_unset(name: str, unset_path: str) -> None:
    (problem,) = findings(STEPS.replace("NAME", name))
    assert problem.message == f"`{unset_path}` may be unset when coming from `start` → `report`"
    assert problem.hint == f"`fetch` has not run on that way; write `{unset_path} | default(…)`"


def test_a_step_that_does_not_exist_is_an_error() -> None:
    text = STEPS.replace("NAME", "steps.fetsh.result")
    (problem,) = findings(text)
    assert (problem.code, problem.severity) == ("unknown-name", "error")
    assert (problem.line, problem.column) == part_position(text, "steps.fetsh")
    assert problem.message == "there is no step `fetsh`"
    assert problem.hint == "did you mean `fetch`?"


def test_a_step_that_does_not_exist_is_an_error_in_a_guard_and_with_a_default() -> None:
    text = STEPS.replace("workload.full", "steps.nowhere.result").replace(
        "NAME", "steps.never.result | default(1)"
    )
    assert [problem.code for problem in findings(text)] == ["unknown-name", "unknown-name"]


ARGS = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: report, when: "{{ workload.full }}", args: { size: 1, deep: { a: 1 } } }
        - { step: report }
  - step: report
    DEFAULTS
    tool: [{ kind: noop, args: { own: 1, n: "{{ NAME }}" } }]
"""


def test_args_must_be_on_every_arc() -> None:
    text = ARGS.replace("    DEFAULTS\n", "")
    for name in ("args.size", "args.deep.a"):
        (problem,) = findings(text.replace("NAME", name))
        assert problem.message == f"`{name}` may be unset when coming from `start` → `report`"
        assert problem.hint == f"give it on every arc there, or write `{name} | default(…)`"
    assert messages(text.replace("NAME", "size")) == [
        "`size` may be unset when coming from `start` → `report`"
    ]
    (problem,) = findings(text.replace("NAME", "args.amount"))
    assert (problem.message, problem.hint) == (
        "nothing sets `args.amount`",
        "add it to the `args` of the arcs to `report`",
    )


def test_a_step_s_own_args_are_defaults() -> None:
    for name in ("size", "args.size"):
        assert messages(ARGS.replace("DEFAULTS", "args: { size: 2 }").replace("NAME", name)) == []


def test_a_task_s_own_args_are_seen_by_its_inputs_and_its_policy_but_not_by_themselves() -> None:
    text = """\
workflow:
  - step: start
    tool:
      - kind: http
        args: { page: 1, again: "{{ args.page }}" }
        url: "http://127.0.0.1/{{ args.page }}/{{ page }}"
        spec:
          policy:
            rules:
              - else: { do: continue, set_ctx: { page: "{{ args.page }}" } }
      - { kind: noop, args: { n: "{{ args.page }}" } }
"""
    assert messages(text) == ["nothing sets `args.page`"]
    assert findings(text)[0].line == part_position(text, '{ page: 1, again: "{{ args.page }}" }')[0]


def test_a_set_on_an_arc_gives_args_and_writes_before_the_token() -> None:
    text = """\
workflow:
  - step: start
    next:
      arcs: [{ step: end, set: { size: 1, ctx.total: 2 }, args: { total: "{{ ctx.total }}" } }]
  - step: end
    tool: [{ kind: noop, args: { a: "{{ args.size }}", b: "{{ ctx.total }}", c: "{{ args.total }}" } }]
"""
    assert messages(text) == []


def test_a_bare_name_that_is_nothing_at_all() -> None:
    (problem,) = findings(ARGS.replace("    DEFAULTS\n", "").replace("NAME", "amount.total"))
    assert problem.message == "nothing sets `amount`"
    assert problem.hint == "declare it under `workload`, or pass it in the `args` of the arcs to `report`"
    (problem,) = findings(
        "workload: { amount: 1 }\n" + ARGS.replace("    DEFAULTS\n", "").replace("NAME", "amuont")
    )
    assert problem.hint == "did you mean `amount`?"


def test_the_entry_has_only_the_workload() -> None:
    text = 'workflow:\n  - step: start\n    tool: [{ kind: noop, args: { a: "{{ NAME }}" } }]\n'
    (problem,) = findings(text.replace("NAME", "args.amount"))
    assert (problem.message, problem.hint) == (
        "nothing sets `args.amount`",
        "the execution begins here without `args`; use `workload`",
    )
    (problem,) = findings(text.replace("NAME", "amount"))
    assert (problem.message, problem.hint) == ("nothing sets `amount`", "declare it under `workload`")


def test_a_bare_name_may_come_from_different_places_on_different_ways() -> None:
    text = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: end, when: "{{ workload.full }}", args: { page: 1 } }
        - { step: write }
  - step: write
    tool: [{ kind: noop, set: { ctx.page: 1 } }]
    next: { arcs: [{ step: end }] }
  - step: end
    tool: [{ kind: noop, args: { page: "{{ page }}" } }]
    next: { arcs: [{ step: last, args: { page: "{{ page }}" } }, { step: other }] }
  - step: last
    tool: [{ kind: noop, args: { page: "{{ args.page }}" } }]
"""
    assert messages(text) == []


def test_labels_are_seen_in_their_own_pipeline_alone() -> None:
    text = """\
workflow:
  - step: start
    tool: [{ name: fetch, kind: http, url: "http://127.0.0.1" }]
    next:
      arcs: [{ step: end, when: "{{ event.name == 'step.done' }}", args: { rows: "{{ fetch.rows }}" } }]
  - step: end
    tool: [{ kind: noop, args: { rows: "{{ fetch }}" } }]
"""
    problems = findings(text)
    assert [problem.message for problem in problems] == ["nothing sets `fetch`", "nothing sets `fetch`"]
    assert {problem.hint for problem in problems} == {
        "`fetch` is a task: its result is seen in its own pipeline, after it ran"
    }
