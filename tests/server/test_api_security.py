"""Who may do what; what listens where; what is written down."""

import asyncio
import json
import os
import socket
import stat
import subprocess
from pathlib import Path
from typing import Any, cast, get_args
from urllib import error, request

import aiohttp
import pytest
import trustme
from starlette.routing import Route

from noetl.client.http_client import Client
from noetl.client.server_requests import ServerError, ServerUnreachable
from noetl.ports.control import (
    PROTOCOL,
    SUBPROTOCOL,
    Beaten,
    Heartbeat,
    Register,
    Registered,
    decode_from_server,
    encode_message,
)
from noetl.ports.http_api import Role, StartExecution
from noetl.server.http.access import may_act_as
from noetl.server.http.application import ENDPOINTS
from noetl.server.http.endpoint import Endpoint
from noetl.server.plane.worker_plane import WorkerPlane
from noetl.server.plane.worker_routes import worker_routes
from tests.cli.command_line import environment, run
from tests.plane.plane_processes import WorkerProcess
from tests.server.server_process import GREET, ServerProcess, command, server_process

ROLES: tuple[Role, ...] = get_args(Role)


def send(
    url: str, method: str = "GET", token: str = "", data: bytes | None = None, **headers: str
) -> tuple[int, Any, Any]:
    """The status, headers and JSON of an answer, whatever it is."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        sent["Authorization"] = f"Bearer {token}"
    sent_request = request.Request(url, data, sent, method=method)  # noqa: S310 - the server of the test
    try:
        with request.urlopen(sent_request) as answer:  # noqa: S310 - likewise
            body = answer.read()
            is_json = answer.headers.get_content_type() == "application/json"
            return answer.status, answer.headers, json.loads(body) if is_json else body
    except error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers, json.loads(refused.read())


@pytest.fixture(scope="module")
def tokens(server: ServerProcess) -> dict[Role, str]:
    return {role: server.client.create_token(f"of-{role}", role).token for role in ROLES}


def path_of(endpoint: Endpoint) -> str:
    """A path of the endpoint where nothing is."""
    path = endpoint.path.replace(":path}", "}")
    for name in ("execution_id", "key", "name", "other", "path", "run"):
        path = path.replace(f"{{{name}}}", "0" * 64 if name == "key" else "nothing")
    return path


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_a_role_may_do_what_it_may_and_nothing_else(
    server: ServerProcess, tokens: dict[Role, str], endpoint: Endpoint
) -> None:
    url = server.url + path_of(endpoint)
    data = (
        None if endpoint.body is None else b"[]"
    )  # wrong, so that nothing happens; rights are looked at first
    content = {"Content_Type": "application/json"} if data else {}
    if endpoint.role is None:
        assert endpoint.method != "GET" or send(url)[0] == 200
        return
    for token in ("", "noetl_wrong"):
        status, headers, problem = send(url, endpoint.method, token, data, **content)
        assert (status, problem["code"], headers["WWW-Authenticate"]) == (401, "unauthenticated", "Bearer")
    for role, token in tokens.items():
        status, _, problem = send(url, endpoint.method, token, data, **content)
        if may_act_as(role, endpoint.role):
            assert status not in (401, 403), (role, problem)
        elif (role, endpoint.name) == ("worker", "read_result"):
            assert (status, problem["code"]) == (404, "lost"), "only what a session of it has claimed"
        else:
            assert (status, problem["code"]) == (403, "forbidden")


WORKER_ROUTES = [
    (method, route.path)
    for route in worker_routes(cast("WorkerPlane", None), lambda _: None)
    if isinstance(route, Route)
    for method in sorted((route.methods or set()) - {"HEAD"})
]


@pytest.mark.parametrize(("method", "path"), WORKER_ROUTES, ids=lambda part: part.strip("/"))
def test_what_is_for_workers_is_for_nobody_else(
    server: ServerProcess, tokens: dict[Role, str], method: str, path: str
) -> None:
    url = server.url + path.format(execution_id="nothing", key="0" * 64)
    data = b"x" if method != "GET" else None
    for token in ("", "noetl_wrong"):
        status, headers, problem = send(url, method, token, data)
        assert (status, problem["code"], headers["WWW-Authenticate"]) == (401, "unauthenticated", "Bearer")
    for role, token in tokens.items():
        status, _, problem = send(url, method, token, data)
        if may_act_as(role, "worker"):
            assert status not in (401, 403, 405), (role, problem)
        elif path.startswith("/api/results/"):
            assert (status, problem["code"]) == (
                (404, "not_found") if method == "GET" else (405, "method_not_allowed")
            ), "readers have a route of the same path"
        else:
            assert (status, problem["code"]) == (403, "forbidden")


def test_the_socket_is_for_workers_too(server: ServerProcess, tokens: dict[Role, str]) -> None:
    async def status_of(token: str) -> int:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        try:
            async with (
                aiohttp.ClientSession(server.url, headers=headers) as http,
                http.ws_connect("/api/worker/stream", protocols=(SUBPROTOCOL,)),
            ):
                return 101
        except aiohttp.WSServerHandshakeError as refused:
            return refused.status

    for role, token in [*tokens.items(), ("nobody", ""), ("wrong", "noetl_wrong")]:
        assert asyncio.run(status_of(token)) == (101 if role == "worker" else 403), role


def test_each_role_has_the_rights_of_those_before_it_and_workers_their_own() -> None:
    ladder: tuple[Role, ...] = ("viewer", "operator", "author", "admin")
    rights = {role: [needed for needed in ROLES if may_act_as(role, needed)] for role in ROLES}
    assert rights == {
        **{role: list(ladder[: number + 1]) for number, role in enumerate(ladder)},
        "worker": ["worker"],
    }


def test_every_path_below_api_needs_a_token_also_where_nothing_is(server: ServerProcess) -> None:
    assert send(f"{server.url}/api/nothing")[0] == 401
    assert send(f"{server.url}/api/nothing", token=server.token)[2]["code"] == "not_found"
    assert send(f"{server.url}/api/openapi.json")[2]["openapi"] == "3.1.0"
    for header in (
        f"Basic {server.token}",
        "Bearer",
        f"Bearer {server.token}x",
        "Bearer ﬀ".encode().decode("latin-1"),
    ):
        assert send(f"{server.url}/api/me", Authorization=header)[0] == 401


def test_an_inline_document_is_for_authors(server: ServerProcess, tokens: dict[Role, str]) -> None:
    body = json.dumps({"playbook": GREET}).encode()
    url = f"{server.url}/api/executions"
    status, _, problem = send(url, "POST", tokens["operator"], body, Content_Type="application/json")
    assert (status, problem["code"], problem["pointer"]) == (403, "forbidden", "/playbook")
    assert "execution_id" not in problem
    assert send(url, "POST", tokens["author"], body, Content_Type="application/json")[0] == 201


def test_a_token_that_was_revoked_is_not_valid_any_more(server: ServerProcess) -> None:
    created = server.client.create_token("short", "viewer")
    mine = Client(server.url, created.token)
    assert mine.me().name == "short"
    with pytest.raises(ServerError) as taken:
        server.client.create_token("short", "admin")
    assert taken.value.code == "conflict"
    server.client.revoke_token("short")
    with pytest.raises(ServerError) as refused:
        mine.me()
    assert refused.value.code == "unauthenticated"
    states = {token.name: token.valid for token in server.client.tokens().tokens}
    assert states["short"] is False
    assert states["local-admin"] is True


def test_a_stream_says_nothing_more_when_its_token_is_revoked(server: ServerProcess) -> None:
    created = server.client.create_token("streaming", "viewer")
    execution_id = server.client.start(StartExecution(path="examples/waiting")).execution_id
    url = f"{server.url}/api/executions/{execution_id}/stream"
    sent_request = request.Request(url, headers={"Authorization": f"Bearer {created.token}"})  # noqa: S310 - the server of the test
    with request.urlopen(sent_request, timeout=30) as answer:  # noqa: S310 - likewise
        lines = iter(answer.readline, b"")
        assert any(line == b"event: RunSuspended\n" for line in lines)
        server.client.revoke_token("streaming")
        server.client.signal(execution_id, "other")
        server.client.cancel(execution_id)
        rest = b"".join(lines)
    assert b"event: " not in rest
    assert server.client.show(execution_id).status == "cancelled"


def test_the_socket_of_a_worker_is_closed_when_its_token_is_revoked(server: ServerProcess) -> None:
    token = server.client.create_token("talking", "worker").token

    async def talk() -> int | None:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            aiohttp.ClientSession(server.url, headers=headers) as http,
            http.ws_connect("/api/worker/stream", protocols=(SUBPROTOCOL,)) as socket,
        ):
            register = Register(protocol=PROTOCOL, worker="talking", slots=0, kinds=(), pools=("talking",))
            await socket.send_bytes(encode_message(register))
            assert isinstance(decode_from_server(await socket.receive_bytes()), Registered)
            await socket.send_bytes(encode_message(Heartbeat()))
            assert decode_from_server(await socket.receive_bytes()) == Beaten(known=True)
            await asyncio.to_thread(server.client.revoke_token, "talking")
            while not socket.closed:
                await socket.send_bytes(encode_message(Heartbeat()))
                await socket.receive()
            return socket.close_code

    assert asyncio.run(talk()) == 1008


def test_workers_are_answered_with_problem_documents_too(
    server: ServerProcess, tokens: dict[Role, str]
) -> None:
    url = f"{server.url}/api/worker"
    status, _, problem = send(f"{url}/claim", "POST", tokens["admin"], b"x")
    assert (status, problem["type"], problem["title"]) == (403, "urn:noetl:problem:forbidden", "Forbidden")
    status, headers, problem = send(f"{url}/stream", token=tokens["worker"])
    assert (status, headers["Upgrade"], problem["code"]) == (426, "websocket", "unsupported_protocol")
    assert "noetl.worker.v1" in problem["detail"]


def test_tokens_are_stored_as_hashes_alone(server: ServerProcess) -> None:
    secret = server.client.create_token("hidden", "viewer").token
    for name in ("store.db", "store.db-wal"):
        assert secret.encode() not in (server.home / name).read_bytes()
    assert stat.S_IMODE((server.home / "admin.token").stat().st_mode) == 0o600
    assert stat.S_IMODE((server.home / "server.json").stat().st_mode) == 0o600


def test_every_write_is_in_the_audit_refused_ones_too(server: ServerProcess, tokens: dict[Role, str]) -> None:
    client = Client(server.url, tokens["operator"])
    with pytest.raises(ServerError):
        client.register(GREET)
    with pytest.raises(ServerError):
        client.cancel("nothing")
    client.list()
    newest = server.client.audit(limit=2).audit
    assert [(entry.by, entry.role, entry.action, entry.target, entry.status) for entry in newest] == [
        ("of-operator", "operator", "cancel_execution", "executions/nothing/cancel", 404),
        ("of-operator", "operator", "register_playbook", "catalog", 403),
    ]
    assert {entry.address for entry in newest} == {"127.0.0.1"}
    page = server.client.audit(limit=1)
    older = server.client.audit(limit=1, cursor=page.next_cursor or "")
    assert older.audit == newest[1:]


def test_a_start_is_in_the_audit_once_as_it_was_answered(server: ServerProcess) -> None:
    token = server.client.create_token("starter", "author").token

    def start(**fields: object) -> int:
        body = json.dumps(fields).encode()
        url = f"{server.url}/api/executions"
        return send(url, "POST", token, body, Content_Type="application/json")[0]

    statuses = [
        start(playbook=GREET),
        start(playbook=GREET, idempotency_key="audited"),
        start(playbook=GREET, idempotency_key="audited"),
        start(playbook=GREET, idempotency_key="audited", workload={"other": 1}),
        start(path="nowhere"),
    ]
    assert statuses == [201, 201, 200, 409, 404]
    entries = [entry for entry in server.client.audit(limit=100).audit if entry.by == "starter"]
    assert [(entry.action, entry.target, entry.status) for entry in entries[::-1]] == [
        ("start_execution", "executions", status) for status in statuses
    ]


def test_other_origins_get_no_access(server: ServerProcess) -> None:
    url = f"{server.url}/api/me"
    _, headers, _ = send(url, token=server.token, Origin="https://elsewhere.example")
    assert not [name for name in headers if name.lower().startswith("access-control")]
    assert send(url, "OPTIONS", server.token, Origin="https://elsewhere.example")[0] == 405


def test_credentials_are_masked_and_playbooks_use_them(server: ServerProcess) -> None:
    client = server.client
    client.set_credential("shop", "bearer", {"token": "s3cr3t-value"})
    assert client.credential("shop").fields == {"token": "***"}
    assert [item.name for item in client.credentials().credentials] == ["shop"]
    with pytest.raises(ServerError) as refused:
        client.set_credential("shop", "bearer", {"tokn": "x"})
    assert (refused.value.code, "token" in refused.value.hint) == ("invalid_request", True)
    client.delete_credential("shop")
    with pytest.raises(ServerError) as unknown:
        client.credential("shop")
    assert unknown.value.code == "not_found"


def test_nobody_listens_beyond_loopback_without_a_token_that_somebody_made(tmp_path: Path) -> None:
    folder = tmp_path / "here"
    folder.mkdir()
    everywhere = ("--host", "0.0.0.0")  # noqa: S104 - what is refused
    arguments = ("server", "start", *everywhere, "--port", "0", "--home", "h", "-o", "json")
    refused = run(*arguments, cwd=folder)
    assert refused.code == 2
    assert "noetl token create" in refused.json["error"]["hint"]
    assert run("token", "create", "ops", "--role", "admin", "--home", "h", cwd=folder).code == 0
    process = subprocess.Popen(
        command(*arguments), cwd=folder, env=environment(folder), stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"{\n"
        assert not (folder / "h" / "admin.token").exists()
    finally:
        process.terminate()
        process.communicate()
    assert process.returncode == 0


@pytest.fixture
def authority(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The files of a certificate for this machine: that of who signed it, its own, its key."""
    signer = trustme.CA()
    certificate = signer.issue_cert("127.0.0.1")
    paths = (tmp_path / "ca.pem", tmp_path / "server.pem", tmp_path / "server.key")
    signer.cert_pem.write_to_path(paths[0])
    for blob in certificate.cert_chain_pems:
        blob.write_to_path(paths[1], append=True)
    certificate.private_key_pem.write_to_path(paths[2])
    return paths


