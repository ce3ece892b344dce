"""Why an execution stands where it does, in plain values: what people are told."""

from typing import Any, Literal, TypeAlias, dataclass_transform

from msgspec import Struct

from noetl.kernel.expression_reads import PathRead


@dataclass_transform(frozen_default=True)
class ExplanationPart(Struct, frozen=True, omit_defaults=True):
    """Common to all parts. Lines are those of the playbook's file; values are cut to a readable length."""


class TokenArrival(ExplanationPart):
    """A token, and what brought it: an arc of a run, or the beginning (`step` is then None)."""

    token: str
    seq: int
    step: str | None = None
    run: str = ""
    arc: int | None = None
    line: int | None = None
    args: dict[str, Any] = {}


class Condition(ExplanationPart):
    """A condition and what it read. `holds` is None if it was not asked, or raised `error`."""

    text: str
    line: int
    holds: bool | None = None
    reads: tuple[PathRead, ...] = ()
    error: str = ""


AdmissionVerdict: TypeAlias = Literal["admitted", "parked", "waiting", "denied", "failed"]


class AdmissionCheck(ExplanationPart):
    """How admission was decided the last time it was asked."""

    token: str
    seq: int
    verdict: AdmissionVerdict
    asked: int = 1
    """How often."""
    rules: tuple[Condition, ...] = ()


class MatchedRule(ExplanationPart):
    """A rule of a task's policy that decided; without `line` none did. `else` has the text `else`."""

    do: str
    times: int
    text: str = ""
    line: int | None = None


class RetriedAttempt(ExplanationPart):
    """An attempt that was repeated, and why."""

    seq: int
    attempt: int
    iteration: int = 0
    line: int | None = None
    error: dict[str, Any] | None = None
    result: Any = None
    """What came if it was no error."""
    next_at: int | None = None


class TaskExplanation(ExplanationPart):
    """A task in all its iterations. `retries` are the first hundred of `retried`."""

    task: str
    kind: str
    line: int
    attempts: int = 0
    failed: int = 0
    """Outcomes that were errors."""
    redelivered: int = 0
    """Attempts that were lost with their worker and begun again."""
    open: int = 0
    """Attempts that began and have not ended."""
    retried: int = 0
    rules: tuple[MatchedRule, ...] = ()
    retries: tuple[RetriedAttempt, ...] = ()


class ShardExplanation(ExplanationPart):
    """Iterations `first` to `last`, of which `begun` have begun; `worker` has them, or had them last."""

    first: int
    last: int
    begun: int
    phase: str
    worker: str = ""


class LoopExplanation(ExplanationPart):
    total: int
    max_in_flight: int
    succeeded: int = 0
    failed: int = 0
    open: int = 0
    shards: tuple[ShardExplanation, ...] = ()
    """Of a distributed loop: who has which iterations now."""


class ArcExplanation(ExplanationPart):
    step: str
    condition: Condition
    selected: bool = False


class RoutingExplanation(ExplanationPart):
    """Where the end of a run led. `handled` is false where nobody looked at its failure."""

    seq: int
    event: str
    arcs: tuple[ArcExplanation, ...] = ()
    handled: bool = True
    error: dict[str, Any] | None = None


class RunWait(ExplanationPart):
    """What a run, or one of its iterations, waits for. `pause`: that the execution is resumed."""

    reason: Literal["retry", "wait", "signal", "child", "pause"]
    iteration: int = 0
    until: int | None = None
    signal: str = ""
    child: str = ""


class RunExplanation(ExplanationPart):
    """A run of a step from the tokens that brought it to the arcs that it fired."""

    run: str
    step: str
    line: int
    seq: int
    began_at: int
    phase: str
    arrivals: tuple[TokenArrival, ...] = ()
    gates: tuple[AdmissionCheck, ...] = ()
    args: dict[str, Any] = {}
    final: bool = False
    claims: int = 0
    lost: int = 0
    """How often its worker was lost."""
    worked: int = 0
    """Microseconds that it was worked on."""
    tasks: tuple[TaskExplanation, ...] = ()
    loop: LoopExplanation | None = None
    waits: tuple[RunWait, ...] = ()
    event: str = ""
    """The event that ended it, empty while it is open."""
    ended_seq: int = 0
    ended_at: int = 0
    result: Any = None
    error: dict[str, Any] | None = None
    routing: RoutingExplanation | None = None


