"""One run of a step: what worker and server both know about it, built by one fold."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct, field

from noetl.dsl.document.playbook import Task
from noetl.events.bodies import EventSource, Patch
from noetl.kernel.plan import StepPlan
from noetl.kernel.state.agenda import OrderedSet
from noetl.kernel.state.variables import Variables
from noetl.model.outcome import ErrorInfo
from noetl.model.wait_question import WaitQuestion

Phase: TypeAlias = Literal["ready", "claimed", "suspended", "ended"]
"""`ready`: a worker may claim it. `suspended`: it waits and nobody owns it."""


HANDING_ON = 3
"""The first version of the rules by which an error that has a result hands it on as `_prev`."""

COUNTING_LOSSES = 4
"""The first version by which the owners of a run that were lost are counted, and only those."""

KEEPING_PREV = 5
"""The first version by which a task that failed leaves `_prev` as it was: a retry of it reads that."""

SHARDING = 5
"""The first version by which several workers share the iterations of a distributed loop."""


class ExecutionInputs:
    """What an execution was asked with. Shared by its state and all its runs.

    The request and a fork set it; nothing that a playbook does changes it. `decider` is the version of the
    rules that it began with.
    """

    __slots__ = ("_trace_id", "decider", "execution_id", "workload")

    def __init__(self, execution_id: str, workload: dict[str, Any], trace_id: str = "") -> None:
        self.execution_id = execution_id
        self.workload = workload
        self._trace_id = trace_id
        self.decider = 1

    @property
    def trace_id(self) -> str:
        """The trace that the request belongs to; if it named none, one of the execution's own."""
        return self._trace_id or self.execution_id.replace("-", "")

    @trace_id.setter
    def trace_id(self, trace_id: str) -> None:
        self._trace_id = trace_id

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ExecutionInputs)
            and self.execution_id == other.execution_id
            and self.workload == other.workload
        )

    __hash__ = None  # type: ignore[assignment]  # it changes


class Suspension(Struct, frozen=True):
    reason: Literal["retry", "wait", "signal", "child"]
    until: int | None = None
    signal: str = ""
    child: str = ""
    question: WaitQuestion | None = None


class Resumption(Struct, frozen=True):
    reason: Literal["timer", "signal", "child", "timeout", "resume"]
    payload: Any = None


# msgspec gives each instance an empty container of its own where the default is one.
class Frame(Struct):
    """One pass through the pipeline: an iteration, or the whole run where there is no loop.

    `at` is the task it stands at, `attempt` the tries of this visit so far, `forgiven` those of them
    that no longer count. `status` is open until the pipeline is through.
    """

    index: int
    at: int = 0
    visits: dict[str, int] = {}
    attempt: int = 0
    forgiven: int = 0
    polls: int = 0
    """Tries of this visit that were repeated though they went well: each gets a new key."""
    transitions: int = 0
    running: bool = False
    losses: int = 0
    """Deliveries of the attempt that ended without an outcome."""
    given_back: int = 0
    """Those of them whose worker was not lost."""
    began_at: int = 0
    """When a task that waits began, by its worker's clock."""
    input: Any = None
    child: str = ""
    """The execution that its task waits for, or failed with: after `retry`, the one to wait for again."""
    prev: Any = None
    result: Any = None
    results: dict[str, Any] = {}
    iter: Variables = field(default_factory=Variables)
    contributions: tuple[Patch, ...] = ()
    retry_at: int | None = None
    suspension: Suspension | None = None
    resumption: Resumption | None = None
    status: Literal["open", "done", "failed"] = "open"
    error: ErrorInfo | None = None

    @property
    def lost_workers(self) -> int:
        return self.losses - self.given_back


class LoopState(Struct):
    """Where a loop is. `low` is the first iteration that has not ended, `ended` those above it that have."""

    items: Any
    """A list, or a manifest of one."""
    total: int
    max_in_flight: int
    next: int = 0
    low: int = 0
    ended: set[int] = set()
    succeeded: int = 0
    failed: int = 0
    failures: list[dict[str, Any]] = []
    results: list[Any] = []
    """From iteration `base` on; those before it are in `chunks`."""
    base: int = 0
    chunks: list[dict[str, Any]] = []
    contributions: dict[int, tuple[Patch, ...]] = {}
    broken: int = -1
    """The first iteration that failed where one failure fails the loop."""
    failed_frames: dict[int, Frame] = {}
    kept_frames: dict[int, Frame] = {}
    """Of iterations that failed and did not fail the loop: `redrive` goes on with them."""
    redriven: list[int] = []
    """Those of them that are to begin again, in order."""
    redone: dict[int, Any] = {}
    """What they gave, where a chunk has None in its place."""
    shard_size: int = 0
    """Iterations in a shard; 0 where one worker has them all. Then `next` is the first that no shard has."""

    @property
    def following(self) -> int:
        """The iteration that begins next."""
        return self.redriven[0] if self.redriven else self.next


class Shard(Struct):
    """The iterations of a distributed loop from `start` to before `end`: one owner runs them in order.

    `next` is the first that has not begun, `open` what has and goes on: one at most.
    """

    start: int
    end: int
    next: int
    open: list[int] = []
    phase: Phase = "ready"
    fence: int = 0
    session: str = ""
    worker: str = ""
    """Who had it last."""
    losses: int = 0
    reported: int = 0


