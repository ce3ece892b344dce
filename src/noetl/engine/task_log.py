"""What tasks print: a file of JSON lines for each execution, which never grows without end."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from noetl.ports.ledger import LogSource
from noetl.stores.private_files import make_private_folder, open_private_file

MAX_BYTES = 10 * 1024 * 1024
"""What is kept for one execution."""
MAX_TEXT = 16 * 1024
"""Characters that are kept of one line."""
OPEN_FILES = 64


class LogLine(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One line of a task. `ts` is UTC. `iteration`: of a loop. `full`: here the file had no more room."""

    ts: str
    step: str = ""
    run: str = ""
    task: str = ""
    iteration: int | None = None
    attempt: int = 1
    text: str = ""
    full: bool = False


_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(LogLine)
FULL_NOTICE = f"the log is full: {MAX_BYTES // 1024 // 1024} MiB are kept of an execution, the rest is lost"


class LogReader(Protocol):
    """What has been read of the log of one execution, which may still grow."""

    async def read(self) -> list[LogLine]:
        """The lines since the last call, in the order of their times. Raises ResultError."""
        ...


class TaskLog(Protocol):
    """The logs of all executions.

    A log must not stop an execution: `write` never fails, and what could not be kept is lost.
    """

    @property
    def look_seconds(self) -> float:
        """How often who follows a log looks at it: nobody says by himself that there is more."""
        ...

    def write(self, execution_id: str, source: LogSource, text: str) -> None:
        """One entry for each line of the text. `source` has `step`, `run`, `task`, `iteration`, `attempt`."""
        ...

    def tail(self, execution_id: str) -> LogReader:
        """For reading, from the beginning."""
        ...

    async def close(self) -> None:
        """All that was written is kept then. A later `write` begins again."""
        ...


class FileLog:
    """The logs of all executions, in one folder, which is made when the first line is written.

    See `TaskLog`. A line is in its file when `write` returns. Where writing fails, `failure` says why, and
    later lines of that execution are lost.
    """

    look_seconds = 0.1

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, _File] = {}
        self.failure: OSError | None = None

    def write(self, execution_id: str, source: LogSource, text: str) -> None:
        file = self._files.pop(execution_id, None) or _File(self.path(execution_id))
        self._files[execution_id] = file
        for line in log_lines(source, text):
            file.append(line)
        self.failure = self.failure or file.failure
        if len(self._files) > OPEN_FILES:
            self._files.pop(next(iter(self._files))).close()

    async def close(self) -> None:
        self.close_files()

    def close_files(self) -> None:
        while self._files:
            self._files.popitem()[1].close()

    def path(self, execution_id: str) -> Path:
        return self._folder / f"{execution_id}.jsonl"

    def tail(self, execution_id: str) -> "LogTail":
        return LogTail(self.path(execution_id))

    def remove(self, execution_id: str) -> bool:
        """False if there is none."""
        try:
            self.path(execution_id).unlink()
        except FileNotFoundError:
            return False
        return True


class WatchedLog:
    """A log whose lines somebody sees as they are written. Those of `below` are kept; without it none are."""

    def __init__(self, below: TaskLog | None, watch: Callable[[str, LogLine], None]) -> None:
        self._below = below
        self._watch = watch
        self.look_seconds = below.look_seconds if below is not None else FileLog.look_seconds

    def write(self, execution_id: str, source: LogSource, text: str) -> None:
        """As `TaskLog.write`; then `watch` gets each line with its execution."""
        if self._below is not None:
            self._below.write(execution_id, source, text)
        for line in log_lines(source, text):
            self._watch(execution_id, line)

    def tail(self, execution_id: str) -> LogReader:
        return self._below.tail(execution_id) if self._below is not None else EmptyLog()

    async def close(self) -> None:
        if self._below is not None:
            await self._below.close()


class EmptyLog:
    """What is read where no lines are kept."""

    async def read(self) -> list[LogLine]:
        return []


def log_lines(source: LogSource, text: str) -> Iterator[LogLine]:
    """The text as it is kept: a bounded entry for each of its lines."""
    ts = _now()
    for line in text.splitlines() or [""]:
        bounded = line if len(line) <= MAX_TEXT else line[:MAX_TEXT] + "…"
        yield msgspec.convert({"ts": ts, **source, "text": bounded}, LogLine)


class _File:
    """The log of one execution, for the one process that runs it; goes on where an earlier one stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1
        self._room = MAX_BYTES
        self.failure: OSError | None = None

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, line: LogLine) -> None:
        if self.failure is not None:
            return
        try:
            if self._descriptor < 0:
                self._open()
            if self._room <= 0:
                return
            data = encode_line(line)
            self._room -= len(data)
            if self._room <= 0:
                data = encode_line(LogLine(ts=line.ts, text=FULL_NOTICE, full=True))
            os.write(self._descriptor, data)
        except OSError as error:
            self.failure = error
            self.close()

    def _open(self) -> None:
        make_private_folder(self._path.parent)
        self._descriptor = open_private_file(self._path, os.O_RDWR | os.O_APPEND)
        size = os.fstat(self._descriptor).st_size
        self._room = MAX_BYTES - size
        if size and os.pread(self._descriptor, 1, size - 1) != b"\n":
            os.write(self._descriptor, b"\n")  # a process was killed while it wrote the line before


class LogTail:
    """Reads a log that may still grow. Lines that nobody finished are left out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    async def read(self) -> list[LogLine]:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        finished = data[: data.rfind(b"\n") + 1]  # the last line may be half written
        self._offset += len(finished)
        return decode_lines(finished)


def encode_line(line: LogLine) -> bytes:
    return _ENCODER.encode(_sayable(line)) + b"\n"


def decode_lines(data: bytes) -> list[LogLine]:
    """Those that can be read."""
    return [line for text in data.splitlines() if (line := _line(text))]


def _line(text: bytes) -> LogLine | None:
    try:
        return _DECODER.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _sayable(line: LogLine) -> LogLine:
    """Without lone surrogates, which bytes that were no text leave behind."""
    try:
        line.text.encode()
    except UnicodeEncodeError:
        return msgspec.structs.replace(line, text=line.text.encode("utf-8", "backslashreplace").decode())
    return line


def _now() -> str:
    return datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
