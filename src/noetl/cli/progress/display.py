"""What is shown while executions run: lines in a pipe, a display on a terminal, nothing if so asked."""

import sys
from collections.abc import Sequence
from typing import Protocol

from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.report.follow_up import FollowUp
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState


class Progress(Protocol):
    """`see` is told of events when they are durable. `draw` is called every `interval` seconds, if any."""

    interval: float | None

    @property
    def last_ts(self) -> int:
        """The time of the last event that was seen."""
        ...

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None: ...

    def draw(self) -> None: ...

    def say(self, message: str) -> None:
        """A message between the lines."""
        ...

    def close(self) -> None:
        """The last that is shown. A second call does nothing."""
        ...


class SilentProgress:
    """Nothing is shown."""

    interval: float | None = None

    def __init__(self) -> None:
        self.last_ts = 0

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:  # noqa: ARG002 - as the protocol says
        if events:
            self.last_ts = events[-1].ts

    def draw(self) -> None: ...

    def say(self, message: str) -> None: ...

    def close(self) -> None: ...


def progress_for(follow_up: FollowUp, *, quiet: bool, verbose: bool, live: bool, color: bool) -> Progress:
    """The one that fits standard error. `live` allows a display where there is a terminal."""
    if quiet or sys.stderr is None:
        return SilentProgress()
    model = ProgressModel(follow_up, verbose=verbose)
    if live and sys.stderr.isatty():
        from noetl.cli.progress.terminal import TerminalProgress, console_on

        console = console_on(sys.stderr, color=color)
        if not console.is_dumb_terminal:
            return TerminalProgress(model, console, verbose=verbose)
    from noetl.cli.progress.line_progress import LineProgress

    return LineProgress(model)
