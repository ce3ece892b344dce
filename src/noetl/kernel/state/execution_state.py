"""The state of an execution: what its events so far amount to, what is to be stored, what is held back."""

import hashlib
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec import Struct, field

from noetl.kernel.plan import Plan, StepPlan
from noetl.kernel.result_rules import ResultRules
from noetl.kernel.state.agenda import Agenda, OrderedSet
from noetl.kernel.state.run_state import ExecutionInputs, RunState
from noetl.kernel.state.variables import Variables, Watchers
from noetl.model.outcome import ErrorInfo

Status: TypeAlias = Literal["new", "refused", "running", "paused", "completed", "failed", "cancelled"]
STATE_FORMAT = 5
"""Changes whenever a snapshot of another number could be misread."""
HOLDING_BACK = 2
"""The first version of the rules by which what failed holds back what a retry of it could still change."""
ENDING_WITHOUT_ARCS = 5
"""The first version by which a step without arcs ends its branch, whatever `no_next_is_error` says."""
StepStatus: TypeAlias = Literal[
    "completed", "failed", "running", "waiting", "not_admitted", "cancelled", "skipped"
]


class Blob(NamedTuple):
    """Bytes to store under a key that ends with their SHA-256, packed as `compression` says."""

    key: str
    data: bytes
    compression: str = "none"


def blob_of(execution_id: str, data: bytes, rules: ResultRules) -> Blob:
    key = f"{execution_id}/{hashlib.sha256(data).hexdigest()}"
    return Blob(f"{rules.store}:{key}" if rules.store else key, data, rules.compression)


class ChildStart(Struct, frozen=True):
    """An execution that a task starts, by the id that it will have; `inputs` are the task's."""

    execution_id: str
    task_run_id: str
    inputs: dict[str, Any]


class LoopBytes(Struct):
    """Bytes of results that a loop holds: of those without a gap, and by index of those behind one."""

    before_gap: int = 0
    behind_gap: dict[int, int] = {}


class PendingEffects:
    """What goes with a state and is no part of it: blobs to store, children to start, sizes that save work.

    `blobs` are for the owner of the state to take away and store before the events are committed, `detached`
    for it to start: a run may be over by the end of the append in which it started one.
    `loop_bytes` is how much each loop holds; where a loop is missing, it is counted anew.
    """

    __slots__ = ("blobs", "detached", "loop_bytes")

    def __init__(self) -> None:
        self.blobs: list[Blob] = []
        self.detached: list[ChildStart] = []
        self.loop_bytes: dict[str, LoopBytes] = {}

    # States are equal whatever waits to be stored or started: a replay has nothing of either.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, PendingEffects)

    __hash__ = None  # type: ignore[assignment]  # it changes


class Token(Struct):
    """Permission to run a step. `source` is the number of the step whose arc brought it.

    `after_failure`: it is there because a run failed and nobody handled that, so a retry takes it away.
    """

    id: str
    step: int
    args: dict[str, Any]
    stage: Literal["enqueued", "parked", "waiting", "joined"] = field(default="enqueued", name="place")
    deadline: int | None = None
    source: int = -1
    inherited: Any = None
    after_failure: bool = False


class JoinState(Struct):
    """The tokens waiting at a join. `absorbing`: it has run, and late tokens end here.

    `after_failure`: what it has run for came of an unhandled failure.
    """

    arrivals: list[str] = []
    absorbing: bool = False
    after_failure: bool = False


class StepSummary(Struct):
    """What became of a step: what happened to it last, and how many of its runs ended otherwise than well.

    A run that is opened again counts no longer. One that ended well counts as failed if its arcs could not
    be followed.
    """

    status: StepStatus
    runs: int = 0
    failed: int = 0
    cancelled: int = 0
    failed_after: int = 0
    """Those of them that came of an unhandled failure: a retry takes their place."""
    cancelled_after: int = 0
    skipped: int = 0
    worked: int = 0
    """Microseconds that its runs were worked on; of those under way, up to where they last stopped."""

    @property
    def worst(self) -> StepStatus:
        """How the worst of its runs ended, whatever is under way."""
        if self.failed:
            return "failed"
        if self.cancelled:
            return "cancelled"
        if self.skipped:
            return "skipped"
        return "completed" if self.runs else self.status


