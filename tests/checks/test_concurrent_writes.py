"""`concurrent-write`: steps that write one path of `ctx` and may run at the same time."""

import pytest

from tests.checks.flow_playbooks import findings, messages, part_position


def workflow(arcs: str, *, mode: str = "inclusive", left: str = "total", right: str = "total") -> str:
    return f"""\
workflow:
  - step: start
    next:
      spec: {{ mode: {mode} }}
      arcs:
        {arcs}
  - step: left
    tool: [{{ kind: noop, set: {{ ctx.{left}: 1 }} }}]
    next: {{ arcs: [{{ step: both }}] }}
  - step: right
    tool: [{{ kind: noop, set: {{ ctx.{right}: 2 }} }}]
    next: {{ arcs: [{{ step: both }}] }}
  - step: both
    spec: {{ policy: {{ join: all }} }}
    tool: [{{ kind: noop, set: {{ ctx.total: 3 }} }}]
"""


FORK = "[{ step: left }, { step: right }]"


@pytest.mark.parametrize("right", ["total", "total.sum"])
def test_two_branches_of_one_fork_that_write_one_path(right: str) -> None:
    text = workflow(FORK, right=right)
    (problem,) = findings(text)
    assert (problem.code, problem.severity) == ("concurrent-write", "warning")
    assert (problem.line, problem.column) == part_position(text, f"ctx.{right}: 2")
    assert problem.message == (
        f"`ctx.{right}` is written by `left` and `right`, which may run at the same time after `start`"
    )
    assert problem.hint == "write different paths, or one step after the other"


def test_different_paths_do_not_meet() -> None:
    assert messages(workflow(FORK, left="total.a", right="total.b")) == []


def test_exclusive_branches_do_not_meet() -> None:
    guarded = '[{ step: left, when: "{{ workload.full }}" }, { step: right }]'
    assert messages(workflow(guarded, mode="exclusive")) == []
    assert len(messages(workflow(guarded))) == 1


@pytest.mark.parametrize(
    ("guard", "other_guard"),
    [
        ("event.name == 'step.done'", "event.name == 'step.failed'"),
        ("workload.full", "not workload.full"),
        ("workload.size == 'a'", "workload.size == 'b'"),
        ("workload.size == 'a'", "workload.size in ['b', 'c'] and workload.full"),
        ("workload.size == 'a'", "workload.size != 'a'"),
        ("workload.size > 3", "workload.size <= 3"),
        ("not (workload.size < 3)", "workload.size < 3 and workload.full"),
        ("workload.size is defined", "workload.size is undefined"),
        ("workload.a and workload.b", "not (workload.a and workload.b) and workload.c"),
        ("workload.a or workload.b", "not (workload.a or workload.b)"),
        ("workload.a or workload.b", "not workload.a and not workload.b"),
        ("workload.size in ('a', 'b')", "workload.size in ('c', 'd')"),
    ],
)
def test_guards_that_exclude_each_other_do_not_make_a_fork(guard: str, other_guard: str) -> None:
    arcs = (
        f'[{{ step: left, when: "{{{{ {guard} }}}}" }}, {{ step: right, when: "{{{{ {other_guard} }}}}" }}]'
    )
    assert messages(workflow(arcs)) == []


@pytest.mark.parametrize(
    ("guard", "other_guard"),
    [
        ("workload.full", "workload.size"),
        ("workload.size > 3", "workload.size > 5"),
        ("workload.size == 'a'", "workload.size in ['a', 'b']"),
        ("workload.a or workload.b", "not workload.a"),
        ("not (workload.a and workload.b)", "not (workload.a and workload.c)"),
        ("not (workload.size <= 3)", "not (workload.size > 3)"),
    ],
)
def test_guards_that_may_hold_together_do(guard: str, other_guard: str) -> None:
    arcs = (
        f'[{{ step: left, when: "{{{{ {guard} }}}}" }}, {{ step: right, when: "{{{{ {other_guard} }}}}" }}]'
    )
    assert len(messages(workflow(arcs))) == 1


