"""The runs of an execution in time, as lines that fit the terminal."""

from collections.abc import Iterator

from noetl.cli.console import visible
from noetl.cli.format import duration_text, local_time, pluralize
from noetl.graph.time_axis import TimeAxis
from noetl.ports.execution_views import RunBar, RunPage

MOST_BARS = 200
_LEAST_WIDTH = 40
_WIDEST_NAME = 28
_TIME_WIDTH = 13
_MARKS = {
    "completed": "✓",
    "failed": "✗",
    "cancelled": "■",
    "skipped": "»",
    "running": "…",
    "waiting": "…",
    "ready": "…",
}


def timeline_lines(page: RunPage, width: int) -> Iterator[str]:
    """A line for each run, none longer than `width`; where idle time is folded, the line has a `┆`."""
    end = page.end if page.end is not None else page.now
    yield f"{local_time(page.begin)}, {duration_text(end - page.begin)}, as of event {page.at}"[:width]
    bars = page.runs[:MOST_BARS]
    if not bars:
        yield "nothing has run"
        return
    width = max(width, _LEAST_WIDTH)
    names = max(len(visible(bar.step)) for bar in bars)
    name_width = min(names, _WIDEST_NAME, width // 3)
    room = width - name_width - _TIME_WIDTH - 4
    axis = TimeAxis(page.begin, end, page.idle)
    for bar in bars:
        name = visible(bar.step)
        name = name if len(name) <= name_width else name[: name_width - 1] + "…"
        took = duration_text((bar.end if bar.end is not None else page.now) - bar.begin)
        line = f"{name:<{name_width}} {_bar_text(bar, axis, room, page.now)} {_MARKS[bar.status]} {took}"
        yield line + _loop_text(bar, width - len(line))
    if len(page.runs) > MOST_BARS:
        yield f"… {pluralize(len(page.runs) - MOST_BARS, 'more run')}; `-o json` has them all"
    for _, _, idle in axis.folds:
        yield f"┆ {duration_text(idle)} idle"


def _loop_text(bar: RunBar, room: int) -> str:
    if bar.loop is None:
        return ""
    failed = f", {bar.loop.failed} failed" if bar.loop.failed else ""
    text = f" {bar.loop.succeeded}/{bar.loop.total}{failed}"
    return text if len(text) <= room else ""


def _bar_text(bar: RunBar, axis: TimeAxis, room: int, now: int) -> str:
    cells = [" "] * room
    for start, stop, _ in axis.folds:
        cells[_cell((start + stop) / 2, room)] = "┆"
    end = bar.end if bar.end is not None else now
    _fill(cells, axis, bar.begin, end, "█")
    for wait in bar.waits:
        until = wait.end if wait.end is not None else end
        if _cell(axis.position(until), room) > _cell(axis.position(wait.begin), room):
            _fill(cells, axis, wait.begin, until, "░", open_end=wait.end is not None)
    return "".join(cells)


def _fill(
    cells: list[str], axis: TimeAxis, begin: int, end: int, mark: str, *, open_end: bool = False
) -> None:
    """At least one cell; with `open_end`, without the last, in which something else begins."""
    first, last = _cell(axis.position(begin), len(cells)), _cell(axis.position(end), len(cells))
    for number in range(first, last if open_end else last + 1):
        cells[number] = mark


def _cell(position: float, room: int) -> int:
    return min(int(position * room), room - 1)
