"""Requests to a server's API and its answers, as the types that the server itself uses."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import aiohttp
import msgspec
from yarl import URL

from noetl.model.errors import NoetlError
from noetl.ports.http_api import ProblemDocument

T = TypeVar("T")

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
"""For an answer that nothing has to be waited for."""
_LARGEST_EVENT = 64 << 20


class ServerError(NoetlError):
    """A server refused a request. `problem` is all that it says about it."""

    def __init__(self, problem: ProblemDocument) -> None:
        super().__init__(problem.detail or problem.title)
        self.problem = problem
        self.hint = problem.hint

    @property
    def code(self) -> str:
        return self.problem.code


class ServerUnreachable(NoetlError):
    """No server answered at this address."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class ServerRequests:
    """Asks a server. An async context manager; one connection pool for all that is asked in it.

    Every method raises ServerError for what the server refuses, and ServerUnreachable. Nothing is repeated by
    itself but the reading of streams: whether a request may be, only its sender knows. `ca` is a file of
    certificates to trust, for servers with one of their own.
    """

    def __init__(self, url: str, token: str = "", *, ca: str | Path | None = None) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._ca = ca
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        context = ssl.create_default_context(cafile=str(self._ca)) if self._ca is not None else True
        self._session = aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(ssl=context, limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            read_bufsize=1 << 18,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(
        self,
        method: str,
        path: str,
        answer_type: type[T],
        query: Mapping[str, Any] | None = None,
        *,
        json: Any = None,
        text: str | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> T:
        headers = {"Accept": "application/json"}
        data: bytes | None = None
        if text is not None:
            data, headers["Content-Type"] = text.encode(), "application/yaml"
        elif json is not None:
            data, headers["Content-Type"] = msgspec.json.encode(json), "application/json"
        try:
            async with (
                asyncio.timeout(seconds),
                self._request(method, path, query, headers=headers, data=data) as answer,
            ):
                body = await answer.read()
        except TimeoutError:
            raise ServerUnreachable(f"{self._url} did not answer within {seconds:g} s") from None
        try:
            return msgspec.json.decode(body, type=answer_type)
        except msgspec.DecodeError as error:
            hint = "is it the URL of a NoETL server of this release?"
            raise ServerUnreachable(f"{self._url} gave an answer that is none: {error}", hint) from None

    @asynccontextmanager
    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """An answer that is no error. Raises ServerError, ServerUnreachable."""
        assert self._session is not None, "use a client within `async with`"  # noqa: S101 - to who forgot
        pairs = [
            (name, str(value))
            for name, values in (query or {}).items()
            for value in (values if isinstance(values, tuple) else (values,))
            if value != ""
        ]
        url = URL(self._url + path, encoded=True).with_query(pairs)
        try:
            # No redirects: the token is for this server alone.
            async with self._session.request(
                method, url, headers=headers, data=data, allow_redirects=False
            ) as answer:
                if answer.status >= 300:
                    raise await _server_error(answer)
                yield answer
        except aiohttp.ClientConnectorCertificateError as error:
            hint = "a certificate of its own must be trusted: `ca`, or SSL_CERT_FILE"
            raise ServerUnreachable(f"{self._url}: {error.certificate_error}", hint) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            hint = "`noetl server start` starts one; --server or NOETL_SERVER names another"
            raise ServerUnreachable(f"{self._url} cannot be reached: {error}", hint) from None


async def _server_error(answer: aiohttp.ClientResponse) -> NoetlError:
    body = await answer.read()
    try:
        return ServerError(msgspec.json.decode(body, type=ProblemDocument))
    except msgspec.DecodeError:
        hint = "is it the URL of a NoETL server?"
        message = f"{answer.url.origin()} answered {answer.status} {answer.reason}"
        return ServerUnreachable(message, hint)


async def sse_data(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The data of server-sent events, which our server writes on one line each."""
    rest = b""
    async for piece in answer.content.iter_any():
        rest += piece
        if len(rest) > _LARGEST_EVENT:
            raise ServerUnreachable("an event of the stream is too large")
        *lines, rest = rest.split(b"\n")
        for line in lines:
            if line.startswith(b"data: "):
                yield line.removeprefix(b"data: ")
