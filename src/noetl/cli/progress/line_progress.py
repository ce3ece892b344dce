"""Progress as lines of text, for pipes and logs."""

from collections.abc import Callable, Sequence
from datetime import datetime

from noetl.cli import console
from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.timestamps import SECOND
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState


class LineProgress:
    """A line for what is worth one, with the local time: `12:00:01 step fetch done in 0.12 s`."""

    interval: float | None = None

    def __init__(self, model: ProgressModel, write: Callable[[str], None] = console.say) -> None:
        self._model = model
        self._write = write

    @property
    def last_ts(self) -> int:
        return self._model.last_ts

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        self._model.observe(execution_id, events, state)
        if self._model.lines:
            lines = [
                f"{_time(line.ts)} {console.visible(line.sentence())}" for line in self._model.take_lines()
            ]
            if lines:
                self._write("\n".join(lines))

    def draw(self) -> None: ...

    def say(self, message: str) -> None:
        self._write(message)

    def close(self) -> None: ...


def _time(ts: int) -> str:
    return f"{datetime.fromtimestamp(ts // SECOND):%H:%M:%S}"
