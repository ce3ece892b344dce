"""Progress as a display that is drawn again and again, on a terminal."""

from collections.abc import Callable, Sequence
from itertools import chain, islice
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live as Region
from rich.text import Text

from noetl.cli.console import visible
from noetl.cli.format import SECOND, duration_text
from noetl.cli.progress.progress_model import ProgressModel
from noetl.cli.progress.step_progress import ProgressLine, StepProgress
from noetl.events.event import Event
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.timestamp import now_micros

MOST_RUNS = 12
"""Runs that are shown at the same time; the others are counted."""
MOST_LINES_AT_ONCE = 20
"""Lines that one drawing adds above the display."""

_SCROLLED_KINDS = {"done", "failed", "wait"}
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


def console_on(file: TextIO, *, color: bool) -> Console:
    """A console that takes texts as they are: no markup, no highlighting."""
    return Console(file=file, no_color=not color, highlight=False, markup=False, emoji=False)


class TerminalProgress:
    """Runs that have ended scroll by, those that go on have a line each below, the last line counts."""

    interval: float | None = 0.1

    def __init__(
        self,
        model: ProgressModel,
        console: Console,
        *,
        verbose: bool = False,
        clock: Callable[[], int] = now_micros,
    ) -> None:
        self._model = model
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
        return self._model.last_ts

    def observe(self, execution_id: str, events: Sequence[Event], state: ExecutionState) -> None:
        self._model.observe(execution_id, events, state)

    def draw(self) -> None:
        self._print(self._model.take_lines())
        self._region.update(self.picture(), refresh=True)

    def say(self, message: str) -> None:
        self._console.print(Text(message), soft_wrap=True)

    def close(self) -> None:
        if self._region.is_started:
            self._region.update(Text(""))
            self._print(self._model.take_lines())
            self._region.stop()

    def picture(self) -> Group:
        """The runs that go on, as many as the terminal has room for, and the counts."""
        now = self._clock()
        width, height = self._console.size
        room = max(1, min(MOST_RUNS, height - 4))
        model = self._model
        step_runs = islice(chain(model.working.values(), model.waiting.values()), room)
        lines = [self._line(step_run, now, width) for step_run in step_runs]
        hidden = len(model.working) + len(model.waiting) - len(lines)
        return Group(*lines, self._counts(now, hidden))

    def _line(self, step_run: StepProgress, now: int, width: int) -> Text:
        line = _cut_text(self._mark(now) + " ", "cyan")
        if step_run.child:
            line.append(f"[{visible(step_run.child)}] ", "dim")
        line.append(step_run.step, "bold")
        if step_run.total >= 0:
            self._bar(line, step_run, width)
        if step_run.waits_for:
            line.append(f" {visible(step_run.waits_for)}")
        elif step_run.task:
            line.append(f" {step_run.task}")
        line.append(_attempt_text(step_run, now), "yellow")
        line.append(f" {duration_text(step_run.time(now))}", "dim")
        return line

    def _bar(self, line: Text, step_run: StepProgress, width: int) -> None:
        cells = max(5, min(30, width // 4))
        full = cells * step_run.done // max(step_run.total, 1)
        done, open_ = ("━", "─") if self._utf8 else ("#", "-")
        line.append(" ")
        line.append(done * full, "green")
        line.append(open_ * (cells - full), "dim")
        line.append(f" {step_run.done:,}/{step_run.total:,}")
        if step_run.failed:
            line.append(f" {step_run.failed:,} failed", "red")

    def _counts(self, now: int, hidden: int) -> Text:
        model = self._model
        counts = (
            (hidden, "more running"),
            (len(model.queued), "queued"),
            (model.done, "done"),
            (model.failed, "failed"),
        )
        words = [f"{number:,} {word}" for number, word in counts if number]
        return _cut_text("  " + ", ".join([*words, duration_text(now - self._began)]), "dim")

    def _mark(self, now: int) -> str:
        return _SPINNER[now * 10 // SECOND % len(_SPINNER)] if self._utf8 else "*"

    def _print(self, lines: list[ProgressLine]) -> None:
        wanted = [line for line in lines if self._verbose or line.kind in _SCROLLED_KINDS]
        if not wanted:
            return
        # A large loop may bring thousands between two drawings, and printing holds up the engine's loop; but
        # what waits must be seen: it holds a command to type.
        first = len(wanted) - MOST_LINES_AT_ONCE
        texts = [
            self._scrolled(line)
            for number, line in enumerate(wanted)
            if number >= first or line.kind == "wait"
        ]
        left = len(wanted) - len(texts)
        if left:
            texts.insert(0, Text(f"  {left:,} more", "dim"))
        self._console.print(Text("\n").join(texts), soft_wrap=True)

    def _scrolled(self, line: ProgressLine) -> Text:
        child = f"[{visible(line.child)}] " if line.child else ""
        match line.kind:
            case "done":
                mark, style = "✓" if self._utf8 else "+", "green"
            case "failed":
                mark, style = "✗" if self._utf8 else "x", "red"
            case _:
                mark, style = "·" if self._utf8 else "-", "yellow"
        text = Text(f"{mark} ", style)
        text.append(f"{child}{line.step or 'execution'}", "default")
        text.append(f" {visible(line.text)}", "red" if line.kind == "failed" else "dim")
        return text


def _cut_text(text: str, style: str) -> Text:
    """Text that is cut at the edge of the terminal, never wrapped."""
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(text, style)
    return line


def _attempt_text(step_run: StepProgress, now: int) -> str:
    if step_run.retry_at is not None and step_run.total < 0:
        wait = max(step_run.retry_at - now, 0)
        return f" attempt {step_run.attempt} failed, again in {duration_text(wait)}"
    if step_run.until is not None:
        return f" {duration_text(max(step_run.until - now, 0))} left"
    return f" attempt {step_run.attempt}" if step_run.attempt > 1 and step_run.total < 0 else ""
