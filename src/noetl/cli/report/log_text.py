"""What tasks printed, for people."""

from collections.abc import Iterable, Sequence

from noetl.engine.task_log import LogLine
from noetl.events.bodies import TaskStarted


def log_origin(line: LogLine) -> str:
    """Who wrote it: `step/task`, the iteration of a loop, and which attempt if it is not the first."""
    origin = "/".join(part for part in (line.step, line.task) if part)
    if line.iteration is not None:
        origin += f"[{line.iteration}]"
    return f"{origin}#{line.attempt}" if line.attempt > 1 else origin


def attempt_lines(log: Iterable[LogLine], attempt: TaskStarted) -> list[str]:
    """What this attempt printed."""
    printed_by = (attempt.run, attempt.task, attempt.iteration, attempt.attempt)
    return [
        line.text for line in log if (line.run, line.task, line.iteration or 0, line.attempt) == printed_by
    ]


def without_ending(lines: list[str], ending: Sequence[str]) -> list[str]:
    """The lines without those at their end."""
    return lines[: -len(ending)] if ending and lines[-len(ending) :] == list(ending) else lines
