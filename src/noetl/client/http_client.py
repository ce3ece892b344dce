"""`noetl.Client`: a server's API from Python, with the types that the server itself uses."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from noetl.model.errors import NoetlError
from noetl.own_loop import in_own_loop
from noetl.ports.http_api import (
    AuditPage,
    BulkAnswer,
    CallerAnswer,
    CreatedToken,
    CredentialDetail,
    CredentialItem,
    CredentialList,
    DeletedPlaybook,
    EventPage,
    ExecutionDetail,
    ExecutionItems,
    HealthAnswer,
    LogPage,
    OperationAnswer,
    PlaybookList,
    PlaybookText,
    ProblemDocument,
    RegisteredPlaybook,
    StartedBatch,
    StartedExecution,
    StartExecution,
    StartExecutions,
    TokenItem,
    TokenList,
    ValidationAnswer,
    VersionList,
)

P = ParamSpec("P")
T = TypeVar("T")

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
"""For an answer that nothing has to be waited for."""
LONGEST_WAIT = 60.0
"""Seconds of one request that waits for the end of an execution; it is repeated as often as necessary."""
_RECONNECT_SECONDS = 1.0
_ENDED = ("completed", "failed", "cancelled")
_LARGEST_EVENT = 64 << 20

InlineDocument: TypeAlias = str | dict[str, Any]


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


class AsyncClient:
    """A server's API. An async context manager; one connection pool for all that is asked in it.

    Every method raises ServerError for what the server refuses, and ServerUnreachable. Nothing is repeated by
    itself but the reading of streams: whether a request may be, only its sender knows. `ca` is a file of
    certificates to trust, for servers with one of their own.
    """

    def __init__(self, url: str, token: str = "", *, ca: str | Path | None = None) -> None:
        self._url = url.rstrip("/")
        self._token = token
        self._ca = ca
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> "AsyncClient":
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

    async def health(self) -> HealthAnswer:
        """Whether the server is ready."""
        return await self._ask("GET", "/readyz", HealthAnswer)

    async def me(self) -> CallerAnswer:
        return await self._ask("GET", "/api/me", CallerAnswer)

    async def register(self, source: str, *, dialect: str = "", file: str = "") -> RegisteredPlaybook:
        """The next version of a playbook, from its text; `file` is what problems call it."""
        query = {"dialect": dialect, "file": file}
        return await self._ask("POST", "/api/catalog", RegisteredPlaybook, query, text=source)

    async def validate(self, source: str, *, dialect: str = "", file: str = "") -> ValidationAnswer:
        query = {"dialect": dialect, "file": file}
        return await self._ask("POST", "/api/validate", ValidationAnswer, query, text=source)

    async def playbooks(self, *, prefix: str = "", cursor: str = "", limit: int = 100) -> PlaybookList:
        query = {"prefix": prefix, "cursor": cursor, "limit": limit}
        return await self._ask("GET", "/api/catalog", PlaybookList, query)

    async def playbook(self, path: str, version: int = 0) -> PlaybookText:
        """A registered playbook; the newest version for 0."""
        return await self._ask("GET", _catalog_path(path, version), PlaybookText)

    async def versions(self, path: str) -> VersionList:
        return await self._ask("GET", f"/api/catalog/{quote(path)}/versions", VersionList)

    async def delete_playbook(self, path: str, version: int = 0) -> DeletedPlaybook:
        """A version, or all for 0."""
        return await self._ask("DELETE", _catalog_path(path, version), DeletedPlaybook)

    async def start(self, request: StartExecution) -> StartedExecution:
        """Starts an execution. With an idempotency key it is safe to ask again."""
        return await self._ask("POST", "/api/executions", StartedExecution, json=request)

    async def start_many(self, requests: list[StartExecution]) -> StartedBatch:
        """Up to 1,000 at once; a verdict for each, in their order."""
        return await self._ask(
            "POST", "/api/executions", StartedBatch, json=StartExecutions(executions=requests)
        )

    async def list(
        self,
        *,
        prefix: str = "",
        status: tuple[str, ...] = (),
        path: str = "",
        labels: Mapping[str, str] | None = None,
        since: str = "",
        roots: bool = False,
        cursor: str = "",
        limit: int = 100,
    ) -> ExecutionItems:
        """Executions, the newest first; `prefix` begins their id, `since` is a time in ISO 8601."""
        query: dict[str, Any] = {
            "id": prefix,
            "status": status,
            "path": path,
            "since": since,
            "cursor": cursor,
        }
        query["label"] = tuple(f"{name}={value}" for name, value in (labels or {}).items())
        query |= {"roots": "true" if roots else "", "cursor": cursor, "limit": limit}
        return await self._ask("GET", "/api/executions", ExecutionItems, query)

    async def show(self, execution_id: str, *, wait: float = 0.0) -> ExecutionDetail:
        """An execution as it is, or within `wait` seconds at its end."""
        path, query = _execution_path(execution_id), {"wait": wait or ""}
        return await self._ask("GET", path, ExecutionDetail, query, seconds=ANSWER_SECONDS + wait)

    async def wait(self, execution_id: str, *, timeout: float | None = None) -> ExecutionDetail:
        """An execution at its end, or as it is after so many seconds."""
        deadline = asyncio.get_running_loop().time() + timeout if timeout is not None else None
        while True:
            left = LONGEST_WAIT
            if deadline is not None:
                left = min(left, deadline - asyncio.get_running_loop().time())
            detail = await self.show(execution_id, wait=max(0.0, left))
            if detail.status in _ENDED or left < LONGEST_WAIT:
                return detail

    async def events(self, execution_id: str, *, after: int = 0, limit: int = 1_000) -> EventPage:
        query = {"after": after, "limit": limit}
        return await self._ask("GET", f"{_execution_path(execution_id)}/events", EventPage, query)

    async def stream(self, execution_id: str, *, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Envelopes as they come, each once, to the end of the execution.

        Where the connection breaks it is made again, and goes on after the last event.
        """
        path = f"{_execution_path(execution_id)}/stream"
        failures = 0
        while True:
            try:
                async with self._request("GET", path, headers={"Last-Event-ID": str(after)}) as answer:
                    if answer.status == 204:
                        return
                    async for data in _sse_data(answer):
                        envelope = msgspec.json.decode(data)
                        after, failures = envelope["seq"], 0
                        yield envelope
            except ServerUnreachable:
                failures += 1
                if failures > 3:
                    raise
                await asyncio.sleep(_RECONNECT_SECONDS)

    async def state(self, execution_id: str, *, at: int = 0) -> dict[str, Any]:
        """The state after event `at`; after the last one for 0."""
        return await self._ask("GET", f"{_execution_path(execution_id)}/state", dict[str, Any], {"at": at})

    async def logs(self, execution_id: str, *, step: str = "", task: str = "") -> LogPage:
        """What tasks wrote so far."""
        path, query = f"{_execution_path(execution_id)}/logs", {"step": step, "task": task}
        return await self._ask("GET", path, LogPage, query)

    async def follow_logs(
        self, execution_id: str, *, step: str = "", task: str = ""
    ) -> AsyncIterator[dict[str, Any]]:
        """What tasks write, as they do, to the end of the execution."""
        path, query = f"{_execution_path(execution_id)}/logs", {"step": step, "task": task}
        async with self._request("GET", path, query, headers={"Accept": "text/event-stream"}) as answer:
            async for data in _sse_data(answer):
                yield msgspec.json.decode(data)

    async def result(self, reference: Mapping[str, Any], *, start: int = 0, end: int | None = None) -> bytes:
        """The bytes that a reference stands for, or those from `start` up to `end`."""
        store, _, key = str(reference["key"]).rpartition(":")
        execution_id, _, name = key.partition("/")
        path = f"/api/results/{quote(execution_id, safe='')}/{quote(name.partition('#')[0], safe='')}"
        headers = {}
        if start or end is not None:
            headers["Range"] = f"bytes={start}-{'' if end is None else end - 1}"
        async with self._request("GET", path, {"store": store}, headers=headers) as answer:
            return await _read(answer)

    async def cancel(self, execution_id: str, reason: str = "") -> OperationAnswer:
        return await self._operate(execution_id, "cancel", {"reason": reason})

    async def pause(self, execution_id: str) -> OperationAnswer:
        return await self._operate(execution_id, "pause", {})

    async def resume(self, execution_id: str) -> OperationAnswer:
        return await self._operate(execution_id, "resume", {})

    async def signal(self, execution_id: str, name: str, payload: Any = True) -> OperationAnswer:  # noqa: FBT002 - a value like others
        return await self._operate(execution_id, "signal", {"name": name, "payload": payload})

    async def retry(
        self,
        execution_id: str,
        *,
        playbook: InlineDocument | None = None,
        version: int | None = None,
        dialect: str | None = None,
    ) -> OperationAnswer:
        """Goes on with a failed execution; with a repaired document, or another version of its playbook."""
        body = {"playbook": playbook, "version": version, "dialect": dialect}
        return await self._operate(execution_id, "retry", body)

    async def fork(
        self,
        execution_id: str,
        at: int,
        *,
        workload: Mapping[str, Any] | None = None,
        ctx: Mapping[str, Any] | None = None,
        playbook: InlineDocument | None = None,
        version: int | None = None,
        dialect: str | None = None,
    ) -> OperationAnswer:
        """A new execution with the history of another one up to event `at`."""
        body: dict[str, Any] = {"at": at, "workload": workload, "ctx": ctx}
        body |= {"playbook": playbook, "version": version, "dialect": dialect}
        return await self._operate(execution_id, "fork", body)

    async def bulk(
        self, do: str, where: Mapping[str, Any], *, dry_run: bool = False, reason: str = ""
    ) -> BulkAnswer:
        """Cancels or retries all that match, up to 1,000."""
        body = {"do": do, "where": where, "dry_run": dry_run, "reason": reason}
        return await self._ask("POST", "/api/executions/bulk", BulkAnswer, json=body)

    async def credentials(self) -> CredentialList:
        return await self._ask("GET", "/api/credentials", CredentialList)

    async def credential(self, name: str) -> CredentialDetail:
        """Its secrets show as `***`."""
        return await self._ask("GET", f"/api/credentials/{quote(name, safe='')}", CredentialDetail)

    async def set_credential(self, name: str, kind: str, fields: Mapping[str, Any]) -> CredentialItem:
        body = {"name": name, "kind": kind, "fields": fields}
        return await self._ask("POST", "/api/credentials", CredentialItem, json=body)

    async def delete_credential(self, name: str) -> CredentialItem:
        return await self._ask("DELETE", f"/api/credentials/{quote(name, safe='')}", CredentialItem)

    async def tokens(self) -> TokenList:
        return await self._ask("GET", "/api/tokens", TokenList)

    async def create_token(self, name: str, role: str, *, expires_in: int | None = None) -> CreatedToken:
        """`expires_in` is seconds from now."""
        body = {"name": name, "role": role, "expires_in": expires_in}
        return await self._ask("POST", "/api/tokens", CreatedToken, json=body)

    async def revoke_token(self, name: str) -> TokenItem:
        return await self._ask("DELETE", f"/api/tokens/{quote(name, safe='')}", TokenItem)

    async def audit(self, *, cursor: str = "", limit: int = 100) -> AuditPage:
        return await self._ask("GET", "/api/audit", AuditPage, {"cursor": cursor, "limit": limit})

    async def _operate(self, execution_id: str, verb: str, body: Mapping[str, Any]) -> OperationAnswer:
        values = {name: value for name, value in body.items() if value is not None}
        return await self._ask(
            "POST", f"{_execution_path(execution_id)}/{verb}", OperationAnswer, json=values
        )

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
                body = await _read(answer)
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


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    return await answer.read()


