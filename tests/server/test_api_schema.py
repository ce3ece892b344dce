"""The OpenAPI document says what the server does."""

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import CHECKS
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from noetl.client.http_client import AsyncClient, Client
from noetl.server.http.application import ENDPOINTS
from noetl.server.http.openapi import openapi_document
from tests.server.server_process import ServerProcess

DOCUMENT = json.loads(json.dumps(openapi_document(ENDPOINTS)))
schema = schemathesis.openapi.from_dict(DOCUMENT)
_CHECKED = (content_type_conformance, response_schema_conformance, status_code_conformance)


@schema.parametrize()
@settings(
    max_examples=15,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    database=None,
)
def test_whatever_comes_is_answered_as_the_document_says(server: ServerProcess, case: Any) -> None:
    response = case.call(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=60)
    assert response.status_code != 500
    case.validate_response(response, checks=_CHECKED)
    if response.status_code >= 400:
        assert response.headers["content-type"] == ["application/problem+json"]
        assert ("retry-after" in response.headers) == (response.status_code == 503)


def test_the_server_gives_that_document(server: ServerProcess) -> None:
    from tests.server.test_api_security import send

    assert send(f"{server.url}/api/openapi.json")[2] == DOCUMENT


def test_the_checks_are_known() -> None:
    assert {check.__name__ for check in _CHECKED} <= set(CHECKS.get_all_names())


CALLED = {
    "is_alive": "",
    "is_ready": "health",
    "read_caller": "me",
    "register_playbook": "register",
    "list_playbooks": "playbooks",
    "read_playbook": "playbook",
    "list_versions": "versions",
    "start_execution": "start",
    "list_executions": "list",
    "read_execution": "show",
    "list_events": "events",
    "stream_events": "stream",
    "read_logs": "logs",
    "read_result": "result",
    "read_state": "state",
    "operate_on_many": "bulk",
    "list_credentials": "credentials",
    "read_credential": "credential",
    "list_tokens": "tokens",
    "list_audit": "audit",
}
"""The method of the client for each endpoint that has another name; a process that is there is asked by probes alone."""


@pytest.mark.parametrize("name", [endpoint.name for endpoint in ENDPOINTS if endpoint.name != "is_alive"])
def test_the_client_has_a_method_for_each_endpoint(name: str) -> None:
    method = CALLED.get(name, name.removesuffix("_execution"))
    assert callable(getattr(AsyncClient, method))
    assert method == "stream" or callable(getattr(Client, method))
