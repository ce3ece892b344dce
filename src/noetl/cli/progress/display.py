"""What is shown while executions run: lines in a pipe, a display on a terminal, nothing if so asked."""

import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from noetl.cli.console import say, visible
from noetl.cli.format import SECOND
from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.report.follow_up import FollowUp
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState


class Progress(Protocol):
    """`observe` gets events when they are durable. `draw` is called every `interval` seconds, if any."""

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


class LineProgress:
    """A line for what is worth one, with the local time: `12:00:01 step fetch done in 0.12 s`."""

    interval: float | None = None

    def __init__(self, model: ProgressModel, write: Callable[[str], None] = say) -> None:
        self._model = model
        self._write = write

    @property
    def last_ts(self) -> int:
        return self._model.last_ts

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        self._model.observe(execution_id, events, state)
        if self._model.lines:
            lines = [
                f"{_clock_time(line.ts)} {visible(line.sentence())}" for line in self._model.take_lines()
            ]
            if lines:
                self._write("\n".join(lines))

    def draw(self) -> None: ...

    def say(self, message: str) -> None:
        self._write(message)

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
    return LineProgress(model)


def _clock_time(ts: int) -> str:
    return f"{datetime.fromtimestamp(ts // SECOND):%H:%M:%S}"