class RunState(Struct):
    """A step run. `frames` are the open passes; `busy` those of them that have something to do."""

    id: str
    step: StepPlan
    inputs: ExecutionInputs = field(name="given")  # its name in snapshots
    args: dict[str, Any]
    ctx: Variables
    variables: Variables = field(default_factory=Variables, name="scope")  # its name in snapshots
    steps: dict[str, Any] = {}
    joined: list[dict[str, Any]] | None = None
    inherited: Any = None
    deadline: int | None = None
    began_at: int = 0
    since: int = 0
    """When it was taken up; 0 while nobody works on it. What it waits for itself is part of its work."""
    worked: int = 0
    """Microseconds before that."""
    final: bool = False
    token: str = ""
    """The first of its tokens."""
    phase: Phase = "ready"
    fence: int = 0
    session: str = ""
    """Of the last claim: whose heartbeats keep the lease, where a server has given it to a worker."""
    losses: int = 0
    """Owners in a row that were lost without having reported anything."""
    reported: int = 0
    paused: bool = False
    frames: dict[int, Frame] = {}
    busy: OrderedSet[str] = field(default_factory=OrderedSet)
    """Indices as text: keys of a snapshot are text."""
    suspended: int = 0
    loop: LoopState | None = None
    shards: dict[int, Shard] = {}
    """Of a distributed loop, by their first iteration. The run is `claimed` while one of them is."""
    ready_shards: OrderedSet[str] = field(default_factory=OrderedSet)
    """First iterations, as text."""
    leased_shards: dict[int, int] = {}
    """By fence, the first iteration of the shard that is owned under it."""
    event: Literal["", "step.done", "step.failed", "loop.done"] = ""
    result: Any = None
    error: ErrorInfo | None = None
    failed_task: str = ""
    failed_attempt: int = 0
    ended_by: EventSource = "worker"
    ended_seq: int = 0
    ended_at: int = 0
    unhandled: bool = False
    skipped: bool = False
    """Somebody ended it without a result."""
    after_failure: bool = False
    """All its tokens came of an unhandled failure: a retry of that one takes its place."""
    superseded: bool = False
    """That failure is retried while it runs: it ends, and routes nothing."""
    owed: int = 0
    """Tokens that its arcs still send."""

    def task(self, frame: Frame) -> Task:
        """The task the frame stands at."""
        return self.step.step.tasks[frame.at]

    @property
    def done_event(self) -> Literal["step.done", "loop.done"]:
        """What says that it ended well."""
        return "step.done" if self.step.step.loop is None else "loop.done"

    @property
    def untouched(self) -> bool:
        """Whether nothing has begun in it, though somebody may have owned it."""
        return self.loop is None and not any(
            frame.attempt or frame.transitions or frame.status != "open" for frame in self.frames.values()
        )

    @property
    def sharded(self) -> bool:
        """Whether shards are claimed, and not the run itself."""
        return self.loop is not None and self.loop.shard_size > 0

    @property
    def claimable(self) -> bool:
        """Whether a worker may claim it, or a shard of it."""
        return self.phase == "ready" or len(self.ready_shards) > 0

    def owned_under(self, fence: int) -> "RunState | Shard | None":
        """What the claim with this number gave to its worker, while that owns it."""
        if fence in self.leased_shards:
            return self.shards[self.leased_shards[fence]]
        return self if self.phase == "claimed" and self.fence == fence else None

    def owned_parts(self) -> "list[RunState | Shard]":
        """What of it is owned: itself, or shards."""
        if self.leased_shards:
            return [self.shards[start] for start in self.leased_shards.values()]
        return [self] if self.phase == "claimed" else []

    @property
    def stalled(self) -> bool:
        """Whether nothing can be done before something is resumed. Of shards, each is asked by itself."""
        if self.sharded:
            return False
        if self.paused:
            return True
        return self.suspended > 0 and self.suspended == len(self.frames) and not self.startable

    @property
    def startable(self) -> int:
        """How many iterations may begin: none after a failure, and none too far ahead."""
        loop = self.loop
        if loop is None or loop.broken >= 0 or loop.shard_size:
            return 0
        following, left = loop.next, loop.total - loop.next
        if loop.redriven:  # they come first and one by one, because each stands where it was
            following, left = loop.redriven[0], 1
        in_document = self.step.step.loop
        window = in_document.window if in_document is not None else 1
        return max(min(left, loop.max_in_flight - len(self.frames), loop.low + window - following), 0)


def reducer_of(run: RunState, patch: Patch) -> str:
    """The reducer that combines what iterations write here; empty if there is none."""
    loop = run.step.step.loop
    return loop.reduce.get(f"{patch.scope}.{patch.path[0]}", "") if loop is not None else ""


ClaimedPart: TypeAlias = tuple[RunState, Shard | None]
"""What a worker owns under one fence: a run, or a shard of it."""


def claimable_part(run: RunState) -> ClaimedPart:
    """What is claimed next of a run that can be: itself, or the shard that has waited longest."""
    return run, run.shards[int(run.ready_shards.first)] if run.ready_shards else None
