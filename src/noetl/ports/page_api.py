"""What the page asks of a server beside `http_api`: sessions, pictures, completion, waits, the stream.

Times are UTC, as in events; lengths of pictures are pixels, `x` to the right and `y` downwards.
"""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from noetl.kernel.explain.explanation_parts import Condition
from noetl.ports.admin_api import PoolItem
from noetl.ports.http_api import ApiAnswer, ApiRequest, DocumentProblem, ExecutionItem, ProblemDocument, Role

PicturePoint: TypeAlias = tuple[float, float]
CompletionKind: TypeAlias = Literal["key", "kind", "step", "task", "value", "namespace", "name", "function"]
TopicKind: TypeAlias = Literal["executions", "execution", "waits", "workers", "queue"]


class SessionRequest(ApiRequest, frozen=True, kw_only=True):
    """A token, or the code of a login link, which is good for one time."""

    token: Annotated[str, Meta(min_length=1, max_length=500)] | None = None
    code: Annotated[str, Meta(min_length=1, max_length=500)] | None = None


class LoginLink(ApiAnswer, frozen=True, kw_only=True):
    """`path` is to be opened at the address of the server, once, before `expires_at`."""

    path: str
    expires_at: str


class CallerAnswer(ApiAnswer, frozen=True, kw_only=True):
    """Who asks, as the server knows them.

    `may` has the names of the operations that the role allows, as the OpenAPI document calls them. `zone` is
    the time zone of the server (IANA, `UTC` if it is not known). `session` says that they came by cookie.
    """

    name: str
    role: Role
    may: list[str]
    session: bool
    release: str
    zone: str


class NetText(ApiAnswer, frozen=True, kw_only=True):
    """A line of text on a card, from the card's corner; `y` is its baseline."""

    x: float
    y: float
    text: str
    style: Literal["name", "desc", "note", "badge", "detail", "task", "kind", "mark"]


class NetIcon(ApiAnswer, frozen=True, kw_only=True):
    """A small drawing on a card, about 11 pixels wide; `x` and `y` are its middle."""

    x: float
    y: float
    kind: Literal["admit", "join", "loop", "retry", "jump", "break"]


class NetPill(ApiAnswer, frozen=True, kw_only=True):
    """A rounded field with a word on a card, 16 pixels high; `y` is its middle."""

    x: float
    y: float
    width: float
    text: str


class NetBadge(ApiAnswer, frozen=True, kw_only=True):
    """What decides how a pipeline runs: its gate, its join, its loop."""

    kind: Literal["admit", "join", "loop"]
    text: str
    detail: str


class NetMark(ApiAnswer, frozen=True, kw_only=True):
    """What the policy of a task may do besides going on."""

    kind: Literal["retry", "jump", "break"]
    text: str


class NetTask(ApiAnswer, frozen=True, kw_only=True):
    """A task of a step's pipeline; `line` is where it stands in the document."""

    label: str
    kind: str
    marks: list[NetMark]
    line: int


class NetBox(ApiAnswer, frozen=True, kw_only=True):
    """A step as a card, and what is on it. `line` is where it stands in the document.

    `inclusive`: more than one arc, and every one whose guard holds is taken. `rule` is the height of the line
    above the pipeline, `dots` are the heights of its tasks; `stack` is what a second card behind it takes of
    its size, at the right and below.
    """

    step: str
    desc: str
    line: int
    roles: list[Literal["start", "end", "final"]]
    badges: list[NetBadge]
    tasks: list[NetTask]
    inclusive: bool
    x: float
    y: float
    width: float
    height: float
    stack: float
    texts: list[NetText]
    icons: list[NetIcon]
    pills: list[NetPill]
    rule: float | None
    dots: list[float]


class NetLabel(ApiAnswer, frozen=True, kw_only=True):
    """Where the label of a route is, and its lines of text, shortened to fit."""

    x: float
    y: float
    width: float
    height: float
    lines: list[str]


