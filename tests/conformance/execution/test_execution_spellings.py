"""Spellings that playbooks in the wild use, accepted as equals, when they run."""

import pytest

import noetl
from tests.conformance.execution.conformance_engine import Engine
from tests.web_server import WebAnswer, web_server

START = "- step: start\n"


@pytest.mark.spec("000 §6.2 (3)")
@pytest.mark.spec("000 §6.3 (1)")
def test_input_output_and_set(engine: Engine) -> None:
    ran = engine("""
- step: start
  input: {a: 1, b: 2}
  tool:
  - {name: one, kind: noop, input: {n: "{{ a + b }}"}, set: {ctx.task: "{{ output.data.n }}", iter.i: "{{ output.status }}"}}
  - name: two
    kind: noop
    input: {n: "{{ _prev.n * 2 }}"}
    spec: {policy: {rules: [{when: "{{ output.data.n == 6 }}", then: {do: continue, set: {ctx.rule: "{{ iter.i }}"}}}]}}
  set: {ctx.step: "{{ event.result.n }}"}
  next: {arcs: [{step: end, set: {ctx.arc: "{{ ctx.step + 1 }}", c: 9}, args: {b: 5}}]}
- step: end
  input: {a: 7, b: 8}
  tool: {kind: noop, args: {args: "{{ args }}", arc: "{{ ctx.arc }}"}}
""")
    assert ran.ctx == {"task": 3, "rule": "ok", "step": 6, "arc": 7}
    assert ran.result == {"args": {"a": 7, "b": 5, "c": 9}, "arc": 7}


@pytest.mark.spec("000 §8.3")
@pytest.mark.parametrize(
    ("step", "event"),
    [
        ("tool: {kind: noop}", "call.done"),
        ("loop: {in: [1], iterator: i}\n  tool: {kind: noop}", "call.done"),
        ("tool: {kind: noop, args: {x: '{{ 1 / 0 }}'}}", "call.error"),
    ],
)
def test_the_events_of_calls(engine: Engine, step: str, event: str) -> None:
    ran = engine(f"""
- step: start
  {step}
  next: {{arcs: [{{step: end, when: "{{{{ event.name == '{event}' }}}}"}}]}}
- step: end
  tool: {{kind: noop}}
""")
    assert (ran.status, len(ran.runs("end"))) == ("completed", 1)


@pytest.mark.spec("000 §6.2 (2)")
@pytest.mark.parametrize(
    "otherwise", ["else: {then: {do: break}}", "else: {do: break}", "else: \n          then: {do: break}"]
)
def test_forms_of_else_and_a_rule_that_always_holds(engine: Engine, otherwise: str) -> None:
    ran = engine(f"""
- step: start
  tool:
  - name: one
    kind: noop
    spec:
      policy:
        rules:
        - when: false
          then: {{do: fail}}
        - {otherwise}
  - {{name: two, kind: noop, spec: {{policy: {{rules: [{{when: true, then: {{do: fail}}}}]}}}}}}
""")
    assert (ran.status, ran.tasks()) == ("completed", ["one"])


@pytest.mark.spec("001 §8")
@pytest.mark.parametrize(
    "workbook",
    ["{tasks: {double: {kind: noop, args: {n: 2}}}}", "[{name: double, kind: noop, args: {n: 2}}]"],
)
def test_forms_of_the_workbook(engine: Engine, workbook: str) -> None:
    ran = engine(
        f"workbook: {workbook}\nworkflow:\n- step: start\n  tool: {{name: double, kind: workbook}}\n"
    )
    assert ran.result == {"n": 2}


@pytest.mark.spec("001 §4")
def test_an_executor_with_a_profile_runs(engine: Engine) -> None:
    assert engine(
        "executor: {kind: local, profile: small}\nworkflow:\n- step: start\n  tool: {kind: noop, args: {n: 1}}\n"
    ).result == {"n": 1}


