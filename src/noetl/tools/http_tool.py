"""Runs the kind `http`."""

import asyncio
import ssl
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple, TypeAlias

import aiohttp
import msgspec

from noetl.model import Json
from noetl.model.outcome import ErrorInfo, Outcome, ToolError, failed
from noetl.ports.tool import Call
from noetl.tools.attempt import attempted, failure, inputs_of
from noetl.tools.http import HttpInputs, HttpSpec, HttpTimeout, check
from noetl.tools.http_answer import Content, body_of, content_of, headers_of, retry_after
from noetl.tools.http_failure import cut, failure_of
from noetl.tools.http_request import Request, address, request_of

MAX_BODY = 64 * 1024 * 1024
"""Bytes of one body, unpacked."""
MAX_REDIRECTS = 10

_KEPT = 4.0
"""Seconds that an idle connection is kept: less than servers do, so that none is used as it closes."""
_LARGE = 1024 * 1024
"""Bytes that are no longer read between two turns of the loop."""
_KNOBS = ("timeout", "verify", "follow_redirects", "proxy", "success", "save_as")
_RETRYABLE = frozenset({408, 425, 429})


class HttpTool:
    """HTTP requests over one pool of connections. No cookie outlives its call."""

    def __init__(self, *, max_body: int = MAX_BODY) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._authorities: dict[Path, tuple[int, ssl.SSLContext]] = {}
        self._max_body = max_body
        self._closed = False

    async def run(self, call: Call) -> Outcome:
        return await attempted(self._attempt(call))

    async def close(self) -> None:
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _attempt(self, call: Call) -> Outcome:
        inputs, spec = _typed(call)
        with ExitStack() as open_files:
            request = request_of(call, inputs, open_files)
            verify = self._verify(spec, call.folder)
            try:
                async with asyncio.timeout(call.timeout):
                    answer = await self._answer(request, spec, verify)
            except aiohttp.ClientError as error:
                if self._closed:
                    return failure("cancelled", "the worker is ending")
                return failed(failure_of(error, request.place))
            except TimeoutError:
                message = f"{request.place}: no whole answer within {call.timeout:g} s"
                return failure("timeout", message, retryable=True)
        if answer.content.warning:
            call.log(f"warning: {answer.content.warning}")
        return _outcome(request, answer, ok=_succeeds(answer.status, spec.success))

    async def _answer(self, request: Request, spec: HttpSpec, checked: "_Checked") -> "_Answer":
        began = time.perf_counter()
        limits = spec.timeout if isinstance(spec.timeout, HttpTimeout) else HttpTimeout()
        response = await self._open().request(
            request.method,
            request.url,
            headers=request.headers,
            data=request.body,
            allow_redirects=spec.follow_redirects is not False,
            max_redirects=MAX_REDIRECTS + 1,  # the client counts the one that it refuses
            timeout=aiohttp.ClientTimeout(connect=limits.connect or None, sock_read=limits.read or None),
            ssl=checked,
            proxy=spec.proxy,
            middlewares=_signing(request),
        )
        try:
            content = await self._content(response, spec)
        finally:
            response.close()  # a connection that is read to its end has gone back to the pool before
        return _Answer(
            status=response.status,
            reason=response.reason or "",
            headers=headers_of(response),
            url=request.shown(response.url),
            elapsed_ms=round((time.perf_counter() - began) * 1e3, 3),
            content=content,
        )

    async def _content(self, response: aiohttp.ClientResponse, spec: HttpSpec) -> Content:
        content_type = response.headers.get("Content-Type", "")
        try:
            body = await body_of(response, self._max_body)
            if len(body) > _LARGE:
                return await asyncio.to_thread(content_of, body, content_type)
            return content_of(body, content_type)
        except ToolError as error:
            if _succeeds(response.status, spec.success):
                raise
            return Content(None, str(error))  # the status says more than the size

    def _open(self) -> aiohttp.ClientSession:
        """The session, made on first use: it belongs to the running loop."""
        if self._closed:
            raise ToolError("cancelled", "the worker is ending")
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEPT),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": f"noetl/{_version()}"},
                max_line_size=65_536,
                max_field_size=65_536,
            )
            # It would send some requests a second time; whether to try again is for the policy to say.
            self._session._retry_connection = False
        return self._session

    def _verify(self, spec: HttpSpec, folder: Path) -> "_Checked":
        """What certificates are checked against. One context for each file: connections are kept by it."""
        if not isinstance(spec.verify, str):
            return spec.verify is not False
        path = folder / spec.verify
        try:
            changed = path.stat().st_mtime_ns
            known = self._authorities.get(path)
            if known is None or known[0] != changed:
                known = self._authorities[path] = changed, ssl.create_default_context(cafile=path)
        except FileNotFoundError:
            raise ToolError("not_found", f"`spec.verify`: there is no {path}") from None
        except OSError as error:
            raise ToolError("input", f"`spec.verify`: {path} holds no certificates: {error}") from None
        return known[1]


