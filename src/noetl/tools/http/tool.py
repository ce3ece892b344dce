"""Runs the kind `http`."""

import asyncio
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import NamedTuple

import aiohttp
import msgspec

from noetl.model.json import Json
from noetl.model.outcome import ErrorInfo, Outcome, ToolError, failed
from noetl.ports.tool import Call, TextMask
from noetl.tools.host.bounded_text import MAX_EXCERPT, shorten_text
from noetl.tools.host.input_rules import byte_count
from noetl.tools.host.tool_attempt import as_outcome, error_outcome, inputs_of, refuse_faults
from noetl.tools.http.failure import http_error
from noetl.tools.http.kind import HttpInputs, HttpSpec, HttpTimeout, check
from noetl.tools.http.pool import HttpConnections, TlsOption
from noetl.tools.http.request import (
    HttpRequest,
    body_holds_secret,
    build_request,
    parse_http_url,
    wrap_file_references,
)
from noetl.tools.http.response import BodyContent, headers_of, is_packed, parse_retry_after
from noetl.tools.http.response_body import body_content, store_body

MAX_BODY = 64 * 1024 * 1024
"""Bytes of one body, unpacked."""
MAX_FILE = 1024 * 1024 * 1024
"""Bytes of one that is stored, unless `spec.max_size` says otherwise."""
MAX_REDIRECTS = 10

_KNOBS = tuple(HttpSpec.__annotations__)
"""What is its own in `spec`: the rest is checked and used by the worker."""
_RETRYABLE_STATUSES = frozenset({408, 425, 429})


class HttpTool:
    """HTTP requests over one pool of connections. A cookie lives as long as the run that got it."""

    def __init__(self, *, max_body: int = MAX_BODY, max_file: int = MAX_FILE) -> None:
        self._connections = HttpConnections()
        self._max_body = max_body
        self._max_file = max_file

    async def run(self, call: Call) -> Outcome:
        return await as_outcome(self._attempt(call))

    async def close(self) -> None:
        await self._connections.close()

    async def _attempt(self, call: Call) -> Outcome:
        inputs, spec = _typed_call(call)
        async with AsyncExitStack() as open_files:
            request = await build_request(call, inputs, open_files)
            tls = self._connections.tls_option(spec, call.folder)
            session = open_files.enter_context(self._connections.session(call))
            try:
                async with asyncio.timeout(call.timeout):
                    response = await self._send(call, session, request, spec, tls)
            except aiohttp.ClientError as error:
                if self._connections.closed:
                    return error_outcome("cancelled", "the worker is ending")
                return failed(http_error(error, request.label, call.mask))
            except TimeoutError:
                message = f"{request.label}: no whole answer within {call.timeout:g} s"
                return error_outcome("timeout", message, retryable=True)
        if response.content.warning:
            call.log(f"warning: {response.content.warning}")
        return _outcome(request, response, call.mask, ok=_succeeds(response.status, spec.success))

    async def _send(
        self,
        call: Call,
        session: aiohttp.ClientSession,
        request: HttpRequest,
        spec: HttpSpec,
        tls: TlsOption,
    ) -> "_Response":
        began = time.perf_counter()
        limits = spec.timeout if isinstance(spec.timeout, HttpTimeout) else HttpTimeout()
        response = await session.request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            allow_redirects=spec.follow_redirects is not False,
            max_redirects=MAX_REDIRECTS + 1,  # the client counts the one that it refuses
            timeout=aiohttp.ClientTimeout(connect=limits.connect or None, sock_read=limits.read or None),
            ssl=tls,
            proxy=spec.proxy,
            middlewares=_private_middlewares(call, request),
        )
        try:
            content = await self._content(call, response, spec)
        finally:
            # One that was read to its end is back in the pool by now; one that was not can serve nobody else.
            response.close()
        return _Response(
            status=response.status,
            reason=response.reason or "",
            headers=headers_of(response),
            url=request.mask_url(response.url),
            elapsed_ms=round((time.perf_counter() - began) * 1e3, 3),
            content=content,
        )

    async def _content(self, call: Call, response: aiohttp.ClientResponse, spec: HttpSpec) -> BodyContent:
        ok = _succeeds(response.status, spec.success)
        max_bytes = self._max_file if spec.max_size is None else byte_count(spec.max_size)
        if not ok or (is_packed(response) and not _expects_file(call, spec)):
            max_bytes = min(max_bytes, self._max_body)
        try:
            if ok and spec.save_as is not None:
                return await store_body(response, call, max_bytes=max_bytes, keep_empty=True)
            return await body_content(response, call, max_bytes=max_bytes, max_value=self._max_body)
        except ToolError as error:
            if ok:
                raise
            return BodyContent(None, str(error))  # the status says more than the size


