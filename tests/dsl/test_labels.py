"""Labels of tasks and steps that the inputs of a task mention."""

from noetl.dsl.document.playbook import Task
from noetl.expr.template import Constant, MappingTemplate, template_uses
from tests.playbooks import playbook_of, problems_of

TEXT = """\
workflow:
- step: start
  tool:
    - { name: orders, kind: noop }
    - name: total
      kind: duckdb
      query: |
        select "end", ORDERS.id, later.id, total, 'report' -- other
        from Orders join "later-on" using (id) join {{ workload.table }} using (id)
      params: {}
    - { name: other, kind: noop }
  next: { arcs: [{ step: later-on }, { step: report }] }
- step: later-on
  tool: { kind: duckdb, query: "from nothing" }
- step: report
  tool: { kind: noop }
"""


def task(step_name: str, label: str) -> Task:
    step = playbook_of(TEXT + "workload: { table: t }\n").steps[step_name]
    return next(task_ for task_ in step.tasks if task_.label == label)


def test_they_come_as_an_input_under_the_names_that_are_written() -> None:
    labels = task("start", "total").inputs["labels"]
    assert isinstance(labels, MappingTemplate)
    read = {name: {use.path for use in template_uses(value)} for name, value in labels.entries.items()}
    assert read == {
        "ORDERS": {("orders",)},
        "Orders": {("orders",)},
        "later-on": {("steps", "later-on", "result")},
    }


def test_there_is_no_such_input_where_nothing_is_mentioned_or_the_kind_reads_none() -> None:
    assert task("later-on", "task_0").inputs == {"query": Constant("from nothing")}
    assert "labels" not in task("start", "orders").inputs


def test_a_label_that_may_not_have_run_is_no_problem_and_labels_cannot_be_written() -> None:
    step = "workflow:\n- step: start\n  tool: { kind: duckdb, query: from later%s }\n"
    step += "- step: later\n  tool: { kind: noop }\n"
    assert [problem.code for problem in problems_of(step % "")] == ["unreachable-step"]
    assert "unknown-key" in [problem.code for problem in problems_of(step % ", labels: {}")]


def test_a_database_is_a_file() -> None:
    step = "workflow:\n- step: start\n  tool: { kind: duckdb, query: select 1, database: 'md://shop' }\n"
    (problem,) = problems_of(step)
    assert (problem.code, problem.message) == ("bad-input", "a database is a file of this machine")
