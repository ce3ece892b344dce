"""One stream for all that a browser shows: what changes on the server, by topics."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from noetl.engine.history.lookup import decode_rows, request_event_of
from noetl.events import bodies as of
from noetl.events.event import envelope
from noetl.events.event_kind import EVENT_KINDS
from noetl.ports.page_api import ChangeMessage, ExecutionMessage, ExecutionsMessage, TopicKind
from noetl.ports.store import FeedEntry
from noetl.server.http.endpoint import EVENT_STREAM, ApiCall, Endpoint
from noetl.server.http.execution_endpoints import execution_item
from noetl.server.http.problems import ApiProblem
from noetl.server.http.resources import ServerResources
from noetl.server.http.sse import sse_response

MOST_TOPICS = 100
PAUSE = 0.05
"""Seconds between two looks at what is new: what comes within is sent together."""
GLANCE = 1.0
"""Seconds between two looks at workers and queues, of which no event tells."""
_FEED_TOPICS = frozenset({"executions", "waits"})
_STATE_TOPICS: tuple[TopicKind, ...] = ("workers", "queue")
_WAIT_BODIES = (
    of.TokenParked,
    of.TokenDiscarded,
    of.RunSuspended,
    of.RunResumed,
    of.PlaybookProcessed,
    of.CancelRequested,
    of.ExecutionForked,
    of.ExecutionRetried,
    of.IterationsRedriven,
)
_WAIT_KINDS = frozenset(kind.number for kind in EVENT_KINDS if kind.body in _WAIT_BODIES)
_GATE_BODIES = (of.StepScheduled, of.TokenAdmitted, of.CtxPatched)
_GATE_KINDS = frozenset(kind.number for kind in EVENT_KINDS if kind.body in _GATE_BODIES)
"""What opens gates, or changes what they read, and much else: it counts where one is known to wait."""


class TopicsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`topics` are separated by commas: `executions`, `execution:ID`, `waits`, `workers`, `queue`.

    `after` is the id of a message, to go on behind it; the header `Last-Event-ID` says it, too, and counts
    more.
    """

    topics: Annotated[str, Meta(max_length=10_000)] = ""
    after: Annotated[str, Meta(max_length=40)] = ""


async def _stream_topics(call: ApiCall) -> Response:
    """Changes as server-sent events. Their id is the place in the order of commits."""
    topics = _topics_of(call.query.topics)
    cursor = call.request.headers.get("last-event-id", "").strip() or call.query.after
    stream = _TopicStream(call.resources, topics)
    position = _position_of(cursor) if cursor else await call.resources.store.feed_end()
    if not cursor:
        # Before the reader hears that it is connected: what changes from then on is told.
        stream.changed_states()
    return sse_response(stream.messages(position))


def _topics_of(text: str) -> frozenset[str]:
    """Raises ApiProblem."""
    topics = frozenset(topic for topic in text.split(",") if topic)
    for topic in topics:
        kind, _, execution_id = topic.partition(":")
        is_known = topic in _FEED_TOPICS or topic in _STATE_TOPICS or (kind == "execution" and execution_id)
        if not is_known:
            hint = "executions, execution:ID, waits, workers, queue"
            raise ApiProblem("invalid_request", f"`{topic[:200]}` is no topic", hint=hint, pointer="/topics")
    if not 0 < len(topics) <= MOST_TOPICS:
        detail = f"a stream has 1 to {MOST_TOPICS} topics"
        raise ApiProblem("invalid_request", detail, pointer="/topics")
    return topics


def _position_of(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) < 19):
        raise ApiProblem("invalid_request", f"`{cursor}` is not the id of a message", pointer="/after")
    return int(cursor)


