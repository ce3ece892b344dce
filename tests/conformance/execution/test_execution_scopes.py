"""What expressions see while a playbook runs (000 §3; 001 §7)."""

import pytest

from tests.conformance.execution.conformance_engine import Engine


@pytest.mark.spec("000 §3.1")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'{{ workload.id }}'", "007"),
        ("'{{ workload.n }}'", 5),
        ("'{{ workload.n }}{{ workload.n }}'", "55"),
        ("'{{ workload.list + [3] }}'", [1, 2, 3]),
        ("'n = {{ workload.n }}'", "n = 5"),
        ("'plain'", "plain"),
        ("{deep: ['{{ workload.n * 2 }}']}", {"deep": [10]}),
        ("\"{{ workload.missing | default('none') }}\"", "none"),
    ],
)
def test_expressions_give_native_values(engine: Engine, text: str, value: object) -> None:
    ran = engine(f"""
workload: {{id: "007", n: 5, list: [1, 2]}}
workflow:
- step: start
  tool: {{kind: noop, args: {{value: {text}}}}}
""")
    assert ran.result == {"value": value}


ALL = """
workload: {name: w, only: workload}
workflow:
- step: start
  tool: {kind: noop, args: {n: 1}, set: {ctx.name: c, ctx.mine: ctx}}
  next: {arcs: [{step: see, args: {given: "{{ event.result.n }}"%s}}]}
- step: see
  tool:
  - {name: first, kind: noop, args: {x: 1}, set: {iter.name: i, iter.it: iter}}
  - name: all
    kind: noop
    args:
      bare: "{{ name }}"
      workload: "{{ workload.name }}"
      ctx: "{{ ctx.name }}"
      iter: "{{ iter.name }}"
      args: "{{ args }}"
      id: "{{ execution_id == job.uuid }}"
      prev: "{{ _prev }}"
      task: "{{ _task }}"
      attempt: "{{ _attempt }}"
      label: "{{ first.x }}"
      step: "{{ start.n }}"
      steps: "{{ steps.start.status }}"
      others: "{{ [only, mine, it, given] }}"
"""


@pytest.mark.spec("000 §3.2 (1)")
@pytest.mark.spec("001 §7")
def test_the_namespaces_of_a_task(engine: Engine) -> None:
    assert engine(ALL % ", name: a").result == {
        "bare": "a",
        "workload": "w",
        "ctx": "c",
        "iter": "i",
        "args": {"given": 1, "name": "a"},
        "id": True,
        "prev": {"x": 1},
        "task": "all",
        "attempt": 1,
        "label": 1,
        "step": 1,
        "steps": "completed",
        "others": ["workload", "ctx", "iter", 1],
    }


@pytest.mark.spec("000 §3.3")
def test_bare_names_are_looked_for_in_args_ctx_iter_and_workload(engine: Engine) -> None:
    all_spaces = ALL % ", name: a"
    for text, expected in (
        (all_spaces, "a"),
        (ALL % "", "c"),
        ((ALL % "").replace("ctx.name: c, ", "").replace('"{{ ctx.name }}"', "none"), "i"),
        (
            (ALL % "")
            .replace("ctx.name: c, ", "")
            .replace('"{{ ctx.name }}"', "none")
            .replace("iter.name: i, ", "")
            .replace('"{{ iter.name }}"', "none"),
            "w",
        ),
    ):
        assert engine(text).result["bare"] == expected


@pytest.mark.spec("000 §3.2 (4)")
@pytest.mark.spec("000 §8.3")
def test_an_arc_sees_the_event_that_ended_the_step(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool: {name: work, kind: noop, args: {n: 1}}
  next: {arcs: [{step: see, args: {event: "{{ event }}", bare: "{{ work is defined }}"}}]}
- step: see
  tool: {kind: noop, args: {event: "{{ args.event }}"}}
""")
    event = ran.result["event"]
    (done,) = [event for event in ran.of("StepDone") if event["step_run_id"] == ran.runs("start")[0]]
    assert (event["name"], event["step"], event["result"]) == ("step.done", "start", {"n": 1})
    for name in ("event_id", "execution_id", "source", "entity", "entity_id", "status"):
        assert event[name] == done[name]


@pytest.mark.spec("000 §3.2 (3)")
def test_the_outcome_is_there_for_the_policy_alone(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - {name: one, kind: noop, args: {n: 1}, spec: {policy: {rules: [{else: {then: {do: continue, set_iter: {status: "{{ outcome.status }}"}}}}]}}}
  - {name: two, kind: noop, args: {status: "{{ iter.status }}"}}
""")
    assert ran.result == {"status": "ok"}


@pytest.mark.spec("000 §3.2 (2)")
def test_iter_is_the_scope_of_one_pass_through_a_pipeline(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - {name: one, kind: noop, set: {iter.a: 1}}
  - {name: two, kind: noop, args: {a: "{{ iter.a }}", at: "{{ iter.index }}"}}
  next: {arcs: [{step: end, args: {two: "{{ event.result }}"}}]}
- step: end
  tool: {kind: noop, args: {two: "{{ args.two }}", a: "{{ iter.a is defined }}"}}
""")
    assert ran.result == {"two": {"a": 1, "at": 0}, "a": False}


@pytest.mark.spec("001 §6.4")
def test_inner_specs_win_when_tasks_run(engine: Engine) -> None:
    """The rules are inherited from the executor, the step or the loop, and replaced by the task's own."""
    say = "{policy: {rules: [{else: {then: {do: continue, set_iter: {from: %s}}}}]}}"
    text = f"""
executor: {{kind: local, spec: {say % "executor"}}}
workflow:
- step: start
  STEP
  loop: {{in: [1], iterator: item LOOP}}
  tool:
  - {{name: one, kind: noop TASK}}
  - {{name: two, kind: noop, args: {{from: "{{{{ iter.from }}}}"}}, spec: {{policy: {{rules: []}}}}}}
"""
    for step, loop, task, expected in (
        ("", "", "", "executor"),
        (f"spec: {say % 'step'}", "", "", "step"),
        (f"spec: {say % 'step'}", f", spec: {say % 'loop'}", "", "loop"),
        (f"spec: {say % 'step'}", f", spec: {say % 'loop'}", f", spec: {say % 'task'}", "task"),
    ):
        written = text.replace("STEP", step or "desc: none").replace(" LOOP", loop).replace(" TASK", task)
        assert engine(written).result == [{"from": expected}]


@pytest.mark.spec("001 §8")
def test_a_task_of_the_workbook_runs_where_it_is_named(engine: Engine) -> None:
    ran = engine("""
workbook:
  tasks:
    double: {kind: python, args: {n: 1}, code: "result = n * 2"}
workflow:
- step: start
  tool:
  - {name: double, kind: workbook}
  - {name: again, kind: workbook, task: double, args: {n: "{{ _prev + 10 }}"}}
""")
    assert [data["outcome"]["result"] for data in ran.data("TaskProcessed")] == [2, 24]


@pytest.mark.spec("001 §1 (6)")
def test_all_forms_of_a_task_run(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - {name: a, kind: noop, args: {n: 1}}
  - b: {kind: noop, args: {n: 2}}
  - {kind: noop, args: {n: 3}}
  next: {arcs: [{step: one}]}
- step: one
  tool: {kind: noop, args: {n: "{{ start.n + 1 }}"}}
""")
    assert ran.tasks() == ["a", "b", "task_2", "task_0"]
    assert ran.result == {"n": 4}
