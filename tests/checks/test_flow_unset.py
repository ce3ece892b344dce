"""`unset-name` and `unknown-name` across the steps of a playbook."""

import pytest

from tests.checks.flow_playbooks import findings, messages, place

TWO_WAYS = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: count, when: "{{ workload.full }}" }
        - { step: report }
  - step: count
    tool: [{ name: sum, kind: noop, set: { ctx.page: 1 } }]
    next: { arcs: [{ step: report }] }
  - step: report
    tool: [{ name: show, kind: noop, args: { page: "{{ ctx.page }}" } }]
"""


def test_a_name_that_one_way_leaves_unset_is_reported_with_that_way() -> None:
    (problem,) = findings(TWO_WAYS)
    assert (problem.code, problem.severity) == ("unset-name", "warning")
    assert (problem.line, problem.column) == place(TWO_WAYS, "ctx.page }}")
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


GUARD = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: work, when: "{{ ctx.NAME == 1 }}" }
  - step: work
    tool: [{ kind: noop, set: { ctx.seen: 1 } }]
    next: { arcs: [{ step: start }] }
"""


def test_in_a_guard_only_names_that_nothing_ever_sets_are_reported() -> None:
    assert messages(GUARD.replace("NAME", "seen")) == []
    assert messages(GUARD.replace("NAME", "sene")) == ["nothing sets `ctx.sene`"]


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
    ("name", "shown"),
    [
        ("steps.fetch.result.rows", "steps.fetch.result"),
        ("steps.fetch.status", "steps.fetch"),
        ("fetch.rows", "fetch"),
        ("fetch.data.rows", "fetch"),
    ],
)
def test_results_of_steps_that_have_not_run_are_unset(name: str, shown: str) -> None:
    (problem,) = findings(STEPS.replace("NAME", name))
    assert problem.message == f"`{shown}` may be unset when coming from `start` → `report`"
    assert problem.hint == f"`fetch` has not run on that way; write `{shown} | default(…)`"


def test_a_step_that_does_not_exist_is_an_error() -> None:
    text = STEPS.replace("NAME", "steps.fetsh.result")
    (problem,) = findings(text)
    assert (problem.code, problem.severity) == ("unknown-name", "error")
    assert (problem.line, problem.column) == place(text, "steps.fetsh")
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
    assert findings(text)[0].line == place(text, '{ page: 1, again: "{{ args.page }}" }')[0]


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
    found = findings(text)
    assert [problem.message for problem in found] == ["nothing sets `fetch`", "nothing sets `fetch`"]
    assert {problem.hint for problem in found} == {
        "`fetch` is a task: its result is seen in its own pipeline, after it ran"
    }


@pytest.mark.parametrize(
    ("guard", "proves"),
    [
        ("ctx.page is defined", True),
        ("ctx.page", True),
        ("ctx.page > 3 and workload.full", True),
        ("ctx.page == 'x'", True),
        ("ctx.page | length > 0", True),
        ("not (ctx.page is undefined)", True),
        ("ctx.page is string", True),
        ("ctx.page is none", True),
        ("ctx.page | int > 3", True),
        ("ctx.page + 1 < 5", True),
        ("0 < ctx.page < 5", True),
        ("ctx.page[0].id == 3", True),
        ("ctx.page.startswith('a')", True),
        ("not (ctx.page != 3)", True),
        ("ctx.page != 3", False),
        ("ctx.page not in [3]", False),
        ("ctx.page is undefined", False),
        ("ctx.page or workload.full", False),
        ("ctx.page | length >= 0", False),
        ("ctx.page | default(4) > 3", False),
        ("ctx.page ~ 'x' == 'x'", False),
        ("(workload.full and ctx.page) is defined", False),
        ("(not ctx.page) is boolean", False),
    ],
)
def test_a_guard_that_holds_proves_the_names_it_compares(guard: str, proves: bool) -> None:
    text = TWO_WAYS.replace("- { step: report }\n", f'- {{ step: report, when: "{{{{ {guard} }}}}" }}\n')
    assert (messages(text) == []) is proves


def test_an_exclusive_arc_behind_one_for_the_undefined_is_for_the_defined() -> None:
    text = """\
workflow:
  - step: start
    next:
      arcs:
        - { step: init, when: "{{ ctx.page is undefined }}" }
        - { step: report }
  - step: init
    tool: [{ kind: noop, set: { ctx.page: 1 } }]
    next: { arcs: [{ step: start }] }
  - step: report
    tool: [{ kind: noop, args: { page: "{{ ctx.page }}" } }]
"""
    assert messages(text) == []


