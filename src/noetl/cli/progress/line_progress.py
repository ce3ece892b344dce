"""Progress as lines of text, for pipes and logs."""

from collections.abc import Callable, Sequence
from datetime import datetime

from noetl.cli import console
from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.report.format import SECOND
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState


class LineProgress:
    """A line for what is worth one, with the local time: `12:00:01 step fetch done in 0.12 s`."""

    interval: float | None = None

    def __init__(self, board: ProgressModel, write: Callable[[str], None] = console.say) -> None:
        self._board = board
        self._write = write

    @property
    def last_ts(self) -> int:
        return self._board.last_ts

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        self._board.observe(execution_id, events, state)
        if self._board.lines:
            lines = [
                f"{_time(news.ts)} {console.visible(news.sentence())}" for news in self._board.take_lines()
            ]
            if lines:
                self._write("\n".join(lines))

    def draw(self) -> None: ...

    def say(self, message: str) -> None:
        self._write(message)

    def close(self) -> None: ...


def _time(ts: int) -> str:
    return f"{datetime.fromtimestamp(ts // SECOND):%H:%M:%S}"
