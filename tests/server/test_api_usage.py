"""How playbooks went, and which credentials they name."""

import pytest

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError
from noetl.ports.http_api import StartExecution
from tests.server.server_process import GREET

TWO_STEPS = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: two, path: examples/two}
workload: {fail: false}
workflow:
- step: first
  tool: {kind: noop, args: {}}
  next: {arcs: [{step: second}]}
- step: second
  tool: {kind: python, args: {fail: "{{ workload.fail }}"}, code: "def main(fail):\\n    assert not fail"}
"""
BANKING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: banking, path: examples/banking}
keychain:
- {name: declared, kind: http_credential}
- {name: local, kind: env}
workflow:
- step: pay
  tool:
  - {name: ask, kind: http, url: "http://127.0.0.1/", auth: bank}
  - {name: look, kind: http, url: "http://127.0.0.1/", auth: declared}
  - {name: own, kind: http, url: "http://127.0.0.1/", auth: local}
"""


def test_statistics_of_a_playbook(client: Client) -> None:
    client.register(TWO_STEPS)
    client.register(TWO_STEPS.replace("examples/two", "examples/two/more"))
    assert client.statistics("examples/two").steps == []
    client.run(StartExecution(path="examples/two/more"))
    for fail in (False, True, False):
        client.run(StartExecution(path="examples/two", workload={"fail": fail}))
    statistics = client.statistics("examples/two")
    assert statistics.path == "examples/two"
    assert [item.status for item in statistics.executions] == ["completed", "failed", "completed"]
    assert {item.path for item in statistics.executions} == {"examples/two"}
    assert statistics.ended == {"completed": 2, "failed": 1}
    assert 0 < statistics.median_ms <= statistics.p95_ms
    first, second = statistics.steps
    assert (first.step, first.runs, first.failed) == ("first", 3, 0)
    assert (second.step, second.runs, second.failed) == ("second", 3, 1)
    assert 0 < second.median_ms <= second.p95_ms == second.most_ms <= statistics.p95_ms


def test_there_are_no_statistics_of_what_is_not_registered(client: Client) -> None:
    with pytest.raises(ServerError) as refused:
        client.statistics("examples/nothing")
    assert refused.value.code == "not_found"


def test_the_usage_of_credentials_has_names_and_never_values(client: Client) -> None:
    client.register(BANKING.replace("auth: bank", "auth: older"))
    version = client.register(BANKING).version
    client.register(GREET)
    client.set_credential("bank", "http_credential", {"user": "u", "password": "s3cret-value"})
    client.set_credential("spare", "http_credential", {"user": "u", "password": "s3cret-value"})
    usage = {item.name: item for item in client.credential_usage().usage}
    assert set(usage) == {"bank", "declared", "spare"}
    assert (usage["bank"].stored, usage["declared"].stored, usage["spare"].stored) == (True, False, True)
    (use,) = usage["bank"].uses
    assert (use.path, use.version, use.step, use.task) == ("examples/banking", version, "pay", "ask")
    assert [use.task for use in usage["declared"].uses] == ["look"]
    assert usage["spare"].uses == []
    assert "s3cret-value" not in repr(usage)


def test_usage_follows_what_is_registered_and_is_no_name_of_a_credential(client: Client) -> None:
    client.set_credential("usage", "http_credential", {"user": "u", "password": "s3cret-value"})
    assert client.credential("usage").kind == "http_credential"
    text = BANKING.replace("examples/banking", "examples/copy").replace("auth: bank", "auth: usage")
    client.register(text)
    assert _tasks_with(client, "usage") == ["examples/copy ask"]
    client.register(text.replace("metadata: {name: banking", "metadata: {name: copy"))
    client.register(text.replace("examples/copy", "examples/copy/two"))
    assert _tasks_with(client, "usage") == ["examples/copy ask", "examples/copy/two ask"]
    client.register(text.replace("auth: usage", "auth: other"))
    assert _tasks_with(client, "usage") == ["examples/copy/two ask"], "the newest version counts"
    client.delete_playbook("examples/copy/two")
    assert _tasks_with(client, "usage") == []


def _tasks_with(client: Client, name: str) -> list[str]:
    (usage,) = (item for item in client.credential_usage().usage if item.name == name)
    return [f"{use.path} {use.task}" for use in usage.uses]
