"""What an implementation MUST reject never begins (000 §13)."""

import pytest

import noetl
from tests.conformance.execution.conformance_engine import Engine
from tests.web_server import WebAnswer, web_server

OK = "- step: start\n  tool: {kind: noop}\n"
WRONG = {
    "000 §13 (1)": (OK + OK, "duplicate-step"),
    "000 §13 (2)": ("- step: start\n  next: {arcs: [{step: nowhere}]}\n", "unknown-step"),
    "000 §13 (3)": ("- step: start\n  loop: {in: [1]}\n  tool: {kind: noop}\n", "loop-incomplete"),
    "000 §13 (4)": ("- step: start\n  tool: {kind: telegraph}\n", "unknown-kind"),
    "000 §13 (5)": (f"vars: {{a: 1}}\nworkflow:\n{OK}", "root-vars"),
    "000 §13 (6)": ("- step: start\n  when: true\n  tool: {kind: noop}\n", "step-when"),
    "000 §13 (7)": ("- step: start\n  tool: {kind: noop, spec: {policy: []}}\n", "policy-shape"),
    "000 §6.2 (1)": ("- step: start\n  tool: {kind: noop, spec: {policy: {rule: []}}}\n", "policy-shape"),
    "000 §2.2 (2)": ("- step: start\n  desc: empty\n", "empty-step"),
}


@pytest.mark.parametrize(
    ("text", "code"),
    [pytest.param(*case, marks=pytest.mark.spec(clause), id=clause) for clause, case in WRONG.items()],
)
def test_what_must_be_rejected_does_not_run(engine: Engine, text: str, code: str) -> None:
    with pytest.raises(noetl.PlaybookInvalid) as caught:
        engine(text)
    assert code in [problem.code for problem in caught.value.problems]
    assert engine.command_output("executions", "list")["executions"] == []


@pytest.mark.spec("000 §13 (4)")
@pytest.mark.spec("000 §4.1 (3)")
def test_a_kind_that_is_only_allowed_fails_before_anything_happens(engine: Engine) -> None:
    engine.write("p.yaml", OK + "  next: {arcs: [{step: send}]}\n- step: send\n  tool: {kind: telegraph}\n")
    assert engine.command("validate", "p.yaml", "--allow-kind", "telegraph").code == 0
    with pytest.raises(noetl.CannotRun, match="telegraph"):
        noetl.run(engine.folder / "p.yaml", allow_kinds=["telegraph"])
    assert engine.command_output("executions", "list")["executions"] == []


BASIC = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: example_playbook, path: workflows/example_playbook, version: "2.0"}
executor: {kind: distributed, spec: {pool: default}}
workload: {api_url: "%s", page_size: 50}
workflow:
- step: start
  desc: Entry transition (pure routing)
  next: {spec: {mode: exclusive}, arcs: [{step: fetch_transform_store}]}
- step: fetch_transform_store
  tool:
  - name: fetch_page
    kind: http
    method: GET
    url: "{{ workload.api_url }}/data"
    params: {page: 1, pageSize: "{{ workload.page_size }}"}
    spec:
      timeout: {connect: 5, read: 15}
      policy:
        rules:
        - when: "{{ outcome.status == 'error' and outcome.http.status in [429,500,502,503,504] }}"
          then: {do: retry, attempts: 5, backoff: exponential, delay: 0.001}
        - when: "{{ outcome.status == 'error' }}"
          then: {do: fail}
        - else: {then: {do: continue}}
  - {name: transform, kind: python, args: {data: "{{ _prev }}"}, code: "result = {'items': data['data']}"}
  - {name: store, kind: python, args: {rows: "{{ _prev['items'] }}"}, code: "result = {'stored': len(rows)}"}
  next: {spec: {mode: exclusive}, arcs: [{step: end, when: "{{ event.name == 'step.done' }}"}]}
- step: end
  desc: Terminal transition
  tool: [{name: done, kind: noop}]
"""


@pytest.mark.spec("001 §2")
@pytest.mark.spec("001 §4")
@pytest.mark.spec("002 §1")
def test_the_basic_structure_runs(engine: Engine) -> None:
    """The example of the guide; its last task counts what it would have stored."""
    answers = iter([WebAnswer("busy", 503), WebAnswer([1, 2, 3])])
    with web_server(lambda _: next(answers)) as web:
        ran = engine(BASIC % web.url)
        assert [request.query for request in web.requests] == [{"page": "1", "pageSize": "50"}] * 2
    assert (ran.status, ran.result) == ("completed", {"stored": 3})
    assert ran.tasks() == ["fetch_page", "fetch_page", "transform", "store", "done"]
