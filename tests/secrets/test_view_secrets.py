"""Nothing that the API or a command shows of an execution has a secret in it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.ports.http_api import StartExecution
from tests.cli.command_line import run
from tests.secrets.secret_search import SECRET, SIMPLE, secret_forms_in
from tests.server.server_process import server_process

LEAKING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: leaking, path: views/leaking}
workload: {n: 1}
keychain:
  - {name: marked, kind: env, env: MARKED}
  - {name: simple, kind: env, env: SIMPLE}
workflow:
  - step: start
    tool:
      - first:
          kind: noop
          args: {whole: "{{ keychain.marked.value }}", text: "a {{ keychain.marked.value }} b"}
          set: {ctx.text: "{{ outcome.result.text }}"}
      - say:
          kind: python
          args: {secret: "{{ keychain.simple.value }}"}
          code: |
            print("it is", secret)
            result = {"secret": secret, "rows": [{"secret": secret, "n": n} for n in range(3000)]}
          set: {ctx.kept: "{{ outcome.result.secret }}", ctx.n: "{{ workload.n }}"}
    next:
      arcs:
        - {step: never, when: "{{ ctx.n > 5 }}"}
        - {step: after, args: {got: "{{ ctx.text }}", held: "{{ ctx.kept }}"}}
  - step: after
    loop: {in: "{{ [1, 2] }}", iterator: item, spec: {policy: {failure: {mode: best_effort}}}}
    tool:
      - try:
          kind: python
          args: {got: "{{ args.got }}", n: "{{ item }}"}
          code: |
            if n == 2:
                raise ValueError("with " + got)
            result = got
    next: {arcs: [{step: last}]}
  - step: last
    tool: {kind: python, args: {held: "{{ args.held | default(ctx.kept) }}"}, code: "raise ValueError('at the end')"}
  - step: never
    tool: {kind: noop, args: {}}
"""
ENV = {"MARKED": SECRET, "SIMPLE": SIMPLE}
EXPRESSIONS = (
    "ctx",
    "ctx.kept",
    "steps",
    "steps.start.result",
    "steps.start.result.rows[:3]",
    "ctx.kept | upper",
    "ctx.kept | length",
    "ctx | tojson",
    "keychain.marked.value",
    "steps.after.error",
)


def all_views(client: Client, execution_id: str, other: str) -> dict[str, Any]:
    """Everything that can be seen, by what it is."""
    last = client.index(execution_id).last
    views: dict[str, Any] = {
        "index": client.index(execution_id),
        "runs": client.runs(execution_id),
        "explanation": client.explanation(execution_id),
        "diff": client.diff(execution_id, other),
        "verify": client.verify(execution_id),
        "fork": client.preview_fork(execution_id, 8),
        "retry": client.preview_retry(execution_id),
        "redrive": client.preview_redrive(execution_id),
        "events": client.events(execution_id, before=last + 1),
        "logs": client.logs(execution_id),
        "export": client.export(execution_id),
    }
    for seq in range(1, last + 1):
        views[f"state {seq}"] = client.state(execution_id, at=seq)
    for step in ("start", "after", "last", "never"):
        views[f"explain {step}"] = client.step_explanation(execution_id, step)
    for bar in client.runs(execution_id).runs:
        views[f"run {bar.run}"] = client.run_detail(execution_id, bar.run)
    return views


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder: Path = tmp_path_factory.mktemp("views")
    seen: dict[str, bytes] = {}
    with server_process(folder, env=ENV) as server:
        client = server.client
        ids = []
        for workload in ({}, {"n": 2}):
            started = client.start(StartExecution(playbook=LEAKING, workload=workload))
            detail = client.wait(started.execution_id)
            assert detail.error is not None
            assert detail.error["step"] == "last", detail.error
            ids.append(started.execution_id)
        for name, view in all_views(client, *ids).items():
            seen[name] = msgspec.json.encode(view)
        scheduled = [event for event in client.events(ids[0]).events if event["name"] == "TaskStarted"]
        for expr in EXPRESSIONS:
            for step, at in (("", 0), ("start", scheduled[1]["seq"]), ("start", 0), ("after", 0)):
                seen[f"evaluate {expr} {step} {at}"] = evaluated(client, ids[0], expr, step, at)
        reference = next(
            event["data"]["result"] for event in client.events(ids[0]).events if event["name"] == "StepDone"
        )
        for path in ((), ("rows",), ("secret",)):
            seen[f"rows {path}"] = msgspec.json.encode(client.result_rows(reference, path=path))
        env = {"NOETL_SERVER": server.url, "NOETL_TOKEN": server.token}
        for words in (("timeline",), ("explain", "after"), ("eval", "ctx"), ("verify",)):
            ran = run("executions", words[0], ids[0], *words[1:], cwd=folder, env=env)
            seen[f"command {words}"] = (ran.out + ran.err).encode()
        ran = run("executions", "diff", *ids, cwd=folder, env=env)
        seen["command diff"] = (ran.out + ran.err).encode()
    return seen


def evaluated(client: Client, execution_id: str, expr: str, step: str, at: int) -> bytes:
    try:
        return msgspec.json.encode(client.evaluate(execution_id, expr, step=step, at=at))
    except ServerError as error:
        return msgspec.json.encode(error.problem)


def test_no_view_has_a_secret(seen: dict[str, bytes]) -> None:
    assert {name: forms for name, data in seen.items() if (forms := secret_forms_in(data))} == {}


def test_the_secrets_were_there_to_be_seen(seen: dict[str, bytes]) -> None:
    """Otherwise the test above would say nothing: what stands for them shows."""
    assert b"***" in seen["state 20"]
    assert b"***" in seen["explanation"]
    assert json.loads(seen["evaluate ctx.kept  0"])["value"] == "***"
    assert b"***" in seen["rows ('rows',)"]
    assert b"holds a secret" in seen["evaluate ctx.kept | upper  0"]
    assert b"cannot be read here" in seen["evaluate keychain.marked.value  0"]