def test_guards_with_many_alternatives_are_compared_in_good_time() -> None:
    guard = " or ".join(f"(workload.a{number} and workload.b{number})" for number in range(15))
    other_guard = " or ".join(f"(not workload.a{number} and workload.c{number})" for number in range(15))
    arcs = (
        f'[{{ step: left, when: "{{{{ {guard} }}}}" }}, {{ step: right, when: "{{{{ {other_guard} }}}}" }}]'
    )
    assert len(messages(workflow(arcs))) == 1


def test_a_step_before_the_fork_and_one_behind_the_join_do_not_meet_the_branches() -> None:
    text = workflow(FORK, left="a", right="b").replace(
        "  - step: start\n", "  - step: start\n    set: { ctx.a: 1 }\n"
    )
    text = text.replace("ctx.total: 3", "ctx.b: 3")
    assert messages(text) == []


def test_without_a_join_the_step_where_branches_meet_runs_twice() -> None:
    text = workflow(FORK, left="a", right="b").replace("    spec: { policy: { join: all } }\n", "")
    (problem,) = findings(text)
    assert (problem.line, problem.column) == part_position(text, "ctx.total: 3")
    assert problem.message == "`ctx.total` is written by several runs of `both` at once after `start`"
    assert problem.hint == "give `both` `spec.policy.join: all`, or write it elsewhere"


def test_one_step_after_the_other_in_one_branch_does_not_meet() -> None:
    text = """\
workflow:
  - step: start
    next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: other }] }
  - step: a
    tool: [{ kind: noop, set: { ctx.total: 1 } }]
    next: { arcs: [{ step: b }] }
  - step: b
    tool: [{ kind: noop, set: { ctx.total: 2 } }]
  - step: other
    tool: [{ kind: noop, set: { ctx.unrelated: 2 } }]
"""
    assert messages(text) == []


def test_a_join_that_does_not_wait_for_a_branch_may_run_beside_it() -> None:
    text = """\
workflow:
  - step: start
    next: { spec: { mode: inclusive }, arcs: [{ step: a }, { step: b }, { step: aside }] }
  - step: a
    next: { arcs: [{ step: both }] }
  - step: b
    next: { arcs: [{ step: both }] }
  - step: both
    spec: { policy: { join: all } }
    tool: [{ kind: noop, set: { ctx.total: 1 } }]
  - step: aside
    tool: [{ kind: noop, set: { ctx.total: 1 } }]
"""
    assert messages(text) == [
        "`ctx.total` is written by `both` and `aside`, which may run at the same time after `start`"
    ]


@pytest.mark.parametrize("mode", ["any", "{ count: 2 }"])
def test_what_follows_another_join_may_run_beside_a_branch_but_not_twice(mode: str) -> None:
    text = workflow(FORK, left="a", right="total").replace("join: all", f"join: {mode}")
    assert messages(text) == [
        "`ctx.total` is written by `right` and `both`, which may run at the same time after `start`"
    ]


@pytest.mark.parametrize(("reducer", "meets"), [("sum", False), ("append", True)])
def test_reducers_that_do_not_mind_the_order_do_not_meet(reducer: str, meets: bool) -> None:
    loop = f"""
    loop:
      in: [1, 2]
      iterator: item
      spec: {{ mode: parallel, reduce: {{ total: {reducer} }} }}"""
    text = (
        workflow(FORK)
        .replace("step: left\n", f"step: left{loop}\n")
        .replace("step: right\n", f"step: right{loop}\n")
    )
    text = text.replace("ctx.total: 3", "ctx.other: 3")
    assert (messages(text) != []) is meets


def test_writes_of_arcs_and_rules_count_too() -> None:
    text = workflow(FORK, left="a", right="b").replace("ctx.total: 3", "ctx.other: 3")
    text = text.replace(
        "arcs: [{ step: both }] }\n  - step: right",
        "arcs: [{ step: both, set: { ctx.c: 1 } }] }\n  - step: right",
    )
    text = text.replace(
        "set: { ctx.b: 2 } }]",
        "spec: { policy: { rules: [{ else: { do: continue, set_ctx: { c: 1 } } }] } } }]",
    )
    assert messages(text) == [
        "`ctx.c` is written by `left` and `right`, which may run at the same time after `start`"
    ]
