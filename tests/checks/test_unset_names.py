"""`unset-name` across the steps of a playbook: the ways that lead to a name."""

import pytest

from tests.checks.flow_playbooks import TWO_WAYS, findings, messages, part_position


def test_a_name_that_one_way_leaves_unset_is_reported_with_that_way() -> None:
    (problem,) = findings(TWO_WAYS)
    assert (problem.code, problem.severity) == ("unset-name", "warning")
    assert (problem.line, problem.column) == part_position(TWO_WAYS, "ctx.page }}")
    assert problem.message == "`ctx.page` may be unset when coming from `start` → `report`"
    assert problem.hint == "set it on every way there, or write `ctx.page | default(…)`"


def test_the_shortest_way_is_given_and_the_middle_of_a_long_one_left_out() -> None:
    chain = "".join(
        f"  - step: s{n}\n    next: {{ arcs: [{{ step: s{n + 1} }}, {{ step: write, when: false }}] }}\n"
        for n in range(7)
    )
    text = f"""\
workflow:
  - step: start
    next: {{ spec: {{ mode: inclusive }}, arcs: [{{ step: s0 }}, {{ step: write }}] }}
{chain}  - step: s7
    tool: [{{ kind: noop, args: {{ page: "{{{{ ctx.page }}}}" }} }}]
  - step: write
    tool: [{{ kind: noop, set: {{ ctx.page: 1 }} }}]
"""
    assert messages(text) == [
        "`ctx.page` may be unset when coming from `start` → `s0` → … → `s5` → `s6` → `s7`"
    ]


def test_a_name_that_every_way_sets_is_fine() -> None:
    assert (
        messages(TWO_WAYS.replace("step: report }\n  - step: count", "step: count }\n  - step: count")) == []
    )


def test_the_entry_begins_with_nothing() -> None:
    text = """\
workflow:
  - step: start
    tool: [{ kind: noop, args: { n: "{{ ctx.n }}" } , set: { ctx.n: 1 } }]
    next: { arcs: [{ step: start, when: "{{ ctx.n < 3 }}" }] }
"""
    assert messages(text) == ["`ctx.n` may be unset when the execution begins with `start`"]


def test_a_name_that_nothing_sets_is_reported_with_the_name_that_was_meant() -> None:
    text = TWO_WAYS.replace("{{ ctx.page }}", "{{ ctx.pgae }}")
    (problem,) = findings(text)
    assert problem.message == "nothing sets `ctx.pgae`"
    assert problem.hint == "did you mean `ctx.page`?"


def test_a_name_like_no_other_may_come_with_the_request() -> None:
    (problem,) = findings(TWO_WAYS.replace("{{ ctx.page }}", "{{ ctx.customer }}"))
    assert problem.message == "nothing sets `ctx.customer`"
    assert problem.hint == "`set_ctx` sets it; or give it with the request"


@pytest.mark.parametrize(
    "expression",
    [
        "ctx.page | default(1)",
        "ctx.page is defined",
        "ctx.page if ctx.page is defined else 1",
        "ctx.page or 1",
        "ctx",
        "ctx.signals.page",
        "workload.page",
        "iter.index",
        "iter.count",
        "execution_id",
        "job.uuid",
        "now()",
        "range(3) | list",
        "_prev",
        "run",
        "args",
    ],
)
def test_what_is_always_there_or_provided_for_is_never_reported(expression: str) -> None:
    text = f"""\
workload: {{ full: true }}
workflow:
  - step: start
    tool: [{{ kind: noop, args: {{ page: "{{{{ {expression} }}}}" }} }}]
"""
    assert messages(text) == []


@pytest.mark.parametrize("written", ["page", "page.size", "page.size.rows"])
def test_a_write_sets_what_is_inside_it_and_what_it_is_inside_of(written: str) -> None:
    text = f"""\
workflow:
  - step: start
    tool: [{{ kind: noop, set: {{ ctx.{written}: 1 }} }}]
    next: {{ arcs: [{{ step: end }}] }}
  - step: end
    tool: [{{ kind: noop, args: {{ a: "{{{{ ctx.page.size }}}}" }} }}]
"""
    assert messages(text) == []
    assert messages(text.replace("ctx.page.size }}", "ctx.page.other }}")) == (
        [] if written == "page" else ["nothing sets `ctx.page.other`"]
    )


def test_an_arc_after_a_failure_brings_only_what_was_set_before() -> None:
    text = """\
workflow:
  - step: start
    tool:
      - { name: before, kind: noop, set: { ctx.early: 1 } }
      - { name: fetch, kind: http, url: "http://127.0.0.1", set: { ctx.late: 1 } }
    next:
      arcs:
        - { step: good, when: "{{ event.name == 'step.done' }}" }
        - { step: bad, when: "{{ event.name == 'step.failed' }}" }
  - step: good
    tool: [{ kind: noop, args: { a: "{{ ctx.early }}", b: "{{ ctx.late }}", c: "{{ start }}" } }]
  - step: bad
    tool:
      - kind: noop
        args: { a: "{{ ctx.early }}", b: "{{ ctx.late }}", c: "{{ steps.start.error }}", d: "{{ start }}" }
"""
    assert messages(text) == [
        "`ctx.late` may be unset when coming from `start` → `bad`",
        "`start` may be unset when coming from `start` → `bad`",
    ]


def test_an_exclusive_arc_behind_one_that_takes_every_success_follows_a_failure() -> None:
    text = """\
workflow:
  - step: start
    tool: [{ name: fetch, kind: http, url: "http://127.0.0.1", set: { ctx.late: 1 } }]
    next:
      arcs:
        - { step: good, when: "{{ event.name == 'step.done' }}" }
        - { step: bad }
  - step: good
    tool: [{ kind: noop, args: { b: "{{ ctx.late }}" } }]
  - step: bad
    tool: [{ kind: noop, args: { b: "{{ ctx.late }}" } }]
"""
    assert messages(text) == ["`ctx.late` may be unset when coming from `start` → `bad`"]


def test_what_a_failing_rule_writes_is_there_after_the_failure() -> None:
    text = """\
workflow:
  - step: start
    tool:
      - name: fetch
        kind: http
        url: "http://127.0.0.1"
        spec:
          policy:
            rules:
              - when: "{{ outcome.status == 'error' }}"
                then: { do: fail, set_ctx: { reason: "{{ outcome.error.message }}" } }
              - else: { do: continue }
    next: { arcs: [{ step: bad, when: "{{ event.name == 'step.failed' }}" }] }
  - step: bad
    tool: [{ kind: noop, args: { reason: "{{ ctx.reason }}" } }]
"""
    assert messages(text) == []


def test_a_step_has_its_own_result_in_its_own_set() -> None:
    text = """\
workflow:
  - step: count
    tool: { kind: python, code: "result = {'n': 3}", args: { own: "{{ args.own | default(0) }}" } }
    set: { ctx.n: "{{ count.n }}", ctx.how: "{{ steps.count.status }}" }
"""
    assert messages(text) == []
    assert messages(text.replace("args.own | default(0)", "count.n")) != [], "before it ran there is none"
