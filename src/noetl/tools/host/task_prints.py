"""What the code of others prints in this process, as lines of the task's log."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import TextIO, cast

_printed: ContextVar["TaskPrints | None"] = ContextVar("printed", default=None)
"""Of the tool that runs: tasks of the event loop, and threads with a copy of their context, see their own."""


class TaskPrints:
    """What is printed inside of it goes to the log, where `capture_prints` is in force.

    It is cut into lines here; they are cut short where they are kept: secrets are masked before.
    """

    # A class: with `contextmanager` it would take five times as long, and every attempt has one.
    __slots__ = ("_line", "_log", "_token")

    _token: Token["TaskPrints | None"]

    def __init__(self, log: Callable[[str], None]) -> None:
        self._log = log
        self._line = ""

    def __enter__(self) -> None:
        self._token = _printed.set(self)

    def __exit__(self, *_: object) -> None:
        _printed.reset(self._token)
        if self._line:
            self.write("\n")

    def write(self, text: str) -> None:
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            self._log(line)


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
