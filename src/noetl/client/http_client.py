"""`noetl.Client`: a server's API from Python."""

from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar
from urllib.parse import quote

from noetl.client.execution_requests import ExecutionRequests
from noetl.own_loop import in_own_loop
from noetl.ports.admin_api import (
    AuditPage,
    CreatedToken,
    CredentialDetail,
    CredentialItem,
    CredentialList,
    DrainAnswer,
    HealthAnswer,
    PoolList,
    ServerStatus,
    TokenItem,
    TokenList,
    WorkerList,
)
from noetl.ports.http_api import (
    DeletedPlaybook,
    PlaybookList,
    PlaybookText,
    RegisteredPlaybook,
    ValidationAnswer,
    VersionList,
)
from noetl.ports.page_api import (
    CallerAnswer,
    CompletionAnswer,
    CompletionRequest,
    CredentialUsageList,
    DraftNet,
    LoginLink,
    NetAnswer,
    Overview,
    PlaybookStatistics,
    QueueAnswer,
    ToolList,
    WaitList,
)

P = ParamSpec("P")
T = TypeVar("T")


class AsyncClient(ExecutionRequests):
    """A server's API. An async context manager; one connection pool for all that is asked in it.

    Every method raises ServerError for what the server refuses, and ServerUnreachable.
    """

    async def health(self) -> HealthAnswer:
        """Whether the server is ready."""
        return await self._ask("GET", "/readyz", HealthAnswer)

    async def status(self) -> ServerStatus:
        """What the server is, who works for it, and what waits."""
        return await self._ask("GET", "/api/status", ServerStatus)

    async def metrics(self) -> str:
        """What the server counts of itself, as Prometheus reads it."""
        async with self._request("GET", "/metrics") as answer:
            return await answer.text()

    async def workers(self) -> WorkerList:
        """The worker processes, and what they run."""
        return await self._ask("GET", "/api/workers", WorkerList)

    async def pools(self) -> PoolList:
        """What waits by pool, for how long, and why."""
        return await self._ask("GET", "/api/pools", PoolList)

    async def drain_worker(self, worker: str) -> DrainAnswer:
        """Tells a worker, by its name or session, to end what it runs and to leave."""
        path = f"/api/workers/{quote(worker, safe='')}/drain"
        return await self._ask("POST", path, DrainAnswer, json={})

    async def me(self) -> CallerAnswer:
        return await self._ask("GET", "/api/me", CallerAnswer)

    async def overview(self) -> Overview:
        """What needs somebody, what runs, and the last 24 hours."""
        return await self._ask("GET", "/api/overview", Overview)

    async def queue(self) -> QueueAnswer:
        """The runs that are ready, by pool, and why no worker has them."""
        return await self._ask("GET", "/api/queue", QueueAnswer)

    async def waits(
        self, *, execution_id: str = "", mine: bool = False, cursor: str = "", limit: int = 100
    ) -> WaitList:
        """What waits for a person, the oldest first; `mine`: only what may be answered with this token."""
        query = {"execution_id": execution_id, "mine": str(mine).lower(), "cursor": cursor, "limit": limit}
        return await self._ask("GET", "/api/waits", WaitList, query)

    async def create_login_link(self) -> LoginLink:
        """What opens the page once, as who asks: its path at the server."""
        return await self._ask("POST", "/api/session/link", LoginLink)

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
        return await self._ask("GET", _catalog_path(path, version or "latest"), PlaybookText)

    async def versions(self, path: str) -> VersionList:
        return await self._ask("GET", f"/api/catalog/{quote(path)}/versions", VersionList)

    async def net(self, path: str, version: int = 0) -> NetAnswer:
        """The picture of a registered playbook: where boxes and routes are."""
        return await self._ask("GET", f"{_catalog_path(path, version or 'latest')}/net", NetAnswer)

    async def statistics(self, path: str) -> PlaybookStatistics:
        """The newest executions of a playbook, and how long its steps took."""
        return await self._ask("GET", f"/api/catalog/{quote(path)}/statistics", PlaybookStatistics)

    async def credential_usage(self) -> CredentialUsageList:
        """Which tasks of registered playbooks name which credentials."""
        return await self._ask("GET", "/api/credential-usage", CredentialUsageList)

    async def draw_net(self, source: str, *, dialect: str = "", file: str = "") -> DraftNet:
        """The picture of a document, and its problems."""
        query = {"dialect": dialect, "file": file}
        return await self._ask("POST", "/api/net", DraftNet, query, text=source)

    async def complete_text(self, source: str, line: int, column: int) -> CompletionAnswer:
        """What may be written at a place of a document; `line` and `column` count from 1."""
        body = CompletionRequest(text=source, line=line, column=column)
        return await self._ask("POST", "/api/complete", CompletionAnswer, json=body)

    async def tools(self) -> ToolList:
        """The kinds of tasks, and how many workers can run each."""
        return await self._ask("GET", "/api/tools", ToolList)

    async def schema(self) -> dict[str, Any]:
        """The JSON Schema of playbooks."""
        return await self._ask("GET", "/api/schema", dict[str, Any])

    async def delete_playbook(self, path: str, version: int = 0) -> DeletedPlaybook:
        """A version, or all for 0."""
        return await self._ask("DELETE", _catalog_path(path, version), DeletedPlaybook)

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


