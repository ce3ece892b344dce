"""A run as it is shown while it lasts, and what is worth a line about it."""

from typing import Literal, TypeAlias, assert_never

from msgspec import Struct

from noetl.events import bodies as of
from noetl.kernel.state.execution_state import ExecutionState

LineKind: TypeAlias = Literal["started", "done", "failed", "retry", "loop", "wait", "detail"]
"""`detail` only where every task and decision was asked for."""


class ProgressLine(Struct):
    """Something that happened at `ts` in a step, or, if that is empty, to the execution.

    `child` names the execution if it is not the one that was asked for. `void`: no longer worth it.
    """

    kind: LineKind
    ts: int
    step: str
    text: str
    child: str = ""
    void: bool = False

    def sentence(self) -> str:
        """For a plain line: `step fetch done in 0.1 s`."""
        subject = f"step {self.step}" if self.step else "execution"
        match self.kind:
            case "started":
                text = subject
            case "done":
                text = f"{subject} done in {self.text}"
            case "failed":
                text = f"{subject} failed: {self.text}"
            case "retry" | "loop" | "wait" | "detail":
                text = f"{subject}: {self.text}"
            case _:
                assert_never(self.kind)
        return f"[{self.child}] {text}" if self.child else text


class StepProgress:
    """A step run that has not ended. `total` is -1 where there is no loop."""

    __slots__ = (
        "attempt",
        "child",
        "done",
        "failed",
        "group",
        "milestone",
        "retries",
        "retry_at",
        "since",
        "start_line",
        "step",
        "task",
        "total",
        "until",
        "waits_for",
        "worked",
    )

    def __init__(self, step: str, child: str, worked: int = 0) -> None:
        self.step = step
        self.since: int | None = None
        """When somebody took it up; None while nobody works on it."""
        self.worked = worked
        """Microseconds before that."""
        self.child = child
        self.task = ""
        self.attempt = 1
        self.retry_at: int | None = None
        self.retries = 0
        self.total = -1
        self.done = 0
        self.failed = 0
        self.milestone = 0
        """How many iterations must be done before the next line about it."""
        self.waits_for = ""
        self.until: int | None = None
        self.start_line: ProgressLine | None = None
        self.group: dict[int, StepProgress] | None = None
        """Those that are in the same condition: queued, working or waiting."""

    def time(self, now: int) -> int:
        """Microseconds that it was worked on."""
        return self.worked + (max(now - self.since, 0) if self.since is not None else 0)

    def stop(self, ts: int) -> None:
        """Nobody works on it any more."""
        self.worked, self.since = self.time(ts), None

    def move(self, to: "dict[int, StepProgress] | None") -> None:
        """Into another condition; None: it has ended."""
        if self.group is not None:
            del self.group[id(self)]
        if to is not None:
            to[id(self)] = self
        self.group = to


class ExecutionProgress:
    """The runs of one execution; `child` is its name, empty for the one that was asked for."""

    __slots__ = ("child", "ended", "runs", "state")

    def __init__(self, child: str, state: ExecutionState) -> None:
        self.child = child
        self.state = state
        self.runs: dict[str, StepProgress] = {}
        self.ended: dict[str, str] = {}
        """The steps of runs that are not routed yet."""


def iteration_suffix(step_run: StepProgress, index: int) -> str:
    """Which iteration it is, where there is a loop."""
    return f", iteration {index}" if step_run.total >= 0 else ""


def next_milestone(step_run: StepProgress) -> int:
    """The next tenth of a loop, above what is done."""
    # Rounded up: rounded down, a line about 15 iterations would come at 6 %, not at the first tenth.
    tenths = step_run.done * 10 // max(step_run.total, 1) + 1
    return -(-step_run.total * tenths // 10)


def loop_text(step_run: StepProgress) -> str:
    """How far a loop is."""
    text = f"{step_run.done:,} of {step_run.total:,} ({step_run.done * 100 // step_run.total} %)"
    if step_run.failed:
        text += f", {step_run.failed:,} failed"
    return text + (f", {step_run.retries:,} retried" if step_run.retries else "")


def wait_text(body: of.RunSuspended) -> str:
    """What a suspended run does."""
    match body.reason:
        case "retry":
            return "waits to try again"
        case "signal":
            return f"waits for the signal {body.signal}"
        case "child":
            return "waits for its child"
        case "pause":
            return "is paused"
        case "wait":
            return "waits"
