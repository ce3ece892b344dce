"""What tasks print, as segments in the result store: there any machine can read it."""

import asyncio
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from noetl.engine.task_log import (
    FULL_NOTICE,
    MAX_BYTES,
    FileLog,
    LogLine,
    TaskLog,
    decode_lines,
    encode_line,
    log_lines,
)
from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.ledger import LogSource
from noetl.ports.results import ResultError, ResultStore
from noetl.ports.store import Store
from noetl.process_log import LogEvent, log_event
from noetl.stores.home_folder import Home
from noetl.stores.results.named_results import NamedResults

SEGMENT_BYTES = 64 * 1024
"""How far a segment grows. It is written anew each time, so a large one would be sent often."""
WRITE_SECONDS = 1.0
"""For how long lines are gathered before they are written."""
MOST_PENDING = 32 * 1024 * 1024
"""Bytes that wait for a store that is away, of all executions."""
IDLE_LOGS = 256
"""Executions of which is remembered where their logs ended. Of another one a new segment begins."""
COPIED_SEGMENT = f"{0:016d}-copied"
"""What lay in a file: it is not read there any more."""
_AT_ONCE = 8


def open_task_log(home: Home, results: NamedResults) -> TaskLog:
    """Where the results are, if other machines may look there, too; else files in the home."""
    files = FileLog(home.logs)
    return SegmentLog(results, files) if results.own_is_set else files


class SegmentLog:
    """The logs of all executions, in a result store. See `noetl.engine.task_log.TaskLog`.

    A line is there a second after `write`, when `close` returns, or when this object is asked for it. Each
    object has segments of its own, so that any number of processes may write of one execution. What lies in
    `files` is read, too: an earlier release kept logs there. While the store is away, lines wait.
    """

    look_seconds = 1.0

    def __init__(self, results: ResultStore, files: FileLog) -> None:
        self._results = results
        self._files = files
        self._writers: dict[str, _SegmentWriter] = {}
        self._unwritten: set[str] = set()
        self._writing: asyncio.Task[None] | None = None
        self._failing = False

    def write(self, execution_id: str, source: LogSource, text: str) -> None:
        writer = self._writers.pop(execution_id, None) or _SegmentWriter(execution_id)
        self._writers[execution_id] = writer
        # While the store takes lines, no more of them wait than a second brings.
        has_room = not self._failing or self._pending_bytes < MOST_PENDING
        for line in log_lines(source, text):
            writer.add(line, has_room=has_room)
        self._unwritten.add(execution_id)
        self._forget_idle()
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_soon(), name="noetl-log")

    def tail(self, execution_id: str) -> "SegmentTail":
        return SegmentTail(self, self._results, self._files, execution_id)

    async def close(self) -> None:
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        await self._write_all()
        self._writers.clear()
        self._unwritten.clear()

    async def flush(self, execution_id: str) -> None:
        """Writes what waits of an execution. If that fails it goes on waiting."""
        if execution_id in self._unwritten:
            await self._write_of([execution_id])

    @property
    def _pending_bytes(self) -> int:
        return sum(self._writers[name].pending_bytes for name in self._unwritten)

    async def _write_soon(self) -> None:
        while self._unwritten:
            await asyncio.sleep(WRITE_SECONDS)
            await self._write_all()

    async def _write_all(self) -> None:
        names = list(self._unwritten)
        for start in range(0, len(names), _AT_ONCE):
            await self._write_of(names[start : start + _AT_ONCE])

    async def _write_of(self, names: Iterable[str]) -> None:
        writers = [self._writers[name] for name in names]
        puts = [writer.put(self._results) for writer in writers]
        answers = await asyncio.gather(*puts, return_exceptions=True)
        error: ResultError | None = None
        for writer, answer in zip(writers, answers, strict=True):
            if isinstance(answer, ResultError):
                error = answer
            elif answer is not None:
                raise answer
            elif not writer.pending_bytes:  # else more was added meanwhile
                self._unwritten.discard(writer.execution_id)
        if error is not None and not self._failing:
            log_event(LogEvent.LOGS_FAILING, error=error)
        elif error is None and self._failing:
            log_event(LogEvent.LOGS_RECOVERED)
        self._failing = error is not None

    def _forget_idle(self) -> None:
        if len(self._writers) > IDLE_LOGS:
            idle = next((name for name in self._writers if name not in self._unwritten), None)
            if idle is not None and not self._writers[idle].is_busy:
                del self._writers[idle]


