"""What can be asked of an execution: a closed union."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from noetl.events.bodies import EventBody, ParentTask, Patch
from noetl.kernel.state.run_state import ClaimedPart
from noetl.model.outcome import ErrorInfo


class Request(Struct, frozen=True, kw_only=True):
    """Begin. With `error` the request is recorded and refused: no such playbook, or an invalid one."""

    version: str = ""
    workload: dict[str, Any] = {}
    ctx: dict[str, Any] = {}
    labels: dict[str, str] = {}
    parent: ParentTask | None = None
    idempotency_key: str = ""
    requested_by: str = ""
    trace_id: str = ""
    file: str = ""
    timeout: float | None = None
    """Seconds the execution may take; None leaves it to the playbook."""
    priority: int = 0
    error: ErrorInfo | None = None


class Claim(Struct, frozen=True):
    """A worker takes a run that is ready. The number of the event that says so is the fence.

    Of a distributed loop it takes the shard that begins with iteration `shard`.
    """

    run: str
    worker: str = ""
    session: str = ""
    shard: int = -1


def claim_of(part: ClaimedPart, worker: str, session: str = "") -> Claim:
    """The claim of a run, or of a shard of it."""
    run, shard = part
    return Claim(run.id, worker, session, -1 if shard is None else shard.start)


class Report(Struct, frozen=True):
    """What happened in a run, by its owner: all or nothing. Of a shard, by the owner of that.

    `report_no` is the number of its first event among all that were reported under this fence, from 0.
    What was recorded already gives no events. `data` are the bodies as a worker elsewhere has encoded them,
    large values stored: these bytes are kept, and what cannot follow is refused.
    """

    run: str
    fence: int
    report_no: int
    bodies: tuple[EventBody, ...]
    data: tuple[bytes, ...] = ()


class LeaseLost(Struct, frozen=True):
    """The owner of a run or shard is gone, gives it back, or never had it.

    The third owner in a row that is gone without having reported anything ends the run, and so does an
    `error` that kept the owner from reporting.
    """

    run: str
    fence: int
    reason: Literal["expired", "released", "voided"] = "expired"
    error: ErrorInfo | None = None


class Cancel(Struct, frozen=True):
    """With `error` the execution has failed then, and can be retried."""

    by: str = ""
    reason: str = ""
    error: ErrorInfo | None = None


class Pause(Struct, frozen=True):
    by: str = ""


class Resume(Struct, frozen=True):
    by: str = ""


class Signal(Struct, frozen=True):
    """To the task run `wait`, if one is named; `by_admin`: who sends it may answer for everybody."""

    signal: str
    payload: Any = True
    by: str = ""
    wait: str = ""
    by_admin: bool = False


class Retry(Struct, frozen=True):
    """Go on with a failed execution, at the steps that failed.

    `children` are those that failed tasks go on with; the others start new ones. `hash` and `file` are of a
    repaired document, which the state was folded with.
    """

    by: str = ""
    children: tuple[str, ...] = ()
    hash: str = ""
    file: str = ""


class Redrive(Struct, frozen=True):
    """Run the failed iterations of loops that have ended again; with `step`, of those at that step.

    The rest is as of `Retry`.
    """

    step: str = ""
    by: str = ""
    children: tuple[str, ...] = ()
    hash: str = ""
    file: str = ""


class CompleteStep(Struct, frozen=True):
    """End what is stuck at a step, or failed there, as done with this result."""

    step: str
    result: Any = None
    by: str = ""


class SkipStep(Struct, frozen=True):
    """End what is stuck at a step, or failed there, as done without a result."""

    step: str
    by: str = ""


class PatchCtx(Struct, frozen=True):
    patches: tuple[Patch, ...]
    by: str = ""


class TimerFired(Struct, frozen=True):
    """A time has come: of a run or one iteration (`r…`), of a waiting token (`t…`), or, empty, of all.

    Too early, or for something that no longer waits, it gives no events.
    """

    target: str = ""
    iteration: int = 0


class ChildEnded(Struct, frozen=True):
    """An execution that a task of this one waits for is over. A second time it gives no events."""

    run: str
    iteration: int
    child: str
    status: Literal["completed", "failed", "cancelled"]
    result: Any = None
    error: ErrorInfo | None = None


class Fork(Struct, frozen=True):
    """The history so far came from another execution."""

    source: str
    at: int
    patches: tuple[Patch, ...] = ()
    by: str = ""
    hash: str = ""
    file: str = ""
    workload: dict[str, Any] = {}
    """Laid over the workload so far."""
    shift: int = 0
    """Microseconds since the last event of the history so far."""


Command: TypeAlias = (
    Request
    | Claim
    | Report
    | LeaseLost
    | Cancel
    | Pause
    | Resume
    | Signal
    | Retry
    | Redrive
    | CompleteStep
    | SkipStep
    | PatchCtx
    | TimerFired
    | ChildEnded
    | Fork
)
