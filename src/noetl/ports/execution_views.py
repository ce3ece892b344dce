"""What is seen of one execution, or of two, over HTTP and by commands: its events, its runs, its values.

Times are microseconds since 1970, UTC, where they are numbers; durations are microseconds. Values are cut
to a readable length where a docstring says so, and secrets are masked everywhere.
"""

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta

from noetl.kernel.explain.explanation_parts import Condition, Explanation
from noetl.kernel.expression_reads import PathRead
from noetl.kernel.state.marking_changes import MarkingPlace
from noetl.kernel.verify.difference import Difference
from noetl.ports.http_api import ApiAnswer, ApiRequest, ExecutionDetail

RunStatus: TypeAlias = Literal["ready", "running", "waiting", "completed", "failed", "cancelled", "skipped"]
EventNumber: TypeAlias = Annotated[int, Meta(ge=0, le=2**53)]
"""The `seq` of an event; 0 is the last one."""
TaskEffect: TypeAlias = Literal["none", "write", "unknown"]
"""Whether a task changes something outside of the execution, so far as its kind and its inputs tell."""


class HistoryIndex(ApiAnswer, frozen=True, kw_only=True):
    """The events above `after` as columns, one entry in each for an event, and what each does to the marking.

    `steps` are all of the playbook, in its order, and the same in every answer until it goes on with another
    document. `runs` are those that began in these events: append them to those of earlier answers.
    """

    execution_id: str
    status: str
    hash: str
    """Of the playbook that `steps` are of."""
    after: int
    last: int
    """The number of the last event."""
    base: int
    """The time of the first event of the execution."""
    names: list[str]
    steps: list[str]
    places: list[MarkingPlace]
    runs: list[str]
    time: list[int]
    """Microseconds since the event before; of the first in this answer, since `base`."""
    name: list[int]
    """Positions in `names`."""
    step: list[int]
    """Positions in `steps`; -1 for none."""
    run: list[int]
    """Positions among all runs, those of earlier answers included; -1 for none."""
    marking: list[list[int]]
    """For each event, triples in one list: positions in `steps` and `places`, how many more or fewer."""
    errors: list[int]
    """The numbers of those events that tell of an error."""
    cuts: list[int]
    """The last events of appends, where a fork may begin: how far each is from the one before, or `after`."""


class HeatStrip(ApiAnswer, frozen=True, kw_only=True):
    """How many iterations ended in each stretch of time; `bucket` is how long one is."""

    begin: int
    bucket: int
    succeeded: list[int]
    failed: list[int]


class LoopBar(ApiAnswer, frozen=True, kw_only=True):
    total: int
    begun: int
    succeeded: int
    failed: int
    open: int
    heat: HeatStrip | None
    """None while no iteration has ended."""


WaitReason: TypeAlias = Literal["ready", "retry", "wait", "signal", "child", "pause"]
"""`ready`: a run waits for a worker."""


class WaitSpan(ApiAnswer, frozen=True, kw_only=True):
    """When nobody had a run, and why."""

    begin: int
    end: int | None
    reason: WaitReason


class ChildBar(ApiAnswer, frozen=True, kw_only=True):
    """An execution that a task of a run started."""

    execution_id: str
    path: str
    status: str
    task: str
    iteration: int
    begin: int
    end: int | None


class RunBar(ApiAnswer, frozen=True, kw_only=True):
    """A step run in time. `attempts` are those of all its tasks and iterations; `worked` is a duration.

    `waits` and `children` are the first hundred.
    """

    run: str
    step: str
    line: int
    seq: int
    begin: int
    claimed: int | None
    """When a worker had it first."""
    end: int | None
    ended_seq: int | None
    status: RunStatus
    attempts: int
    failed_attempts: int
    worked: int
    waits: list[WaitSpan]
    loop: LoopBar | None
    children: list[ChildBar]
    error: dict[str, Any] | None
    """`kind` and `message`."""


class RunPage(ApiAnswer, frozen=True, kw_only=True):
    """Runs in the order in which they began, at event `at`. `idle`: when nothing of it was worked on."""

    execution_id: str
    at: int
    begin: int
    end: int | None
    now: int
    """Up to when open runs are known: the time of event `at`."""
    idle: list[tuple[int, int]]
    """Begin and end of each stretch of a second or more, in order."""
    runs: list[RunBar]
    next_cursor: str | None


class AttemptBar(ApiAnswer, frozen=True, kw_only=True):
    """One attempt of a task. `input` and `result` are cut to a readable length."""

    task: str
    kind: str
    iteration: int
    visit: int
    attempt: int
    seq: int
    begin: int
    ended_seq: int | None
    end: int | None
    status: Literal["running", "completed", "failed"]
    redelivered: int
    """How often it was lost with its worker and begun again."""
    directive: Literal["", "continue", "retry", "jump", "break", "fail"]
    """What the task's policy did then; empty while it runs."""
    line: int | None
    """Of the rule that decided, if one did."""
    input: Any
    result: Any
    error: dict[str, Any] | None


class IterationBar(ApiAnswer, frozen=True, kw_only=True):
    index: int
    begin: int
    end: int | None
    status: Literal["running", "completed", "failed"]


class RunDetail(ApiAnswer, frozen=True, kw_only=True):
    """A run with a page of its iterations, in the order in which they began, and their attempts.

    A run without a loop has one iteration.
    """

    execution_id: str
    at: int
    bar: RunBar
    iterations: list[IterationBar]
    attempts: list[AttemptBar]
    next_cursor: str | None


