"""Progress as a display that is drawn again and again, on a terminal."""

import time
from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live as Region
from rich.text import Text

from noetl.cli import console
from noetl.cli.progress.line import ProgressLine
from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.progress.step_progress import StepProgress
from noetl.cli.report.format import SECOND, duration_text
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState

MOST_RUNS = 12
"""Runs that are shown at the same time; the others are counted."""
MOST_NEWS = 20
"""Lines that one drawing adds above the display."""

_SHOWN = {"done", "failed", "wait"}
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def console_on(file: TextIO, *, color: bool) -> Console:
    """A console that takes texts as they are: no markup, no highlighting."""
    return Console(file=file, no_color=not color, highlight=False, markup=False, emoji=False)


class TerminalProgress:
    """Runs that have ended scroll by, those that go on have a line each below, the last line counts."""

    interval: float | None = 0.1

    def __init__(
        self,
        board: ProgressModel,
        console: Console,
        *,
        verbose: bool = False,
        clock: Callable[[], int] = lambda: time.time_ns() // 1_000,
    ) -> None:
        self._board = board
        self._console = console
        self._verbose = verbose
        self._clock = clock
        self._began = clock()
        self._utf8 = console.encoding.startswith("utf")
        self._region = Region(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._region.start()

    @property
    def last_ts(self) -> int:
        return self._board.last_ts

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        self._board.observe(execution_id, events, state)

    def draw(self) -> None:
        self._print(self._board.take_lines())
        self._region.update(self.picture(), refresh=True)

    def say(self, message: str) -> None:
        self._console.print(Text(message), soft_wrap=True)

    def close(self) -> None:
        if self._region.is_started:
            self._region.update(Text(""))
            self._print(self._board.take_lines())
            self._region.stop()

    def picture(self) -> Group:
        """The runs that go on, as many as the terminal has room for, and the counts."""
        now = self._clock()
        width, height = self._console.size
        room = max(1, min(MOST_RUNS, height - 4))
        board = self._board
        shown = list(islice(chain(board.working.values(), board.waiting.values()), room))
        lines = [self._line(running, now, width) for running in shown]
        hidden = len(board.working) + len(board.waiting) - len(shown)
        return Group(*lines, self._counts(now, hidden))

    def _line(self, running: StepProgress, now: int, width: int) -> Text:
        line = _line_of(self._mark(now) + " ", "cyan")
        if running.child:
            line.append(f"[{console.visible(running.child)}] ", "dim")
        line.append(running.step, "bold")
        if running.total >= 0:
            self._bar(line, running, width)
        if running.waits_for:
            line.append(f" {console.visible(running.waits_for)}")
        elif running.task:
            line.append(f" {running.task}")
        line.append(_trying(running, now), "yellow")
        line.append(f" {duration_text(now - running.began_at)}", "dim")
        return line

    def _bar(self, line: Text, running: StepProgress, width: int) -> None:
        cells = max(5, min(30, width // 4))
        full = cells * running.done // max(running.total, 1)
        whole, rest = ("━", "─") if self._utf8 else ("#", "-")
        line.append(" ")
        line.append(whole * full, "green")
        line.append(rest * (cells - full), "dim")
        line.append(f" {running.done:,}/{running.total:,}")
        if running.failed:
            line.append(f" {running.failed:,} failed", "red")

    def _counts(self, now: int, hidden: int) -> Text:
        board = self._board
        counts = (
            (hidden, "more running"),
            (len(board.queued), "queued"),
            (board.done, "done"),
            (board.failed, "failed"),
        )
        words = [f"{number:,} {word}" for number, word in counts if number]
        return _line_of("  " + ", ".join([*words, duration_text(now - self._began)]), "dim")

    def _mark(self, now: int) -> str:
        return _SPINNER[now * 10 // SECOND % len(_SPINNER)] if self._utf8 else "*"

    def _print(self, news: list[ProgressLine]) -> None:
        wanted = [one for one in news if self._verbose or one.kind in _SHOWN]
        if not wanted:
            return
        # What waits must be seen: it holds a command to type.
        kept = {id(one) for one in wanted[-MOST_NEWS:]} | {id(one) for one in wanted if one.kind == "wait"}
        lines = [self._told(one) for one in wanted if id(one) in kept]
        left = len(wanted) - len(lines)
        if left:
            lines.insert(0, Text(f"  {left:,} more", "dim"))
        self._console.print(Text("\n").join(lines), soft_wrap=True)

    def _told(self, news: ProgressLine) -> Text:
        child = f"[{console.visible(news.child)}] " if news.child else ""
        match news.kind:
            case "done":
                mark, style = "✓" if self._utf8 else "+", "green"
            case "failed":
                mark, style = "✗" if self._utf8 else "x", "red"
            case _:
                mark, style = "·" if self._utf8 else "-", "yellow"
        line = Text(f"{mark} ", style)
        line.append(f"{child}{news.step or 'execution'}", "default")
        line.append(f" {console.visible(news.text)}", "red" if news.kind == "failed" else "dim")
        return line


def _line_of(text: str, style: str) -> Text:
    """Text that is cut at the edge of the terminal, never wrapped."""
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(text, style)
    return line


def _trying(running: StepProgress, now: int) -> str:
    if running.retry_at is not None and running.total < 0:
        wait = max(running.retry_at - now, 0)
        return f" attempt {running.attempt} failed, again in {duration_text(wait)}"
    if running.until is not None:
        return f" {duration_text(max(running.until - now, 0))} left"
    return f" attempt {running.attempt}" if running.attempt > 1 and running.total < 0 else ""