class Occupancy(Struct):
    """How many tokens and runs are at one step: on their way in, at its join, running or unrouted."""

    pending: int = 0
    joined: int = 0
    runs: int = 0


class UnhandledFailure(Struct, frozen=True):
    """An unhandled failure: the run can be opened again by `retry`."""

    run: str
    error: ErrorInfo


class QueuedSignal(Struct, frozen=True):
    """A signal that came, until a task gets it. See `SignalReceived`."""

    payload: Any
    by: str = ""
    wait: str = ""
    by_admin: bool = False


class ForkPoint(Struct, frozen=True):
    """What an execution is a copy of: the other one, its last event that was copied, and when that was."""

    source: str
    seq: int
    ts: int


class ExecutionState(Struct):
    """Changed by `evolve` alone.

    `occupied` has the bit of each step that holds a token or a run, so what can still reach a join is one
    operation on numbers. `failed_runs` are those that a retry opens again, and `failing` has the bits of
    their steps: until then they count for joins as if they still ran. Earlier rules leave it 0.
    """

    plan: Plan
    inputs: ExecutionInputs = field(name="given")  # its name in snapshots
    version: int = 0
    decider: int = 1
    """The version of the rules that it began with: they decide to its end."""
    status: Status = "new"
    paused: bool = False
    priority: int = 0
    started_at: int = 0
    ended_at: int = 0
    last_ts: int = 0
    """The time of the last event."""
    deadline: int | None = None
    timed_from: int = 0
    forked_at: int = 0
    """The number of the last event that made it a fork."""
    fork: ForkPoint | None = None
    ctx: Variables = field(default_factory=Variables)
    agenda: Agenda = field(default_factory=Agenda)
    tokens: dict[str, Token] = {}
    parked: OrderedSet[str] = field(default_factory=OrderedSet)
    waiting: int = 0
    watchers: Watchers = {}
    joins: dict[int, JoinState] = {}
    occupancy: dict[int, Occupancy] = {}
    occupied: int = 0
    runs: dict[str, RunState] = {}
    ready: OrderedSet[str] = field(default_factory=OrderedSet)
    open_runs: int = 0
    scheduled: int = 0
    summaries: dict[str, StepSummary] = {}
    outcomes: dict[str, dict[str, Any]] = {}
    discarded: list[dict[str, str]] = []
    failures: list[UnhandledFailure] = []
    failures_in_row: dict[str, int] = {}
    """By step, how many of its last runs failed unhandled. Earlier rules do not count them."""
    failed_runs: dict[str, RunState] = {}
    redrivable: dict[str, RunState] = {}
    """Loops that have ended though iterations failed in them, the last of them: `redrive` opens these."""
    failing: int = 0
    ran_after_failure: OrderedSet[str] = field(default_factory=OrderedSet)
    """Steps with a run that came of an unhandled failure."""
    signals: dict[str, list[QueuedSignal]] = {}
    listeners: dict[str, list[str]] = {}
    stopping: Literal["", "cancelled", "failed"] = ""
    stop_error: ErrorInfo | None = None
    ending: int = -1
    ending_result: Any = None
    ending_after_failure: int = -1
    result_after_failure: Any = None
    """Likewise, of branches that an unhandled failure began: a retry forgets them."""
    final: Literal["", "running", "done"] = ""
    finished: Literal["", "completed", "failed", "cancelled"] = ""
    result: Any = None
    error: ErrorInfo | None = None
    pending_effects: PendingEffects = field(default_factory=PendingEffects, name="ledger")

    @property
    def blobs(self) -> list[Blob]:
        """What must be stored before the events are committed that name it; whoever does so empties it."""
        return self.pending_effects.blobs

    @property
    def execution_id(self) -> str:
        return self.inputs.execution_id

    @property
    def branch_result(self) -> Any:
        """The result of the run that ended a branch; of several, that of the last in the document."""
        if self.ending_after_failure >= self.ending:
            return self.result_after_failure
        return self.ending_result

    @property
    def holds_back(self) -> bool:
        """Whether unhandled failures hold back what a retry of them could still change.

        With the same version came that failures in a row are counted, and that a step's `set` reads the
        result of its own step and hides no earlier error.
        """
        return self.decider >= HOLDING_BACK

    def routes(self, step: StepPlan) -> bool:
        """Whether the arcs of a step are looked at when a run of it ends; if not, its branch ends with it."""
        if step.arcs:
            return True
        return self.decider < ENDING_WITHOUT_ARCS and self.plan.playbook.executor.no_next_is_error

    @property
    def cut_short(self) -> bool:
        """Whether a timeout or a limit ends it: everything stays where it is, for a retry."""
        return self.stopping == "failed" and self.holds_back

    @property
    def retriable(self) -> bool:
        """Whether it has failed and a retry has something to go on with."""
        settled = self.stopping != "" and not self.cut_short
        return self.status == "failed" and not settled and bool(self.failed_runs or self.tokens)

    @property
    def over(self) -> bool:
        return self.status in ("completed", "failed", "cancelled")

    @property
    def began_at(self) -> int:
        """When it began itself: what a fork copied happened to another one."""
        return self.fork.ts if self.fork is not None else self.started_at

    def step_of(self, token: Token) -> StepPlan:
        return self.plan.by_number[token.step]

    def claimed_runs(self) -> Iterator[RunState]:
        """The runs that a worker owns now."""
        return (run for run in self.runs.values() if run.phase == "claimed")

    def step_statuses(self) -> dict[str, StepStatus]:
        """How each step stands: what is under way counts first, then the worst of its runs."""
        statuses = {name: summary.worst for name, summary in self.summaries.items()}
        for token in self.tokens.values():
            if token.stage != "enqueued" and (name := self.step_of(token).name) in statuses:
                statuses[name] = "waiting"
        busy = [run for run in self.runs.values() if run.phase != "ended"]
        for run in sorted(busy, key=lambda run: run.phase != "suspended"):  # running wins over waiting
            statuses[run.step.name] = "waiting" if run.phase == "suspended" else "running"
        return statuses

    def step_times(self, now: int = 0) -> dict[str, int]:
        """Microseconds that each step was worked on, until `now` where it still is."""
        times = {name: summary.worked for name, summary in self.summaries.items()}
        for run in self.runs.values():
            if run.since:
                times[run.step.name] += max((now or self.last_ts) - run.since, 0)
        return times

    def can_reach(self, number: int) -> bool:
        """Whether a token or run elsewhere may still bring a token to this step's join, also by a retry."""
        # Its own step is looked at apart: tokens that stand at the join do not come to it any more, and a
        # run of it brings a token only where the step is on a cycle.
        plan = self.plan.by_number[number]
        at = self.occupancy.get(number)
        if (self.occupied | self.failing) & plan.above & ~plan.bit or self.failing & plan.above & plan.bit:
            return True
        return at is not None and (at.pending > 0 or bool(plan.above & plan.bit and at.runs > 0))


