"""What follows a redirect, and what stays with the host that was asked."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from msgspec import structs
from multidict import CIMultiDict
from yarl import URL

from noetl.credentials.masker import Masker
from noetl.model.outcome import Outcome
from noetl.model.secret import SecretOrigin
from noetl.ports.tool import NO_SECRETS, Call
from noetl.tools.http.auth import Signature
from noetl.tools.http.request import HttpRequest
from noetl.tools.http.tool import HttpTool
from tests.tools.certificates import Authority
from tests.tools.http_calls import Handler, Seen, answer, call, run, serving

SECRET = "s3cret-value"
CREDENTIALS: dict[str, dict[str, Any]] = {
    "bearer": {"auth": {"type": "bearer", "token": SECRET}},
    "basic": {"auth": {"type": "basic", "username": "u", "password": SECRET}},
    "api_key": {"auth": {"type": "api_key", "value": SECRET}},
    "api_key in a header": {"auth": {"type": "api_key", "value": SECRET, "header": "X-Token"}},
    "api_key in the query": {"auth": {"type": "api_key", "value": SECRET, "query": "key"}},
    "oauth2": {"auth": {"type": "oauth2", "access_token": SECRET}},
    "Authorization": {"headers": {"authorization": f"Token {SECRET}"}},
    "Proxy-Authorization": {"headers": {"Proxy-Authorization": SECRET}},
    "X-Auth-Token": {"headers": {"X-Auth-Token": SECRET}},
    "a name that begins as a public one": {"headers": {"Cookie-Token": SECRET}},
    "Cookie": {"headers": {"Cookie": f"session={SECRET}"}},
    "params": {"params": {"token": SECRET}},
    "user of the address": {"url": f"http://u:{SECRET}@HOST/asked"},
}


def holds_secret(seen: Seen) -> bool:
    spellings = (SECRET, base64.b64encode(f"u:{SECRET}".encode()).decode())
    return any(spelling in repr(seen) for spelling in spellings)


def run_to_another(
    request_call: Call, authority: Authority | None = None, *, host: str = "127.0.0.1", status: int = 307
) -> tuple[Outcome, list[Seen], list[Seen]]:
    """One call to a server that redirects to another one; the requests that each of the two got."""

    async def scenario() -> tuple[Outcome, list[Seen], list[Seen]]:
        tls = authority.serving(authority.sign("server")) if authority else None
        async with serving(answer(), tls) as other:
            url = other.url.replace("127.0.0.1", host)
            set_cookie = {"Set-Cookie": "kept=of-the-host; Path=/"}
            redirect = answer(status=status, headers={"Location": f"{url}/end", **set_cookie})
            async with serving(redirect) as first_server:
                address = str(request_call.inputs["url"]).replace("http://HOST", first_server.url)
                address = address.replace("HOST", first_server.url.removeprefix("http://"))
                tool = HttpTool()
                try:
                    sent = structs.replace(request_call, inputs={**request_call.inputs, "url": address})
                    return await tool.run(sent), first_server.seen, other.seen
                finally:
                    await tool.close()

    return asyncio.run(scenario())


@pytest.mark.parametrize("credential", CREDENTIALS)
@pytest.mark.parametrize("target", ["another port", "another host", "another scheme"])
def test_no_credential_follows_a_redirect_to_another_server(
    credential: str, target: str, tmp_path: Path
) -> None:
    inputs: dict[str, Any] = {"url": "http://HOST/asked", **CREDENTIALS[credential]}
    outcome, (first_server,), (other,) = run_to_another(
        call(spec={"verify": False}, **inputs),
        Authority(tmp_path) if target == "another scheme" else None,
        host="localhost" if target == "another host" else "127.0.0.1",
    )
    assert outcome.error is None
    assert holds_secret(first_server)
    assert (other.method, other.target) == ("GET", "/end")
    assert not holds_secret(other)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_takes_a_credential_along(status: int) -> None:
    request_call = call("http://HOST/asked", method="POST", body="b", **CREDENTIALS["bearer"])
    _, (first_server,), (other,) = run_to_another(request_call, status=status)
    assert (holds_secret(first_server), holds_secret(other)) == (True, False)
    assert other.body == (b"b" if status in (307, 308) else b"")


@pytest.mark.parametrize(("host", "cookie"), [("127.0.0.1", "kept=of-the-host"), ("localhost", None)])
def test_a_cookie_of_a_host_goes_to_all_its_ports_and_to_no_other_host(host: str, cookie: str | None) -> None:
    _, _, (other,) = run_to_another(call("http://HOST/asked"), host=host)
    assert other.headers.get("Cookie") == cookie


def test_a_body_with_a_secret_goes_to_no_other_port() -> None:
    masker = Masker()
    masker.add(SECRET, SecretOrigin("s"))
    posted = structs.replace(call("http://HOST/asked", method="POST", json={"k": SECRET}), mask=masker)
    outcome, (first_server,), others = run_to_another(posted)
    assert holds_secret(first_server)
    assert others == []
    assert outcome.error is not None
    assert outcome.error.kind == "credential"


def test_headers_that_may_hold_a_secret_stay_with_the_host_that_was_asked() -> None:
    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        port = request.transport.get_extra_info("sockname")[1]
        targets = {
            "/same": "/other",
            "/other": f"http://localhost:{port}/away",
            "/away": f"http://127.0.0.1:{port}/back",
        }
        if request.path in targets:
            raise web.HTTPTemporaryRedirect(targets[request.path])
        return web.Response()

    private = {"X-Custom": "secret-1", "authorization": "secret-2", "Referer": "secret-3"}
    public = {"Accept": "text/csv", "If-None-Match": "*", "user-agent": "me", "Content-Type": "a/b"}
    headers = {**private, **public, "Cookie": "a=secret-4", "Host": "first_server.example"}
    _, (first, same, away, back) = run(handler, call("/same", method="PUT", body="b", headers=headers))
    assert same.headers == first.headers
    for name, value in headers.items():
        assert first.headers.getall(name) == [value]
    assert "secret" not in repr(away)
    assert away.headers["Host"].startswith("localhost:")
    assert {name: away.headers[name] for name in public} == public
    assert away.headers["Idempotency-Key"] == "key-of-this-visit"
    assert {name: back.headers[name] for name in private} == private


@pytest.mark.parametrize(
    ("url", "target", "expected"),
    [
        ("http://a.example/x", "http://a.example/y", True),
        ("http://u:p@a.example/", "http://a.example/", True),
        ("http://a.example/", "http://a.example:80/", True),
        ("http://a.example:8080/", "http://a.example:8080/", True),
        ("http://a.example/", "http://a.example:8080/", False),
        ("http://a.example:8080/", "http://a.example/", False),
        ("http://a.example:8080/", "http://a.example:8081/", False),
        ("https://a.example/", "https://a.example:8443/", False),
        ("http://a.example:443/", "https://a.example/", False),
        ("https://a.example/", "http://a.example:443/", False),
        ("http://a.example/", "https://a.example/", True),
        ("https://a.example/", "http://a.example/", False),
        ("http://a.example/", "https://a.example:8443/", False),
        ("http://a.example:8080/", "https://a.example/", False),
        ("http://a.example/", "http://b.a.example/", False),
        ("http://a.example/", "https://b.example/", False),
    ],
)
def test_a_host_is_the_same_if_it_only_begins_to_encrypt(url: str, target: str, expected: bool) -> None:
    request = HttpRequest("GET", URL(url), CIMultiDict(), CIMultiDict(), None, Signature())
    assert request.may_tell(URL(target)) is expected


def test_a_redirect_to_another_host_gets_no_credential() -> None:
    async def handler(request: web.Request) -> web.Response:
        if request.path == "/same":
            raise web.HTTPFound("/other")
        if request.path == "/other":
            raise web.HTTPFound(f"http://localhost:{request.url.port}/end")
        return web.Response()

    auth = {"type": "api_key", "value": "secret"}
    _, seen = run(handler, call("/same", auth=auth))
    assert [(sent.target, sent.headers.get("X-API-Key")) for sent in seen] == [
        ("/same", "secret"),
        ("/other", "secret"),
        ("/end", None),
    ]


def redirecting(status: int, host: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        if request.path == "/end":
            return web.Response()
        return web.Response(status=status, headers={"Location": f"http://{host}:{request.url.port}/end"})

    return handler


@pytest.mark.parametrize("status", [307, 308])
@pytest.mark.parametrize(
    "inputs",
    [
        {"json": {"deep": ['a "secret" word']}},
        {"body": 'x a "secret" word'},
        {"form": {"f": 'a "secret" word'}},
        {"form": {"f": 'a "secret" word'}, "files": {"p": {"content": "y", "filename": "f"}}},
        {"files": {"p": {"content": 'a "secret" word', "filename": "f"}}},
        {"files": {"p": "upload.txt"}},
        {"files": {"p": {"path": "upload.txt"}}},
    ],
)
def test_a_body_with_a_secret_follows_no_redirect_to_another_host(
    tmp_path: Path, status: int, inputs: dict[str, Any]
) -> None:
    (tmp_path / "upload.txt").write_text("x" * ((1 << 20) - 5) + 'a "secret" word')
    masker = Masker()
    masker.add('a "secret" word', SecretOrigin("s"))
    posted = structs.replace(call("/a", method="POST", folder=tmp_path, **inputs), mask=masker)
    for host, targets in (("localhost", ["/a"]), ("127.0.0.1", ["/a", "/end"])):
        (outcome,), seen = run(redirecting(status, host), posted)
        assert [sent.target for sent in seen] == targets
        if host == "localhost":
            assert outcome.error is not None
            assert (outcome.error.kind, outcome.error.retryable) == ("credential", False)
            assert "and the body holds a secret" in outcome.error.message
        else:
            assert outcome.error is None
    # What holds none goes there, and so does what drops its body.
    (outcome,), seen = run(redirecting(status, "localhost"), structs.replace(posted, mask=NO_SECRETS))
    assert outcome.error is None
    (outcome,), seen = run(redirecting(303, "localhost"), posted)
    assert [(sent.method, sent.target) for sent in seen] == [("POST", "/a"), ("GET", "/end")]