@pytest.mark.spec("000 §3.2 (1)")
def test_the_id_of_the_job_and_the_data_of_a_result(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool: {kind: noop, args: {id: "{{ job.uuid }}", n: 1}}
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, args: {same: "{{ start.data.n }}", id: "{{ start.id == execution_id }}", result: "{{ steps.start.result.n }}"}}
""")
    assert ran.result == {"same": 1, "id": True, "result": 1}


@pytest.mark.spec("000 §2.4")
@pytest.mark.parametrize(
    ("task", "result"),
    [
        ("libs: {m: math}\n    code: result = m.floor(2.5)", 2),
        ("libs: {sq: {from: math, import: sqrt}}\n    code: result = sq(9)", 3.0),
        ("args: {a: 1, b: 2}\n    code: result = args", {"a": 1, "b": 2}),
        ("args: {a: 1}\n    code: result = input_data['a']", 1),
        ("args: {input_data: 5}\n    code: result = input_data", 5),
        ("args: {a: 1, b: 2}\n    code: 'def main(a, b): return a + b'", 3),
        ("args: {a: 1, b: 2}\n    code: 'def main(input): return input'", {"a": 1, "b": 2}),
        ("code: 'async def main(): return 4'", 4),
        ("code: return 5", 5),
        ("script: code.py\n    args: {a: 1}", 2),
        ("script: {uri: code.py, source: {type: file}}\n    args: {a: 1}", 2),
        ("script: {source: {type: inline, code: 'result = 7'}}", 7),
        ("script: {uri: URL/code.py, source: {type: http}}", 8),
        ("script: {source: {type: http, endpoint: URL/code.py}}", 8),
    ],
)
def test_forms_of_python(engine: Engine, task: str, result: object) -> None:
    (engine.folder / "code.py").write_text("result = a + 1\n")
    with web_server(lambda _: WebAnswer(b"result = 8", headers={"content-type": "text/plain"})) as web:
        local_task = task.replace("URL", web.url)
        engine.write("p.yaml", f"- step: start\n  tool:\n    kind: python\n    {local_task}\n")
        done = noetl.run(engine.folder / "p.yaml")
    assert (done.status, done.result) == ("completed", result), done.error


@pytest.mark.spec("000 §2.4")
@pytest.mark.parametrize(
    ("task", "method", "query", "body"),
    [
        ("endpoint: URL/x\n    params: {a: 1}", "GET", {"a": "1"}, None),
        ("method: POST\n    url: URL/x\n    payload: {a: 1}", "POST", {}, {"a": 1}),
        ("method: PUT\n    url: URL/x\n    data: {a: 1}", "PUT", {}, {"a": 1}),
        ("method: POST\n    url: URL/x\n    json: [1]", "POST", {}, [1]),
    ],
)
def test_forms_of_http(engine: Engine, task: str, method: str, query: object, body: object) -> None:
    with web_server(lambda _: WebAnswer({"got": 1})) as web:
        ran = engine(f"""
- step: start
  tool:
  - name: call
    kind: http
    {task.replace("URL", web.url)}
  - {{name: see, kind: noop, args: {{code: "{{{{ _prev.status_code }}}}", data: "{{{{ call.data.got }}}}"}}}}
""")
        (request,) = web.requests
    assert ran.result == {"code": 200, "data": 1}
    assert (request.method, request.query, request.body) == (method, query, body)


@pytest.mark.spec("000 §9.1")
@pytest.mark.parametrize(
    ("step", "task"),
    [
        ("", "spec: {result: {select: [{path: '$.rows[0].id', as: first}]}}"),
        ("", "output_select: [{path: '$.rows[0].id', as: first}]"),
        ("", "output_select: [first]"),
        ("spec: {result: {select: [{path: '$.rows[0].id', as: first}]}}", ""),
        ("output_select: [{path: '$.rows[0].id', as: first}]", ""),
        ("output_select: ['$.first']", ""),
    ],
)
def test_what_is_selected_from_a_result_can_be_routed_by(engine: Engine, step: str, task: str) -> None:
    ran = engine(f"""
- step: start
  {step}
  tool:
    kind: python
    code: "result = {{'first': 7, 'rows': [{{'id': n, 'text': 'x' * 100}} for n in range(7, 5000)]}}"
    {task}
  next: {{arcs: [{{step: end, when: "{{{{ event.result.extracted.first == 7 }}}}"}}]}}
- step: end
  tool: {{kind: noop, args: {{ok: true}}}}
""")
    assert (ran.status, ran.result) == ("completed", {"ok": True})


@pytest.mark.spec("000 §3.2 (1)")
def test_the_id_of_the_job_is_known_wherever_the_execution_s_is(engine: Engine) -> None:
    ran = engine("""
- step: start
  spec: {policy: {admit: {rules: [{when: "{{ job.uuid == execution_id }}", then: {allow: true}}]}}}
  tool:
    kind: python
    args: {id: "{{ job.uuid }}"}
    code: result = id
  next: {arcs: [{step: end, when: "{{ event.result == job.uuid }}", args: {id: "{{ job.uuid }}"}}]}
- step: end
  tool: {kind: noop, args: {text: "job {{ job.uuid }}", id: "{{ args.id }}"}}
""")
    name = ran.execution.execution_id
    assert ran.result == {"text": f"job {name}", "id": name}


@pytest.mark.spec("000 §1.1")
@pytest.mark.parametrize("more", ["payload: {n: 4}", "args: {n: 4}", "args: {n: 4}\n    return_step: end"])
def test_forms_of_a_call(engine: Engine, more: str) -> None:
    engine.write(
        "child.yaml",
        "workload: {n: 0}\nworkflow:\n- step: end\n  tool: {kind: noop, args: {n: '{{ workload.n }}'}}\n",
    )
    ran = engine(f"- step: start\n  tool:\n    kind: playbook\n    path: docs/page\n    {more}\n")
    assert ran.result == {"n": 4}


@pytest.mark.spec("000 §2.4")
@pytest.mark.parametrize(
    "task",
    ["seconds: 0.01", "seconds: \"{{ '0.01' }}\"", "until: '2020-01-01T00:00:00Z'", "until: '2020-01-01'"],
)
def test_forms_of_a_wait(engine: Engine, task: str) -> None:
    ran = engine(f"- step: start\n  tool: {{kind: wait, {task}}}\n")
    assert ran.status == "completed"
    assert "RunSuspended" in ran.names
