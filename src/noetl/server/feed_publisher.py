"""Publishes the events of a store to other systems, in the order of commits, each at least once."""

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from noetl.engine.history.lookup import decode_rows, may_have_given, request_event_of
from noetl.events.event import envelope
from noetl.model.timestamp import now_micros
from noetl.ports.shared_rows import SharedRows
from noetl.ports.store import FeedEntry, Store, StoreError
from noetl.process_log import LogEvent, log_event
from noetl.server.feed_stream import FeedEnd, FeedError, FeedMessage, FeedStream, FeedUnusable
from noetl.server.http.event_bell import EventBell

BATCH = 200
"""Events that are on their way at once."""
RETRY_SECONDS = 1.0
END_SECONDS = 5.0
"""For what is still to be published when the server ends; its next start goes on with the rest."""
_MOST_ORIGINS = 10_000
_LONGEST_PATH = 500
_NOT_IN_SUBJECT = re.compile(r"[^A-Za-z0-9_-]")


class FeedTurn:
    """Which of several servers publishes. The stream itself refuses who does so without a turn."""

    NAME = "feed"
    SECONDS = 5.0

    def __init__(self, rows: SharedRows, server: str) -> None:
        self._rows = rows
        self._server = server

    async def take(self) -> bool:
        """Whether it is this server, for `SECONDS` from here. Raises StoreError."""
        return await self._rows.take_turn(self.NAME, self._server, self.SECONDS)

    async def end(self) -> None:
        """Raises StoreError."""
        await self._rows.end_turn(self.NAME, self._server)