class ParkedToken(ExplanationPart):
    """A token that is kept before its step, and its rules with the values as they are now."""

    arrival: TokenArrival
    step: str
    line: int
    mode: Literal["parked", "waiting"]
    seq: int
    """When it was asked last."""
    until: int | None = None
    rules: tuple[Condition, ...] = ()
    signals: tuple[str, ...] = ()
    """Those that the rules read."""


class ReachingStep(ExplanationPart):
    """A step from which something can still come."""

    step: str
    tokens: int = 0
    runs: int = 0
    failed: int = 0
    """Runs that failed and that nobody handled: a retry opens them again."""


class WaitingJoin(ExplanationPart):
    """A join that holds tokens. `needed` is None where it waits until nothing else can come."""

    step: str
    line: int
    mode: Literal["all", "any", "count"]
    arrived: int
    needed: int | None = None
    absorbing: bool = False
    arrivals: tuple[TokenArrival, ...] = ()
    waits_for: tuple[ReachingStep, ...] = ()


class DiscardedToken(ExplanationPart):
    """A token that ended without a run, why, and how its rules stood."""

    arrival: TokenArrival
    step: str
    line: int
    seq: int
    reason: str
    rules: tuple[Condition, ...] = ()


class FirstFailure(ExplanationPart):
    """The first failure that nobody looked at."""

    run: str
    step: str
    line: int
    column: int
    error: dict[str, Any]
    task: str = ""
    iteration: int | None = None
    attempt: int = 0
    input: Any = None
    """As it was recorded: without secrets."""


class Cancellation(ExplanationPart):
    """That it was cancelled, and what was said about it."""

    seq: int
    by: str = ""
    reason: str = ""


class Explanation(ExplanationPart):
    """What `explain` tells: the runs in the order in which they began, and what is open now."""

    execution_id: str
    status: str
    version: int
    """The number of the last event."""
    error: dict[str, Any] | None = None
    """Why it has failed, if it has."""
    runs: tuple[RunExplanation, ...] = ()
    parked: tuple[ParkedToken, ...] = ()
    joins: tuple[WaitingJoin, ...] = ()
    discarded: tuple[DiscardedToken, ...] = ()
    failure: FirstFailure | None = None
    cancelled: Cancellation | None = None


ArcVerdict: TypeAlias = Literal["taken", "not_taken", "not_asked", "failed", "not_reached"]
"""`not_asked`: an earlier one was taken. `failed`: its guard raised. `not_reached`: no run ended there."""


class IncomingArc(ExplanationPart):
    """An arc on the way to a step, and what became of it: of several runs, in the last that took it.

    `through` are the steps behind it that nothing came to, up to the one that is explained.
    """

    source: str
    arc: int
    target: str
    line: int
    text: str
    verdict: ArcVerdict
    asked: int = 0
    taken: int = 0
    run: str = ""
    seq: int = 0
    condition: Condition | None = None
    """With the values that it read; None if it was never looked at."""
    through: tuple[str, ...] = ()


class ChainLink(ExplanationPart):
    """A run on the way to another one. `condition` is of the arc that it took; the last link has none."""

    step: str
    run: str
    seq: int
    arc: int | None = None
    line: int | None = None
    condition: Condition | None = None


class StepExplanation(ExplanationPart):
    """Why a step ran, runs, waits, or was not reached."""

    execution_id: str
    status: str
    version: int
    step: str
    line: int
    verdict: Literal["ran", "failed", "running", "waiting", "denied", "not_reached"]
    reason: str
    """In one sentence."""
    chain: tuple[ChainLink, ...] = ()
    """From the beginning to its last run, or to the token that came last; empty if nothing came to it."""
    arcs: tuple[IncomingArc, ...] = ()
    """All that lead to it."""
    stopped_at: tuple[IncomingArc, ...] = ()
    """Where the way to a step ended that nothing came to: arcs of steps that were reached."""
    run_count: int = 0
    runs: tuple[RunExplanation, ...] = ()
    """The last forty."""
    parked: tuple[ParkedToken, ...] = ()
    joins: tuple[WaitingJoin, ...] = ()
    discarded: tuple[DiscardedToken, ...] = ()
