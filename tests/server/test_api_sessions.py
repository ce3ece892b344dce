"""Sessions of browsers: cookies, login links, and what another site's page cannot do with them."""

import asyncio
import http.client
import json
import stat
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.requests import HTTPConnection
from starlette.responses import Response

from noetl.client.http_client import Client
from noetl.model.timestamp import now_micros
from noetl.ports.http_api import ROLES, Role, StartExecution
from noetl.server.http.access import may_act_as
from noetl.server.http.application import ENDPOINTS
from noetl.server.http.browser_sessions import LINK_SECONDS, SESSION_SECONDS, BrowserSessions
from noetl.server.http.endpoint import Endpoint
from noetl.stores.sqlite.store import SqliteStore
from tests.cli.command_line import run
from tests.server.server_process import ServerProcess, server_process
from tests.server.test_api_security import path_of

SAME = {"Sec-Fetch-Site": "same-origin"}


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: Any


def ask(url: str, method: str, path: str, body: Any = None, **headers: str) -> Reply:
    """As a browser would: nothing is added to the headers but `Host`, unless one is given."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if data is not None:
        sent.setdefault("Content-Type", "application/json")
    try:
        connection.request(method, path, data, sent)
        answer = connection.getresponse()
        text = answer.read()
        is_json = answer.headers.get_content_subtype().endswith("json")
        return Reply(answer.status, answer.headers, json.loads(text) if is_json else text)
    finally:
        connection.close()


def log_in(url: str, **what: str) -> str:
    """The cookie of a new session, as a browser sends it."""
    reply = ask(url, "POST", "/api/session", what, **SAME)
    assert reply.status == 201, reply.body
    return str(reply.headers["Set-Cookie"]).partition(";")[0]


@pytest.fixture(scope="module")
def cookies(server: ServerProcess) -> dict[Role, str]:
    roles = [role for role in ROLES if role != "worker"]
    return {
        role: log_in(server.url, token=server.client.create_token(f"by-{role}", role).token) for role in roles
    }


def test_a_token_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(server: ServerProcess) -> None:
    reply = ask(server.url, "POST", "/api/session", {"token": server.token}, **SAME)
    cookie = SimpleCookie(reply.headers["Set-Cookie"])
    ((name, morsel),) = cookie.items()
    assert name.startswith("noetl_session_")
    assert (morsel["httponly"], morsel["samesite"], morsel["path"]) == (True, "strict", "/")
    assert not morsel["secure"], "over plain HTTP a browser would drop it"
    assert server.token not in str(reply.headers)
    me = ask(server.url, "GET", "/api/me", Cookie=f"{name}={morsel.value}").body
    assert (me["name"], me["role"], me["session"]) == ("local-admin", "admin", True)
    assert me == reply.body
    assert set(me["may"]) == {row.name for row in ENDPOINTS if row.role != "worker"}


def test_behind_tls_the_cookie_is_secure(server: ServerProcess) -> None:
    reply = ask(
        server.url, "POST", "/api/session", {"token": server.token}, **SAME, X_Forwarded_Proto="https"
    )
    assert "Secure" in reply.headers["Set-Cookie"]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_a_session_may_what_its_token_may(
    server: ServerProcess, cookies: dict[Role, str], endpoint: Endpoint
) -> None:
    if endpoint.role is None:
        return
    data = None if endpoint.body is None else b"[]"
    for role, cookie in cookies.items():
        reply = ask(server.url, endpoint.method, path_of(endpoint), data, Cookie=cookie, **SAME)
        if may_act_as(role, endpoint.role):
            assert reply.status not in (401, 403), (role, reply.body)
        else:
            assert (reply.status, reply.body["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "own"}, 403),
        ({"Origin": "own"}, 201),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_a_change_by_cookie_comes_from_the_servers_own_page(
    server: ServerProcess, cookies: dict[Role, str], headers: dict[str, str], status: int
) -> None:
    sent = {name: server.url if value == "own" else value for name, value in headers.items()}
    body = {"path": "examples/waiting"}
    reply = ask(server.url, "POST", "/api/executions", body, Cookie=cookies["operator"], **sent)
    assert reply.status == status
    read = ask(server.url, "GET", "/api/executions", Cookie=cookies["viewer"], **sent)
    assert read.status == 200, "reading needs no more: another site cannot see the answer"


def test_a_bearer_token_needs_no_origin_and_goes_before_a_cookie(
    server: ServerProcess, cookies: dict[Role, str]
) -> None:
    body = {"path": "examples/waiting"}
    sent = {"Authorization": f"Bearer {server.token}", "Cookie": cookies["viewer"]}
    assert ask(server.url, "POST", "/api/executions", body, **sent).status == 201
    sent["Authorization"] = "Bearer noetl_wrong"
    assert ask(server.url, "GET", "/api/me", **sent).status == 401


def test_another_site_cannot_log_somebody_in_or_out(server: ServerProcess) -> None:
    body = {"token": server.token}
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "http://evil.example"}):
        assert ask(server.url, "POST", "/api/session", body, **headers).status == 403
        assert ask(server.url, "DELETE", "/api/session", **headers).status == 403
    assert ask(server.url, "POST", "/api/session", body).status == 201, "a program says neither"


def test_signing_out_ends_this_session_on_the_server_and_no_other(server: ServerProcess) -> None:
    token = server.client.create_token("gone", "viewer").token
    cookie, other = log_in(server.url, token=token), log_in(server.url, token=token)
    out = ask(server.url, "DELETE", "/api/session", Cookie=cookie, **SAME)
    assert out.status == 204
    assert SimpleCookie(out.headers["Set-Cookie"])[cookie.partition("=")[0]]["max-age"] == "0"
    assert ask(server.url, "GET", "/api/me", Cookie=cookie).status == 401, (
        "a copy of the cookie is worth nothing"
    )
    assert ask(server.url, "GET", "/api/me", Cookie=other).status == 200
    newest = server.client.audit(limit=1).audit[0]
    assert (newest.by, newest.action, newest.status) == ("gone", "close_session", 204)
    for nobody in (cookie, "x=y"):
        assert ask(server.url, "DELETE", "/api/session", Cookie=nobody, **SAME).status == 204
    assert server.client.audit(limit=1).audit[0] == newest, "nobody left"


def test_only_the_servers_own_page_signs_out(server: ServerProcess, cookies: dict[Role, str]) -> None:
    for headers in ({}, {"Sec-Fetch-Site": "cross-site"}, {"Origin": "null"}):
        reply = ask(server.url, "DELETE", "/api/session", Cookie=cookies["viewer"], **headers)
        assert (reply.status, "Set-Cookie" in reply.headers) == (403, False)
    assert ask(server.url, "GET", "/api/me", Cookie=cookies["viewer"]).status == 200


def test_a_stream_ends_with_the_session_that_reads_it(server: ServerProcess) -> None:
    cookie = log_in(server.url, token=server.client.create_token("reader", "viewer").token)
    with closing(http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=60)) as connection:
        connection.request("GET", "/api/stream?topics=executions", headers={"Cookie": cookie})
        with connection.getresponse() as answer:
            while not answer.readline().startswith(b"id:"):
                pass
            ask(server.url, "DELETE", "/api/session", Cookie=cookie, **SAME)
            server.client.start(StartExecution(path="examples/waiting"))
            assert b"executions" not in answer.read()


def test_a_session_ends_with_its_token(server: ServerProcess) -> None:
    cookie = log_in(server.url, token=server.client.create_token("revoked", "viewer").token)
    assert ask(server.url, "GET", "/api/me", Cookie=cookie).status == 200
    server.client.revoke_token("revoked")
    assert ask(server.url, "GET", "/api/me", Cookie=cookie).status == 401


def test_a_cookie_that_somebody_changed_is_none(server: ServerProcess, cookies: dict[Role, str]) -> None:
    name, _, value = cookies["viewer"].partition("=")
    admin = cookies["admin"].partition("=")[2]
    token_hash, session, expires, signature = value.split(".")
    wrong = [
        "",
        "x",
        "..",
        "...",
        f"{token_hash}.{session}.{expires}.",
        f"{token_hash}.{session}.{int(expires) + 1}.{signature}",
        f"{admin.split('.')[0]}.{session}.{expires}.{signature}",
        f"{token_hash}.x.{expires}.{signature}",
        f"{token_hash}.{session}.x.{signature}",
        f"{token_hash}.{session}.{expires}.{signature}é",
    ]
    for forged in wrong:
        reply = ask(server.url, "GET", "/api/me", Cookie=f"{name}={forged}")
        assert (reply.status, reply.body["code"]) == (401, "unauthenticated"), forged


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"token": "noetl_wrong"}, 401, "unauthenticated"),
        ({"code": "wrong"}, 401, "unauthenticated"),
        ({}, 422, "invalid_request"),
        ({"token": "a", "code": "b"}, 422, "invalid_request"),
        ({"token": ""}, 422, "invalid_request"),
        ({"name": "x"}, 422, "invalid_request"),
        (b"{", 400, "invalid_request"),
    ],
)
def test_what_opens_no_session(server: ServerProcess, body: Any, status: int, code: str) -> None:
    reply = ask(server.url, "POST", "/api/session", body, **SAME)
    assert (reply.status, reply.body["code"]) == (status, code)
    assert "Set-Cookie" not in reply.headers


def test_the_token_of_a_worker_opens_no_session(server: ServerProcess) -> None:
    token = server.client.create_token("drudge", "worker").token
    assert ask(server.url, "POST", "/api/session", {"token": token}, **SAME).status == 403


def test_logins_stand_in_the_audit_and_attempts_do_not(server: ServerProcess) -> None:
    token = server.client.create_token("audited", "viewer").token
    log_in(server.url, token=token)
    ask(server.url, "POST", "/api/session", {"token": "noetl_wrong"}, **SAME)
    newest = server.client.audit(limit=1).audit[0]
    assert (newest.by, newest.action, newest.status) == ("audited", "open_session", 201)


def test_a_link_logs_in_once_as_who_asked_for_it(server: ServerProcess) -> None:
    client = Client(server.url, server.client.create_token("linked", "operator").token)
    parts = urlsplit(client.create_login_link().path)
    (code,) = parse_qs(parts.query)["code"]
    assert parts.path == "/login"
    cookie = log_in(server.url, code=code)
    assert ask(server.url, "GET", "/api/me", Cookie=cookie).body["name"] == "linked"
    again = ask(server.url, "POST", "/api/session", {"code": code}, **SAME)
    assert (again.status, again.body["code"]) == (401, "unauthenticated")
    assert "used before" in again.body["detail"]


def test_links_and_sessions_get_too_old_and_what_ended_is_forgotten_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def live() -> None:
        store = SqliteStore.in_memory()
        sessions = BrowserSessions(b"k" * 32, store)
        code = sessions.make_code("hash")
        first, second = _cookie_of(sessions, "hash"), _cookie_of(sessions, "hash")
        await sessions.close(first, Response(), secure=False)
        assert [await sessions.token_hash_of(cookie) for cookie in (first, second)] == [None, "hash"]
        assert len(await store.blobs("")) == 1
        _pass(monkeypatch, LINK_SECONDS + 5)
        assert sessions.use_code(code) is None
        assert await sessions.token_hash_of(second) == "hash"
        third = _cookie_of(sessions, "hash")
        _pass(monkeypatch, SESSION_SECONDS + 5)
        assert [await sessions.token_hash_of(cookie) for cookie in (first, second, third)] == [
            None,
            None,
            "hash",
        ]
        await sessions.close(third, Response(), secure=False)
        assert len(await store.blobs("")) == 1, "that of the first is not needed any more"
        await store.close()

    asyncio.run(live())


def _pass(monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    """From now on it is so much later than it really is."""
    later = now_micros() + seconds * 1_000_000
    monkeypatch.setattr("noetl.server.http.browser_sessions.now_micros", lambda: later)


def _cookie_of(sessions: BrowserSessions, token_hash: str) -> HTTPConnection:
    """A request with the cookie of a new session."""
    response = Response()
    sessions.open(response, token_hash, secure=False)
    cookie = response.headers["set-cookie"].partition(";")[0]
    return HTTPConnection({"type": "http", "headers": [(b"cookie", cookie.encode())]})


def test_a_server_prints_a_link_and_sessions_outlive_it(tmp_path: Path) -> None:
    with server_process(tmp_path) as first:
        assert first.announced["login"].startswith(f"{first.url}/login?code=")
        (code,) = parse_qs(urlsplit(first.announced["login"]).query)["code"]
        cookie, ended = log_in(first.url, code=code), log_in(first.url, token=first.token)
        ask(first.url, "DELETE", "/api/session", Cookie=ended, **SAME)
        printed = run("server", "login", "--home", str(first.home), "-o", "json", cwd=tmp_path)
        assert printed.json["login"].startswith(f"{first.url}/login?code=")
        assert code not in printed.out
        key = first.home / "session.key"
        assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with server_process(tmp_path) as second:
        assert ask(second.url, "GET", "/api/me", Cookie=cookie).body["name"] == "local-admin"
        assert ask(second.url, "GET", "/api/me", Cookie=ended).status == 401
        used = ask(second.url, "POST", "/api/session", {"code": code}, **SAME)
        assert used.status == 401


def test_on_loopback_only_names_of_this_machine_are_answered(server: ServerProcess) -> None:
    port = urlsplit(server.url).port
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "",
    ):
        for path in ("/healthz", "/api/openapi.json", "/api/me"):
            reply = ask(server.url, "GET", path, Host=host, Authorization=f"Bearer {server.token}")
            assert (reply.status, reply.body["code"]) == (403, "forbidden"), host
    for host in (f"localhost:{port}", "LOCALHOST", "127.0.0.1", f"[::1]:{port}", "[::1]"):
        assert ask(server.url, "GET", "/healthz", Host=host).status == 200, host


def test_a_proxy_may_pass_on_a_name_that_was_allowed(tmp_path: Path) -> None:
    with server_process(tmp_path, "--allow-host", "Flows.example") as process:
        assert ask(process.url, "GET", "/healthz", Host="flows.example").status == 200
        assert ask(process.url, "GET", "/healthz", Host="flows.example:443").status == 200
        assert ask(process.url, "GET", "/healthz", Host="other.example").status == 403


def test_login_without_a_server_says_so(tmp_path: Path) -> None:
    refused = run("server", "login", "--home", str(tmp_path / "none"), cwd=tmp_path)
    assert refused.code == 3
    assert "no server runs" in refused.err


def test_a_login_link_with_a_token_that_is_not_valid_is_the_callers_fault(
    server: ServerProcess, tmp_path: Path
) -> None:
    words = ("server", "login", "--home", str(server.home), "-o", "json")
    refused = run(*words, cwd=tmp_path, env={"NOETL_TOKEN": "noetl_wrong"})
    assert (refused.code, refused.json["error"]["code"]) == (2, "unauthenticated")
