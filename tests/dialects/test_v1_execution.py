"""Version 1 runs: each construct of 004, and what says the same canonically."""

from typing import Any

import pytest

from tests.dialects.dialect_execution import EndedExecution, run_canonical, run_v1
from tests.web_server import WebAnswer, web_server

MAIN = '"def main(input): return %s"'


def python(name: str, value: str, more: str = "") -> str:
    return f"- {{task: {name}, type: python, code: {MAIN % value}{more}}}\n"


def main(name: str, value: str, more: str = "") -> str:
    """The same task as an entry of a canonical pipeline."""
    return f"{{name: {name}, kind: python, code: {MAIN % value}{more}}}"


TASK = "workbook:\n" + python("work", "{'n': input['n'] + 1}")


@pytest.mark.spec("004 §6")
@pytest.mark.spec("004 §3.1.4")
@pytest.mark.spec("004 §5")
def test_a_step_runs_a_task_of_the_workbook_and_ends_at_end() -> None:
    old = run_v1(
        TASK
        + """\
workflow:
- step: start
  run: [{task: work, with: {n: "{{ workload.n }}"}}]
  next: [{then: [{step: end}]}]
- step: end
workload: {n: 1}
"""
    )
    new = run_canonical(f"""\
workload: {{n: 1}}
workflow:
- step: start
  tool: [{main("work", "{'n': input['n'] + 1}", ', args: {n: "{{ workload.n }}"}')}]
  next: {{arcs: [{{step: end, when: "{{{{ event.name != 'step.failed' }}}}"}}]}}
- step: end
  tool: {{kind: noop}}
""")
    assert old == new == EndedExecution("completed", {"n": 2}, None, {"start": 1, "end": 1})


@pytest.mark.spec("004 §2")
def test_the_workload_is_rendered_once_and_requests_are_not() -> None:
    text = """\
workload: {name: World, text: "hello {{ workload.name }}", list: [1, "{{ 1 + 1 }}"]}
workbook:
- {task: see, type: python, code: "def main(input): return input", with: {text: "{{ workload.text }}", list: "{{ workload.list }}"}}
workflow: [{step: start, run: [{task: see}]}]
"""
    assert run_v1(text).result == {"text": "hello World", "list": [1, 2]}
    assert run_v1(text, {"text": "{{ 1 / 0 }}"}).result == {"text": "{{ 1 / 0 }}", "list": [1, 2]}


ROUTES = (
    TASK
    + """\
workload: {n: 0}
workflow:
- step: start
  run: [{task: work, with: {n: "{{ workload.n }}"}}]
  next:
  - {when: "{{ result.n > 10 }}", then: [{step: big, with: {n: "{{ result.n }}"}}, {step: also}]}
  - {when: "{{ result.n > 5 }}", then: [{step: middle}]}
  - {then: [{step: small}]}
- {step: big, run: [{task: work}]}
- {step: also}
- {step: middle}
- {step: small}
"""
)


@pytest.mark.spec("004 §4.3")
@pytest.mark.spec("004 §7")
@pytest.mark.parametrize(
    ("n", "steps"),
    [
        (20, {"start", "big", "also"}),
        (10, {"start", "big", "also"}),
        (5, {"start", "middle"}),
        (0, {"start", "small"}),
    ],
)
def test_the_first_transition_that_holds_fires_all_its_steps(n: int, steps: set[str]) -> None:
    old = run_v1(ROUTES, {"n": n})
    new = run_canonical(
        f"""\
workload: {{n: 0}}
workflow:
- step: start
  tool: [{main("work", "{'n': input['n'] + 1}", ', args: {n: "{{ workload.n }}"}')}]
  next:
    spec: {{mode: inclusive}}
    arcs:
    - {{step: big, when: "{{{{ event.result.n > 10 }}}}", args: {{n: "{{{{ event.result.n }}}}"}}}}
    - {{step: also, when: "{{{{ event.result.n > 10 }}}}"}}
    - {{step: middle, when: "{{{{ 5 < event.result.n <= 10 }}}}"}}
    - {{step: small, when: "{{{{ event.result.n <= 5 }}}}"}}
- step: big
  tool: [{main("work", "{'n': input['n'] + 1}", ', args: {n: "{{ args.n }}"}')}]
- {{step: also, tool: {{kind: noop}}}}
- {{step: middle, tool: {{kind: noop}}}}
- {{step: small, tool: {{kind: noop}}}}
""",
        {"n": n},
    )
    assert old == new
    assert set(old.steps) == steps