def _catalog_path(path: str, version: int | Literal["latest"]) -> str:
    """`latest` is written out where it is read: without, a path that ends in `/versions` means a view."""
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
    status = _sync(AsyncClient.status)
    metrics = _sync(AsyncClient.metrics)
    workers = _sync(AsyncClient.workers)
    pools = _sync(AsyncClient.pools)
    drain_worker = _sync(AsyncClient.drain_worker)
    me = _sync(AsyncClient.me)
    overview = _sync(AsyncClient.overview)
    queue = _sync(AsyncClient.queue)
    waits = _sync(AsyncClient.waits)
    create_login_link = _sync(AsyncClient.create_login_link)
    register = _sync(AsyncClient.register)
    validate = _sync(AsyncClient.validate)
    playbooks = _sync(AsyncClient.playbooks)
    playbook = _sync(AsyncClient.playbook)
    versions = _sync(AsyncClient.versions)
    net = _sync(AsyncClient.net)
    draw_net = _sync(AsyncClient.draw_net)
    statistics = _sync(AsyncClient.statistics)
    credential_usage = _sync(AsyncClient.credential_usage)
    complete_text = _sync(AsyncClient.complete_text)
    tools = _sync(AsyncClient.tools)
    schema = _sync(AsyncClient.schema)
    delete_playbook = _sync(AsyncClient.delete_playbook)
    start = _sync(AsyncClient.start)
    plan = _sync(AsyncClient.plan)
    run = _sync(AsyncClient.run)
    start_many = _sync(AsyncClient.start_many)
    list = _sync(AsyncClient.list)
    show = _sync(AsyncClient.show)
    wait = _sync(AsyncClient.wait)
    events = _sync(AsyncClient.events)
    state = _sync(AsyncClient.state)
    explanation = _sync(AsyncClient.explanation)
    failures = _sync(AsyncClient.failures)
    step_explanation = _sync(AsyncClient.step_explanation)
    index = _sync(AsyncClient.index)
    execution_net = _sync(AsyncClient.execution_net)
    runs = _sync(AsyncClient.runs)
    run_detail = _sync(AsyncClient.run_detail)
    evaluate = _sync(AsyncClient.evaluate)
    diff = _sync(AsyncClient.diff)
    verify = _sync(AsyncClient.verify)
    export = _sync(AsyncClient.export)
    preview_fork = _sync(AsyncClient.preview_fork)
    preview_retry = _sync(AsyncClient.preview_retry)
    preview_redrive = _sync(AsyncClient.preview_redrive)
    result_rows = _sync(AsyncClient.result_rows)
    logs = _sync(AsyncClient.logs)
    result = _sync(AsyncClient.result)
    cancel = _sync(AsyncClient.cancel)
    pause = _sync(AsyncClient.pause)
    resume = _sync(AsyncClient.resume)
    signal = _sync(AsyncClient.signal)
    redrive = _sync(AsyncClient.redrive)
    complete = _sync(AsyncClient.complete)
    skip = _sync(AsyncClient.skip)
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
