"""Executions: lists, one as it is or was, and what can be done to it."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct

from noetl.engine.catalog.catalog_playbooks import entry_source
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.history.read import History, read_history
from noetl.engine.history.time_travel import state_document
from noetl.engine.inbox import RemoteCommand
from noetl.engine.remote_control import refuse_if_so_already
from noetl.engine.summary import execution_of, marking_json
from noetl.kernel.net.commands import Cancel, Pause, Resume, Signal
from noetl.model.errors import NoetlError
from noetl.model.normalisation import normalise
from noetl.model.secret import printable_value
from noetl.model.timestamp import iso_time, optional_time, parse_iso
from noetl.ports.http_api import (
    MOST_AT_ONCE,
    BulkAnswer,
    BulkRequest,
    CancelRequest,
    EmptyRequest,
    ExecutionDetail,
    ExecutionItem,
    ExecutionItems,
    ForkRequestBody,
    OperationAnswer,
    PageSize,
    RetryRequestBody,
    SignalRequest,
    StartedExecution,
    Status,
)
from noetl.ports.store import ExecutionQuery, ExecutionRecord, ExecutionUnknown
from noetl.server.http.catalog_endpoints import find_entry
from noetl.server.http.endpoint import LARGE_BODY, Answer, ApiCall, Endpoint
from noetl.server.http.event_bell import wait_for_end
from noetl.server.http.execution_start import inline_source, require_room
from noetl.server.http.problems import ApiProblem, document_problems, problem_of

MOST_WAIT = 300
"""Seconds that a request may wait for the end of an execution."""


class ListQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`id` and `path` begin theirs. `label` is `name=value`; it and `status` may be repeated."""

    id: str = ""
    status: tuple[Status, ...] = ()
    path: str = ""
    label: tuple[str, ...] = ()
    since: str = ""
    parent: str = ""
    roots: bool = False
    cursor: str = ""
    limit: PageSize = 100


class ReadQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`wait` for its end, but for no longer than so many seconds."""

    wait: Annotated[float, Meta(ge=0, le=MOST_WAIT)] = 0.0


class StateQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """After event `at`; the last one for 0."""

    at: Annotated[int, Meta(ge=0, le=2**53)] = 0


async def _list_executions(call: ApiCall) -> Answer:
    query: ListQuery = call.query
    stored = ExecutionQuery(
        execution_id=query.id,
        status=query.status,
        path=query.path,
        labels=dict(map(_label, query.label)),
        since=_moment(query.since, "/since"),
        parent=query.parent,
        roots=query.roots,
        cursor=query.cursor,
        limit=query.limit,
    )
    try:
        page = await call.resources.store.executions(stored)
    except ValueError as error:
        raise ApiProblem("invalid_request", str(error), pointer="/cursor") from None
    items = ExecutionItems(executions=list(map(_item, page.executions)), next_cursor=page.next or None)
    return Answer(items)


async def _read_execution(call: ApiCall) -> Answer:
    """How it is; with `wait`, at its end."""
    resources, execution_id = call.resources, call.part("execution_id")
    if call.query.wait:
        await wait_for_end(resources.store, resources.bell, execution_id, call.query.wait)
    return Answer(_detail(await _history(call)))


async def _read_state(call: ApiCall) -> Answer:
    """The state as it was."""
    history = await _history(call)
    seq = call.query.at or len(history.events)
    if seq > len(history.events):
        detail = f"there is no event {seq}, the last one is {len(history.events)}"
        raise ApiProblem("invalid_request", detail, pointer="/at")
    return Answer(state_document(history, seq))


async def _cancel_execution(call: ApiCall) -> Answer:
    return await _send(call, Cancel(call.caller.name, call.body.reason))


async def _pause_execution(call: ApiCall) -> Answer:
    return await _send(call, Pause(call.caller.name))


async def _resume_execution(call: ApiCall) -> Answer:
    return await _send(call, Resume(call.caller.name))


async def _signal_execution(call: ApiCall) -> Answer:
    return await _send(call, Signal(call.body.name, normalise(call.body.payload), call.caller.name))


async def _retry_execution(call: ApiCall) -> Answer:
    require_room(call.resources)
    record = await _existing(call)
    source = await _repaired_source(call, record, call.body)
    await _retry(call, record.execution_id, source)
    return Answer(await _operation_answer(call, record.execution_id))


async def _fork_execution(call: ApiCall) -> Answer:
    """A new execution; its id."""
    require_room(call.resources)
    body: ForkRequestBody = call.body
    record, engine = await _existing(call), call.resources.engine
    forked = await engine.fork(
        record.execution_id,
        at=body.at,
        source=await _repaired_source(call, record, body),
        workload=normalise(body.workload) if body.workload else None,  # type: ignore[arg-type]  # a mapping stays one
        ctx=normalise(body.ctx) if body.ctx else None,  # type: ignore[arg-type]  # likewise
        by=call.caller.name,
    )
    await engine.when_recorded(forked)
    engine.forget_end(forked)
    return Answer(await _operation_answer(call, forked), 201)


async def _operate_on_many(call: ApiCall) -> Answer:
    """Cancels or retries all that match, up to 1,000; a verdict for each."""
    body: BulkRequest = call.body
    statuses = {"cancel": ("running", "paused"), "retry": ("failed",)}[body.do]
    if body.where.status is not UNSET:
        statuses = (body.where.status,)
    query = ExecutionQuery(
        status=statuses,
        path=body.where.path,
        labels=body.where.labels,
        since=_moment(body.where.since, "/where/since"),
        limit=MOST_AT_ONCE,
    )
    page = await call.resources.store.executions(query)
    verdicts = [
        StartedExecution(execution_id=record.execution_id, status=record.status)
        if body.dry_run
        else await _bulk_verdict(call, body, record)
        for record in page.executions
    ]
    return Answer(BulkAnswer(executions=verdicts, more=bool(page.next)))


async def _bulk_verdict(call: ApiCall, body: BulkRequest, record: ExecutionRecord) -> StartedExecution:
    execution_id = record.execution_id
    try:
        if body.do == "cancel":
            await _submit(call, execution_id, Cancel(call.caller.name, body.reason))
        else:
            await _retry(call, execution_id, None)
    except NoetlError as error:
        problem = problem_of(error)
        if problem is None:
            raise
        return StartedExecution(execution_id=execution_id, status=record.status, error=problem.document())
    answer = await _operation_answer(call, execution_id)
    return StartedExecution(execution_id=execution_id, status=answer.status)


async def _send(call: ApiCall, command: RemoteCommand) -> Answer:
    record = await _existing(call)
    recorded = await _submit(call, record.execution_id, command)
    return Answer(await _operation_answer(call, record.execution_id, recorded=recorded))


async def _submit(call: ApiCall, execution_id: str, command: RemoteCommand) -> bool:
    """Has it recorded by whoever runs the execution; whether that was done. Raises Refused, StoreError."""
    resources = call.resources
    engine = resources.engine
    record = await resources.store.execution(execution_id)
    if engine.is_running(execution_id):
        refuse_if_so_already(command, record.status if record else "", owned=True)
        await engine.submit(execution_id, command)
        return True
    if isinstance(command, Resume) and record is not None and not record.ended_at:
        # Nobody runs it here; if another process does, `resume` says so.
        await engine.resume(execution_id)
        await engine.when_recorded(execution_id)
        engine.forget_end(execution_id)
        return True
    return await resources.control.send(execution_id, command) == "done"


async def _retry(call: ApiCall, execution_id: str, source: PlaybookSource | None) -> None:
    engine = call.resources.engine
    await engine.retry(execution_id, source=source, by=call.caller.name)
    await engine.when_recorded(execution_id)
    engine.forget_end(execution_id)


async def _repaired_source(
    call: ApiCall, record: ExecutionRecord, body: RetryRequestBody
) -> PlaybookSource | None:
    """The document to go on with, if one is given. Raises ApiProblem."""
    if body.playbook is not None:
        call.require("author")
        if body.version is not None:
            raise ApiProblem(
                "invalid_request", "`playbook` and `version` exclude each other", pointer="/version"
            )
        source = inline_source(call.resources, body.playbook, body.dialect)
    elif body.version is not None:
        entry = await find_entry(call, record.path, body.version)
        source = entry_source(entry, call.resources.playbooks.directory)
    else:
        return None
    await call.resources.playbooks.fetch_children(call.resources.playbooks.read(source))
    return source


async def _existing(call: ApiCall) -> ExecutionRecord:
    execution_id = call.part("execution_id")
    record = await call.resources.store.execution(execution_id)
    if record is None:
        raise ExecutionUnknown(f"there is no execution `{execution_id}`")
    return record


async def _operation_answer(call: ApiCall, execution_id: str, *, recorded: bool = True) -> OperationAnswer:
    record = await call.resources.store.execution(execution_id)
    assert record is not None  # noqa: S101 - something was just recorded of it
    return OperationAnswer(execution_id=execution_id, status=record.status, recorded=recorded)


async def _history(call: ApiCall) -> History:
    record = await _existing(call)
    resources = call.resources
    return await read_history(resources.store, record.execution_id, resources.playbooks.allow_kinds)


def _item(record: ExecutionRecord) -> ExecutionItem:
    last = record.ended_at or record.updated_at
    return ExecutionItem(
        execution_id=record.execution_id,
        status=record.status,
        path=record.path,
        started_at=iso_time(record.started_at),
        ended_at=optional_time(record.ended_at),
        duration_ms=max(0, last - record.started_at) // 1_000,
        labels=record.labels,
        parent=record.parent or None,
        forked_from=record.forked_from or None,
        events=record.version,
    )


def _detail(history: History) -> ExecutionDetail:
    record, state, request = history.record, history.state, history.request
    summary = execution_of(state, last=history.events[-1].ts)
    fields: dict[str, Any] = {name: getattr(summary, name) for name in summary.__struct_fields__}
    return ExecutionDetail(
        **{
            **fields,
            "version": request.version or summary.version,
            "warnings": document_problems(summary.warnings),
            "marking": marking_json(state),
            "workload": printable_value(state.inputs.workload),
            "labels": record.labels,
            "hash": record.playbook,
            "events": len(history.events),
            "started_at": iso_time(record.started_at),
            "ended_at": iso_time(state.ended_at) if state.over else None,
            "parent": record.parent or None,
            "requested_by": request.requested_by or None,
        }
    )


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ApiProblem("invalid_request", f"`{text}` is no label: NAME=VALUE", pointer="/label")
    return name, value


def _moment(text: str, pointer: str) -> int:
    """Microseconds since 1970 of a time in ISO 8601; 0 for none."""
    try:
        return max(0, parse_iso(text)) if text else 0
    except (ValueError, OverflowError):
        raise ApiProblem("invalid_request", f"`{text}` is no time in ISO 8601", pointer=pointer) from None


_ONE = "/api/executions/{execution_id}"


def _operation(name: str, handler: Any, body: Any, summary: str, **more: Any) -> Endpoint:
    fields: dict[str, Any] = {
        "name": f"{name}_execution",
        "method": "POST",
        "path": f"{_ONE}/{name}",
        "role": "operator",
        "summary": summary,
        "handler": handler,
        "answers": (OperationAnswer,),
        "body": body,
        "codes": ("not_found", "refused", "invalid_request"),
    }
    return Endpoint(**{**fields, **more})


_DOCUMENT_CODES = ("not_found", "refused", "invalid_request", "invalid_playbook", "too_large", "overloaded")
EXECUTION_ENDPOINTS = (
    Endpoint(
        name="list_executions",
        method="GET",
        path="/api/executions",
        role="viewer",
        summary="Executions, the newest first.",
        handler=_list_executions,
        answers=(ExecutionItems,),
        query=ListQuery,
        codes=("invalid_request",),
    ),
    Endpoint(
        name="operate_on_many",
        method="POST",
        path="/api/executions/bulk",
        role="operator",
        summary="Cancel or retry all executions that match, up to 1,000 at once.",
        handler=_operate_on_many,
        answers=(BulkAnswer,),
        body=BulkRequest,
        codes=("invalid_request",),
    ),
    Endpoint(
        name="read_execution",
        method="GET",
        path=_ONE,
        role="viewer",
        summary="An execution as it is; with `wait`, at its end.",
        handler=_read_execution,
        answers=(ExecutionDetail,),
        query=ReadQuery,
        codes=("not_found", "invalid_request"),
    ),
    Endpoint(
        name="read_state",
        method="GET",
        path=f"{_ONE}/state",
        role="viewer",
        summary="The state of an execution as it was after an event.",
        handler=_read_state,
        answers=(dict[str, Any],),
        query=StateQuery,
        codes=("not_found", "invalid_request"),
    ),
    _operation("cancel", _cancel_execution, CancelRequest, "End an execution, and all that it started."),
    _operation("pause", _pause_execution, EmptyRequest, "Hold an execution: nothing new begins."),
    _operation("resume", _resume_execution, EmptyRequest, "Go on with an execution that was paused."),
    _operation("signal", _signal_execution, SignalRequest, "Send a signal to an execution."),
    _operation(
        "retry",
        _retry_execution,
        RetryRequestBody,
        "Go on with a failed execution at what failed.",
        largest=LARGE_BODY,
        codes=_DOCUMENT_CODES,
    ),
    _operation(
        "fork",
        _fork_execution,
        ForkRequestBody,
        "Run a copy of an execution from one of its events on.",
        status=201,
        largest=LARGE_BODY,
        codes=_DOCUMENT_CODES,
    ),
)