HANDLED = """\
workbook:
- {task: work, type: python, code: "def main(input): return 6 // input['n']", with: {n: "{{ workload.n }}"}}
- {task: note, type: python, code: "def main(input): return 'handled'"}
workload: {n: 0}
workflow:
- step: start
  run: [{task: work}]
  next: [%s{then: [{step: after}]}]
- {step: after}
%s
"""


@pytest.mark.spec("004 §6")
@pytest.mark.parametrize("transition", ["", "{then: [{step: error_handler}]}, "])
def test_a_failure_goes_to_the_error_handler(transition: str) -> None:
    text = HANDLED % (transition, "- {step: error_handler, run: [{task: note}]}")
    assert run_v1(text) == EndedExecution("completed", "handled", None, {"start": 1, "error_handler": 1})
    assert run_v1(text, {"n": 2}) == EndedExecution("completed", 3, None, {"start": 1, "after": 1})


@pytest.mark.spec("004 §4.3")
@pytest.mark.parametrize("condition", [True, False])
@pytest.mark.parametrize("targets", [["after"], ["after", "also"]])
def test_a_condition_for_the_error_handler_keeps_no_fallback_from_firing(
    targets: list[str], condition: bool
) -> None:
    fallback = ", ".join(f"{{step: {target}}}" for target in targets)
    text = HANDLED % (
        '{when: "{{ workload.strict }}", then: [{step: error_handler}]}, ',
        "- {step: also}\n- {step: error_handler, run: [{task: note}]}",
    )
    text = text.replace("{then: [{step: after}]}", f"{{then: [{fallback}]}}")
    done = run_v1(text, {"n": 2, "strict": condition})
    assert done == EndedExecution("completed", 3, None, {"start": 1, **dict.fromkeys(targets, 1)})
    failed = run_v1(text, {"n": 0, "strict": condition})
    assert failed == EndedExecution("completed", "handled", None, {"start": 1, "error_handler": 1})


@pytest.mark.spec("004 §6")
def test_without_a_handler_a_failure_fails_the_execution() -> None:
    assert run_v1(HANDLED % ("", "")) == EndedExecution("failed", None, "python", {"start": 1})


@pytest.mark.spec("004 §4.2")
@pytest.mark.spec("004 §5")
def test_a_run_list_is_a_pipeline_and_results_have_names() -> None:
    old = run_v1(
        f"""\
workbook:
{python("one", "1")}{python("two", "input['a'] + input['b']", ", with: {b: 100}")}
workflow:
- step: start
  with: {{a: 5, b: 7}}
  run:
  - {{task: one}}
  - {{task: two, with: {{a: "{{{{ one.result + a }}}}"}}}}
  - {{task: two}}
  next: [{{then: [{{step: end, with: {{sum: "{{{{ result + one.result }}}}"}}}}]}}]
- step: see
- step: end
  run: [{{task: two, with: {{a: "{{{{ sum }}}}", b: "{{{{ start.result }}}}"}}}}]
""".replace("- step: see\n", "")
    )
    new = run_canonical(f"""\
workflow:
- step: start
  args: {{a: 5, b: 7}}
  tool:
  - {main("one", "1")}
  - {main("two", "input['a'] + input['b']", ', args: {a: "{{ one + args.a }}", b: "{{ args.b }}"}')}
  - {main("two_2", "input['a'] + input['b']", ', args: {a: "{{ args.a }}", b: "{{ args.b }}"}')}
  next: {{arcs: [{{step: end, args: {{sum: "{{{{ event.result + 1 }}}}"}}}}]}}
- step: end
  tool:
  - {main("two", "input['a'] + input['b']", ', args: {a: "{{ args.sum }}", b: "{{ start }}"}')}
""")
    assert (old.status, old.result, old.steps) == (new.status, new.result, new.steps)
    assert old.result == (5 + 7) + 1 + 12