def test_admission_proves_what_its_rules_ask_for() -> None:
    text = TWO_WAYS.replace(
        "  - step: report\n    tool",
        """  - step: report
    spec:
      policy:
        admit:
          rules:
            - { when: "{{ ctx.page is defined }}", then: { allow: true } }
            - else: { allow: false }
    tool""",
    )
    assert messages(text) == []
    assert messages(text.replace("else: { allow: false }", "else: { allow: true }")) != []


def test_the_output_and_the_final_step_know_no_way() -> None:
    text = """\
executor:
  spec:
    output: "{{ ctx.page }} {{ ctx.pgae }}"
    final_step: tidy
workflow:
  - step: start
    next: { arcs: [{ step: write, when: "{{ workload.full }}" }] }
  - step: write
    tool: [{ kind: noop, set: { ctx.page: 1 } }]
  - step: tidy
    tool: [{ kind: noop, args: { a: "{{ ctx.page }}", b: "{{ args.summary }}", c: "{{ ctx.paeg }}" } }]
"""
    assert messages(text) == ["nothing sets `ctx.pgae`", "nothing sets `ctx.paeg`"]


def test_one_name_is_reported_once_in_each_step() -> None:
    text = TWO_WAYS.replace('{ page: "{{ ctx.page }}" }', '{ a: "{{ ctx.page }}", b: "{{ ctx.page + 1 }}" }')
    (problem,) = findings(text)
    assert (problem.line, problem.column) == place(text, "ctx.page }}")


def test_at_most_a_hundred_are_reported() -> None:
    args = ", ".join(f'a{n}: "{{{{ ctx.n{n} }}}}"' for n in range(150))
    text = f"workflow:\n  - step: start\n    tool: [{{ kind: noop, args: {{ {args} }} }}]\n"
    assert len(findings(text)) == 100


def test_a_workbook_task_is_reported_where_it_stands_and_once() -> None:
    text = """\
workflow:
  - step: start
    tool: [{ name: show, kind: workbook }]
    next: { arcs: [{ step: end }] }
  - step: end
    tool: [{ name: show, kind: workbook }]
workbook:
  tasks:
    show: { kind: noop, args: { page: "{{ ctx.page }}" } }
    unused: { kind: noop, args: { page: "{{ args.anything }}" } }
"""
    (problem,) = findings(text)
    assert (problem.line, problem.column) == place(text, "ctx.page")


def test_a_playbook_inside_a_task_is_checked_with_what_its_task_gives_it() -> None:
    text = """\
workflow:
  - step: start
    tool:
      - kind: playbook
        args: { rows: [1] }
        document:
          apiVersion: noetl.io/v2
          kind: Playbook
          metadata: { name: child, path: tests/child }
          workflow:
            - step: start
              tool: [{ kind: noop, args: { a: "{{ rows }}", b: "{{ workload.rows }}", c: "{{ columns }}" } }]
"""
    (problem,) = findings(text)
    assert problem.message == "nothing sets `columns`"
    assert (problem.line, problem.column) == place(text, "columns")


def test_a_document_that_was_not_read_whole_is_not_accused() -> None:
    assert messages(TWO_WAYS.replace("set: { ctx.page: 1 }", "sett: { ctx.page: 1 }")) == []


def test_an_error_that_loses_no_name_does_not_hide_the_others() -> None:
    text = TWO_WAYS.replace("next: { arcs: [{ step: report }] }", "next: { arcs: [{ step: reprot }] }")
    assert messages(text) == ["`ctx.page` may be unset when coming from `start` → `report`"]


def test_steps_that_nothing_leads_to_are_left_alone() -> None:
    text = """\
workflow:
  - step: start
    tool: [{ kind: noop, set: { ctx.page: 1 } }]
  - step: lost
    tool: [{ kind: noop, args: { page: "{{ ctx.page }}" } }]
"""
    assert messages(text) == []


def test_a_router_with_many_guards_is_judged_in_good_time() -> None:
    count = 1500
    arcs = "".join(
        f"""\
        - {{ step: end, when: "{{{{ ctx.n == {number} }}}}", args: {{ n: "{{{{ ctx.n }}}}" }} }}
"""
        for number in range(count)
    )
    text = f"""\
workflow:
  - step: start
    next:
      arcs:
{arcs}        - {{ step: count }}
  - step: count
    tool: [{{ kind: noop, set: {{ ctx.n: 1 }} }}]
    next: {{ arcs: [{{ step: start }}] }}
  - step: end
    tool: [{{ kind: noop, args: {{ n: "{{{{ args.n }}}}" }} }}]
"""
    assert messages(text) == []
