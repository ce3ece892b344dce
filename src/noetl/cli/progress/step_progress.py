"""A run as it is shown while it lasts."""

from noetl.cli.progress.line import News
from noetl.events import bodies as of
from noetl.kernel.state.execution_state import ExecutionState


class Running:
    """A step run that has not ended. `total` is -1 where there is no loop."""

    __slots__ = (
        "among",
        "attempt",
        "began",
        "child",
        "done",
        "failed",
        "mark",
        "retries",
        "retry_at",
        "started",
        "step",
        "task",
        "total",
        "until",
        "waits",
    )

    def __init__(self, step: str, began: int, child: str) -> None:
        self.step = step
        self.began = began
        self.child = child
        self.task = ""
        self.attempt = 1
        self.retry_at: int | None = None
        self.retries = 0
        self.total = -1
        self.done = 0
        self.failed = 0
        self.mark = 0
        """How many iterations must be done before the next line about it."""
        self.waits = ""
        self.until: int | None = None
        self.started: News | None = None
        self.among: dict[int, Running] | None = None
        """Those that are in the same condition: queued, working or waiting."""

    def move(self, to: "dict[int, Running] | None") -> None:
        """Into another condition; None: it has ended."""
        if self.among is not None:
            del self.among[id(self)]
        if to is not None:
            to[id(self)] = self
        self.among = to


class Execution:
    """The runs of one execution; `child` is its name, empty for the one that was asked for."""

    __slots__ = ("child", "ended", "runs", "state")

    def __init__(self, child: str, state: ExecutionState) -> None:
        self.child = child
        self.state = state
        self.runs: dict[str, Running] = {}
        self.ended: dict[str, str] = {}
        """The steps of runs that are not routed yet."""


def of_iteration(running: Running, index: int) -> str:
    """Which iteration it is, where there is a loop."""
    return f", iteration {index}" if running.total >= 0 else ""


def next_mark(running: Running) -> int:
    """The next tenth of a loop, above what is done."""
    tenths = running.done * 10 // max(running.total, 1) + 1
    return -(-running.total * tenths // 10)


def loop_text(running: Running) -> str:
    """How far a loop is."""
    text = f"{running.done:,} of {running.total:,} ({running.done * 100 // running.total} %)"
    if running.failed:
        text += f", {running.failed:,} failed"
    return text + (f", {running.retries:,} retried" if running.retries else "")


def waiting_for(body: of.RunSuspended) -> str:
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