class _SegmentWriter:
    """The end of the log of one execution, as this process writes it."""

    def __init__(self, execution_id: str) -> None:
        self.execution_id = execution_id
        self.pending_bytes = 0
        self._pending: list[bytes] = []
        self._lost = 0
        self._lock = asyncio.Lock()
        self._segment = ""
        self._written = b""
        self._room: int | None = None
        """Bytes that the log may still take; None before the store was asked what it has."""

    @property
    def is_busy(self) -> bool:
        return self._lock.locked()

    def add(self, line: LogLine, *, has_room: bool) -> None:
        if self._room is not None and self._room <= 0:
            return
        if not has_room:
            self._lost += 1
            return
        if self.pending_bytes <= MAX_BYTES:  # more than that would not be kept anyway
            encoded = encode_line(line)
            self._pending.append(encoded)
            self.pending_bytes += len(encoded)

    async def put(self, results: ResultStore) -> None:
        """Raises ResultError; then nothing is lost."""
        async with self._lock:
            if self._room is None:
                segments = await results.log_segments(self.execution_id)
                self._room = MAX_BYTES - sum(segment.size for segment in segments)
            if self._lost:
                text = f"{self._lost:,} lines are lost: the result store was away for too long"
                self._pending.append(_notice(text))
                self._lost = 0
            while self._pending and self._room > 0:
                await self._put_segment(results)
            if self._room <= 0:
                self._pending.clear()
            self.pending_bytes = sum(map(len, self._pending))

    async def _put_segment(self, results: ResultStore) -> None:
        """Adds what fits to the segment that is open, or begins one."""
        assert self._room is not None  # noqa: S101 - `put` has asked
        if not self._segment or len(self._written) >= SEGMENT_BYTES:
            # The time first: segments are listed in the order in which they began.
            self._segment, self._written = f"{now_micros():016d}-{uuid4().hex[:8]}", b""
        content, room, count = bytearray(self._written), self._room, 0
        for line in self._pending:
            if len(content) >= SEGMENT_BYTES or room <= 0:
                break
            room -= len(line)
            content += line if room > 0 else _notice(FULL_NOTICE)
            count += 1
        await results.put_log(self.execution_id, self._segment, bytes(content))
        self._written, self._room = bytes(content), room
        del self._pending[:count]


def _notice(text: str) -> bytes:
    return encode_line(LogLine(ts=iso_time(now_micros()), text=text, full=True))


class SegmentTail:
    """Reads the log of one execution, which may still grow, whoever writes it."""

    def __init__(self, log: SegmentLog, results: ResultStore, files: FileLog, execution_id: str) -> None:
        self._log = log
        self._results = results
        self._file = files.tail(execution_id)
        self._execution_id = execution_id
        self._offsets: dict[str, int] = {}

    async def read(self) -> list[LogLine]:
        await self._log.flush(self._execution_id)
        segments = await self._results.log_segments(self._execution_id)
        is_copied = any(segment.key == COPIED_SEGMENT for segment in segments)
        lines = [] if is_copied else await self._file.read()
        for segment in segments:
            offset = self._offsets.get(segment.key, 0)
            if segment.size <= offset:
                continue
            data = await self._results.log_segment(self._execution_id, segment.key, offset)
            self._offsets[segment.key] = offset + len(data)
            lines += decode_lines(data)
        return sorted(lines, key=lambda line: line.ts)


async def copy_log_files(folder: Path, store: Store, results: ResultStore) -> int:
    """Takes files of logs, of executions that `store` has, to where their segments will be; how many are new.

    Raises StoreError, ResultError, OSError.
    """
    copied = 0
    for path in sorted(folder.glob("*.jsonl")):
        if await store.execution(path.stem) is None:
            continue
        segments = await results.log_segments(path.stem)
        if all(segment.key != COPIED_SEGMENT for segment in segments):
            await results.put_log(path.stem, COPIED_SEGMENT, path.read_bytes())
            copied += 1
    return copied