async def _server_error(answer: aiohttp.ClientResponse) -> NoetlError:
    body = await _read(answer)
    try:
        return ServerError(msgspec.json.decode(body, type=ProblemDocument))
    except msgspec.DecodeError:
        hint = "is it the URL of a NoETL server?"
        message = f"{answer.url.origin()} answered {answer.status} {answer.reason}"
        return ServerUnreachable(message, hint)


async def _sse_data(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
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


def _execution_path(execution_id: str) -> str:
    return f"/api/executions/{quote(execution_id, safe='')}"


def _catalog_path(path: str, version: int) -> str:
    return f"/api/catalog/{quote(path)}{f'@{version}' if version else ''}"


def _sync(
    method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Client", P], T]:
    """The same for callers that do not await."""

    @wraps(method)
    def call(self: "Client", /, *args: P.args, **named: P.kwargs) -> T:
        async def ask() -> T:
            async with AsyncClient(self._url, self._token, ca=self._ca) as client:
                return await method(client, *args, **named)

        return in_own_loop(ask())

    return call


class Client:
    """A server's API for programs that do not await: each method is that of `AsyncClient`.

    It holds nothing open between two calls, and works where an event loop runs already.
    """

    def __init__(self, url: str, token: str = "", *, ca: str | Path | None = None) -> None:
        self._url = url
        self._token = token
        self._ca = ca

    health = _sync(AsyncClient.health)
    me = _sync(AsyncClient.me)
    register = _sync(AsyncClient.register)
    validate = _sync(AsyncClient.validate)
    playbooks = _sync(AsyncClient.playbooks)
    playbook = _sync(AsyncClient.playbook)
    versions = _sync(AsyncClient.versions)
    delete_playbook = _sync(AsyncClient.delete_playbook)
    start = _sync(AsyncClient.start)
    start_many = _sync(AsyncClient.start_many)
    list = _sync(AsyncClient.list)
    show = _sync(AsyncClient.show)
    wait = _sync(AsyncClient.wait)
    events = _sync(AsyncClient.events)
    state = _sync(AsyncClient.state)
    logs = _sync(AsyncClient.logs)
    result = _sync(AsyncClient.result)
    cancel = _sync(AsyncClient.cancel)
    pause = _sync(AsyncClient.pause)
    resume = _sync(AsyncClient.resume)
    signal = _sync(AsyncClient.signal)
    retry = _sync(AsyncClient.retry)
    fork = _sync(AsyncClient.fork)
    bulk = _sync(AsyncClient.bulk)
    credentials = _sync(AsyncClient.credentials)
    credential = _sync(AsyncClient.credential)
    set_credential = _sync(AsyncClient.set_credential)
    delete_credential = _sync(AsyncClient.delete_credential)
    tokens = _sync(AsyncClient.tokens)
    create_token = _sync(AsyncClient.create_token)
    revoke_token = _sync(AsyncClient.revoke_token)
    audit = _sync(AsyncClient.audit)
