"""What the code of others prints in this process, as lines of the task's log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO, cast

_printed: ContextVar["_PrintedLines | None"] = ContextVar("printed", default=None)
"""Of the tool that runs: tasks of the event loop, and threads with a copy of their context, see their own."""


class _PrintedLines:
    """Cuts what is printed into lines. They are cut short where they are kept: secrets are masked before."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._line = ""

    def write(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._log(line)

    def finish(self) -> None:
        if self._line:
            self.write("\n")


class _TaskStream:
    """Standard output for everybody but tools, whose prints go to their logs."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if (lines := _printed.get()) is None:
            return self._stream.write(text)
        lines.write(text)
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


@contextmanager
def prints_to(log: Callable[[str], None]) -> Iterator[None]:
    """What is printed inside goes to the log, where `capture_prints` is in force."""
    lines = _PrintedLines(log)
    token = _printed.set(lines)
    try:
        yield
    finally:
        _printed.reset(token)
        lines.finish()


@contextmanager
def capture_prints() -> Iterator[None]:
    """While this lasts, tools print to their logs: standard output is for what a command itself says."""
    stream = sys.stdout
    if stream is None:
        yield
        return
    sys.stdout = cast("TextIO", _TaskStream(stream))
    try:
        yield
    finally:
        sys.stdout = stream
