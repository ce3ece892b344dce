"""Which parts of a document are looked at, and where and how often a name is reported."""

from tests.checks.flow_playbooks import TWO_WAYS, findings, messages, part_position


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
    assert (problem.line, problem.column) == part_position(text, "ctx.page }}")


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
    assert (problem.line, problem.column) == part_position(text, "ctx.page")


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
    assert (problem.line, problem.column) == part_position(text, "columns")


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
