"""Calls of the HTTP tool for tests, against real servers of this process."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from aiohttp import web
from msgspec import structs
from multidict import CIMultiDict

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.ports.results import ExecutionObjects
from noetl.ports.tool import Call
from noetl.tools.http.tool import HttpTool
from tests.tools.calls import HERE, call_of, quiet

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Seen(NamedTuple):
    """A request as the server saw it; `port` is the client's, so equal ports are one connection."""

    method: str
    target: str
    headers: CIMultiDict[str]
    body: bytes
    port: int


class Served(NamedTuple):
    """A server and the requests it got so far."""

    url: str
    seen: list[Seen]


def call(
    url: str = "/",
    *,
    spec: dict[str, Json] | None = None,
    timeout: float = 30.0,
    folder: Path = HERE,
    log: Callable[[str], None] = quiet,
    objects: ExecutionObjects | None = None,
    run_id: str = "r1",
    **inputs: Any,
) -> Call:
    """A call; an address that begins with `/` is one of the server that it is run against."""
    return call_of(
        "http",
        {"url": url, **inputs},
        spec=spec,
        run_id=run_id,
        key="key-of-this-visit",
        timeout=timeout,
        folder=folder,
        log=log,
        objects=objects,
    )


def at(server: Served, request_call: Call) -> Call:
    url = request_call.inputs["url"]
    address = server.url + url if isinstance(url, str) and url.startswith("/") else url
    return structs.replace(request_call, inputs={**request_call.inputs, "url": address})


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[Served]:
    """A web server whose every address is answered by the handler."""
    seen: list[Seen] = []

    async def note(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        port = request.transport.get_extra_info("peername")[1]
        # What is read here cannot be taken apart by the handler.
        body = b"" if request.content_type.startswith("multipart/") else await request.read()
        seen.append(Seen(request.method, request.raw_path, CIMultiDict(request.headers), body, port))
        return await handler(request)

    app = web.Application(client_max_size=1 << 30)
    app.router.add_route("*", "/{tail:.*}", note)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        yield Served(f"{'https' if tls else 'http'}://127.0.0.1:{port}", seen)
    finally:
        await runner.cleanup()


@asynccontextmanager
async def saying(answer: bytes) -> AsyncIterator[Served]:
    """A server that says these bytes to every connection, whatever it is asked, and hangs up."""

    async def answer_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer_one, "127.0.0.1", 0)
    try:
        yield Served(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", [])
    finally:
        server.close()
        await server.wait_closed()


def run(handler: Handler | bytes, *calls: Call, **options: Any) -> tuple[list[Outcome], list[Seen]]:
    """The outcomes of the calls, one after the other on one tool, and the requests that they made."""

    async def run_calls() -> tuple[list[Outcome], list[Seen]]:
        tool = HttpTool(**options)
        async with saying(handler) if isinstance(handler, bytes) else serving(handler) as server:
            try:
                return [await tool.run(at(server, tool_call)) for tool_call in calls], server.seen
            finally:
                await tool.close()

    return asyncio.run(run_calls())


def answer(*, headers: dict[str, str] | None = None, **options: Any) -> Handler:
    """A handler that answers this."""

    async def handler(_request: web.Request) -> web.Response:
        return web.Response(headers=headers, **options)

    return handler


def outcome_of(handler: Handler | bytes, request_call: Call | None = None, **options: Any) -> Outcome:
    """The outcome of one call."""
    ((outcome,), _) = run(handler, request_call or call(), **options)
    return outcome


def data_of(handler: Handler | bytes, request_call: Call | None = None) -> Any:
    """The data of an answer that is a success."""
    outcome = outcome_of(handler, request_call)
    assert outcome.error is None, outcome
    return outcome.result["data"]


def error_of(handler: Handler | bytes, request_call: Call | None = None, **options: Any) -> ErrorInfo:
    """The error of one call, which fails."""
    outcome = outcome_of(handler, request_call, **options)
    assert outcome.error is not None, outcome
    return outcome.error


def sent_request(request_call: Call) -> Seen:
    """The request that a call makes."""
    (_, (seen,)) = run(answer(), request_call)
    return seen
