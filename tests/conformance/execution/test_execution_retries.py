"""`retry`: how often, and when (000 §6.2, §6.4; 001 §9.1)."""

from datetime import datetime
from typing import Any

import pytest

from tests.conformance.execution.conformance_engine import Engine, LiveConversation
from tests.web_server import WebAnswer, WebRequest, web_server


def playbook_with_retry(web: str, then: str) -> str:
    return f"""
- step: start
  tool:
  - name: fetch
    kind: http
    url: {web}/data
    spec:
      policy:
        rules:
        - when: "{{{{ outcome.status == 'error' and outcome.http.status in [429, 500, 502, 503, 504] }}}}"
          then: {{do: retry, {then}}}
        - when: "{{{{ outcome.status == 'error' }}}}"
          then: {{do: fail}}
        - else: {{then: {{do: continue, set_ctx: {{attempt: "{{{{ _attempt }}}}"}}}}}}
  - {{name: after, kind: noop, args: {{got: "{{{{ _prev.data }}}}"}}}}
"""


class Flaky:
    """Fails so often, then answers."""

    def __init__(self, failures: int, **headers: str) -> None:
        self._left = failures
        self._headers = {name.replace("_", "-"): value for name, value in headers.items()}

    def __call__(self, _: WebRequest) -> WebAnswer:
        self._left -= 1
        return WebAnswer("busy", 503, self._headers) if self._left >= 0 else WebAnswer([1, 2])


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("001 §9.1")
def test_retry_runs_the_task_again_until_it_succeeds(engine: Engine) -> None:
    with web_server(Flaky(2)) as web:
        ran = engine(playbook_with_retry(web.url, "attempts: 5, backoff: exponential, delay: 0.001"))
        assert len(web.requests) == 3
    assert (ran.status, ran.result, ran.ctx) == ("completed", {"got": [1, 2]}, {"attempt": 3})
    started = [data for data in ran.data("TaskStarted") if data["task"] == "fetch"]
    assert [data["attempt"] for data in started] == [1, 2, 3]
    processed = [data for data in ran.data("TaskProcessed") if data["task"] == "fetch"]
    assert [data["do"] for data in processed] == ["retry", "retry", "continue"]
    assert [data["outcome"]["meta"]["attempt"] for data in processed] == [1, 2, 3]


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("000 §6.2 (2)")
def test_attempts_count_all_tries(engine: Engine) -> None:
    with web_server(Flaky(9)) as web:
        ran = engine(playbook_with_retry(web.url, "attempts: 3"))
        assert len(web.requests) == 3
    assert (ran.status, ran.error["kind"], ran.error["attempt"]) == ("failed", "http_status", 3)
    error = ran.data("StepFailed")[0]["error"]
    assert (error["exhausted"], error["attempts"]) == (True, 3)


@pytest.mark.spec("000 §6.2 (2)")
@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        ("none", [2, 2, 2]),
        ("fixed", [2, 2, 2]),
        ("linear", [2, 4, 6]),
        ("exponential", [2, 4, 8]),
    ],
)
def test_the_wait_grows_as_backoff_says(engine: Engine, backoff: str, waits: list[int]) -> None:
    """In milliseconds here: the next try is due so long after the end of this one, which the log brackets."""
    ran = engine(f"""
- step: start
  tool:
    kind: noop
    spec: {{policy: {{rules: [{{when: true, then: {{do: retry, attempts: 4, backoff: {backoff}, delay: 0.002}}}}]}}}}
""")
    started, processed = ran.of("TaskStarted"), ran.of("TaskProcessed")
    assert [event["data"]["do"] for event in processed] == ["retry"] * 3 + ["fail"]
    for wait, begin, end, next_attempt in zip(waits, started, processed, started[1:], strict=False):
        due = end["data"]["retry_at"]
        assert _micros(begin) + wait * 1_000 <= due <= _micros(end) + wait * 1_000
        assert due <= _micros(next_attempt)
    assert ran.error["kind"] == "retry_exhausted"


def _micros(event: dict[str, Any]) -> int:
    return round(datetime.fromisoformat(event["timestamp"]).timestamp() * 1_000_000)


@pytest.mark.spec("000 §6.2 (2)")
def test_the_delay_may_be_what_the_server_asks_for(engine: Engine) -> None:
    with web_server(Flaky(1, retry_after="0")) as web:
        ran = engine(
            playbook_with_retry(
                web.url, "attempts: 2, delay: \"{{ outcome.http.headers['retry-after'] | default(60) }}\""
            )
        )
    assert ran.status == "completed"


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("000 §11.1")
def test_a_long_wait_suspends_the_run(engine: Engine) -> None:
    """It holds no worker: the execution is interrupted while it waits, and the log says until when."""

    async def stop(talk: LiveConversation) -> None:
        await talk.wait_for("RunSuspended")
        talk.local.interrupt()

    with web_server(Flaky(1)) as web:
        ran = engine.run_with(playbook_with_retry(web.url, "attempts: 2, delay: 3600"), stop)
    assert ran.status == "running"
    (suspended,) = ran.of("RunSuspended")
    assert (suspended["data"]["reason"], suspended["status"]) == ("retry", "paused")
    assert suspended["data"]["until"] == ran.data("TaskProcessed")[0]["retry_at"]


@pytest.mark.spec("000 §6.4")
def test_a_visit_after_a_jump_has_its_tries_anew(engine: Engine) -> None:
    ran = engine("""
- step: start
  tool:
  - {name: init, kind: noop, set: {iter.round: 1}}
  - name: try
    kind: noop
    args: {n: "{{ _attempt }}"}
    spec: {policy: {rules: [{when: "{{ outcome.result.n < 2 }}", then: {do: retry, attempts: 2}}]}}
  - name: again
    kind: noop
    spec:
      policy:
        rules:
        - when: "{{ iter.round < 3 }}"
          then: {do: jump, to: try, set_iter: {round: "{{ iter.round + 1 }}"}}
""")
    assert ran.status == "completed"
    tries = [(data["visit"], data["attempt"]) for data in ran.data("TaskStarted") if data["task"] == "try"]
    assert tries == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)]


@pytest.mark.spec("000 §6.4")
def test_one_request_keeps_its_key_over_retries(engine: Engine) -> None:
    with web_server(Flaky(2)) as web:
        text = playbook_with_retry(web.url, "attempts: 5").replace("url:", "method: POST\n    url:")
        assert engine(text).status == "completed"
        keys = {request.headers["idempotency-key"] for request in web.requests}
    assert len(keys) == 1


@pytest.mark.spec("000 §6.4")
@pytest.mark.spec("000 §12")
def test_polling_is_retry_on_a_good_outcome(engine: Engine) -> None:
    answers = iter(["queued", "running", "done"])
    with web_server(lambda _: WebAnswer({"state": next(answers)})) as web:
        ran = engine(f"""
- step: start
  tool:
    name: poll
    kind: http
    url: {web.url}
    spec:
      policy:
        rules:
        - when: "{{{{ outcome.status == 'ok' and outcome.result.data.state != 'done' }}}}"
          then: {{do: retry, attempts: 10}}
""")
    assert ran.result["data"] == {"state": "done"}
    assert ran.tasks() == ["poll"] * 3
