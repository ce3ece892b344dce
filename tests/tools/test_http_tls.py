"""Certificates of servers and clients, and proxies between them."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.tools.http.tool import HttpTool
from tests.tools.certificates import DAY, NOW, Authority
from tests.tools.http_calls import answer, call, error_of, serving
from tests.tools.proxies import Proxy, proxying


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


async def peer(request: web.Request) -> web.Response:
    """Says whom the server takes the client for."""
    assert request.transport is not None
    certificate = request.transport.get_extra_info("peercert")
    return web.json_response(certificate["subject"][0][0][1] if certificate else None)


def request_over_tls(
    tls: ssl.SSLContext, *specs: dict[str, Json], folder: Path, host: str = "127.0.0.1", handler: Any = peer
) -> list[Outcome]:
    """The outcomes of calls with these specs to one server."""

    async def scenario() -> list[Outcome]:
        tool = HttpTool()
        async with serving(handler, tls) as server:
            url = server.url.replace("127.0.0.1", host)
            try:
                return [await tool.run(call(url, spec=spec, folder=folder)) for spec in specs]
            finally:
                await tool.close()

    return asyncio.run(scenario())


def refusal(outcome: Outcome) -> str:
    assert outcome.error is not None, outcome
    assert (outcome.error.kind, outcome.error.retryable) == ("connection", False)
    return outcome.error.message


def test_a_server_is_trusted_by_its_authority(authority: Authority, tmp_path: Path) -> None:
    tls = authority.serving(authority.sign("server"))
    unknown, known, unchecked = request_over_tls(
        tls, {}, {"verify": "authority.pem"}, {"verify": False}, folder=tmp_path
    )
    assert "certificate in certificate chain; `spec.verify` can name a file" in refusal(unknown)
    assert (known.status, unchecked.status) == ("ok", "ok")


def test_an_expired_certificate_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    tls = authority.serving(authority.sign("server", until=NOW - DAY))
    expired, unchecked = request_over_tls(
        tls, {"verify": "authority.pem"}, {"verify": False}, folder=tmp_path
    )
    assert "is not trusted: certificate has expired" in refusal(expired)
    assert unchecked.status == "ok"


def test_the_certificate_of_another_host_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    tls = authority.serving(authority.sign("server", host="127.0.0.2"))
    (other,) = request_over_tls(tls, {"verify": "authority.pem"}, folder=tmp_path)
    assert "IP address mismatch" in refusal(other)
    (named,) = request_over_tls(tls, {"verify": "authority.pem"}, folder=tmp_path, host="localhost")
    assert "Hostname mismatch" in refusal(named)


def test_a_client_shows_its_certificate(authority: Authority, tmp_path: Path) -> None:
    tls = authority.serving(authority.sign("server"), ask=True)
    robot, other = authority.sign("robot"), authority.sign("other")
    both = tmp_path / "both.pem"
    both.write_bytes(other.cert.read_bytes() + other.key.read_bytes())
    pair: Json = {"cert": robot.cert.name, "key": robot.key.name}
    first, second, unchecked, bare = request_over_tls(
        tls,
        {"verify": "authority.pem", "cert": pair},
        {"verify": "authority.pem", "cert": "both.pem"},
        {"verify": False, "cert": str(both)},
        {"verify": "authority.pem"},
        folder=tmp_path,
    )
    assert [outcome.result["data"] for outcome in (first, second, unchecked)] == ["robot", "other", "other"]
    assert bare.error is not None
    assert bare.error.kind == "connection"


def test_a_certificate_that_changed_is_read_again(authority: Authority, tmp_path: Path) -> None:
    tls = authority.serving(authority.sign("server"), ask=True)
    own = authority.sign("robot")
    spec: dict[str, Json] = {"verify": "authority.pem", "cert": {"cert": own.cert.name, "key": own.key.name}}

    async def scenario() -> list[Json]:
        tool = HttpTool()
        async with serving(peer, tls) as server:
            outcomes = [await tool.run(call(server.url, spec=spec, folder=tmp_path))]
            other = authority.sign("other")
            for old, new in zip(own, other, strict=True):
                new.replace(old)
            outcomes.append(await tool.run(call(server.url, spec=spec, folder=tmp_path)))
            await tool.close()
        return [outcome.result["data"] for outcome in outcomes]

    assert asyncio.run(scenario()) == ["robot", "other"]


def test_a_certificate_that_cannot_be_shown_is_told(authority: Authority, tmp_path: Path) -> None:
    good, locked = authority.sign("good"), authority.sign("locked", password="secret")
    cases: tuple[tuple[Json, str, str], ...] = (
        ("none.pem", "not_found", f"`spec.cert`: there is no {tmp_path}/none.pem"),
        (good.cert.name, "input", "no certificate with its key in"),
        ({"cert": good.cert.name, "key": locked.cert.name}, "input", "no certificate with its key in"),
        ({"cert": locked.cert.name, "key": locked.key.name}, "credential", "is encrypted: use one without"),
        ({"key": good.key.name}, "input", "missing required field `cert`"),
    )
    for cert, kind, message in cases:
        error = error_of(answer(), call(spec={"cert": cert}, folder=tmp_path))
        assert (error.kind, error.retryable) == (kind, False), error
        assert message in error.message


def through(
    proxy_says: bytes = b"", tls: ssl.SSLContext | None = None, **options: Any
) -> tuple[Outcome, Proxy]:
    """The outcome of a call through a proxy to a real server, and the proxy."""
    auth = options.pop("proxy_auth", "")

    async def scenario() -> tuple[Outcome, Proxy]:
        tool = HttpTool()
        async with serving(answer(text="through"), tls) as server, proxying(proxy_says) as proxy:
            spec = {**options.pop("spec", {}), "proxy": proxy.url.replace("//", f"//{auth}")}
            outcome = await tool.run(call(f"{server.url}/x?a=1", spec=spec, **options))
            await tool.close()
            return outcome, proxy

    return asyncio.run(scenario())


def test_a_request_goes_through_a_proxy() -> None:
    outcome, proxy = through()
    assert outcome.result["data"] == "through"
    ((first, _),) = proxy.heard
    assert first.startswith("GET http://127.0.0.1:")
    assert first.endswith("/x?a=1 HTTP/1.1")


def test_a_safe_request_goes_through_a_tunnel(authority: Authority, tmp_path: Path) -> None:
    tls = authority.serving(authority.sign("server"))
    auth = {"type": "bearer", "token": "secret"}
    outcome, proxy = through(tls=tls, spec={"verify": "authority.pem"}, folder=tmp_path, auth=auth)
    assert outcome.result["data"] == "through"
    ((first, headers),) = proxy.heard
    assert first.startswith("CONNECT 127.0.0.1:")
    assert "authorization" not in headers
    unknown, _ = through(tls=tls, folder=tmp_path)
    assert "is not trusted" in refusal(unknown)


def test_a_proxy_is_signed_in_to_and_its_password_is_not_shown() -> None:
    outcome, proxy = through(proxy_auth="user:secret@")
    assert outcome.status == "ok"
    assert proxy.heard[0][1]["proxy-authorization"] == "basic dxnlcjpzzwnyzxq="  # in lower case, as heard
    refused, _ = through(b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n", proxy_auth="user:secret@")
    assert "secret" not in repr(refused)


@pytest.mark.parametrize(("status", "retryable"), [(407, False), (403, False), (429, True), (503, True)])
def test_a_proxy_that_makes_no_tunnel_is_told(
    authority: Authority, tmp_path: Path, status: int, retryable: bool
) -> None:
    tls = authority.serving(authority.sign("server"))
    outcome, _ = through(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode(), tls=tls)
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("connection", retryable)
    assert f"the proxy answers {status} No" in outcome.error.message


def test_a_proxy_that_speaks_no_http_is_told() -> None:
    outcome, _ = through(b"SSH-2.0-OpenSSH\r\n\r\n")
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("connection", True)
