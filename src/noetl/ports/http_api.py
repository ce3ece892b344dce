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
RETRY_SECONDS = 5
"""After which who was told that something is unavailable (503) may try again."""
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


class ApiRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What comes in: a key that nobody knows is refused."""


class ApiAnswer(Struct, frozen=True, kw_only=True):
    """What goes out."""


class DocumentProblem(ApiAnswer, frozen=True, kw_only=True):
    """Something wrong with a playbook, as `noetl validate` says it."""

    file: str
    line: int
    column: int
    code: str
    severity: Literal["error", "warning"]
    message: str
    hint: str


class ProblemDocument(ApiAnswer, frozen=True, kw_only=True, omit_defaults=True):
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


class ValidationAnswer(ApiAnswer, frozen=True, kw_only=True):
    ok: bool
    problems: list[DocumentProblem]


class PlaybookVersion(ApiAnswer, frozen=True, kw_only=True):
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


class PlaybookList(ApiAnswer, frozen=True, kw_only=True):
    """The newest version of each."""

    playbooks: list[PlaybookVersion]
    next_cursor: str | None


class VersionList(ApiAnswer, frozen=True, kw_only=True):
    """The newest first."""

    versions: list[PlaybookVersion]


class DeletedPlaybook(ApiAnswer, frozen=True, kw_only=True):
    path: str
    versions: list[int]


class StartExecution(ApiRequest, frozen=True, kw_only=True):
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
    dialect: Literal["canonical", "draft", "in_use"] | None = None
    timeout: Annotated[float, Meta(gt=0, lt=1e10)] | None = None
    priority: Priority = 0
    """Its runs are given to workers before those of executions with a lower one."""


class StartExecutions(ApiRequest, frozen=True, kw_only=True):
    executions: Annotated[list[StartExecution], Meta(min_length=1, max_length=MOST_AT_ONCE)]


class StartedExecution(ApiAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """`error` says why a request was refused; it has no `execution_id` if it was not recorded."""

    execution_id: str = ""
    status: str = ""
    error: ProblemDocument | None = None


class StartedBatch(ApiAnswer, frozen=True, kw_only=True):
    """A verdict for each request, in their order."""

    executions: list[StartedExecution]


class ExecutionItem(ApiAnswer, frozen=True, kw_only=True):
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


class ExecutionItems(ApiAnswer, frozen=True, kw_only=True):
    """The newest first."""

    executions: list[ExecutionItem]
    next_cursor: str | None


class ExecutionDetail(ApiAnswer, frozen=True, kw_only=True):
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
    forked_at: int | None
    """The event of `forked_from` up to which its history was copied."""
    marking: dict[str, dict[str, int]]
    workload: dict[str, Any]
    labels: dict[str, str]
    priority: int
    hash: str
    file: str | None
    """Where its playbook was read, if that was a file; a registered one has a name, `PATH@VERSION`."""
    registered: str | None
    events: int
    started_at: str
    ended_at: str | None
    parent: str | None
    requested_by: str | None


class FailureLocation(ApiAnswer, frozen=True, kw_only=True):
    """The line that a failure is about: of the playbook, or of a script that a task ran."""

    file: str
    line: int
    column: int
    text: str
    in_playbook: bool


class FailureReport(ApiAnswer, frozen=True, kw_only=True):
    """Everything known of how one execution failed. Of one that was cancelled `kind` is null.

    `cause` is the kind of what failed, of a loop that of its iteration; it is empty if a retry alone may
    help. `document` names the playbook as problems do, `file` where it was read.
    """

    execution_id: str
    playbook: str
    status: str
    step: str | None
    task: str | None
    attempt: int | None
    iteration: int | None
    kind: str | None
    message: str
    cause: str
    location: FailureLocation | None
    input: Any
    printed: list[str]
    """The last lines of the attempt that failed."""
    traceback: str
    logged: bool
    """Whether its tasks wrote anything at all."""
    retriable: bool
    document: str
    file: str


class FailureChain(ApiAnswer, frozen=True, kw_only=True):
    """Of an execution, then of the child that failed it, down to the lowest; none if nothing failed."""

    failures: list[FailureReport]


class EventPage(ApiAnswer, frozen=True, kw_only=True):
    """Envelopes, in order. `next_cursor` is what `after` takes for the next page."""

    events: list[dict[str, Any]]
    next_cursor: str | None


class LogPage(ApiAnswer, frozen=True, kw_only=True):
    """What tasks of an execution and of its children wrote, in order of time.

    `last` is what `after` takes for what comes later, `next_cursor` the same if there is more already.
    """

    lines: list[dict[str, Any]]
    next_cursor: str | None
    last: str


class CancelRequest(ApiRequest, frozen=True, kw_only=True):
    reason: Annotated[str, Meta(max_length=1_000)] = ""


class EmptyRequest(ApiRequest, frozen=True, kw_only=True):
    """Nothing more is to be said."""


class SignalRequest(ApiRequest, frozen=True, kw_only=True):
    """To the task run `wait`, if one is named; else to the oldest that waits for it and that it fits."""

    name: Name
    payload: Any = True
    wait: Annotated[str, Meta(max_length=1_000)] = ""


class SkipRequest(ApiRequest, frozen=True, kw_only=True):
    """The step where something is stuck, or failed."""

    step: Name


class CompleteRequest(SkipRequest, frozen=True, kw_only=True):
    """What the step gives."""

    result: Any = None


class RetryRequestBody(ApiRequest, frozen=True, kw_only=True):
    """With a repaired document if one is given: inline, or a version of the registered playbook."""

    playbook: str | dict[str, Any] | None = None
    version: VersionNumber | None = None
    dialect: Literal["canonical", "draft", "in_use"] | None = None


class RedriveRequestBody(RetryRequestBody, frozen=True, kw_only=True):
    """Only the loop at this `step`, if one is named."""

    step: Annotated[str, Meta(max_length=200)] = ""


class ForkRequestBody(RetryRequestBody, frozen=True, kw_only=True):
    """A copy of the history up to event `at` goes on as a new execution, with these values laid over."""

    at: Annotated[int, Meta(ge=1, le=2**53)]
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}


class OperationAnswer(ApiAnswer, frozen=True, kw_only=True):
    """`recorded` is false if the process that runs the execution has not read the command yet."""

    execution_id: str
    status: str
    recorded: bool
    steps: list[str] = []
    """Those that run again, after a retry or a redrive."""


class ExecutionFilter(ApiRequest, frozen=True, kw_only=True):
    """Those for which everything given holds. `path` is the beginning of theirs.

    They began at `since` or later, and before `until`. `version` is a number of the catalog, and wants the
    whole `path`. `q` stands in id, path, labels or the message of the error. `roots` leaves out what others
    started.
    """

    status: Status | UnsetType = UNSET
    path: Annotated[str, Meta(max_length=1_000)] = ""
    labels: Labels = {}
    since: str = ""
    until: str = ""
    version: VersionNumber | None = None
    error_kind: Annotated[str, Meta(max_length=200)] = ""
    q: Annotated[str, Meta(max_length=1_000)] = ""
    roots: bool = False


class BulkRequest(ApiRequest, frozen=True, kw_only=True):
    """A `where` that leaves nothing out is refused, unless `all` says that this is meant.

    `reason` is for `cancel`, `signal` and `payload` are for `signal`.
    """

    do: Literal["cancel", "retry", "signal"]
    where: ExecutionFilter = ExecutionFilter()
    all: bool = False
    dry_run: bool = False
    reason: Annotated[str, Meta(max_length=1_000)] = ""
    signal: Annotated[str, Meta(max_length=200)] = ""
    payload: Any = True


class BulkAnswer(ApiAnswer, frozen=True, kw_only=True):
    """A verdict for each; none is done in a dry run. `more` says that others match: ask again."""

    executions: list[StartedExecution]
    more: bool
