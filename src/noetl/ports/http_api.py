"""What is said over HTTP: the requests and answers of `/api`, for the server and its clients.

Times are UTC, as in events. What an answer may have more than here in a later release, clients ignore; what a
request has that is not here is refused.
"""

from typing import Annotated, Any, Literal, TypeAlias, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

Role: TypeAlias = Literal["viewer", "operator", "author", "admin", "worker"]
"""Each has the rights of those before it; `worker` has its own."""
ROLES: tuple[Role, ...] = get_args(Role)
ProblemCode: TypeAlias = Literal[
    "invalid_playbook",
    "invalid_request",
    "method_not_allowed",
    "not_found",
    "refused",
    "conflict",
    "lost",
    "too_large",
    "unsupported_protocol",
    "unauthenticated",
    "forbidden",
    "overloaded",
    "store_unavailable",
]
MOST_AT_ONCE = 1_000
"""Executions in one request, events in one page."""
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
PlaybookPath: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=1_000, pattern=r"^[^\x00-\x1f\x7f@]+$")
]
VersionNumber: TypeAlias = Annotated[int, Meta(ge=1, le=2**53)]
PageSize: TypeAlias = Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)]
Sequence: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
Labels: TypeAlias = dict[Name, Annotated[str, Meta(max_length=1_000)]]
Priority: TypeAlias = Annotated[int, Meta(ge=-100, le=100)]
Status: TypeAlias = Literal["running", "paused", "completed", "failed", "cancelled"]


