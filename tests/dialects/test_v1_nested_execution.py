"""Version 1 runs: what stands inside of something else, and who has the last word about an input."""

import pytest

from tests.dialects.dialect_execution import EndedExecution, run_v1


@pytest.mark.spec("004 §5")
@pytest.mark.parametrize(
    ("step", "token", "invocation", "seen"),
    [
        ("desc: none", "", "", "definition"),
        ("with: {x: step}", "", "", "step"),
        ("with: {x: step}", ", with: {x: token}", "", "token"),
        ("desc: none", ", with: {x: token}", "", "token"),
        ("with: {x: step}", ", with: {x: token}", ", with: {x: invocation}", "invocation"),
    ],
)
def test_the_nearest_input_counts(step: str, token: str, invocation: str, seen: str) -> None:
    old = run_v1(f"""\
workbook:
- {{task: see, type: python, code: "def main(input): return input['x']", with: {{x: definition}}}}
workflow:
- {{step: start, next: [{{then: [{{step: next{token}}}]}}]}}
- step: next
  {step}
  run: [{{task: see{invocation}}}]
""")
    assert (old.status, old.result) == ("completed", seen)


LOOP = """\
workload: {{items: [1, 2, 3], go: true}}
workbook:
- {{task: first, type: python, code: "def main(input): return 12"}}
- task: each
  type: loop
  when: "{{{{ workload.go }}}}"
  in: "{{{{ workload.items }}}}"
  iterator: item
  run:
{run}
- {{task: note, type: python, code: "def main(input): return input", with: {{kind: "{{{{ steps.start.error.kind }}}}"}}}}
workflow:
- step: start
  run: {tasks}
  next: [{{then: [{{step: end}}]}}]
- {{step: end}}
- {{step: error_handler, run: [{{task: note}}]}}
"""
DIVIDE = """\
  - {task: divide, type: python, with: {n: "{{ item }}", of: "{{ first.result | default(6) }}"}, code: "def main(input): return input['of'] // input['n']"}"""


def loop(
    run: str = DIVIDE, tasks: str = "[{task: first}, {task: each}]", **workload: object
) -> EndedExecution:
    return run_v1(LOOP.format(run=run, tasks=tasks), workload)


@pytest.mark.spec("004 §3.1.2")
@pytest.mark.spec("004 §6")
def test_a_failure_within_a_loop_goes_to_the_error_handler() -> None:
    nested, alone = loop(items=[1, 0]), loop(tasks="[{task: each}]", items=[1, 0])
    assert nested == EndedExecution(
        "completed", {"kind": "child_failed"}, None, {"start": 1, "error_handler": 1}
    )
    assert alone.steps == {"start": 1, "error_handler": 1}


@pytest.mark.spec("004 §3.1.2")
@pytest.mark.parametrize(("go", "result"), [(True, [12, 6, 4]), (False, 12)])
def test_a_loop_may_have_a_condition(go: bool, result: object) -> None:
    assert loop(go=go).result == result


@pytest.mark.spec("004 §3.1")
@pytest.mark.spec("004 §3.1.1")
def test_conditions_hold_for_each_iteration() -> None:
    tasks = """\
  - {task: a, type: python, with: {n: "{{ item }}"}, code: "def main(input): return input['n']"}
  - {task: b, type: python, when: "{{ item > 1 }}", with: {n: "{{ a.result }}"}, code: "def main(input): return input['n'] * 10"}"""
    assert loop(tasks).result == [1, 20, 30]
    group = """\
  - task: group
    type: task
    when: "{{ item != 2 }}"
    run:
    - {task: a, type: python, with: {n: "{{ item }}"}, code: "def main(input): return input['n']"}
    - {task: b, type: python, with: {n: "{{ a.result + item }}"}, code: "def main(input): return input['n'] * 10"}"""
    assert loop(group).result == [20, None, 60]


@pytest.mark.spec("004 §6")
def test_a_handler_that_fails_fails_the_execution() -> None:
    old = run_v1("""\
workbook:
- {task: bad, type: python, code: "def main(input): return 1 / 0"}
workflow:
- {step: start, run: [{task: bad}]}
- {step: error_handler, run: [{task: bad}]}
""")
    assert old == EndedExecution("failed", None, "python", {"start": 1, "error_handler": 1})


@pytest.mark.spec("004 §4.3")
@pytest.mark.spec("004 §6")
def test_branches_that_meet_run_the_step_for_each() -> None:
    old = run_v1("""\
workbook:
- {task: see, type: python, code: "def main(input): return input['x']", with: {x: 0}}
workflow:
- {step: start, next: [{then: [{step: a}, {step: b}]}]}
- {step: a, run: [{task: see}], next: [{then: [{step: end, with: {x: 1}}]}]}
- {step: b, run: [{task: see}], next: [{then: [{step: meet, with: {x: 2}}]}]}
- {step: meet, run: [{task: see}], next: [{then: [{step: end}]}]}
- {step: end}
""")
    assert (old.status, old.steps) == ("completed", {"start": 1, "a": 1, "b": 1, "meet": 1, "end": 2})
    assert old.result in (0, 2), "of the run that ended last"
