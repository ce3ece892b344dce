"""Drafts run: each construct of 003, and what says the same canonically."""

import pytest

import noetl
from tests.dialects.dialect_execution import MEMORY, EndedExecution, run_canonical, run_draft
from tests.playbooks import HEADER


@pytest.mark.spec("003 §2.1")
@pytest.mark.spec("003 §8.3")
@pytest.mark.spec("003 §5.1")
def test_a_list_of_arcs_routes_tokens_with_args() -> None:
    old = run_draft("""\
        workflow:
        - step: start
          tool: [{one: {kind: noop, args: {n: 1}}}]
          next: [{step: a, when: "{{ event.result.n == 2 }}"}, {step: b, args: {m: "{{ event.result.n + 1 }}"}}]
        - step: a
          tool: [{x: {kind: noop}}]
        - step: b
          tool: [{x: {kind: noop, args: {m: "{{ args.m }}"}}}]
        """)
    new = run_canonical("""\
        workflow:
        - step: start
          tool: [{name: one, kind: noop, args: {n: 1}}]
          next: {arcs: [{step: a, when: "{{ event.result.n == 2 }}"}, {step: b, args: {m: "{{ event.result.n + 1 }}"}}]}
        - step: a
          tool: {kind: noop}
        - step: b
          tool: {kind: noop, args: {m: "{{ args.m }}"}}
        """)
    assert old == new == EndedExecution("completed", {"m": 2}, None, {"start": 1, "b": 1})


@pytest.mark.spec("003 §4.2")
@pytest.mark.parametrize(
    ("spec", "steps"),
    [
        ("spec: {}", {"start", "a"}),
        ("spec: {next_mode: exclusive}", {"start", "a"}),
        ("spec: {next_mode: inclusive}", {"start", "a", "b"}),
    ],
)
def test_next_mode_chooses_how_arcs_fire(spec: str, steps: set[str]) -> None:
    old = run_draft(f"""\
        workflow:
        - step: start
          {spec}
          tool: [{{x: {{kind: noop}}}}]
          next: [{{step: a}}, {{step: b}}]
        - step: a
          tool: [{{x: {{kind: noop}}}}]
        - step: b
          tool: [{{x: {{kind: noop}}}}]
        """)
    assert (old.status, set(old.steps)) == ("completed", steps)


@pytest.mark.spec("003 §2.2")
@pytest.mark.spec("003 §4.3")
def test_a_step_with_a_guard_waits_until_it_holds_or_is_left_out() -> None:
    text = (
        HEADER
        + """\
workload: {write: %s}
workflow:
- step: start
  spec: {next_mode: inclusive}
  tool: [{x: {kind: noop}}]
  next: [{step: gate}, {step: writer}]
- step: gate
  when: "{{ ctx.go == 1 }}"
  tool: [{x: {kind: noop, args: {in: true}}}]
- step: writer
  tool: [{x: {kind: noop, eval: [{expr: "{{ workload.write }}", do: continue, set_ctx: {go: 1}}]}}]
"""
    )
    opened, shut = (noetl.run(text % write, store=MEMORY, dialect="draft") for write in ("true", "false"))
    assert (opened.status, opened.steps["gate"]["runs"], opened.discarded) == ("completed", 1, [])
    assert (shut.status, shut.steps["gate"]["status"]) == ("completed", "not_admitted")
    assert shut.discarded == [{"step": "gate", "reason": "parked"}]


PIPELINE = """\
workflow:
- step: start
  tool:
  - one: {kind: noop, args: {n: 1}, eval: [%s]}
  - two: {kind: noop, args: {n: 2, prev: "{{ _prev }}", task: "{{ _task }}", attempt: "{{ _attempt }}"}}
  - three: {kind: noop, args: {n: 3, prev: "{{ _prev.n }}"}}
  next: [{step: failed, when: "{{ event.name == 'step.failed' }}"}]
- step: failed
  tool: [{x: {kind: noop, args: {failed: true}}}]
"""


@pytest.mark.spec("003 §6.4")
@pytest.mark.spec("003 §6.2")
@pytest.mark.spec("003 §3.5")
@pytest.mark.parametrize(
    ("rule", "result"),
    [
        ("do: continue", {"n": 3, "prev": 2}),
        ("do: jump, to: three", {"n": 3, "prev": 1}),
        ("do: break", {"n": 1}),
        ("do: fail", {"failed": True}),
        ("do: retry, attempts: 2, backoff: fixed, delay: 0", {"failed": True}),
    ],
)
def test_the_five_directives(rule: str, result: object) -> None:
    ways = (
        f"{{expr: \"{{{{ outcome.status == 'success' and outcome.result.n == 1 }}}}\", {rule}}}",
        f"{{expr: \"{{{{ outcome.status == 'ok' }}}}\", do: fail}}, {{else: {{{rule}}}}}",
        f"{{expr: false, do: fail}}, {{else: {{{rule}}}}}",
    )
    for way in ways:
        old = run_draft(PIPELINE % way)
        assert (old.status, old.result) == ("completed", result)


