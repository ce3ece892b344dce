"""What every tool invocation gives (000 §5)."""

import pytest

from tests.conformance.execution.conformance_engine import Engine
from tests.web_server import WebAnswer, web_server

OUTCOME = """
- step: start
  tool:
    name: work
    %s
    spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {outcome: "{{ outcome }}"}}}}]}}
"""


@pytest.mark.spec("000 §5 (1)")
@pytest.mark.spec("000 §11.2")
@pytest.mark.parametrize(
    ("task", "status"),
    [
        ("kind: noop\n    args: {n: 1}", "ok"),
        ('kind: python\n    code: "result = 1"', "ok"),
        ("kind: python\n    code: \"raise ValueError('no')\"", "error"),
        ('kind: python\n    code: "import os; os._exit(3)"', "error"),
        ("kind: http\n    url: http://127.0.0.1:1", "error"),
        ("kind: wait\n    seconds: 0.01", "ok"),
    ],
)
def test_every_invocation_gives_one_outcome(engine: Engine, task: str, status: str) -> None:
    ran = engine(OUTCOME % task)
    (processed,) = ran.of("TaskProcessed")
    outcome = processed["data"]["outcome"]
    assert outcome["status"] == status
    assert processed["status"] == ("success" if status == "ok" else "error")
    assert outcome["meta"]["attempt"] == 1
    for name in ("duration_ms", "started_at", "finished_at", "trace_id", "span_id"):
        assert outcome["meta"][name] is not None
    seen = ran.ctx["outcome"]
    assert (seen["status"], seen.get("result"), seen["meta"]["attempt"]) == (status, outcome["result"], 1)


@pytest.mark.spec("000 §5 (2)")
@pytest.mark.parametrize(
    ("task", "kind", "retryable"),
    [
        ("kind: python\n    code: \"raise ValueError('no')\"", "python", False),
        ("kind: http\n    url: http://127.0.0.1:1", "connection", True),
        ('kind: python\n    spec: {timeout: 0.1}\n    code: "while True: pass"', "timeout", True),
        ('kind: python\n    code: "result = object()"', "python", False),
    ],
)
def test_an_error_has_a_kind_and_says_whether_to_try_again(
    engine: Engine, task: str, kind: str, retryable: bool
) -> None:
    ran = engine(f"- step: start\n  tool:\n    name: work\n    {task}\n")
    (processed,) = ran.data("TaskProcessed")
    error = processed["error"] or processed["outcome"]["error"]
    assert (error["kind"], error["retryable"]) == (kind, retryable)
    assert error["message"]
    assert (ran.status, ran.error["kind"]) == ("failed", kind)


@pytest.mark.spec("000 §5 (1)")
def test_http_says_its_status_and_headers_on_success_and_on_error(engine: Engine) -> None:
    seen = '{ok: "{{ outcome.http.status }}", tag: "{{ outcome.http.headers[\'x-tag\'] }}"}'
    with web_server(lambda request: WebAnswer({"n": 1}, int(request.path[1:]), {"X-Tag": "t"})) as web:
        for status in (200, 404, 503):
            ran = engine(f"""
- step: start
  tool:
    kind: http
    url: {web.url}/{status}
    spec: {{policy: {{rules: [{{else: {{then: {{do: continue, set_ctx: {seen}}}}}}}]}}}}
""")
            assert (ran.ctx["ok"], ran.ctx["tag"]) == (status, "t")
            outcome = ran.data("TaskProcessed")[0]["outcome"]
            assert outcome["http"]["status"] == status
            if status == 200:
                assert outcome["result"]["data"] == {"n": 1}
            else:
                assert (outcome["error"]["kind"], outcome["error"]["retryable"]) == (
                    "http_status",
                    status == 503,
                )


@pytest.mark.spec("000 §5 (1)")
def test_python_says_the_type_of_its_exception(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
    kind: python
    code: "{}['k']"
    spec:
      policy:
        rules:
        - when: "{{ outcome.py.exception_type == 'KeyError' }}"
          then: {do: continue, set_ctx: {type: "{{ outcome.py.exception_type }}"}}
        - else: {then: {do: fail}}
""")
    assert (ran.status, ran.ctx) == ("completed", {"type": "KeyError"})


@pytest.mark.spec("000 §5 (1)")
def test_a_result_is_the_same_for_the_next_task_as_it_is_in_the_log(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - {name: make, kind: python, code: "import datetime\\nresult = {'1': (1, 2), 'at': datetime.date(2024, 1, 2)}"}
  - {name: see, kind: python, args: {got: "{{ _prev }}"}, code: "result = got"}
""")
    made, seen = (data["outcome"]["result"] for data in ran.data("TaskProcessed"))
    assert made == seen == {"1": [1, 2], "at": "2024-01-02"}