class _Request(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What comes in: a key that nobody knows is refused."""


class _Answer(Struct, frozen=True, kw_only=True):
    """What goes out."""


class DocumentProblem(_Answer, frozen=True, kw_only=True):
    """Something wrong with a playbook, as `noetl validate` says it."""

    file: str
    line: int
    column: int
    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: str


class ProblemDocument(_Answer, frozen=True, kw_only=True, omit_defaults=True):
    """RFC 9457. `pointer` leads to what is wrong in the body.

    `execution_id` is of a request that was recorded; of a conflict, that of who has the idempotency key.
    """

    type: str
    title: str
    status: int
    code: ProblemCode
    detail: str = ""
    hint: str = ""
    pointer: str = ""
    execution_id: str = ""
    problems: list[DocumentProblem] = []


class ValidationAnswer(_Answer, frozen=True, kw_only=True):
    ok: bool
    problems: list[DocumentProblem]


class PlaybookVersion(_Answer, frozen=True, kw_only=True):
    """One version of a registered playbook. `label` is the `metadata.version` that its document has."""

    path: str
    version: int
    hash: str
    label: str
    dialect: str
    created_at: str
    created_by: str


class RegisteredPlaybook(PlaybookVersion, frozen=True, kw_only=True):
    """`created` is false if the newest version has the same content already."""

    created: bool
    problems: list[DocumentProblem]


class PlaybookText(PlaybookVersion, frozen=True, kw_only=True):
    """`source` is what was registered, `canonical` what executions run."""

    source: str
    canonical: str


class PlaybookList(_Answer, frozen=True, kw_only=True):
    """The newest version of each."""

    playbooks: list[PlaybookVersion]
    next_cursor: str | None


class VersionList(_Answer, frozen=True, kw_only=True):
    """The newest first."""

    versions: list[PlaybookVersion]


class DeletedPlaybook(_Answer, frozen=True, kw_only=True):
    path: str
    versions: list[int]


class StartExecution(_Request, frozen=True, kw_only=True):
    """What to run: a registered playbook by `path`, or by its hash as `playbook_id`, or an inline `playbook`.

    An inline document is text (YAML or JSON) or the document itself; it needs the role `author`.
    """

    path: PlaybookPath | None = None
    playbook_id: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")] | None = None
    playbook: str | dict[str, Any] | None = None
    version: VersionNumber | None = None
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    labels: Labels = {}
    idempotency_key: Annotated[str, Meta(max_length=200)] = ""
    dialect: Literal["canonical", "draft"] | None = None
    timeout: Annotated[float, Meta(gt=0, lt=1e10)] | None = None
    priority: Priority = 0
    """Its runs are given to workers before those of executions with a lower one."""


class StartExecutions(_Request, frozen=True, kw_only=True):
    executions: Annotated[list[StartExecution], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class StartedExecution(_Answer, frozen=True, kw_only=True, omit_defaults=True):
    """`error` says why a request was refused; it has no `execution_id` if it was not recorded."""

    execution_id: str = ""
    status: str = ""
    error: ProblemDocument | None = None


class StartedBatch(_Answer, frozen=True, kw_only=True):
    """A verdict for each request, in their order."""

    executions: list[StartedExecution]


class ExecutionItem(_Answer, frozen=True, kw_only=True):
    """An execution as lists have it."""

    execution_id: str
    status: str
    path: str
    started_at: str
    ended_at: str | None
    duration_ms: int
    labels: dict[str, str]
    priority: int
    parent: str | None
    forked_from: str | None
    events: int


class ExecutionItems(_Answer, frozen=True, kw_only=True):
    """The newest first."""

    executions: list[ExecutionItem]
    next_cursor: str | None


class ExecutionDetail(_Answer, frozen=True, kw_only=True):
    """An execution as it is. Large values are references. `marking` has tokens and runs by step."""

    execution_id: str
    playbook: str
    version: str | None
    status: str
    result: Any
    ctx: dict[str, Any]
    error: dict[str, Any] | None
    duration_ms: int
    discarded: list[dict[str, str]]
    waiting: list[dict[str, str]]
    steps: dict[str, dict[str, Any]]
    warnings: list[DocumentProblem]
    forked_from: str | None
    marking: dict[str, dict[str, int]]
    workload: dict[str, Any]
    labels: dict[str, str]
    priority: int
    hash: str
    events: int
    started_at: str
    ended_at: str | None
    parent: str | None
    requested_by: str | None


class EventPage(_Answer, frozen=True, kw_only=True):
    """Envelopes, in order. `next_cursor` is what `after` takes for the next page."""

    events: list[dict[str, Any]]
    next_cursor: str | None


class LogPage(_Answer, frozen=True, kw_only=True):
    """What tasks of an execution and of its children wrote, in order of time."""

    lines: list[dict[str, Any]]


class CancelRequest(_Request, frozen=True, kw_only=True):
    reason: Annotated[str, Meta(max_length=1_000)] = ""


class EmptyRequest(_Request, frozen=True, kw_only=True):
    """Nothing more is to be said."""


class SignalRequest(_Request, frozen=True, kw_only=True):
    name: Name
    payload: Any = True


class SkipRequest(_Request, frozen=True, kw_only=True):
    """The step where something is stuck, or failed."""

    step: Name


class CompleteRequest(SkipRequest, frozen=True, kw_only=True):
    """What the step gives."""

    result: Any = None


class RetryRequestBody(_Request, frozen=True, kw_only=True):
    """With a repaired document if one is given: inline, or a version of the registered playbook."""

    playbook: str | dict[str, Any] | None = None
    version: VersionNumber | None = None
    dialect: Literal["canonical", "draft"] | None = None


class RedriveRequestBody(RetryRequestBody, frozen=True, kw_only=True):
    """Only the loop at this `step`, if one is named."""

    step: Annotated[str, Meta(max_length=200)] = ""


class ForkRequestBody(RetryRequestBody, frozen=True, kw_only=True):
    """A copy of the history up to event `at` goes on as a new execution, with these values laid over."""

    at: Annotated[int, Meta(ge=1, le=2**53)]
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}


class OperationAnswer(_Answer, frozen=True, kw_only=True):
    """`recorded` is false if the process that runs the execution has not read the command yet."""

    execution_id: str
    status: str
    recorded: bool
    steps: list[str] = []
    """Those that run again, after a retry or a redrive."""


class ExecutionFilter(_Request, frozen=True, kw_only=True):
    """Those for which everything given holds. `path` is the beginning of theirs.

    They began at `since` or later, and before `until`. `version` is a number of the catalog, and wants the
    whole `path`. `q` stands in id, path, labels or the message of the error.
    """

    status: Status | UnsetType = UNSET
    path: Annotated[str, Meta(max_length=1_000)] = ""
    labels: Labels = {}
    since: str = ""
    until: str = ""
    version: VersionNumber | None = None
    error_kind: Annotated[str, Meta(max_length=200)] = ""
    q: Annotated[str, Meta(max_length=1_000)] = ""


class BulkRequest(_Request, frozen=True, kw_only=True):
    do: Literal["cancel", "retry"]
    where: ExecutionFilter
    dry_run: bool = False
    reason: Annotated[str, Meta(max_length=1_000)] = ""


class BulkAnswer(_Answer, frozen=True, kw_only=True):
    """A verdict for each; none is done in a dry run. `more` says that others match: ask again."""

    executions: list[StartedExecution]
    more: bool


class CredentialItem(_Answer, frozen=True, kw_only=True):
    name: str
    kind: str
    created_at: str
    updated_at: str


class CredentialList(_Answer, frozen=True, kw_only=True):
    credentials: list[CredentialItem]


class CredentialDetail(CredentialItem, frozen=True, kw_only=True):
    """Secrets show as `***`."""

    fields: dict[str, Any]


class CredentialBody(_Request, frozen=True, kw_only=True):
    name: Name
    kind: Name = "static"
    fields: Annotated[dict[str, Any], Meta(min_length=1)]


class TokenRequest(_Request, frozen=True, kw_only=True):
    """`expires_in` is seconds from now; without it the token is valid until it is revoked."""

    name: Name
    role: Role
    expires_in: Annotated[int, Meta(ge=1, le=10**10)] | None = None


class TokenItem(_Answer, frozen=True, kw_only=True):
    name: str
    role: str
    created_at: str
    created_by: str
    expires_at: str | None
    revoked_at: str | None
    valid: bool


class TokenList(_Answer, frozen=True, kw_only=True):
    tokens: list[TokenItem]


class CreatedToken(TokenItem, frozen=True, kw_only=True):
    """The only time that the token itself is shown."""

    token: str


class AuditItem(_Answer, frozen=True, kw_only=True):
    """Who did what to what, when and from where; `status` is how it was answered."""

    at: str
    by: str
    role: str
    action: str
    target: str
    address: str
    status: int


class AuditPage(_Answer, frozen=True, kw_only=True):
    """The newest first."""

    audit: list[AuditItem]
    next_cursor: str | None


class HealthAnswer(_Answer, frozen=True, kw_only=True):
    status: Literal["ok"] = "ok"


class PoolStatus(_Answer, frozen=True, kw_only=True):
    """Runs that are ready and not claimed: how many, and for how many seconds the oldest."""

    pool: str
    depth: int
    age: float


class ServerStatus(_Answer, frozen=True, kw_only=True):
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


class WorkerRun(_Answer, frozen=True, kw_only=True):
    """A run that a worker has claimed."""

    execution_id: str
    run: str
    step: str | None


class WorkerItem(_Answer, frozen=True, kw_only=True):
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


class WorkerList(_Answer, frozen=True, kw_only=True):
    workers: list[WorkerItem]


class PoolItem(PoolStatus, frozen=True, kw_only=True):
    """A pool that has workers, or runs that wait. `problem` says why one of those cannot be taken, if so."""

    workers: int
    slots: int
    claimed: int
    kinds: list[str]
    problem: str | None


class PoolList(_Answer, frozen=True, kw_only=True):
    pools: list[PoolItem]


class DrainAnswer(_Answer, frozen=True, kw_only=True):
    """How many worker processes were told."""

    draining: int