def test_tls_is_spoken_with_the_certificate_that_was_given(
    tmp_path: Path, authority: tuple[Path, Path, Path]
) -> None:
    ca, certificate, key = authority
    with server_process(tmp_path, "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert Client(server.url, server.token, ca=ca).me().role == "admin"
        with pytest.raises(ServerUnreachable, match="certificate"):
            server.client.me()
        listed = run(
            *("executions", "list", "--server", server.url, "-o", "json"),
            cwd=tmp_path,
            env={"SSL_CERT_FILE": str(ca), "NOETL_TOKEN": server.token},
        )
        assert (listed.code, listed.json) == (0, {"executions": [], "next": None})


def test_workers_speak_tls_and_so_do_their_heartbeats(
    tmp_path: Path, authority: tuple[Path, Path, Path]
) -> None:
    ca, certificate, key = authority
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with server_process(tmp_path, *tls, worker=False, env={"NOETL_LEASE_TTL": "3"}) as server:
        client = Client(server.url, server.token, ca=ca)
        token = (server.home / "worker.token").read_text().strip()
        worker = WorkerProcess(server.url, tmp_path, NOETL_TOKEN=token, SSL_CERT_FILE=str(ca))
        try:
            worker.wait_for("registered with")
            ages = [0.0]
            while ages[-1] >= max(ages):  # until it is heard of again
                ages.append(client.workers().workers[0].heartbeat_age)
            client.register(GREET)
            started = client.start(StartExecution(path="examples/greet"))
            assert client.wait(started.execution_id).status == "completed"
        finally:
            assert worker.stop() == 0


def test_a_certificate_that_cannot_be_used_is_said_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "bad.pem").write_text("nothing")
    arguments = ("--tls-cert", "bad.pem", "--tls-key", "bad.pem", "--home", "h", "--port", "0", "-o", "json")
    refused = run("server", "start", *arguments, cwd=tmp_path)
    assert (refused.code, refused.json["error"]["code"]) == (2, "listen")
    assert run("server", "start", "--tls-cert", "bad.pem", cwd=tmp_path).code == 2


def test_the_token_of_a_home_is_sent_to_no_other_server(server: ServerProcess, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        child = subprocess.Popen(
            command("executions", "list", "--server", url),
            cwd=tmp_path,
            env=environment(tmp_path, {"NOETL_HOME": os.fspath(server.home)}),
            stderr=subprocess.PIPE,
        )
        connection, _ = listener.accept()
        with connection:
            received = connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        child.communicate()
    assert b"authorization" not in received.lower()
    assert child.returncode == 3
