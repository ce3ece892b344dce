"""The OpenAPI document says what the server does."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from noetl.client.http_client import AsyncClient, Client
from noetl.server.http.application import ENDPOINTS
from noetl.server.http.endpoint import Endpoint
from noetl.server.http.openapi import openapi_document
from tests.server.server_process import ServerProcess

DOCUMENT = json.loads(json.dumps(openapi_document(ENDPOINTS)))


def takes_values(endpoint: Endpoint) -> bool:
    """Whether something wrong can be sent to it, beside its path."""
    return bool(endpoint.query.__struct_fields__) or endpoint.body is not None


MODES = [(endpoint, mode) for endpoint in ENDPOINTS for mode in ("positive", "negative")]

LONGEST_HEAD = 65_536
"""Bytes of a request without its body that the HTTP server reads."""


@pytest.mark.parametrize(
    ("endpoint", "mode"),
    [(endpoint, mode) for endpoint, mode in MODES if mode == "positive" or takes_values(endpoint)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_whatever_comes_is_answered_as_the_document_says(
    server: ServerProcess, endpoint: Endpoint, mode: str
) -> None:
    # Imported and prepared here: both take long, and whoever only collects tests shall not wait for it.
    import schemathesis
    from schemathesis.specs.openapi import checks

    schema = schemathesis.openapi.from_dict(DOCUMENT)
    operation = schema[endpoint.path.replace(":path}", "}")][endpoint.method]
    checked = (
        checks.content_type_conformance,
        checks.response_schema_conformance,
        checks.status_code_conformance,
    )

    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    @settings(max_examples=15, suppress_health_check=list(HealthCheck), database=None)
    def answer(case: Any) -> None:
        headers = {"Authorization": f"Bearer {server.token}"}
        response = case.call(base_url=server.url, headers=headers, timeout=60)
        if response.text == "Invalid HTTP request received.":
            assert len(response.request.url or "") > LONGEST_HEAD  # said before anything knows of endpoints
            return
        assert response.status_code != 500
        case.validate_response(response, checks=checked)
        if response.status_code >= 400:
            assert response.headers["content-type"] == ["application/problem+json"]
            assert ("retry-after" in response.headers) == (response.status_code == 503)

    answer()


def test_the_server_gives_that_document(server: ServerProcess) -> None:
    from tests.server.test_api_security import send

    assert send(f"{server.url}/api/openapi.json")[2] == DOCUMENT


CALLED = {
    "is_ready": "health",
    "read_status": "status",
    "read_metrics": "metrics",
    "read_caller": "me",
    "list_workers": "workers",
    "list_tools": "tools",
    "list_waits": "waits",
    "read_overview": "overview",
    "read_queue": "queue",
    "read_net": "net",
    "read_statistics": "statistics",
    "read_credential_usage": "credential_usage",
    "read_schema": "schema",
    "list_pools": "pools",
    "register_playbook": "register",
    "list_playbooks": "playbooks",
    "read_playbook": "playbook",
    "list_versions": "versions",
    "start_execution": "start",
    "list_executions": "list",
    "read_execution": "show",
    "read_explanation": "explanation",
    "read_failures": "failures",
    "list_events": "events",
    "stream_events": "stream",
    "read_logs": "logs",
    "read_result": "result",
    "read_state": "state",
    "read_execution_net": "execution_net",
    "read_index": "index",
    "read_runs": "runs",
    "read_run": "run",
    "evaluate_expression": "evaluate",
    "diff_executions": "diff",
    "operate_on_many": "bulk",
    "list_credentials": "credentials",
    "read_credential": "credential",
    "list_tokens": "tokens",
    "list_audit": "audit",
}
"""The method of the client for each endpoint that has another name."""
NOT_FOR_PROGRAMS = {"is_alive", "open_session", "close_session", "stream_topics"}
"""Only probes ask whether a process is there; only browsers have sessions, and one stream for all they show."""


@pytest.mark.parametrize(
    "name", [endpoint.name for endpoint in ENDPOINTS if endpoint.name not in NOT_FOR_PROGRAMS]
)
def test_the_client_has_a_method_for_each_endpoint(name: str) -> None:
    method = CALLED.get(name, name.removesuffix("_execution"))
    assert callable(getattr(AsyncClient, method))
    assert method == "stream" or callable(getattr(Client, method))