_Checked: TypeAlias = ssl.SSLContext | bool


class _Answer(NamedTuple):
    status: int
    reason: str
    headers: dict[str, str]
    url: str
    elapsed_ms: float
    content: Content


def _typed(call: Call) -> tuple[HttpInputs, HttpSpec]:
    inputs = inputs_of(call, HttpInputs)
    try:
        spec = msgspec.convert({name: call.spec.get(name) for name in _KNOBS}, HttpSpec)
    except msgspec.ValidationError as error:
        raise ToolError("input", str(error)) from None
    for fault in check(call.inputs, call.spec):
        raise ToolError("input", f"{fault.message}: {fault.hint}" if fault.hint else fault.message)
    if spec.proxy is not None:
        address(spec.proxy, "spec.proxy")
    if spec.save_as is not None:
        raise ToolError("input", "`spec.save_as` needs a result store, and there is none here: leave it out")
    return inputs, spec


def _signing(request: Request) -> tuple[aiohttp.ClientMiddlewareType, ...]:
    """Signs what goes to the host that was asked for; a redirect to another gets no credential."""
    if (header := request.signature.header) is None:
        return ()
    name, value = header

    async def sign(sent: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
        if sent.url.origin() == request.url.origin():
            sent.headers[name] = value
        return await send(sent)

    return (sign,)


def _succeeds(status: int, success: list[int | str] | None) -> bool:
    if success is None:
        return 200 <= status < 400
    return any(one in (status, f"{status // 100}xx") for one in success)


def _outcome(request: Request, answer: _Answer, *, ok: bool) -> Outcome:
    """The outcome of an answer. One that is no success has its result, too: policies may want the body."""
    headers: dict[str, Json] = dict(answer.headers)
    result: dict[str, Json] = {
        "status": answer.status,
        "status_code": answer.status,  # as playbooks call it that know other HTTP clients
        "headers": headers,
        "url": answer.url,
        "elapsed_ms": answer.elapsed_ms,
        "data": answer.content.data,
    }
    return Outcome(
        status="ok" if ok else "error",
        result=result,
        error=None if ok else _unsuccessful(request, answer),
        meta={"warning": answer.content.warning} if answer.content.warning else {},
        helpers={"http": {"status": answer.status, "headers": headers}},
    )


def _unsuccessful(request: Request, answer: _Answer) -> ErrorInfo:
    said = answer.content.data
    excerpt = said if isinstance(said, str) else msgspec.json.encode(said).decode() if said else ""
    message = " ".join(f"{request.place}: {answer.status} {answer.reason}".split())
    return ErrorInfo(
        kind="http_status",
        message=f"{message}: {cut(excerpt)}" if excerpt else message,
        retryable=answer.status in _RETRYABLE or answer.status >= 500,
        retry_after=retry_after(answer.headers.get("retry-after"), datetime.now(UTC)),
        details={"status": answer.status},
    )


def _version() -> str:
    try:
        return version("noetl")
    except PackageNotFoundError:
        return "0"
