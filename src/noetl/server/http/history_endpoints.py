"""What happened in an execution: its events, live too, what its tasks wrote, and its large results."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from starlette.responses import Response

from noetl.engine.history.family_log import FamilyLine, FamilyLog, log_page
from noetl.engine.history.lookup import decode_rows, request_event_of
from noetl.engine.history.result_rows import read_result_rows
from noetl.events.event import ENVELOPE_FIELDS, Event, envelope
from noetl.ports.execution_views import ResultRows
from noetl.ports.http_api import MOST_AT_ONCE, EventPage, LogPage, PageSize, Sequence
from noetl.ports.store import ExecutionRecord
from noetl.server.http.endpoint import EVENT_STREAM, JSON, Answer, ApiCall, Endpoint
from noetl.server.http.event_bell import follow_execution
from noetl.server.http.problems import ApiProblem
from noetl.server.http.sse import sse_response
from noetl.server.result_body import OCTETS, RangeWrong, result_response


class EventsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Events above `after`, or those below `before`, the newest first; `fields` of each, as in `seq,name`."""

    after: Sequence = 0
    before: Sequence | None = None
    fields: str = ""
    limit: PageSize = 1_000


class StreamQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Events above `after`; the header `Last-Event-ID` says it, too, and counts more."""

    after: Sequence = 0


class LogsQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Only what this step or task wrote. Without `follow` a stream ends with what there is.

    In JSON, lines behind the cursor `after`.
    """

    step: str = ""
    task: str = ""
    follow: bool = True
    after: str = ""
    limit: Annotated[int, Meta(ge=1, le=10_000)] = 10_000


class ResultQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`store` is the name of the result store that the reference names, if it names one.

    With `rows` the answer is JSON: rows from this one on, of what lies at `path`, one key each time.
    """

    store: Annotated[str, Meta(pattern=r"^\w*$")] = ""
    rows: Sequence | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)] = 100
    path: tuple[str, ...] = ()


async def _list_events(call: ApiCall) -> Answer:
    """A page of the history."""
    record, query = await call.execution(), call.query
    fields = _chosen_fields(query.fields)
    if query.before is not None:
        if query.after:
            raise ApiProblem("invalid_request", "`after` and `before` exclude each other", pointer="/before")
        last = min(query.before - 1, record.version)
        after, limit = max(last - query.limit, 0), min(max(last, 0), query.limit)
        rows = await call.resources.store.read(record.execution_id, after=after, limit=limit) if limit else []
        rows.reverse()
        more = after > 0
    else:
        rows = await call.resources.store.read(record.execution_id, after=query.after, limit=query.limit)
        more = bool(rows) and len(rows) == query.limit and rows[-1].seq < record.version
    trace_id = await _trace_id(call, record)
    envelopes = [
        envelope(event, record.execution_id, trace_id) for event in decode_rows(record.execution_id, rows)
    ]
    if fields:
        envelopes = [{name: document[name] for name in fields if name in document} for document in envelopes]
    return Answer(EventPage(events=envelopes, next_cursor=str(rows[-1].seq) if more else None))


def _chosen_fields(text: str) -> tuple[str, ...]:
    """Raises ApiProblem."""
    fields = tuple(name.strip() for name in text.split(",")) if text else ()
    if unknown := [name for name in fields if name not in ENVELOPE_FIELDS]:
        hint = f"there are {', '.join(ENVELOPE_FIELDS)}"
        raise ApiProblem("invalid_request", f"an event has no `{unknown[0]}`", hint=hint, pointer="/fields")
    return fields


async def _stream_events(call: ApiCall) -> Response:
    """The history and what comes, as server-sent events; the id of each is its `seq`."""
    record = await call.execution()
    after = _last_event_id(call, call.query.after)
    if record.ended_at and after >= record.version:
        return Response(status_code=204)  # an EventSource that gets this does not come again
    trace_id = await _trace_id(call, record)
    resources, execution_id = call.resources, record.execution_id

    async def write() -> AsyncIterator[bytes]:
        async for page in follow_execution(resources.store, resources.bell, execution_id, after):
            yield b"".join(_event_message(event, execution_id, trace_id) for event in page)

    return sse_response(write())


async def _read_logs(call: ApiCall) -> Answer | Response:
    """What tasks wrote: a stream, or all there is so far as JSON if that is what is accepted."""
    record, query, resources = await call.execution(), call.query, call.resources
    family = FamilyLog(resources.store, resources.logs, record)

    def wanted(lines: list[FamilyLine]) -> list[dict[str, Any]]:
        return [
            {**msgspec.to_builtins(written.line), "execution_id": written.execution_id}
            for written in lines
            if written.line.full
            or (query.step in ("", written.line.step) and query.task in ("", written.line.task))
        ]

    accepted = call.request.headers.get("accept", "")
    if JSON in accepted and EVENT_STREAM not in accepted:
        lines = await family.read()
        try:
            page = log_page(lines, query.after, query.limit)
        except ValueError as error:
            raise ApiProblem("invalid_request", str(error), pointer="/after") from None
        return Answer(LogPage(lines=wanted(page.lines), next_cursor=page.next_cursor, last=page.last))

    async def write() -> AsyncIterator[bytes]:
        over = asyncio.Event()
        if not query.follow:
            over.set()
        ending = asyncio.create_task(_set_at_end(call, record.execution_id, over))
        try:
            async for lines in family.follow(over):
                yield b"".join(b"data: " + msgspec.json.encode(line) + b"\n\n" for line in wanted(lines))
        finally:
            ending.cancel()

    return sse_response(write())


async def _set_at_end(call: ApiCall, execution_id: str, over: asyncio.Event) -> None:
    """Sets `over` when nothing more can come."""
    async for _ in follow_execution(call.resources.store, call.resources.bell, execution_id, 0):
        pass
    over.set()


async def _read_result(call: ApiCall) -> Answer | Response:
    """The bytes of a stored value, a range of them, or rows."""
    execution_id, name, store = call.part("execution_id"), call.part("key"), call.query.store
    key = f"{store}:{execution_id}/{name}" if store else f"{execution_id}/{name}"
    if not re.fullmatch("[0-9a-f]{64}", name):
        raise ApiProblem("not_found", f"nothing is stored as `{key}`")
    await call.execution()
    query: ResultQuery = call.query
    if query.rows is not None:
        results = call.resources.results
        return Answer(await read_result_rows(results, key, query.path, query.rows, query.limit))
    try:
        return await result_response(call.resources.results, key, call.request.headers.get("range", ""))
    except RangeWrong as error:
        raise ApiProblem("invalid_request", str(error), status=416, headers=error.headers) from None


def _event_message(event: Event, execution_id: str, trace_id: str) -> bytes:
    document = envelope(event, execution_id, trace_id)
    name = str(document["name"]).encode()
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.seq, name, msgspec.json.encode(document))


def _last_event_id(call: ApiCall, otherwise: int) -> int:
    text = call.request.headers.get("last-event-id", "").strip()
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ApiProblem("invalid_request", "`Last-Event-ID` is the `seq` of an event")
    return int(text)


async def _trace_id(call: ApiCall, record: ExecutionRecord) -> str:
    rows = await call.resources.store.read(record.execution_id, limit=1)
    return request_event_of(decode_rows(record.execution_id, rows)).trace_id


HISTORY_ENDPOINTS = (
    Endpoint(
        name="list_events",
        method="GET",
        path="/api/executions/{execution_id}/events",
        role="viewer",
        summary="The events of an execution, a page at a time.",
        handler=_list_events,
        answers=(EventPage,),
        query=EventsQuery,
        codes=("not_found", "invalid_request"),
    ),
    Endpoint(
        name="stream_events",
        method="GET",
        path="/api/executions/{execution_id}/stream",
        role="viewer",
        summary="The events of an execution as they come (SSE); `Last-Event-ID` goes on where a reader was.",
        handler=_stream_events,
        also=(204,),
        answer_type=EVENT_STREAM,
        query=StreamQuery,
        codes=("not_found", "invalid_request"),
    ),
    Endpoint(
        name="read_logs",
        method="GET",
        path="/api/executions/{execution_id}/logs",
        role="viewer",
        summary="What tasks wrote, as they do (SSE); `Accept: application/json` gives what there is so far.",
        handler=_read_logs,
        answers=(LogPage,),
        answer_type=EVENT_STREAM,
        query=LogsQuery,
        codes=("not_found", "invalid_request"),
    ),
    Endpoint(
        name="read_result",
        method="GET",
        path="/api/results/{execution_id}/{key}",
        role="viewer",
        summary="The bytes that a reference stands for, or a range of them; with `rows`, some rows in JSON.",
        handler=_read_result,
        answers=(ResultRows,),
        also=(206,),
        answer_type=OCTETS,
        query=ResultQuery,
        codes=("not_found", "invalid_request"),
    ),
)