class EvaluateRequest(ApiRequest, frozen=True, kw_only=True):
    """`expr` with or without its `{{ }}`, after event `at`; with `step`, as the last run of that sees it."""

    expr: Annotated[str, Meta(min_length=1, max_length=20_000)]
    at: EventNumber = 0
    step: Annotated[str, Meta(max_length=200)] = ""
    iteration: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class EvaluatedExpression(ApiAnswer, frozen=True, kw_only=True):
    """The value that an expression had. `run` is the one whose names it read; `reads` are cut."""

    execution_id: str
    at: int
    step: str | None
    run: str | None
    value: Any
    cut: bool
    """The value is too large to be sent and was cut to a readable length."""
    reads: list[PathRead]
    names: list[str]
    """The namespaces that can be read there."""


class DiffSide(ApiAnswer, frozen=True, kw_only=True):
    execution_id: str
    playbook: str
    version: str | None
    hash: str
    status: str
    events: int
    duration_ms: int
    started_at: str
    forked_from: str | None


class EventSide(ApiAnswer, frozen=True, kw_only=True):
    """An event of one of the two; `value` is what differs in it, cut to a readable length."""

    seq: int
    name: str
    step: str | None
    run: str | None
    value: Any


class Divergence(ApiAnswer, frozen=True, kw_only=True):
    """The first event that is not the same in both. A side without one has nothing to set against it."""

    what: str
    """In a few words."""
    path: str
    """The part of the event that differs; empty if it is all of it."""
    a: EventSide | None
    b: EventSide | None


class StepDiff(ApiAnswer, frozen=True, kw_only=True):
    """A step that came to something in one of the two. `differs` looks at status, runs, result and error."""

    step: str
    differs: bool
    status: tuple[str | None, str | None]
    runs: tuple[int, int]
    worked: tuple[int, int]
    result: tuple[Any, Any]
    """Of the last run that has ended, cut to a readable length."""
    error: tuple[dict[str, Any] | None, dict[str, Any] | None]


class GuardDiff(ApiAnswer, frozen=True, kw_only=True):
    """A guard that came out differently: of an arc, or of admission (`arc` is then null).

    `occurrence` counts the runs of the step from 1.
    """

    step: str
    arc: str | None
    occurrence: int
    a: Condition | None
    b: Condition | None


class ValueDiff(ApiAnswer, frozen=True, kw_only=True):
    """A value of workload, ctx or the result that differs; `missing` says in which it is not there."""

    path: str
    a: Any
    b: Any
    missing: Literal["", "a", "b"]


class ExecutionDiff(ApiAnswer, frozen=True, kw_only=True):
    """What two executions have in common, and where they differ. Lists are in the order of the playbook."""

    a: DiffSide
    b: DiffSide
    same_playbook: bool
    common: int
    """How many events of `a` come before the first difference."""
    divergence: Divergence | None
    """None if they are the same but for times, ids and who did it."""
    steps: list[StepDiff]
    guards: list[GuardDiff]
    values: list[ValueDiff]


class RepeatedTask(ApiAnswer, frozen=True, kw_only=True):
    """A task whose attempts begin again, or may: how often it has begun, and whether it changes something."""

    step: str
    task: str
    kind: str
    line: int
    effect: TaskEffect
    begun: int


class KeptStep(ApiAnswer, frozen=True, kw_only=True):
    """A step whose runs are taken over as they ended."""

    step: str
    runs: int


class OpenRun(ApiAnswer, frozen=True, kw_only=True):
    """A run that goes on: where it stands, and how many iterations of it are open."""

    run: str
    step: str
    task: str | None
    iterations: int


class ForkPreview(ApiAnswer, frozen=True, kw_only=True):
    """What a fork would do; nothing is recorded.

    `repeats` are the tasks of runs that go on and those that began after `cut`, which run again if the fork
    comes to them; those that change something first.
    """

    execution_id: str
    at: int
    cut: int
    """The last event that is copied: `at`, rounded up to the end of its append."""
    events: int
    kept: list[KeptStep]
    open: list[OpenRun]
    tokens: dict[str, int]
    """By step, how many tokens wait there or are on their way."""
    repeats: list[RepeatedTask]


class ReopenPreview(ApiAnswer, frozen=True, kw_only=True):
    """What a retry or a redrive would open again; nothing is recorded."""

    execution_id: str
    runs: list[OpenRun]
    steps: list[str]
    """Those that run again."""
    superseded: list[str]
    """Steps that ran because of what failed: these runs count no longer."""
    iterations: int
    """How many iterations of loops run again."""
    repeats: list[RepeatedTask]


class ResultRows(ApiAnswer, frozen=True, kw_only=True):
    """Some of the rows of a stored value, cut to a readable length.

    Of a list its elements, of a table mappings, of a mapping `{key, value}`, of a text its lines; anything
    else is one row.
    """

    type: Literal["list", "table", "mapping", "text", "value"]
    columns: list[str]
    """Of a table, and of a list whose rows here are mappings."""
    offset: int
    total: int | None
    """None where it is not known without reading on."""
    rows: list[Any]
    next_offset: int | None


class VerificationAnswer(ApiAnswer, frozen=True, kw_only=True):
    """What deciding an execution again has shown; `ok` if all came out the same."""

    ok: bool
    execution_id: str
    events: int
    verdicts: int
    unjudged: int
    differences: list[Difference]
    notes: list[str]


class ExecutionExport(ApiAnswer, frozen=True, kw_only=True):
    """All that there is to see of an execution in one document, to be looked at without a server.

    `events` are envelopes, the first 10,000; `lines` what its tasks and its children's wrote, likewise.
    """

    exported_at: str
    execution: ExecutionDetail
    source: str
    """The text of its playbook."""
    index: HistoryIndex
    runs: RunPage
    explanation: Explanation
    events: list[dict[str, Any]]
    lines: list[dict[str, Any]]