class _TopicStream:
    """What one reader gets. It keeps its position and nothing else: what is new stands in the store."""

    def __init__(self, resources: ServerResources, topics: frozenset[str]) -> None:
        self._resources = resources
        self._topics = topics
        self._executions = {topic.partition(":")[2] for topic in topics if ":" in topic}
        self._trace_ids: dict[str, str] = {}
        self._states: dict[str, Any] = {}

    async def messages(self, position: int) -> AsyncIterator[bytes]:
        """Without end, until the server is about to end."""
        bell, store = self._resources.bell, self._resources.store
        # An id without data is kept by the reader, and nothing is told.
        yield b"id: %d\n\n" % position
        with bell.listen("") as rung:
            while not bell.closed:
                # Before anything is read: what comes meanwhile rings again, and is not slept over.
                rung.clear()
                while entries := await store.feed(after=position):
                    position = entries[-1].pos
                    yield await self._feed_messages(entries)
                yield b"".join(_message(topic, ChangeMessage(topic=topic)) for topic in self.changed_states())
                await asyncio.sleep(PAUSE)
                await self._wait(rung)

    async def _wait(self, rung: asyncio.Event) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(GLANCE if self._topics.intersection(_STATE_TOPICS) else None):
                await rung.wait()

    async def _feed_messages(self, entries: Sequence[FeedEntry]) -> bytes:
        """Of rows in their order. What is said twice does no harm comes first, and without an id.

        So whoever is cut off in between, and goes on behind the last id, gets every event once.
        """
        parts: list[bytes] = []
        if "executions" in self._topics:
            parts.append(await self._changed_executions(entries))
        if "waits" in self._topics and any(map(self._changes_waits, entries)):
            parts.append(_change("waits"))
        wanted = (entry for entry in entries if entry.execution_id in self._executions)
        for execution_id, group in groupby(wanted, key=lambda entry: entry.execution_id):
            parts.append(await self._events(execution_id, list(group)))
        parts.append(b"id: %d\n\n" % entries[-1].pos)
        return b"".join(parts)

    def _changes_waits(self, entry: FeedEntry) -> bool:
        if entry.row.kind in _WAIT_KINDS:
            return True
        reader = self._resources.wait_reader
        return entry.row.kind in _GATE_KINDS and reader.has_gate(entry.execution_id)

    async def _changed_executions(self, entries: Iterable[FeedEntry]) -> bytes:
        names = dict.fromkeys(entry.execution_id for entry in entries)
        records = [await self._resources.store.execution(name) for name in names]
        items = [execution_item(record) for record in records if record is not None]
        return _message("executions", ExecutionsMessage(executions=items)) if items else b""

    async def _events(self, execution_id: str, entries: Sequence[FeedEntry]) -> bytes:
        trace_id = self._trace_ids.get(execution_id)
        if trace_id is None:
            rows = await self._resources.store.read(execution_id, limit=1)
            if not rows:
                return b""  # it was deleted meanwhile
            trace_id = request_event_of(decode_rows(execution_id, rows)).trace_id
            self._trace_ids[execution_id] = trace_id
        events = decode_rows(execution_id, [entry.row for entry in entries])
        documents = [envelope(event, execution_id, trace_id) for event in events]
        message = ExecutionMessage(execution_id=execution_id, events=documents)
        return _message("execution", message, entries[-1].pos)

    def changed_states(self) -> list[TopicKind]:
        """The topics without events that are not what they were when this was asked before."""
        changed: list[TopicKind] = []
        for topic in _STATE_TOPICS:
            if topic in self._topics:
                state = _state_of(topic, self._resources)
                if self._states.get(topic) != state:
                    self._states[topic] = state
                    changed.append(topic)
        return changed


def _state_of(topic: str, resources: ServerResources) -> Any:
    sessions = [(session.id, session.slots, len(session.leases)) for session in resources.sessions.workers]
    if topic == "workers":
        return sessions
    return [(queue.pool, queue.depth) for queue in resources.observer.queues()], len(sessions)


def _change(topic: TopicKind) -> bytes:
    return _message(topic, ChangeMessage(topic=topic))


def _message(event: str, data: Struct, position: int | None = None) -> bytes:
    head = b"id: %d\n" % position if position is not None else b""
    return head + b"event: %s\ndata: %s\n\n" % (event.encode(), msgspec.json.encode(data))


STREAM_ENDPOINT = Endpoint(
    name="stream_topics",
    method="GET",
    path="/api/stream",
    role="viewer",
    summary="What changes, by topics, in one stream (SSE); `Last-Event-ID` goes on where a reader was.",
    handler=_stream_topics,
    answer_type=EVENT_STREAM,
    query=TopicsQuery,
    codes=("invalid_request",),
)