@pytest.mark.spec("004 §3.1")
@pytest.mark.spec("004 §3.1.1")
def test_a_composite_task_runs_its_tasks_in_order_in_its_own_scope() -> None:
    old = run_v1("""\
workbook:
- task: both
  type: task
  with: {base: 10}
  run:
  - {task: one, type: python, with: {n: "{{ base + 1 }}"}, code: "def main(input): return input['n']"}
  - task: deeper
    type: task
    run:
    - {task: one, type: python, with: {n: "{{ one.result * 2 }}"}, code: "def main(input): return input['n']"}
- {task: last, type: python, code: "def main(input): return [input['n']]"}
workflow:
- step: start
  run: [{task: both, with: {base: 20}}, {task: last, with: {n: "{{ both.result }}"}}]
""")
    assert (old.status, old.result) == ("completed", [42])


LOOP = """\
- task: each
  type: loop
  in: "{{ workload.items }}"
  iterator: item
  run:
  - {task: double, type: python, with: {n: "{{ item }}"}, code: "def main(input): return input['n'] * 2"}
  - {task: wrap, type: python, with: {n: "{{ double.result }}"}, code: "def main(input): return {'n': input['n']}"}
"""


@pytest.mark.spec("004 §3.1.2")
@pytest.mark.spec("004 §6")
@pytest.mark.parametrize("items", [[], [1, 2, 3]])
def test_a_loop_gathers_the_results_of_its_last_task(items: list[int]) -> None:
    old = run_v1(
        f"""\
workload: {{items: []}}
workbook:
{LOOP}{python("count", "len(input['got'])")}
workflow:
- step: start
  run: [{{task: each}}]
  next: [{{then: [{{step: end, with: {{got: "{{{{ result }}}}"}}}}]}}]
- step: end
  run: [{{task: count}}]
""",
        {"items": items},
    )
    new = run_canonical(
        f"""\
workload: {{items: []}}
workflow:
- step: start
  loop: {{in: "{{{{ workload.items }}}}", iterator: item}}
  tool:
  - {main("double", "input['n'] * 2", ', args: {n: "{{ iter.item }}"}')}
  - {main("wrap", "{'n': input['n']}", ', args: {n: "{{ double }}"}')}
  next: {{arcs: [{{step: end, args: {{got: "{{{{ event.result }}}}"}}}}]}}
- step: end
  tool: [{main("count", "len(input['got'])", ', args: {got: "{{ args.got }}"}')}]
""",
        {"items": items},
    )
    assert old == new
    assert old.result == len(items)


@pytest.mark.spec("004 §3.1.2")
@pytest.mark.spec("004 §5")
def test_a_loop_beside_other_tasks_and_a_loop_in_a_loop() -> None:
    old = run_v1(f"""\
workload: {{items: [1, 2]}}
workbook:
{LOOP}
- task: table
  type: loop
  in: "{{{{ workload.items }}}}"
  iterator: row
  run:
  - task: cells
    type: loop
    in: "{{{{ [10, 20] }}}}"
    iterator: column
    run:
    - {{task: cell, type: python, with: {{n: "{{{{ row * column + base }}}}"}}, code: "def main(input): return input['n']"}}
{python("all", "[input['each'], input['table']]", ', with: {each: "{{ each.result }}", table: "{{ table.result }}"}')}
workflow:
- step: start
  with: {{base: 100}}
  run: [{{task: each}}, {{task: table}}, {{task: all}}]
""")
    assert (old.status, old.error) == ("completed", None)
    assert old.result == [[{"n": 2}, {"n": 4}], [[110, 120], [120, 140]]]


