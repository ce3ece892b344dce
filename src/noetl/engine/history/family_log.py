"""What tasks of an execution and of all that it started wrote, in order of time."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

from noetl.engine.history.lookup import list_children
from noetl.engine.task_log import LOOK_SECONDS, LogLine, TaskLog
from noetl.ports.store import ENDED_STATUSES, ExecutionRecord, Store


class FamilyLine(NamedTuple):
    """A line, and whose it is: of the execution itself, or of a child, which has a path."""

    execution_id: str
    child_path: str
    line: LogLine


class FamilyLog:
    """Reads the logs of an execution and of those below it, which may still grow and become more."""

    def __init__(self, store: Store, logs: TaskLog, record: ExecutionRecord) -> None:
        self._store = store
        self._logs = logs
        self._paths = {record.execution_id: ""}
        self._tails = {record.execution_id: logs.tail(record.execution_id)}

    async def read(self) -> list[FamilyLine]:
        """The lines since the last call."""
        settled = await self._find_children()
        lines = [
            FamilyLine(execution_id, self._paths[execution_id], line)
            for execution_id, tail in self._tails.items()
            for line in tail.read()
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
                await asyncio.wait_for(ended.wait(), LOOK_SECONDS)
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
