"""The tables in which executions can be asked about (002 §6), and their columns: here and nowhere else.

A row of an entity says how that stood after the event `as_of` of its execution: a later one takes its place.
"""

from typing import Final, NewType

from msgspec import Struct

Micros = NewType("Micros", int)
"""A time: microseconds since 1970, UTC."""
JsonText = NewType("JsonText", str)
"""A value as the text of its JSON."""


class TableRow(Struct, frozen=True, kw_only=True):
    """A row of one of the tables."""


class PlaybookRow(TableRow, frozen=True, kw_only=True):
    """A document that ran. `playbook` is the hash of the canonical document."""

    playbook: str
    path: str
    name: str
    version: str | None
    """Its `metadata.version`."""
    description: str
    labels: JsonText
    steps: int
    document: JsonText
    """The canonical document."""


class PlaybookStepRow(TableRow, frozen=True, kw_only=True):
    playbook: str
    step: str
    position: int
    tasks: int
    kinds: JsonText
    """Of the tools of its tasks, in order."""
    loop_mode: str | None
    join_mode: str | None
    description: str


class PlaybookArcRow(TableRow, frozen=True, kw_only=True):
    playbook: str
    step: str
    arc: int
    target: str
    guard: str | None
    """The text of its `when`."""
    mode: str
    """Of the router: `exclusive` or `inclusive`."""


class ExecutionRow(TableRow, frozen=True, kw_only=True):
    execution_id: str
    as_of: int
    playbook: str
    path: str
    status: str
    started_at: Micros
    ended_at: Micros | None
    duration_ms: float | None
    parent: str | None
    """The execution that started it."""
    root: str
    forked_from: str | None
    labels: JsonText
    priority: int
    events: int
    error_kind: str | None
    error_step: str | None
    error_message: str | None


class EventLogRow(TableRow, frozen=True, kw_only=True):
    """An event; `data` is its body as it is stored."""

    execution_id: str
    seq: int
    timestamp: Micros
    name: str
    source: str
    entity: str
    entity_id: str
    status: str
    step_run_id: str | None
    task_run_id: str | None
    parent_id: str | None
    worker: str | None
    data: JsonText


class TokenRow(TableRow, frozen=True, kw_only=True):
    """A token; `status` is `enqueued`, `parked`, `waiting`, `joined`, `consumed` or `discarded`."""

    execution_id: str
    as_of: int
    token_id: str
    step: str
    status: str
    reason: str | None
    """Why it was discarded."""
    from_step_run_id: str | None
    from_arc: int | None
    step_run_id: str | None
    """The run that consumed it."""
    enqueued_at: Micros
    ended_at: Micros | None
    args: JsonText


class StepRunRow(TableRow, frozen=True, kw_only=True):
    """A run of a step.

    `status` is `ready`, `running`, `waiting`, `completed`, `failed`, `cancelled` or `skipped`.
    """

    execution_id: str
    as_of: int
    step_run_id: str
    step: str
    status: str
    scheduled_at: Micros
    claimed_at: Micros | None
    """When a worker had it first."""
    ended_at: Micros | None
    duration_ms: float | None
    worker: str | None
    """That had it last."""
    claims: int
    iterations: int | None
    """Of its loop."""
    iterations_failed: int | None
    error_kind: str | None
    error_message: str | None
    result: JsonText | None


class TaskRunRow(TableRow, frozen=True, kw_only=True):
    """A visit of a pipeline to one of its tasks, with all its attempts.

    `task_run_id` is `RUN/ITERATION/TASK/VISIT`.
    """

    execution_id: str
    as_of: int
    task_run_id: str
    step_run_id: str
    step: str
    task: str
    kind: str | None
    iteration: int
    visit: int
    attempts: int
    status: str
    """`running`, `ok` or `error`: of the last attempt."""
    directive: str | None
    """Where the pipeline went from here: `continue`, `retry`, `jump`, `break` or `fail`."""
    started_at: Micros | None
    ended_at: Micros | None


class AttemptRow(TableRow, frozen=True, kw_only=True):
    execution_id: str
    as_of: int
    task_run_id: str
    """Of the visit that it belongs to."""
    attempt: int
    status: str
    started_at: Micros | None
    ended_at: Micros | None
    duration_ms: float | None
    """What the worker measured."""
    redeliveries: int
    error_kind: str | None
    error_message: str | None
    retryable: bool | None


class ResultRefRow(TableRow, frozen=True, kw_only=True):
    """A stored body, at the first event that names it."""

    execution_id: str
    seq: int
    key: str
    store: str
    size: int | None
    media_type: str
    checksum: str | None
    step_run_id: str | None
    task_run_id: str | None


class ManifestRefRow(TableRow, frozen=True, kw_only=True):
    """A list that is stored in chunks, at the event that names it."""

    execution_id: str
    seq: int
    store: str
    total: int
    size: int
    chunks: int
    step_run_id: str | None
    task_run_id: str | None


TABLES: Final[dict[str, type[TableRow]]] = {
    "playbook": PlaybookRow,
    "playbook_step": PlaybookStepRow,
    "playbook_arc": PlaybookArcRow,
    "execution": ExecutionRow,
    "event_log": EventLogRow,
    "token": TokenRow,
    "step_run": StepRunRow,
    "task_run": TaskRunRow,
    "attempt": AttemptRow,
    "result_ref": ResultRefRow,
    "manifest_ref": ManifestRefRow,
}
"""By the name of the table."""
TABLE_NAMES: Final = {row_type: name for name, row_type in TABLES.items()}


def has_versions(table: str) -> bool:
    """Whether a later row may take the place of an earlier one."""
    return "as_of" in TABLES[table].__struct_fields__