def new_state(plan: Plan, execution_id: str) -> ExecutionState:
    """An execution to which nothing has happened yet."""
    return ExecutionState(plan, ExecutionInputs(execution_id, {}))


def is_held_back(state: ExecutionState, number: int) -> bool:
    """Whether a retry could still bring a token to this step, where nothing else moves any more.

    A parked token counts wherever it is: what a retried run writes may admit it.
    """
    if not state.failing:
        return False
    target = state.plan.by_number[number]
    parked = 0
    for step, occupancy in state.occupancy.items():
        parked |= (occupancy.pending > 0) << step
    return bool(state.failing & target.above or parked & (target.above | target.bit))


def waiting_steps(state: ExecutionState) -> list[dict[str, str]]:
    """The steps where tokens wait for a retry, in the order of the document, and why they do."""
    if not (state.failing or state.cut_short):
        return []
    numbers = sorted({token.step for token in state.tokens.values()})
    return [
        {"step": state.plan.by_number[number].name, "reason": _reason(state, number)} for number in numbers
    ]


def _reason(state: ExecutionState, number: int) -> str:
    target = state.plan.by_number[number]
    failed = {run.step.number: run.step for run in state.failed_runs.values() if run.unhandled}
    reaching = [plan for plan in failed.values() if target.above & plan.bit]
    if not reaching and state.stop_error is not None:
        return state.stop_error.message
    names = [f"`{plan.name}`" for plan in sorted(reaching or failed.values(), key=lambda plan: plan.number)]
    if len(names) == 1:
        return f"the branch {names[0]} failed"
    return f"the branches {', '.join(names[:-1])} and {names[-1]} failed"
