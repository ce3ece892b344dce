"""What a start would do: `POST /api/executions?dry_run=1`."""

import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.ports.http_api import StartExecution
from tests.server.server_process import GREET, ServerProcess
from tests.server.test_api_security import send


def test_a_plan_says_what_would_run_and_records_nothing(client: Client) -> None:
    executions = [item.execution_id for item in client.list().executions]
    deeds = len(client.audit().audit)
    plan = client.plan(StartExecution(path="examples/greet", workload={"name": "You"}, ctx={"a": 1}))
    assert (plan.ok, plan.error, plan.problems) == (True, None, [])
    assert (plan.path, plan.version, plan.entry) == ("examples/greet", 1, "start")
    assert plan.hash == client.playbook("examples/greet").hash
    assert (plan.workload, plan.ctx) == ({"name": "You"}, {"a": 1})
    defaults = client.plan(StartExecution(playbook=GREET))
    assert (defaults.workload, defaults.version) == ({"name": "World"}, None)
    client.plan(StartExecution(path="examples/nothing"))
    assert [item.execution_id for item in client.list().executions] == executions
    assert len(client.audit().audit) == deeds


def test_a_plan_uses_no_key(client: Client) -> None:
    planned = StartExecution(path="examples/greet", idempotency_key="planned", workload={"name": "A"})
    assert client.plan(planned).ok
    other = StartExecution(path="examples/greet", idempotency_key="planned", workload={"name": "B"})
    started = client.start(other)
    assert client.wait(started.execution_id).result == client.wait(client.start(other).execution_id).result
    # A key that is used says nothing about what another request would do.
    assert client.plan(planned).ok
    assert client.start(other).execution_id == started.execution_id


def test_a_plan_says_why_it_would_be_refused(client: Client) -> None:
    missing = client.plan(StartExecution(path="examples/nothing"))
    assert missing.error is not None
    assert (missing.ok, missing.error.code, missing.path) == (False, "not_found", "examples/nothing")
    broken = client.plan(StartExecution(playbook=GREET.replace("kind: python", "kind: pyton")))
    assert broken.error is not None
    assert broken.error.code == "invalid_playbook"
    assert [(problem.line, problem.code) for problem in broken.problems] == [(9, "unknown-kind")]
    wrong = GREET.replace("{name: World}", '{name: "{{ 1 / 0 }}"}')
    undefined = client.plan(StartExecution(playbook=wrong))
    assert undefined.error is not None
    assert (undefined.ok, undefined.error.code, undefined.error.status) == (False, "refused", 422)
    overridden = client.plan(StartExecution(playbook=wrong, workload={"name": "x"}))
    assert (overridden.ok, overridden.workload) == (True, {"name": "x"})
    orphan = GREET.replace("kind: python", "kind: playbook").replace("code: |", "path: a/b\n    desc: |")
    childless = client.plan(StartExecution(playbook=orphan))
    assert childless.error is not None
    assert (childless.ok, childless.error.code, childless.entry) == (False, "refused", "start")
    assert [problem.code for problem in childless.problems][:1] == ["cannot-run"]


def test_a_plan_warns_of_values_that_nothing_reads(client: Client) -> None:
    plan = client.plan(StartExecution(path="examples/greet", workload={"nam": "You"}))
    assert plan.ok
    assert [(problem.code, problem.severity) for problem in plan.problems] == [("unread-workload", "warning")]
    assert plan.workload == {"name": "World", "nam": "You"}


def test_a_plan_names_credentials_and_what_would_wait(client: Client) -> None:
    text = GREET.replace("workflow:", "executor: {spec: {pool: far}}\nworkflow:")
    plan = client.plan(StartExecution(playbook=text))
    assert plan.ok
    assert [(task.step, task.task, task.kind) for task in plan.waiting] == [("start", "say", "python")]
    assert plan.waiting[0].reason == "no worker serves the pool `far`"
    http = GREET[: GREET.index("    kind")] + "    kind: http\n    url: http://127.0.0.1/\n    auth: bank\n"
    assert client.plan(StartExecution(playbook=http)).credentials == ["bank"]


def test_the_form_of_a_plan_is_that_of_a_start(server: ServerProcess, client: Client) -> None:
    with pytest.raises(ServerError) as nothing:
        client.plan(StartExecution())
    assert nothing.value.code == "invalid_request"
    url = f"{server.url}/api/executions?dry_run="
    assert send(f"{url}1", "POST", server.token, b"[]", Content_Type="application/json")[0] == 422
    assert send(f"{url}maybe", "POST", server.token, b"{}", Content_Type="application/json")[0] == 422
    batch = b'{"executions": [{"path": "examples/greet"}]}'
    status, _, problem = send(f"{url}1", "POST", server.token, batch, Content_Type="application/json")
    assert (status, problem["code"]) == (422, "invalid_request")
