"""What can be done to executions: one at a time, or to all that match."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from noetl.engine.catalog.catalog_playbooks import entry_source
from noetl.engine.catalog.playbook_record import PlaybookSource
from noetl.engine.catalog.playbooks import PlaybookDocument
from noetl.engine.history.lookup import decode_rows
from noetl.engine.inbox import RemoteCommand
from noetl.engine.remote_control import refuse_if_so_already
from noetl.engine.service import AlreadyRunning
from noetl.events.bodies import ExecutionRetried, IterationsRedriven
from noetl.kernel.net.commands import Cancel, CompleteStep, Pause, Redrive, Resume, Retry, Signal, SkipStep
from noetl.model.errors import NoetlError
from noetl.model.normalisation import normalise
from noetl.ports.execution_views import ForkPreview, ReopenPreview
from noetl.ports.http_api import (
    BulkAnswer,
    BulkRequest,
    CancelRequest,
    CompleteRequest,
    EmptyRequest,
    ExecutionFilter,
    ForkRequestBody,
    OperationAnswer,
    RedriveRequestBody,
    RetryRequestBody,
    SignalRequest,
    SkipRequest,
    StartedExecution,
)
from noetl.ports.store import ExecutionRecord
from noetl.server.http.access import may_act_as
from noetl.server.http.catalog_endpoints import find_entry
from noetl.server.http.endpoint import LARGE_BODY, Answer, ApiCall, Endpoint
from noetl.server.http.execution_endpoints import EXECUTION_PATH, filtered_query
from noetl.server.http.execution_start import inline_source, require_room
from noetl.server.http.problems import ApiProblem, problem_of


class DryRunQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """With `dry_run` nothing is done, and the answer says what would be."""

    dry_run: bool = False


_ROWS_READ = 100
"""Events among which the one is looked for that opened an execution again."""


async def _cancel_execution(call: ApiCall) -> Answer:
    return await _send(call, Cancel(call.caller.name, call.body.reason))


async def _pause_execution(call: ApiCall) -> Answer:
    return await _send(call, Pause(call.caller.name))


async def _resume_execution(call: ApiCall) -> Answer:
    return await _send(call, Resume(call.caller.name))


async def _signal_execution(call: ApiCall) -> Answer:
    return await _send(call, _signal_of(call, call.body.name, call.body.payload, call.body.wait))


def _signal_of(call: ApiCall, name: str, payload: Any, wait: str = "") -> Signal:
    return Signal(name, normalise(payload), call.caller.name, wait, may_act_as(call.caller.role, "admin"))


async def _complete_execution(call: ApiCall) -> Answer:
    return await _send(call, CompleteStep(call.body.step, normalise(call.body.result), call.caller.name))


async def _skip_execution(call: ApiCall) -> Answer:
    return await _send(call, SkipStep(call.body.step, call.caller.name))


async def _retry_execution(call: ApiCall) -> Answer:
    record = await call.execution()
    source = await _repaired_source(call, record, call.body)
    if call.query.dry_run:
        document = _document_of(call, source)
        return Answer(await call.resources.views.preview_retry(record.execution_id, document))
    require_room(call.resources)
    try:
        await _retry(call, record.execution_id, source)
    except AlreadyRunning:
        if source is not None:
            raise
        return await _send(call, Retry(call.caller.name))  # to the process that runs it
    return Answer(await _reopened_answer(call, record))


async def _redrive_execution(call: ApiCall) -> Answer:
    record, engine = await call.execution(), call.resources.engine
    step, by = call.body.step, call.caller.name
    source = await _repaired_source(call, record, call.body)
    if call.query.dry_run:
        document = _document_of(call, source)
        return Answer(await call.resources.views.preview_redrive(record.execution_id, step, document))
    require_room(call.resources)
    try:
        await engine.redrive(record.execution_id, step=step, source=source, by=by)
    except AlreadyRunning:
        if source is not None:
            raise
        return await _send(call, Redrive(step, by))  # to the process that runs it
    await engine.when_recorded(record.execution_id)
    engine.forget_end(record.execution_id)
    return Answer(await _reopened_answer(call, record))


async def _fork_execution(call: ApiCall) -> Answer:
    """A new execution; its id."""
    body: ForkRequestBody = call.body
    record, engine = await call.execution(), call.resources.engine
    source = await _repaired_source(call, record, body)
    if call.query.dry_run:
        document = _document_of(call, source)
        return Answer(await call.resources.views.preview_fork(record.execution_id, body.at, document))
    require_room(call.resources)
    forked = await engine.fork(
        record.execution_id,
        at=body.at,
        source=source,
        workload=normalise(body.workload) if body.workload else None,  # type: ignore[arg-type]  # a mapping stays one
        ctx=normalise(body.ctx) if body.ctx else None,  # type: ignore[arg-type]  # likewise
        by=call.caller.name,
    )
    await engine.when_recorded(forked)
    engine.forget_end(forked)
    return Answer(await _operation_answer(call, forked), 201)


async def _operate_on_many(call: ApiCall) -> Answer:
    """Cancels, retries or signals all that match, up to 1,000; a verdict for each."""
    body: BulkRequest = call.body
    _check_bulk(body)
    statuses = ("failed",) if body.do == "retry" else ("running", "paused")
    page = await call.resources.store.executions(await filtered_query(call, body.where, statuses))
    if body.do == "signal" and page.next and not body.dry_run:
        # What was cancelled or retried matches no more, and the rest can be asked for; this would come twice.
        detail = f"more than {len(page.executions):,} match: a signal goes to no more at once"
        raise ApiProblem("invalid_request", detail, hint="let `where` leave more out", pointer="/where")
    verdicts = [
        StartedExecution(execution_id=record.execution_id, status=record.status)
        if body.dry_run
        else await _bulk_verdict(call, body, record)
        for record in page.executions
    ]
    return Answer(BulkAnswer(executions=verdicts, more=bool(page.next)))


def _check_bulk(body: BulkRequest) -> None:
    """Raises ApiProblem: what leaves nothing out must be meant so, and `all` leaves nothing out."""
    filters = body.where != ExecutionFilter(roots=body.where.roots)
    if not filters and not body.all:
        hint = "`where` says which; `all` does it to all that there are"
        raise ApiProblem("invalid_request", "`where` leaves nothing out", hint=hint, pointer="/where")
    if filters and body.all:
        raise ApiProblem("invalid_request", "`all`, and `where` leaves some out", pointer="/all")
    if (body.do == "signal") != bool(body.signal):
        detail = (
            "to signal takes the name of a `signal`" if body.do == "signal" else "`signal` is for `signal`"
        )
        raise ApiProblem("invalid_request", detail, pointer="/signal")


async def _bulk_verdict(call: ApiCall, body: BulkRequest, record: ExecutionRecord) -> StartedExecution:
    execution_id = record.execution_id
    try:
        if body.do == "cancel":
            await _submit(call, execution_id, Cancel(call.caller.name, body.reason))
        elif body.do == "signal":
            await _submit(call, execution_id, _signal_of(call, body.signal, body.payload))
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
    record = await call.execution()
    recorded = await _submit(call, record.execution_id, command)
    return Answer(await _operation_answer(call, record.execution_id, recorded=recorded))


async def _submit(call: ApiCall, execution_id: str, command: RemoteCommand) -> bool:
    """Has it recorded by whoever runs the execution; whether that was done. Raises Refused, StoreError."""
    resources = call.resources
    engine = resources.engine
    record = await resources.store.execution(execution_id)
    if await engine.take_up(execution_id):
        refuse_if_so_already(command, record.status if record else "", owned=True)
        await engine.submit(execution_id, command)
        return True
    if isinstance(command, Resume) and record is not None and not record.ended_at:
        # Nobody runs it here; if another process does, `resume` says so.
        await engine.resume(execution_id)
        await engine.when_recorded(execution_id)
        engine.forget_end(execution_id)
        return True
    if isinstance(command, CompleteStep | SkipStep) and record is not None and record.ended_at:
        # It failed there, and goes on behind it: here, since a server runs what goes on.
        require_room(resources)
        await engine.reopen(execution_id, command)
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


def _document_of(call: ApiCall, source: PlaybookSource | None) -> PlaybookDocument | None:
    return call.resources.playbooks.read(source) if source is not None else None


async def _operation_answer(call: ApiCall, execution_id: str, *, recorded: bool = True) -> OperationAnswer:
    record = await call.resources.store.execution(execution_id)
    assert record is not None  # noqa: S101 - something was just recorded of it
    return OperationAnswer(execution_id=execution_id, status=record.status, recorded=recorded)


async def _reopened_answer(call: ApiCall, before: ExecutionRecord) -> OperationAnswer:
    """With the steps that run again, as the event says that opened it."""
    rows = await call.resources.store.read(before.execution_id, after=before.version, limit=_ROWS_READ)
    bodies = [event.body for event in decode_rows(before.execution_id, rows)]
    steps = [body.steps for body in bodies if isinstance(body, ExecutionRetried | IterationsRedriven)]
    answer = await _operation_answer(call, before.execution_id)
    return replace(answer, steps=list(steps[0]) if steps else [])


def _operation(name: str, handler: Any, body: Any, summary: str, **more: Any) -> Endpoint:
    fields: dict[str, Any] = {
        "name": f"{name}_execution",
        "method": "POST",
        "path": f"{EXECUTION_PATH}/{name}",
        "role": "operator",
        "summary": summary,
        "handler": handler,
        "answers": (OperationAnswer,),
        "body": body,
        "codes": ("not_found", "refused", "invalid_request"),
    }
    return Endpoint(**{**fields, **more})


_DOCUMENT_CODES = ("not_found", "refused", "invalid_request", "invalid_playbook", "too_large", "overloaded")
_STEP_CODES = ("not_found", "refused", "invalid_request", "too_large", "overloaded")
OPERATION_ENDPOINTS = (
    Endpoint(
        name="operate_on_many",
        method="POST",
        path="/api/executions/bulk",
        role="operator",
        summary="Cancel or retry all executions that match, up to 1,000 at once.",
        handler=_operate_on_many,
        answers=(BulkAnswer,),
        body=BulkRequest,
        codes=("invalid_request", "not_found", "overloaded"),
    ),
    _operation("cancel", _cancel_execution, CancelRequest, "End an execution, and all that it started."),
    _operation("pause", _pause_execution, EmptyRequest, "Hold an execution: nothing new begins."),
    _operation("resume", _resume_execution, EmptyRequest, "Go on with an execution that was paused."),
    _operation("signal", _signal_execution, SignalRequest, "Send a signal to an execution."),
    _operation(
        "retry",
        _retry_execution,
        RetryRequestBody,
        "Go on with an execution at what failed, also while other branches run; `dry_run` says with what.",
        answers=(OperationAnswer, ReopenPreview),
        query=DryRunQuery,
        largest=LARGE_BODY,
        codes=_DOCUMENT_CODES,
    ),
    _operation(
        "redrive",
        _redrive_execution,
        RedriveRequestBody,
        "Run the failed iterations of loops that have ended again; `dry_run` says which.",
        answers=(OperationAnswer, ReopenPreview),
        query=DryRunQuery,
        largest=LARGE_BODY,
        codes=_DOCUMENT_CODES,
    ),
    _operation(
        "complete",
        _complete_execution,
        CompleteRequest,
        "End what is stuck at a step, or failed there, as done with a result.",
        largest=LARGE_BODY,
        codes=_STEP_CODES,
    ),
    _operation(
        "skip",
        _skip_execution,
        SkipRequest,
        "End what is stuck at a step, or failed there, without a result.",
        codes=_STEP_CODES,
    ),
    _operation(
        "fork",
        _fork_execution,
        ForkRequestBody,
        "Run a copy of an execution from one of its events on; `dry_run` says what is kept and runs again.",
        answers=(OperationAnswer, ForkPreview),
        query=DryRunQuery,
        status=201,
        also=(200,),
        largest=LARGE_BODY,
        codes=_DOCUMENT_CODES,
    ),
)
