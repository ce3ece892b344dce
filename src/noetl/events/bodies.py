"""What can happen to an execution: a closed union, in the past tense.

A body holds what was decided, so that folding never evaluates an expression. Tokens are named
`t<seq>` after the `TokenEnqueued` that made them, runs `r<seq>` after their `StepScheduled`.
Times are microseconds since 1970, UTC.
"""

from typing import Any, Literal, TypeAlias, dataclass_transform

from msgspec import Struct

from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.wait_question import WaitQuestion

EventSource: TypeAlias = Literal["server", "worker"]
"""Who says that something happened: the closed list of 000 §10.1."""


@dataclass_transform(frozen_default=True)
class Body(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Common to all bodies: frozen, written without what is default."""


class Reported(Body, kw_only=True):
    """What a worker says about a run, in general."""

    source: EventSource = "worker"
    """`server` where no worker says it: a run without tools, a cancelled one, a lost worker."""


class Patch(Body):
    """One evaluated write `scope.path = value`."""

    scope: Literal["ctx", "iter", "run"]
    path: tuple[str, ...]
    value: Any = None


class ParentTask(Body):
    """The task of another execution that started this one."""

    execution_id: str
    task_run_id: str


class PlaybookExecutionRequested(Body):
    """Somebody asked for an execution. `workload` and `ctx` are as given."""

    path: str
    hash: str
    """Of the canonical document that runs."""
    version: str = ""
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    labels: dict[str, str] = {}
    parent: ParentTask | None = None
    idempotency_key: str = ""
    requested_by: str = ""
    decider: int = 1
    """The version of the rules by which the server decides."""
    trace_id: str = ""
    """The trace that the request belongs to, if it named one."""
    file: str = ""
    """Where the document was read; relative paths in it start there."""
    priority: int = 0
    """Its runs are given to workers before those of executions with a lower one."""


class PlaybookRequestEvaluated(Body):
    """The playbook was found and is valid, or the request is refused with `error`."""

    error: ErrorInfo | None = None


class WorkflowStarted(Body):
    """The merged workload, its defaults rendered, and the first ctx."""

    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    deadline: int | None = None
    """When the execution times out."""


class WorkflowFinished(Body):
    """No token is left that could run."""

    status: Literal["completed", "failed", "cancelled"]


class PlaybookProcessed(Body):
    """The end of the execution."""

    status: Literal["completed", "failed", "cancelled"]
    result: Any = None
    error: ErrorInfo | None = None
    """The first unhandled failure; `step`, `task` and `attempt` are among its details."""


class TokenEnqueued(Body):
    """A token is on its way to a step: the first one, or one that an arc of a run brought."""

    step: str
    args: dict[str, Any] = {}
    run: str = ""
    """The run that brought it, empty for the first token."""
    arc: int = -1
    """The position of the arc, -1 for the first token."""


class TokenParked(Body):
    """Admission was denied and the token is kept. `wait` keeps the execution alive, until `deadline`."""

    token: str
    mode: Literal["park", "wait"]
    deadline: int | None = None


class TokenAdmitted(Body):
    """A token may enter a step with a join, and stays there for the others."""

    token: str


class TokenDiscarded(Body):
    """A token ends without a run of its own."""

    token: str
    reason: Literal["denied", "parked", "absorbed", "remainder", "cancelled", "retried"]


class StepScheduled(Body):
    """A run of a step begins. `args` are the step's defaults under those of its tokens."""

    step: str
    tokens: tuple[str, ...] = ()
    args: dict[str, Any] = {}
    final: bool = False
    deadline: int | None = None
    """When the run times out."""


class TokenClaimed(Body):
    """A worker owns the run from here; the number of this event is its fence."""

    run: str
    worker: str = ""
    token: str = ""
    """The first of the run's tokens; a final step has none."""
    session: str = ""
    """That of the worker process with a server, on whose heartbeats the lease lives."""
    shard: int = -1
    """Of a distributed loop, the first iteration of the shard that it owns; else -1."""


class LeaseExpired(Body):
    """Nobody owns the run any more."""

    run: str
    fence: int
    """The number of the claim that ended."""
    reason: Literal["expired", "released", "voided"] = "expired"
    """Its owner is gone; gave it back; or never had it. Only the first is a loss."""
    shard: int = -1
    """The first iteration of the shard that nobody owns now; -1 where it is the run."""
    error: ErrorInfo | None = None
    """Why its owner could not report what it did, if it said so: the run fails with it."""


class TaskStarted(Reported):
    """An attempt begins. `input` is what the tool gets, secrets masked."""

    run: str
    task: str
    iteration: int = 0
    visit: int = 1
    attempt: int = 1
    redelivery: int = 0
    """How often this attempt was lost with its worker before."""
    input: Any = None
    at: int = 0
    """When it began, by the worker's clock, where it will wait."""


class TaskProcessed(Reported):
    """An attempt has ended: its outcome, the rule that matched, and where the pipeline goes from here.

    `rule` is the position of the rule, -1 for the `else`, None if none matched. `to` is the task a
    jump leads to, `retry_at` when the next try is due. `prev` overrides `_prev` if `set_prev` is true.
    `error` says why the pipeline fails where that is not the outcome's own error.
    """

    run: str
    task: str
    outcome: Outcome
    iteration: int = 0
    visit: int = 1
    attempt: int = 1
    rule: int | None = None
    do: Literal["continue", "retry", "jump", "break", "fail"] = "continue"
    to: str = ""
    retry_at: int | None = None
    patches: tuple[Patch, ...] = ()
    set_prev: bool = False
    prev: Any = None
    error: ErrorInfo | None = None


class LoopStarted(Reported):
    """`items` are what the loop runs over, evaluated once: a list, or a manifest of it."""

    run: str
    total: int
    items: Any = None
    max_in_flight: int = 1
    shard_size: int = 0
    """Of a distributed loop, how many iterations are claimed together; 0 where one worker runs them all."""


class LoopIterationStarted(Reported):
    run: str
    index: int


class LoopIterationCompleted(Reported):
    """One iteration ended. `contributions` are what it gives to the loop's reducers.

    `chunk` says where the results of the iterations up to this one are stored, if they were just then.
    """

    run: str
    index: int
    status: Literal["success", "error"]
    result: Any = None
    error: ErrorInfo | None = None
    contributions: tuple[Patch, ...] = ()
    chunk: dict[str, Any] | None = None


class RunSuspended(Reported):
    """The run, or one iteration of it, waits and holds no worker."""

    run: str
    reason: Literal["retry", "wait", "signal", "child", "pause"]
    iteration: int = 0
    until: int | None = None
    """When it goes on, or gives up waiting."""
    signal: str = ""
    child: str = ""
    """The execution it waits for."""
    question: WaitQuestion | None = None
    """What is asked of who sends the signal."""


class RunResumed(Body):
    run: str
    reason: Literal["timer", "signal", "child", "timeout", "resume"]
    iteration: int = 0
    payload: Any = None


class StepDone(Reported):
    run: str
    result: Any = None
    patches: tuple[Patch, ...] = ()


class StepFailed(Reported):
    run: str
    error: ErrorInfo
    task: str = ""
    """The task that failed, empty if none did."""
    attempt: int = 0
    patches: tuple[Patch, ...] = ()


class LoopDone(Reported):
    """All iterations ended. `patches` are the reduced values and the step's own writes."""

    run: str
    total: int
    succeeded: int
    failed: int = 0
    failures: tuple[Any, ...] = ()
    result: Any = None
    patches: tuple[Patch, ...] = ()


class StepCompletedByHand(Body):
    """Somebody ended a run that was stuck or had failed: it counts as done, with this result."""

    run: str
    result: Any = None
    by: str = ""
    patches: tuple[Patch, ...] = ()


class StepSkipped(Body):
    """Somebody ended a run that was stuck or had failed: it counts as done, without a result."""

    run: str
    by: str = ""
    patches: tuple[Patch, ...] = ()


class NextEvaluated(Body):
    """How the arcs of a run were judged: a verdict each, None if the arc was not asked."""

    run: str
    event: str
    verdicts: tuple[bool | None, ...] = ()
    selected: tuple[int, ...] = ()
    handled: bool = True
    """False if the run failed and no arc that fired looked at it."""
    error: ErrorInfo | None = None
    patches: tuple[Patch, ...] = ()


class CtxPatched(Body):
    patches: tuple[Patch, ...]
    by: str = ""


class SignalReceived(Body):
    """With `wait`, the task run that gets it; else the first that waits for it, now or later."""

    signal: str
    payload: Any = True
    by: str = ""
    wait: str = ""
    by_admin: bool = False


class SignalDropped(Body):
    """A signal that was kept does not fit the wait that it met."""

    signal: str
    reason: str
    wait: str = ""
    """The task run that it would have gone to."""


class CancelRequested(Body):
    """Nothing new begins. With `error`, a limit or missing credentials, the execution has failed then."""

    by: str = ""
    reason: str = ""
    error: ErrorInfo | None = None


class ExecutionPaused(Body):
    by: str = ""


class ExecutionResumed(Body):
    by: str = ""


class ExecutionRetried(Body):
    """What failed goes on: these runs are open again."""

    runs: tuple[str, ...]
    keeps: tuple[str, ...] = ()
    """Runs that stay failed: only those at one step were opened, to be ended by hand."""
    by: str = ""
    steps: tuple[str, ...] = ()
    """The steps that run again: of runs that failed inside. Of the others, the arcs are judged again."""
    superseded: tuple[str, ...] = ()
    """Steps that ran because of what failed: those runs count no longer."""
    ends: tuple[str, ...] = ()
    """Those of their runs that are under way: they are cancelled, and route nothing."""
    children: tuple[str, ...] = ()
    """Executions that these runs wait for again, instead of starting others."""
    hash: str = ""
    """Of the document that it runs from here on, if that is another one."""
    file: str = ""
    """Where that document was read."""
    deadlines: dict[str, int | None] = {}
    """By run, and empty for the execution: when it times out, where that document says so.

    Without it, each has as much time as it had at first.
    """


class IterationsRedriven(Body):
    """The failed iterations of loops that have ended run again; these loops are routed anew then."""

    runs: tuple[str, ...]
    iterations: int
    """How many run again, in all of these loops."""
    step: str = ""
    """Only loops at this step, if somebody named one."""
    by: str = ""
    steps: tuple[str, ...] = ()
    """Steps behind these loops that have run: they run once more."""
    children: tuple[str, ...] = ()
    """Executions that these iterations wait for again, instead of starting others."""
    hash: str = ""
    """Of the document that it runs from here on, if that is another one."""
    file: str = ""
    """Where that document was read."""
    deadlines: dict[str, int | None] = {}
    """By run, and empty for the execution: when it times out, where that document says so.

    Without it, each has as much time as it had at first.
    """


class ExecutionForked(Body):
    """The history so far is a copy of another execution's."""

    source: str
    """The other execution."""
    at: int
    """Its last event that was copied."""
    by: str = ""
    hash: str = ""
    """Of the document that it runs from here on, if that is another one."""
    file: str = ""
    """Where that document was read."""
    workload: dict[str, Any] | None = None
    """The workload from here on, if it is another one."""
    shift: int = 0
    """Microseconds since the last event that was copied: deadlines and waits are so much later here."""


EventBody: TypeAlias = (
    PlaybookExecutionRequested
    | PlaybookRequestEvaluated
    | WorkflowStarted
    | WorkflowFinished
    | PlaybookProcessed
    | TokenEnqueued
    | TokenParked
    | TokenAdmitted
    | TokenDiscarded
    | StepScheduled
    | TokenClaimed
    | LeaseExpired
    | TaskStarted
    | TaskProcessed
    | LoopStarted
    | LoopIterationStarted
    | LoopIterationCompleted
    | RunSuspended
    | RunResumed
    | StepDone
    | StepFailed
    | LoopDone
    | NextEvaluated
    | CtxPatched
    | SignalReceived
    | CancelRequested
    | ExecutionPaused
    | ExecutionResumed
    | ExecutionRetried
    | ExecutionForked
    | StepCompletedByHand
    | StepSkipped
    | IterationsRedriven
    | SignalDropped
)