class FeedPublisher:
    """Fills a stream from a store, woken by its bell. An async context manager.

    With a `turn` it publishes when that is its own; there may be other servers.
    A store that `keeps_end` never loses the position of its newest event: then one that is behind the stream
    is another store, or an older copy.
    """

    def __init__(
        self,
        stream: FeedStream,
        store: Store,
        bell: EventBell,
        *,
        keeps_end: bool,
        turn: FeedTurn | None = None,
    ) -> None:
        self.location = stream.location
        self.problem = ""
        """Why nothing can be published now."""
        self._stream = stream
        self._store = store
        self._bell = bell
        self._keeps_end = keeps_end
        self._turn = turn
        self._end: FeedEnd | None = None
        """Of the stream; None if it has to be asked."""
        self._position: int | None = None
        """Up to which events are known to be published."""
        self._waiting_since = 0
        self._origins: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """The path and the trace of executions."""
        self._rung = asyncio.Event()
        self._ending = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def lag(self) -> float:
        """For how many seconds the oldest event waits that is not known to be published."""
        return max(0.0, (now_micros() - self._waiting_since) / 1e6) if self._waiting_since else 0.0

    async def __aenter__(self) -> "FeedPublisher":
        """Raises FeedUnusable, StoreError. A server that does not answer is asked again later."""
        try:
            await self._open()
        except FeedUnusable:
            await self._stream.close()
            raise
        except FeedError as error:
            await self._note_failure(error)
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Everything that the store has is published, if that takes no longer than `END_SECONDS`."""
        self._ending.set()
        self._rung.set()
        if self._task is not None:
            await asyncio.wait((self._task,), timeout=END_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._turn is not None:
            with suppress(StoreError):  # it ends by itself
                await self._turn.end()
        await self._stream.close()

    async def _run(self) -> None:
        with self._bell.listen("") as bell:
            self._rung = bell
            while True:
                is_last = self._ending.is_set()
                # Before anything is read: what comes meanwhile rings again, and is not slept over.
                bell.clear()
                try:
                    await self._catch_up()
                except Exception as error:  # noqa: BLE001 - whatever the client raises: a feed that ends in silence is worse
                    await self._note_failure(error)
                    if not is_last:
                        with suppress(TimeoutError):
                            await asyncio.wait_for(self._ending.wait(), RETRY_SECONDS)
                        continue
                if is_last:
                    return
                if not self._ending.is_set():
                    await bell.wait()

    async def _catch_up(self) -> None:
        if not await self._has_turn():
            return
        end = self._end or await self._open()
        while entries := await self._store.feed(after=end.position, limit=BATCH):
            self._waiting_since = entries[0].row.ts
            messages = await self._messages(entries)
            sequence = await self._stream.publish(messages, end.sequence) if messages else end.sequence
            last = entries[-1]
            end = self._end = FeedEnd(f"{last.execution_id}/{last.row.seq}", last.pos, sequence)
            self._position = end.position
            if not await self._has_turn():
                return
        self._waiting_since = 0
        if self.problem:
            self.problem = ""
            log_event(LogEvent.FEED_RECOVERED, stream=self.location)

    async def _has_turn(self) -> bool:
        if self._turn is None or await self._turn.take():
            return True
        # Another one publishes: where it got to is asked when it is this one's turn.
        self._end, self._waiting_since, self.problem = None, 0, ""
        return False

    async def _open(self) -> FeedEnd:
        end = await self._stream.open()
        await self._require_same_store(end)
        self._end, self._position = end, end.position
        return end

    async def _require_same_store(self, end: FeedEnd) -> None:
        """Raises FeedUnusable if another store was published there."""
        if not end.position:
            return
        same = await may_have_given(self._store, end.position, end.event_id)
        if not same or (self._keeps_end and await self._store.feed_end() < end.position):
            message = (
                f"{self.location}: the stream has events of another store, or of a newer copy of this one"
            )
            raise FeedUnusable(message, "name another stream, or delete this one: then it is filled again")

    async def _note_failure(self, error: Exception) -> None:
        """Says it once, and finds out since when events wait."""
        self._end = None
        if str(error) != self.problem:
            self.problem = str(error) or type(error).__name__
            log_event(LogEvent.FEED_FAILING, stream=self.location, error=error)
        if not self._waiting_since:
            self._waiting_since = now_micros()
            with suppress(StoreError):
                if self._position is not None:
                    entries = await self._store.feed(after=self._position, limit=1)
                    self._waiting_since = entries[0].row.ts if entries else 0

    async def _messages(self, entries: Sequence[FeedEntry]) -> list[FeedMessage]:
        """Those of executions that were deleted since are left out. Raises HistoryUnreadable."""
        return [
            self._message(entry, *origin)
            for entry in entries
            if (origin := await self._origin(entry.execution_id)) is not None
        ]

    def _message(self, entry: FeedEntry, path: str, trace_id: str) -> FeedMessage:
        [event] = decode_rows(entry.execution_id, [entry.row])
        document = envelope(event, entry.execution_id, trace_id)
        body, omitted = _encode(document), ""
        if len(body) > self._stream.largest:
            del document["data"]
            body, omitted = _encode(document), "data"
        subject = f"{self._stream.name}.events.{document['name']}.{subject_of_path(path)}"
        return FeedMessage(subject, f"{entry.execution_id}/{entry.row.seq}", entry.pos, body, omitted)

    async def _origin(self, execution_id: str) -> tuple[str, str] | None:
        """The path and the trace of an execution; None if there is none any more."""
        if execution_id not in self._origins:
            rows = await self._store.read(execution_id, limit=1)
            if not rows:
                return None
            request = request_event_of(decode_rows(execution_id, rows))
            self._origins[execution_id] = request.path, request.trace_id
            if len(self._origins) > _MOST_ORIGINS:
                self._origins.popitem(last=False)
        return self._origins[execution_id]


def subject_of_path(path: str) -> str:
    """The path of a playbook as the end of a subject; `_` is for what may not stand there."""
    parts = [_NOT_IN_SUBJECT.sub("_", part) for part in path[:_LONGEST_PATH].split("/") if part]
    return ".".join(parts) or "_"


def _encode(document: dict[str, Any]) -> bytes:
    # As commands print it: lone surrogates are escaped, so that it is JSON.
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")
