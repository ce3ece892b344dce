"""What is said over HTTP about a server itself: credentials, tokens, audit, its state, workers and pools."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from noetl.ports.http_api import ApiAnswer, ApiRequest, Name, Role


class CredentialItem(ApiAnswer, frozen=True, kw_only=True):
    name: str
    kind: str
    created_at: str
    updated_at: str


class CredentialList(ApiAnswer, frozen=True, kw_only=True):
    credentials: list[CredentialItem]


class CredentialDetail(CredentialItem, frozen=True, kw_only=True):
    """Secrets show as `***`."""

    fields: dict[str, Any]


class CredentialBody(ApiRequest, frozen=True, kw_only=True):
    name: Name
    kind: Name = "static"
    fields: Annotated[dict[str, Any], Meta(min_length=1)]


class TokenRequest(ApiRequest, frozen=True, kw_only=True):
    """`expires_in` is seconds from now; without it the token is valid until it is revoked."""

    name: Name
    role: Role
    expires_in: Annotated[int, Meta(ge=1, le=10**10)] | None = None


class TokenItem(ApiAnswer, frozen=True, kw_only=True):
    name: str
    role: str
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    valid: bool


class TokenList(ApiAnswer, frozen=True, kw_only=True):
    tokens: list[TokenItem]


class CreatedToken(TokenItem, frozen=True, kw_only=True):
    """The only time that the token itself is shown."""

    token: str


class AuditItem(ApiAnswer, frozen=True, kw_only=True):
    """Who did what to what, when and from where; `status` is how it was answered."""

    at: str
    by: str
    role: str
    action: str
    target: str
    address: str
    status: int


class AuditPage(ApiAnswer, frozen=True, kw_only=True):
    """The newest first."""

    audit: list[AuditItem]
    next_cursor: str | None


class HealthAnswer(ApiAnswer, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"


class PoolStatus(ApiAnswer, frozen=True, kw_only=True):
    """Runs that are ready and not claimed: how many, and for how many seconds the oldest."""

    pool: str
    depth: int
    age: float


class FeedStatus(ApiAnswer, frozen=True, kw_only=True):
    """Where events are published to. `lag` is for how many seconds the oldest waits, `problem` why."""

    stream: str
    lag: float
    problem: str | None


class ReadStoreStatus(ApiAnswer, frozen=True, kw_only=True):
    """The replica that answers lists and histories.

    `lag` is for how many seconds the oldest event waits that it lacks; null if it cannot be asked: then
    `problem` says why.
    """

    store: str
    lag: float | None
    problem: str | None


class ServerStatus(ApiAnswer, frozen=True, kw_only=True):
    """`problem` says why it is not ready, null if it is. Of `workers` it has none if it runs tasks itself."""

    release: str
    started_at: str
    uptime: float
    store: str
    ready: bool
    problem: str | None
    executions: int
    workers: int
    slots: int
    claimed: int
    pools: list[PoolStatus]
    stuck: int
    last_commit_at: str | None
    feed: FeedStatus | None = None
    read_store: ReadStoreStatus | None = None


class WorkerRun(ApiAnswer, frozen=True, kw_only=True):
    """A run that a worker has claimed."""

    execution_id: str
    run: str
    step: str | None


class WorkerItem(ApiAnswer, frozen=True, kw_only=True):
    """A worker process. `heartbeat_age` is in seconds; `token` is the name of the one it came with.

    One that drains has no slots: it ends when its runs have.
    """

    session: str
    worker: str
    release: str
    token: str
    pools: list[str]
    kinds: list[str]
    slots: int
    heartbeat_age: float
    runs: list[WorkerRun]


class WorkerList(ApiAnswer, frozen=True, kw_only=True):
    workers: list[WorkerItem]


class PoolItem(PoolStatus, frozen=True, kw_only=True):
    """A pool that has workers, or runs that wait. `problem` says why one of those cannot be taken, if so."""

    workers: int
    slots: int
    claimed: int
    kinds: list[str]
    problem: str | None


class PoolList(ApiAnswer, frozen=True, kw_only=True):
    pools: list[PoolItem]


class DrainAnswer(ApiAnswer, frozen=True, kw_only=True):
    """How many worker processes were told."""

    draining: int