class _Response(NamedTuple):
    status: int
    reason: str
    headers: dict[str, str]
    url: str
    elapsed_ms: float
    content: BodyContent


def _typed_call(call: Call) -> tuple[HttpInputs, HttpSpec]:
    call = wrap_file_references(call)
    inputs = inputs_of(call, HttpInputs)
    try:
        spec = msgspec.convert({name: call.spec.get(name) for name in _KNOBS}, HttpSpec)
    except msgspec.ValidationError as error:
        raise ToolError("input", str(error)) from None
    refuse_faults(check(call.inputs, call.spec))
    if spec.proxy is not None:
        parse_http_url(spec.proxy, "spec.proxy")
    return inputs, spec


def _expects_file(call: Call, spec: HttpSpec) -> bool:
    """Whether the task says that its body may be long: a few packed bytes can stand for any number."""
    return spec.save_as is not None or spec.max_size is not None or call.spec.get("result") is not None


def _private_middlewares(call: Call, request: HttpRequest) -> tuple[aiohttp.ClientMiddlewareType, ...]:
    """Adds the private headers to what goes to the host that was asked; a redirect to another gets none.

    Nor does it get a body that holds a secret: ToolError of kind `credential`.
    By a middleware, which sees every request of a chain of redirects: headers would follow to any host.
    """
    if not request.private_headers and request.body is None:
        return ()

    async def add_private(
        sent: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if request.may_tell(sent.url):
            sent.headers.update(request.private_headers)
        # Where a redirect drops the body it goes on as a GET.
        elif sent.method == request.method and await asyncio.to_thread(body_holds_secret, call):
            message = (
                f"{request.label}: it redirects to {sent.url.origin()}, and the body holds a secret,"
                " which goes to the host alone that was asked: give the other as `url`"
            )
            raise ToolError("credential", message)
        return await send(sent)

    return (add_private,)


def _succeeds(status: int, success: list[int | str] | None) -> bool:
    if success is None:
        return 200 <= status < 400
    return any(expected in (status, f"{status // 100}xx") for expected in success)


def _outcome(request: HttpRequest, response: _Response, mask: TextMask, *, ok: bool) -> Outcome:
    """The outcome of a response. One that is no success has its result, too: policies may want the body."""
    headers: dict[str, Json] = dict(response.headers)
    result: dict[str, Json] = {
        "status": response.status,
        "status_code": response.status,  # as playbooks call it that know other HTTP clients
        "headers": headers,
        "url": response.url,
        "elapsed_ms": response.elapsed_ms,
        "data": response.content.data,
    }
    return Outcome(
        status="ok" if ok else "error",
        result=result,
        error=None if ok else _status_error(request, response, mask),
        meta={"warning": response.content.warning} if response.content.warning else {},
        helpers={"http": {"status": response.status, "headers": headers}},
    )


def _status_error(request: HttpRequest, response: _Response, mask: TextMask) -> ErrorInfo:
    body = response.content.data
    excerpt = body if isinstance(body, str) else msgspec.json.encode(body).decode() if body else ""
    message = " ".join(f"{request.label}: {response.status} {response.reason}".split())
    return ErrorInfo(
        kind="http_status",
        message=f"{message}: {shorten_text(excerpt, MAX_EXCERPT, mask)}" if excerpt else message,
        retryable=response.status in _RETRYABLE_STATUSES or response.status >= 500,
        retry_after=parse_retry_after(response.headers.get("retry-after"), datetime.now(UTC)),
        details={"status": response.status},
    )