FAILING = """\
workflow:
- step: start
  tool:
  - work: {kind: python, code: "%s"%s}
  - after: {kind: noop, args: {after: "{{ _prev }}"}}
"""


@pytest.mark.spec("003 §6.3")
@pytest.mark.spec("003 §5.3")
@pytest.mark.parametrize(
    ("code", "rules", "status"),
    [
        ("result = 1", "", "completed"),
        ("1 / 0", "", "failed"),
        ("1 / 0", ", eval: [{expr: \"{{ outcome.status == 'success' }}\", do: break}]", "failed"),
        ("1 / 0", ", eval: [{expr: \"{{ outcome.error.kind == 'sql' }}\", do: continue}]", "failed"),
        ("1 / 0", ", eval: [{expr: \"{{ outcome.error.kind == 'python' }}\", do: continue}]", "completed"),
        ("1 / 0", ", eval: [{expr: \"{{ outcome.status != 'success' }}\", do: continue}]", "completed"),
        (
            "1 / 0",
            ", eval: [{expr: \"{{ 'ZeroDivision' in outcome.py.exception }}\", do: continue}]",
            "completed",
        ),
        ("1 / 0", ", eval: [{else: {do: continue}}]", "completed"),
    ],
)
def test_an_error_that_no_rule_matches_fails(code: str, rules: str, status: str) -> None:
    assert run_draft(FAILING % (code, rules)).status == status


@pytest.mark.spec("003 §5.3")
def test_a_draft_sees_success_where_the_canonical_form_sees_ok() -> None:
    old = run_draft("""\
        workflow:
        - step: start
          tool:
          - one: {kind: noop, eval: [{else: {do: continue, set_iter: {status: "{{ outcome.status }}", upper: "{{ outcome.status | upper }}"}}}]}
          - two: {kind: noop, args: {status: "{{ iter.status }}", upper: "{{ iter.upper }}"}}
        """)
    assert old.result == {"status": "success", "upper": "SUCCESS"}


@pytest.mark.spec("003 §5.3")
@pytest.mark.parametrize(("code", "status"), [("result = {'status': 'ok'}", "success"), ("1 / 0", "error")])
def test_an_outcome_that_is_passed_on_keeps_the_status_of_the_draft(code: str, status: str) -> None:
    old = run_draft(f"""\
        workflow:
        - step: start
          tool:
          - work:
              kind: python
              code: "{code}"
              eval:
              - else:
                  do: continue
                  set_ctx: {{o: "{{{{ outcome }}}}", all: ["{{{{ output }}}}"]}}
                  set_vars: {{named: "{{% set o = outcome %}}{{{{ o.status }}}}", got: "{{{{ outcome.get('status') }}}}"}}
                  set_shared: {{seen: {{append: "{{{{ outcome }}}}"}}}}
                  set_iter: {{json: "{{{{ (outcome | tojson | from_json).status }}}}"}}
          - collect:
              kind: noop
              args: {{seen: "{{{{ vars.named }}}} {{{{ vars.got }}}} {{{{ iter.json }}}} {{{{ vars.seen[0].status }}}}"}}
          next: [{{step: same, when: "{{{{ ctx.o.status == '{status}' }}}}", args: {{seen: "{{{{ event.result.seen }}}}"}}}}]
        - step: same
          tool:
          - see:
              kind: noop
              args:
                seen: "{{{{ args.seen }}}}"
                mapped: "{{{{ ctx.all | map(attribute='status') | list }}}}"
                result: "{{{{ ctx.o.result }}}}"
        """)
    result = {"status": "ok"} if status == "success" else None
    expected = {"seen": " ".join([status] * 4), "mapped": [status], "result": result}
    assert (old.status, old.result) == ("completed", expected)


@pytest.mark.spec("003 §5.3")
def test_what_a_task_sets_sees_the_status_of_the_draft() -> None:
    old = run_draft("""\
        workflow:
        - step: start
          tool:
          - one: {kind: noop, set: {ctx.status: "{{ outcome.status }}", ctx.o: "{{ outcome }}"}}
          - two: {kind: noop, args: {seen: "{{ [ctx.status, ctx.o.status] }}"}}
        """)
    assert old.result == {"seen": ["success", "success"]}


@pytest.mark.spec("003 §5.3")
def test_the_outcome_of_a_large_result_can_be_passed_on() -> None:
    old = run_draft("""\
        workflow:
        - step: start
          tool:
          - big:
              kind: python
              code: "result = ['x' * 100] * 300000"
              eval: [{else: {do: continue, set_prev: "{{ outcome.get('status') }}"}}]
          - two: {kind: noop, args: {seen: "{{ _prev }}"}}
        """)
    assert old.result == {"seen": "success"}


