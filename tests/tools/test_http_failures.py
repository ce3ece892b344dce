"""What an `http` task says when no whole answer comes, and how it ends."""

import asyncio
import ssl
from typing import Any

import pytest
from aiohttp import web

from noetl.model.json import Json
from noetl.model.outcome import Outcome
from noetl.tools.http.tool import HttpTool
from tests.tools.calls import HERE
from tests.tools.http_calls import answer, at, call, error_of, run, serving


@pytest.mark.parametrize(
    ("response", "why"),
    [
        (b"", "the server closed the connection without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "the server closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "what the server sent is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "ended before the whole body was there"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "ended before the whole body"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef", "what the server sent is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: ten\r\n\r\nabc", "what the server sent is not HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "the body cannot be unpacked: Can not"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 3\r\n\r\nabc", "the body cannot be unpacked: Can not"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", "what the server sent is not HTTP"),
    ],
)  # fmt: skip
def test_a_connection_that_breaks_is_told_and_may_be_tried_again(response: bytes, why: str) -> None:
    error = error_of(response)
    assert (error.kind, error.retryable) == ("connection", True)
    assert error.message.startswith("GET http://127.0.0.1:")
    assert why in error.message


def test_nobody_there_is_told() -> None:
    url = "http://me:pw@127.0.0.1:1/a?page=2&q=a%20b&page=3&key=secret#top"
    error = error_of(answer(), call(url, spec={"verify": False}))
    assert (error.kind, error.retryable) == ("connection", True)
    assert error.message == (
        "GET http://127.0.0.1:1/a?page=2&q=a+b&page=3&key=***: no connection to 127.0.0.1:1: it is refused, so nothing may be listening there"
    )


def test_a_host_that_is_not_found_is_named() -> None:
    error = error_of(answer(), call("http://nowhere.invalid/"))
    assert (error.kind, error.retryable) == ("connection", True)
    assert "the host `nowhere.invalid` is not found" in error.message


def test_a_proxy_that_is_not_there_is_named() -> None:
    error = error_of(answer(), call(spec={"proxy": "http://127.0.0.1:1"}))
    assert (error.kind, error.retryable) == ("connection", True)
    assert "no connection to the proxy 127.0.0.1:1: it is refused" in error.message


def over_tls(*specs: dict[str, Json], scheme: str = "https") -> list[Outcome]:
    """The outcomes of calls with these specs to one server whose certificate nobody vouches for."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(HERE / "server.pem", HERE / "server.key.pem")

    async def scenario() -> list[Outcome]:
        tool = HttpTool()
        async with serving(answer(text="safe"), tls) as server:
            url = server.url.replace("https", scheme)
            try:
                return [await tool.run(call(url, spec=spec)) for spec in specs]
            finally:
                await tool.close()

    return asyncio.run(scenario())


def test_a_certificate_is_checked_unless_it_is_said_not_to() -> None:
    refused, unchecked, vouched = over_tls({}, {"verify": False}, {"verify": "server.pem"})
    assert refused.error is not None
    assert (refused.error.kind, refused.error.retryable) == ("connection", False)
    assert "is not trusted: self-signed certificate; `spec.verify` can name" in refused.error.message
    assert unchecked.result["data"] == vouched.result["data"] == "safe"


def test_https_to_a_server_that_does_not_speak_it_is_told() -> None:
    async def scenario() -> Outcome:
        tool = HttpTool()
        async with serving(answer()) as server:
            outcome = await tool.run(call(server.url.replace("http", "https")))
            await tool.close()
        return outcome

    outcome = asyncio.run(scenario())
    assert outcome.error is not None
    assert outcome.error.kind == "connection"
    assert "no TLS connection to 127.0.0.1:" in outcome.error.message


async def never(_request: web.Request) -> web.Response:
    await asyncio.Event().wait()
    return web.Response()


async def begun(request: web.Request) -> web.StreamResponse:
    """Sends headers and half a body, and no more."""
    response = web.StreamResponse()
    response.content_length = 10
    await response.prepare(request)
    await response.write(b"half.")
    await asyncio.Event().wait()
    return response


async def dripping(request: web.Request) -> web.StreamResponse:
    """Sends a body without end, a byte at a time: there is always some data."""
    response = web.StreamResponse(headers={"Content-Type": "text/plain"})
    await response.prepare(request)
    while True:
        await response.write(b".")
        await asyncio.sleep(0.01)


def test_a_server_that_goes_on_without_end_is_not_waited_for_without_end() -> None:
    error = error_of(dripping, call(timeout=0.3, spec={"timeout": {"read": 30}}))
    assert (error.kind, error.retryable) == ("timeout", True)
    assert "no whole answer within 0.3 s" in error.message


def test_headers_without_end_are_told() -> None:
    response = b"HTTP/1.1 200 OK\r\n" + b"X-More: and more\r\n" * 300_000
    error = error_of(response)
    assert error.kind == "connection"


@pytest.mark.parametrize("handler", [never, begun])
@pytest.mark.parametrize(
    ("about", "why"),
    [
        ({"timeout": 0.2}, "no whole answer within 0.2 s"),
        ({"spec": {"timeout": {"read": 0.2}}}, "no data within the time that `spec.timeout.read` gives"),
    ],
)
def test_a_server_that_does_not_go_on_is_waited_for_no_longer_than_said(
    handler: Any, about: dict[str, Any], why: str
) -> None:
    error = error_of(handler, call(**about))
    assert (error.kind, error.retryable) == ("timeout", True)
    assert why in error.message


def test_a_connection_that_does_not_come_about_is_waited_for_no_longer_than_said() -> None:
    async def scenario() -> Outcome:
        tool = HttpTool()
        ended = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()  # a TLS handshake is never answered
            writer.close()
            ended.set()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        try:
            return await tool.run(call(f"https://127.0.0.1:{port}/", spec={"timeout": {"connect": 0.2}}))
        finally:
            await tool.close()
            await ended.wait()
            server.close()
            await server.wait_closed()

    outcome = asyncio.run(scenario())
    assert outcome.error is not None
    assert (outcome.error.kind, outcome.error.retryable) == ("timeout", True)
    assert "no connection within the time that `spec.timeout.connect` gives" in outcome.error.message


@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_no_request_is_sent_twice(method: str) -> None:
    async def hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    (outcome,), seen = run(hang_up, call(method=method))
    assert outcome.error is not None
    assert (outcome.error.kind, len(seen)) == ("connection", 1)


@pytest.mark.parametrize("send", ["headers", "half"])
def test_a_cancelled_call_closes_its_connection(send: str) -> None:
    """The server learns of it by the cancellation of its handler."""

    async def scenario() -> None:
        arrived, left = asyncio.Event(), asyncio.Event()

        async def handler(request: web.Request) -> web.StreamResponse:
            response = web.StreamResponse()
            response.content_length = 10
            if send == "half":
                await response.prepare(request)
                await response.write(b"half.")
            arrived.set()
            try:
                await asyncio.Event().wait()
            finally:
                left.set()
            return response

        tool = HttpTool()
        async with serving(handler) as server:
            running = asyncio.create_task(tool.run(at(server, call())))
            await arrived.wait()
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            await left.wait()
            await tool.close()

    asyncio.run(scenario())


def test_a_tool_that_is_closed_ends_its_calls_and_begins_none() -> None:
    async def scenario() -> list[Outcome]:
        arrived = asyncio.Event()

        async def handler(_request: web.Request) -> web.Response:
            arrived.set()
            await asyncio.Event().wait()
            return web.Response()

        tool = HttpTool()
        async with serving(handler) as server:
            running = asyncio.create_task(tool.run(at(server, call())))
            await arrived.wait()
            await tool.close()
            await tool.close()
            return [await running, await tool.run(at(server, call()))]

    for outcome in asyncio.run(scenario()):
        assert outcome.error is not None
        assert (outcome.error.kind, outcome.error.message) == ("cancelled", "the worker is ending")


def test_a_tool_that_was_never_used_closes() -> None:
    asyncio.run(HttpTool().close())
