"""What tasks of an execution and of all that it started wrote, in order of time."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator
from typing import NamedTuple

from noetl.engine.history.lookup import list_children
from noetl.engine.task_log import LogLine, TaskLog
from noetl.ports.store import ENDED_STATUSES, ExecutionRecord, Store


class FamilyLine(NamedTuple):
    """A line, and whose it is: of the execution itself, or of a child, which has a path."""

    execution_id: str
    child_path: str
    line: LogLine


class FamilyPage(NamedTuple):
    """Some lines; `last` is the cursor behind them, `next_cursor` the same if there are more now."""

    lines: list[FamilyLine]
    next_cursor: str | None
    last: str


def log_page(lines: list[FamilyLine], after: str, limit: int) -> FamilyPage:
    """Those of all lines that come behind a cursor: a time, and how many lines of that time were seen.

    Lines are written in the order of their times, so nothing comes later before a cursor. Raises ValueError.
    """
    ts, _, count = after.partition("~")
    seen = 0
    if after:
        if not (ts and count.isascii() and count.isdigit() and len(count) < 16):
            raise ValueError(f"`{after}` is no cursor of a log")
        first = bisect_left(lines, ts, key=_line_time)
        last_of_time = bisect_right(lines, ts, key=_line_time)
        seen = min(first + int(count), last_of_time)
    page = lines[seen : seen + limit]
    last = after
    if page:
        ts = _line_time(page[-1])
        last = f"{ts}~{seen + len(page) - bisect_left(lines, ts, key=_line_time)}"
    return FamilyPage(page, last if seen + limit < len(lines) else None, last)


def _line_time(written: FamilyLine) -> str:
    return written.line.ts


class FamilyLog:
    """Reads the logs of an execution and of those below it, which may still grow and become more."""

    def __init__(self, store: Store, logs: TaskLog, record: ExecutionRecord) -> None:
        self._store = store
        self._logs = logs
        self._paths = {record.execution_id: ""}
        self._tails = {record.execution_id: logs.tail(record.execution_id)}

    async def read(self) -> list[FamilyLine]:
        """The lines since the last call. Raises StoreError, ResultError."""
        settled = await self._find_children()
        lines = [
            FamilyLine(execution_id, self._paths[execution_id], line)
            for execution_id, tail in self._tails.items()
            for line in await tail.read()
        ]
        for execution_id in settled:
            del self._tails[execution_id]
        return sorted(lines, key=lambda family_line: family_line.line.ts)

    async def follow(self, ended: asyncio.Event) -> AsyncIterator[list[FamilyLine]]:
        """New lines as they come, until `ended` is set and all is read."""
        while True:
            over = ended.is_set()
            if lines := await self.read():
                yield lines
            if over:
                return
            try:
                await asyncio.wait_for(ended.wait(), self._logs.look_seconds)
            except TimeoutError:
                continue

    async def _find_children(self) -> list[str]:
        """Takes in what was started since; those whose logs grow no more after this."""
        settled = []
        unseen = list(self._tails)
        while unseen:
            execution_id = unseen.pop()
            # Before its children are asked for: one that has ended starts no more.
            record = await self._store.execution(execution_id)
            if record is None or record.status in ENDED_STATUSES:
                settled.append(execution_id)
            unseen += await self._add_children(execution_id)
        return settled

    async def _add_children(self, parent: str) -> list[str]:
        children = [
            record
            for record in await list_children(self._store, parent)
            if record.execution_id not in self._paths
        ]
        for record in children:
            self._paths[record.execution_id] = record.path
            self._tails[record.execution_id] = self._logs.tail(record.execution_id)
        return [record.execution_id for record in children]