@pytest.mark.spec("003 §3.2")
@pytest.mark.spec("003 §3.3")
@pytest.mark.spec("003 §3.4")
@pytest.mark.spec("003 §6.2")
@pytest.mark.spec("003 §8.2")
def test_writes_go_to_the_iteration_the_step_and_the_execution() -> None:
    old = run_draft("""\
        workflow:
        - step: start
          tool:
          - one:
              kind: noop
              args: {n: 1}
              eval:
              - else:
                  do: continue
                  set_iter: {i: 1}
                  set_vars: {v: "{{ outcome.result.n + 1 }}"}
                  set_ctx: {c: 3}
                  set_shared: {s: 4}
                  set_prev: {n: 5}
          - two: {kind: noop, args: {all: "{{ [iter.i, vars.v, ctx.c, vars.s, _prev.n] }}"}}
          next:
          - {step: end, when: "{{ vars.v == 2 }}", args: {all: "{{ event.result.all }}", v: "{{ vars.v }}"}}
        - step: end
          tool: [{x: {kind: noop, args: {all: "{{ args.all }}", v: "{{ args.v }}", gone: "{{ vars.v is undefined }}", c: "{{ ctx.c }}"}}}]
        """)
    new = run_canonical("""\
        workflow:
        - step: start
          tool:
          - name: one
            kind: noop
            args: {n: 1}
            spec:
              policy:
                rules:
                - else:
                    then:
                      do: continue
                      set_iter: {i: 1}
                      set_run: {v: "{{ outcome.result.n + 1 }}", s: 4}
                      set_ctx: {c: 3}
                      set_prev: {n: 5}
          - {name: two, kind: noop, args: {all: "{{ [iter.i, run.v, ctx.c, run.s, _prev.n] }}"}}
          next:
            arcs:
            - {step: end, when: "{{ run.v == 2 }}", args: {all: "{{ event.result.all }}", v: "{{ run.v }}"}}
        - step: end
          tool: {kind: noop, args: {all: "{{ args.all }}", v: "{{ args.v }}", gone: "{{ run.v is undefined }}", c: "{{ ctx.c }}"}}
        """)
    assert old == new
    assert old.result == {"all": [1, 2, 3, 4, 5], "v": 2, "gone": True, "c": 3}


@pytest.mark.spec("003 §3.1")
@pytest.mark.spec("003 §3.6")
def test_bare_names_are_looked_for_in_args_ctx_and_workload() -> None:
    text = """\
        workload: {name: w}
        workflow:
        - step: start
          tool: [{x: {kind: noop, eval: [{else: {do: continue%s}}]}}]
          next: [{step: end%s}]
        - step: end
          tool: [{x: {kind: noop, args: {name: "{{ name }}", w: "{{ workload.name }}"}}}]
        """
    for write, args, value in (
        ("", "", "w"),
        (", set_ctx: {name: c}", "", "c"),
        (", set_ctx: {name: c}", ", args: {name: a}", "a"),
    ):
        assert run_draft(text % (write, args)).result == {"name": value, "w": "w"}


@pytest.mark.spec("003 §1.1")
def test_a_file_may_say_itself_that_it_is_a_draft() -> None:
    text = HEADER.replace("path: docs/page", "path: docs/page, dialect: draft")
    done = noetl.run(
        text
        + "workflow:\n- {step: start, tool: [{x: {kind: noop, args: {n: 1}}}], next: [{step: end}]}\n- {step: end, tool: [{x: {kind: noop}}]}\n",
        store=MEMORY,
    )
    assert done.result == {"n": 1}
    with pytest.raises(noetl.PlaybookInvalid):
        run_canonical("workflow:\n- {step: start, tool: [{x: {kind: noop}}], next: [{step: start}]}\n")


@pytest.mark.spec("003 §2.2")
@pytest.mark.spec("003 §8.3")
@pytest.mark.parametrize("k", [2, 3])
def test_a_guard_reads_args_and_workload_and_an_arc_may_be_a_name(k: int) -> None:
    old = run_draft(
        """\
        workload: {k: 2}
        workflow:
        - {step: start, tool: [{x: {kind: noop}}], next: [{step: a, args: {go: true}}]}
        - {step: a, when: "{{ args.go and workload.k == 2 }}", tool: [{x: {kind: noop}}], next: b}
        - {step: b, tool: [{x: {kind: noop, args: {in: 1}}}]}
        """,
        {"k": k},
    )
    assert old.status == "completed"
    assert set(old.steps) == ({"start", "a", "b"} if k == 2 else {"start"})