class NetRoute(ApiAnswer, frozen=True, kw_only=True):
    """An arc. `number` counts the arcs of its step from 0, as events do.

    `guard` is the whole condition, `text` what is left of it beside the `mark`. `order` is empty for an only
    arc, else its number in an exclusive router, `+` in an inclusive one. `merges` is the point on it from
    which an earlier route runs the rest of the way.
    """

    source: str
    target: str
    number: int
    guard: str
    text: str
    mark: Literal["", "done", "failed"]
    order: str
    failure: bool
    points: list[PicturePoint]
    merges: PicturePoint | None
    label: NetLabel | None


class NetAnswer(ApiAnswer, frozen=True, kw_only=True):
    """The picture that `noetl graph` draws, as numbers. Boxes and routes are in the order of the document."""

    hash: str
    title: str
    path: str
    entry: str
    width: float
    height: float
    boxes: list[NetBox]
    routes: list[NetRoute]


class DraftNet(ApiAnswer, frozen=True, kw_only=True):
    """The picture of a document that is not registered; none if it has errors."""

    net: NetAnswer | None
    problems: list[DocumentProblem]


class CompletionRequest(ApiRequest, frozen=True, kw_only=True):
    """A text that may be wrong at this moment, and a place in it: `line` and `column` from 1.

    `column` is that of the character behind the cursor, counted in characters (code points).
    """

    text: Annotated[str, Meta(max_length=4 << 20)]
    line: Annotated[int, Meta(ge=1, le=1_000_000)]
    column: Annotated[int, Meta(ge=1, le=1_000_000)]


class CompletionItem(ApiAnswer, frozen=True, kw_only=True):
    """`insert` takes the place of what is written; `detail` is short, `doc` a sentence or two."""

    label: str
    kind: CompletionKind
    insert: str
    detail: str
    doc: str


class CompletionAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What may stand there, the likeliest first. It replaces the columns from `start` up to `end`."""

    line: int
    start: int
    end: int
    items: list[CompletionItem]


class ToolField(ApiAnswer, frozen=True, kw_only=True):
    """An input or a knob of a kind. `default` is JSON, empty if there is none."""

    name: str
    type: str
    required: bool
    default: str
    description: str


class ToolItem(ApiAnswer, frozen=True, kw_only=True):
    """A kind of task. `knobs` stand under the task's `spec`; `workers` counts those that can run it."""

    kind: str
    summary: str
    result: str
    example: str
    inputs: list[ToolField]
    knobs: list[ToolField]
    workers: int


class ToolList(ApiAnswer, frozen=True, kw_only=True):
    tools: list[ToolItem]


class PlannedTask(ApiAnswer, frozen=True, kw_only=True):
    """A task that cannot run as things are, and why."""

    step: str
    task: str
    kind: str
    reason: str
    hint: str


class PlanAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What a start would do; nothing was recorded. `error` says why it would be refused, if so.

    `workload` is merged with the defaults of the document. `waiting` says what would wait, and for what.
    """

    ok: bool
    error: ProblemDocument | None
    path: str
    version: int | None
    hash: str
    entry: str
    workload: dict[str, Any]
    ctx: dict[str, Any]
    credentials: list[str]
    waiting: list[PlannedTask]
    problems: list[DocumentProblem]


class StepStatistics(ApiAnswer, frozen=True, kw_only=True):
    """The ended runs of a step in the executions that were looked at; milliseconds."""

    step: str
    runs: int
    failed: int
    median_ms: float
    p95_ms: float
    most_ms: float


class PlaybookStatistics(ApiAnswer, frozen=True, kw_only=True):
    """Of the newest executions of a playbook. `ended` counts them by how they ended; milliseconds."""

    path: str
    executions: list[ExecutionItem]
    ended: dict[str, int]
    median_ms: float
    p95_ms: float
    steps: list[StepStatistics]


class FailureGroup(ApiAnswer, frozen=True, kw_only=True):
    """Failed executions of a playbook with the same error, of the last 24 hours; `newest` is one of them."""

    path: str
    step: str
    kind: str
    message: str
    count: int
    newest: str
    first_at: str
    last_at: str


class HourCount(ApiAnswer, frozen=True, kw_only=True):
    """Executions that began in the hour from `at`, by what became of them; `running` has the paused ones."""

    at: str
    running: int
    completed: int
    failed: int
    cancelled: int


class LostWorker(ApiAnswer, frozen=True, kw_only=True):
    """A worker that went silent in the last 24 hours while it had runs, and has not come back."""

    worker: str
    lost_at: str
    runs: int


class WaitItem(ApiAnswer, frozen=True, kw_only=True):
    """What waits for a person: a task, which an answer names by `wait`, or a gate, and `wait` is its token.

    A gate opens when one of its `rules` lets the token in; `signals` are those that they read, `signal` the
    first that has not come, empty if its name is computed. It asks nothing: whoever may signal may answer.
    Of a task, `assignee` has the names of tokens that may answer; empty: every operator. `answerable` says
    whether the caller may. `schema` is what an answer must fit, null for anything. `until` is when it gives
    up, if so.
    """

    kind: Literal["task", "gate"]
    wait: str
    execution_id: str
    path: str
    step: str
    task: str
    iteration: int | None
    signal: str
    title: str
    description: str
    schema: dict[str, Any] | None
    assignee: list[str]
    answerable: bool
    since: str
    until: str | None
    labels: dict[str, str]
    signals: list[str]
    rules: list[Condition]


class WaitList(ApiAnswer, frozen=True, kw_only=True):
    """The oldest first."""

    waits: list[WaitItem]
    next_cursor: str | None


class Overview(ApiAnswer, frozen=True, kw_only=True):
    """What needs somebody, what runs, and the last 24 hours.

    `failures` are grouped by error, the most frequent first; `waits` are the oldest, `waiting` counts all of
    them. `executions` are the newest that run, `running` and `paused` count all. `stuck` have a run that no
    worker can take. `playbooks` is how many are registered.
    """

    failures: list[FailureGroup]
    waits: list[WaitItem]
    waiting: int
    lost_workers: list[LostWorker]
    stuck: list[ExecutionItem]
    executions: list[ExecutionItem]
    running: int
    paused: int
    hours: list[HourCount]
    playbooks: int


class QueuedRun(ApiAnswer, frozen=True, kw_only=True):
    """A run that is ready; `age` is in seconds. `reason` says why no worker has it."""

    execution_id: str
    path: str
    run: str
    step: str | None
    kinds: list[str]
    priority: int
    age: float
    reason: str


class QueuePool(PoolItem, frozen=True, kw_only=True):
    """A pool and its oldest runs that are ready."""

    runs: list[QueuedRun]


class QueueAnswer(ApiAnswer, frozen=True, kw_only=True):
    pools: list[QueuePool]


class CredentialUse(ApiAnswer, frozen=True, kw_only=True):
    """A task of a registered playbook that names a credential."""

    path: str
    version: int
    step: str
    task: str


class CredentialUsage(ApiAnswer, frozen=True, kw_only=True):
    """By the newest versions of playbooks. `stored` is false if there is no credential of this name."""

    name: str
    stored: bool
    uses: list[CredentialUse]


class CredentialUsageList(ApiAnswer, frozen=True, kw_only=True):
    usage: list[CredentialUsage]


class ExecutionsMessage(ApiAnswer, frozen=True, kw_only=True):
    """The SSE event `executions`: executions that are new or changed, as they are now."""

    executions: list[ExecutionItem]


class ExecutionMessage(ApiAnswer, frozen=True, kw_only=True):
    """The SSE event `execution`: new envelopes of one of the executions of the topics, in order."""

    execution_id: str
    events: list[dict[str, Any]]


class ChangeMessage(ApiAnswer, frozen=True, kw_only=True):
    """The SSE events `waits`, `workers` and `queue`: that changed, and is to be read again."""

    topic: TopicKind
