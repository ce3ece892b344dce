"""Input of every wrong kind: what is said of it, and that nothing of it is recorded."""

import json
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from tests.server.server_process import GREET, ServerProcess
from tests.server.test_api_security import send


def post(
    server: ServerProcess, path: str, body: Any, media_type: str = "application/json"
) -> tuple[int, Any, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return send(server.url + path, "POST", server.token, data, Content_Type=media_type)


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"{", 400, ""),
        (b"\xff", 400, ""),
        (b"[" * 100_000, 400, ""),
        (b"[]", 422, ""),
        ({"path": 1}, 422, "/path"),
        ({"path": ""}, 422, "/path"),
        ({"path": "a@1"}, 422, "/path"),
        ({"path": "a", "workload": []}, 422, "/workload"),
        ({"path": "a", "labels": {"a": 1}}, 422, "/labels"),
        ({"path": "a", "version": 0}, 422, "/version"),
        ({"path": "a", "timeout": -1}, 422, "/timeout"),
        ({"path": "a", "priority": 101}, 422, "/priority"),
        ({"path": "a", "priority": -101}, 422, "/priority"),
        ({"path": "a", "priority": "high"}, 422, "/priority"),
        ({"path": "a", "pth": "b"}, 422, "/pth"),
        ({"executions": [{"path": "a", "a/b~c": 1}]}, 422, "/executions/0/a~1b~0c"),
        ({}, 422, ""),
        ({"path": "a", "playbook": GREET}, 422, "/playbook"),
        ({"playbook": GREET, "version": 1}, 422, "/version"),
        ({"executions": []}, 422, "/executions"),
        ({"executions": [{"path": "examples/greet"}, {"path": 7}]}, 422, "/executions/1/path"),
        ({"path": "examples/greet", "workload": {"a": 2**64}}, 201, ""),
        ({"path": "examples/greet", "ctx": json.loads("[" * 200 + "]" * 200)}, 422, "/ctx"),
    ],
)
def test_a_body_that_is_none_is_said_with_its_place(
    server: ServerProcess, body: Any, status: int, pointer: str
) -> None:
    before = len(server.client.list(limit=1_000).executions)
    answered, _, document = post(server, "/api/executions", body)
    assert answered == status
    if status == 201:
        return
    assert (document["status"], document["code"]) == (status, "invalid_request")
    assert document.get("pointer", "") == pointer
    assert len(server.client.list(limit=1_000).executions) == before


def test_a_lone_surrogate_has_no_place_in_a_workload(server: ServerProcess) -> None:
    status, _, problem = post(
        server, "/api/executions", b'{"path":"examples/greet","workload":{"a":"\\ud800"}}'
    )
    assert (status, problem["code"]) in ((400, "invalid_request"), (422, "invalid_request"))


@pytest.mark.parametrize(
    ("path", "most"), [("/api/tokens", 1 << 20), ("/api/catalog", 16 << 20), ("/api/executions", 64 << 20)]
)
def test_a_body_that_is_too_large_is_not_read(server: ServerProcess, path: str, most: int) -> None:
    connection = HTTPConnection(server.url.removeprefix("http://"))
    with closing(connection):
        connection.putrequest("POST", path)
        connection.putheader("Authorization", f"Bearer {server.token}")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(most + 1))
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["code"]) == (413, "too_large")


def test_a_body_that_does_not_say_how_long_it_is_has_the_same_limit(server: ServerProcess) -> None:
    connection = HTTPConnection(server.url.removeprefix("http://"))
    with closing(connection):
        connection.putrequest("POST", "/api/tokens")
        connection.putheader("Authorization", f"Bearer {server.token}")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        connection.send(b"100001\r\n" + b" " * 0x100001 + b"\r\n")  # no end: it must not be waited for
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["code"]) == (413, "too_large")


def test_a_body_of_another_media_type_is_refused(server: ServerProcess) -> None:
    status, _, problem = post(server, "/api/tokens", b"<a/>", "application/xml")
    assert (status, problem["code"]) == (415, "invalid_request")


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        ("/api/executions?limit=0", "/limit"),
        ("/api/executions?limit=x", "/limit"),
        ("/api/executions?limit=1001", "/limit"),
        ("/api/executions?limit=1&limit=2", "/limit"),
        ("/api/executions?status=odd", "/status/0"),
        ("/api/executions?status=failed&status=paused", None),
        ("/api/executions?label=x", "/label"),
        ("/api/executions?since=yesterday", "/since"),
        ("/api/executions?cursor=x", "/cursor"),
        ("/api/executions?roots=maybe", "/roots"),
        ("/api/executions?nonsense=1", "/nonsense"),
        ("/api/audit?cursor=x", "/cursor"),
    ],
)
def test_a_parameter_that_is_none_is_named(server: ServerProcess, path: str, pointer: str | None) -> None:
    status, _, problem = send(server.url + path, token=server.token)
    if pointer is None:
        assert status == 200
        return
    assert (status, problem["code"], problem.get("pointer", "")) == (422, "invalid_request", pointer)


@pytest.mark.parametrize(
    "verb", ["cancel", "pause", "resume", "signal", "retry", "redrive", "complete", "skip", "fork"]
)
def test_nothing_can_be_done_to_what_is_not_there(server: ServerProcess, verb: str) -> None:
    bodies = {"signal": {"name": "a"}, "complete": {"step": "a"}, "skip": {"step": "a"}, "fork": {"at": 1}}
    status, _, problem = post(server, f"/api/executions/nothing/{verb}", bodies.get(verb, {}))
    assert (status, problem["code"]) == (404, "not_found")


def test_a_signal_needs_a_name(server: ServerProcess) -> None:
    status, _, problem = post(server, "/api/executions/nothing/signal", {"payload": 1})
    assert (status, problem["code"]) == (422, "invalid_request")
    assert "name" in problem["detail"]


def test_a_method_that_a_path_does_not_take_is_said_with_those_that_it_does(server: ServerProcess) -> None:
    status, headers, problem = send(f"{server.url}/api/executions", "DELETE", server.token)
    assert (status, problem["code"]) == (405, "method_not_allowed")
    assert {"GET", "POST"} <= set(headers["Allow"].replace(" ", "").split(","))


def test_the_catalog_says_what_is_wrong_with_a_document(server: ServerProcess) -> None:
    broken = GREET.replace("kind: Playbook\n", "kind: Playbook\nkind: Playbook\n")
    status, _, problem = post(server, "/api/catalog?file=a.yaml", broken.encode(), "application/yaml")
    assert (status, problem["code"]) == (422, "invalid_playbook")
    assert (problem["problems"][0]["file"], problem["problems"][0]["line"]) == ("a.yaml", 3)
    assert post(server, "/api/catalog", b"\xff\xfe", "application/yaml")[0] == 400
    answered = post(server, "/api/validate?file=a.yaml", broken.encode(), "application/yaml")
    assert (answered[0], answered[2]["ok"]) == (200, False)
    assert answered[2]["problems"] == problem["problems"]