@pytest.mark.spec("004 §3.1")
@pytest.mark.parametrize(
    ("run", "want", "result"),
    [
        ("[{task: one}, {task: maybe}, {task: last}]", True, "maybe"),
        ("[{task: one}, {task: maybe}, {task: last}]", False, "one"),
        ("[{task: one}, {task: maybe}]", True, {"prev": "maybe"}),
        ("[{task: one}, {task: maybe}]", False, {"prev": "one"}),
    ],
)
def test_a_task_may_have_a_condition(run: str, want: bool, result: object) -> None:
    old = run_v1(
        f"""\
workload: {{want: true}}
workbook:
{python("one", "'one'")}{python("maybe", "'maybe'", ', when: "{{ workload.want }}"')}
{python("last", "input['prev']", ', with: {prev: "{{ _prev }}"}')}
workflow:
- step: start
  run: {run}
  next: [{{then: [{{step: end, with: {{prev: "{{{{ result }}}}"}}}}]}}]
- step: end
  run: [{{task: last, with: {{prev: "{{{{ args.prev }}}}"}}}}]
""".replace("\n\n", "\n"),
        {"want": want},
    )
    expected = result["prev"] if isinstance(result, dict) else result
    assert (old.status, old.result) == ("completed", expected)


@pytest.mark.spec("004 §3.1.3")
@pytest.mark.parametrize(
    ("more", "request_count", "status"),
    [
        ("", 1, "failed"),
        (", retry: 2, retry_delay: 0", 3, "completed"),
        (", retry: 1", 2, "failed"),
        (", on_error: continue", 1, "completed"),
    ],
)
def test_an_http_task_retries_and_says_what_an_error_does(more: str, request_count: int, status: str) -> None:
    left = [2]

    def flaky(_: object) -> WebAnswer:
        left[0] -= 1
        return WebAnswer("busy", 503) if left[0] >= 0 else WebAnswer({"n": 7})

    with web_server(flaky) as web:
        old = run_v1(f"""\
workbook:
- {{task: fetch, type: http, method: GET, endpoint: "{web.url}/data"{more}}}
workflow: [{{step: start, run: [{{task: fetch}}]}}]
""")
        assert len(web.requests) == request_count
    assert old.status == status


@pytest.mark.spec("004 §3.1.3")
@pytest.mark.parametrize(
    ("payload", "body"),
    [
        ('{n: "{{ workload.n }}", deep: {m: 1}}', {"n": 5, "deep": {"m": 1}}),
        ("\"{{ {'n': workload.n} }}\"", {"n": 5}),
    ],
)
def test_an_http_task_sends_params_and_a_payload(payload: str, body: object) -> None:
    with web_server(
        lambda request: WebAnswer({"query": request.query, "body": request.body, "path": request.path})
    ) as web:
        old = run_v1(f"""\
workload: {{n: 5}}
workbook:
- task: send
  type: http
  method: POST
  endpoint: "{web.url}/{{{{ workload.n }}}}"
  params: {{page: "{{{{ workload.n + 1 }}}}"}}
  payload: {payload}
workflow: [{{step: start, run: [{{task: send}}]}}]
""")
        (request,) = web.requests
        assert request.method == "POST"
    assert old.result["data"] == {"query": {"page": "6"}, "body": body, "path": "/5"}


@pytest.mark.spec("004 §7")
def test_context_is_what_the_execution_shares() -> None:
    """The scoped hierarchy of context and results: what a task gave is read by later steps."""
    old: Any = run_v1(f"""\
workbook:
{python("one", "{'a': 1}")}{python("two", "{'b': 2}")}
{python("see", "[input['one'], input['two'], input['ctx']]", ', with: {one: "{{ one.result.a }}", two: "{{ start.result.b }}", ctx: "{{ context.nothing | default(3) }}"}')}
workflow:
- {{step: start, run: [{{task: one}}, {{task: two}}], next: [{{then: [{{step: end}}]}}]}}
- {{step: end, run: [{{task: see}}]}}
""")
    assert (old.status, old.result) == ("completed", [1, 2, 3])


@pytest.mark.spec("004 §6")
def test_a_step_that_leads_back_runs_again() -> None:
    old = run_v1("""\
workbook:
- {task: count, type: python, with: {n: "{{ n | default(0) }}"}, code: "def main(input): return input['n'] + 1"}
workflow:
- step: start
  run: [{task: count}]
  next:
  - {when: "{{ result < 4 }}", then: [{step: start, with: {n: "{{ result }}"}}]}
  - {then: [{step: end}]}
- step: end
""")
    assert old == EndedExecution("completed", 4, None, {"start": 4, "end": 1})
