"""Starting executions. A request is recorded before it is judged: a refused one can be looked at, too."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from typing import Any

from noetl.dsl.document.problem import PlaybookInvalid
from noetl.engine.catalog.catalog_playbooks import entry_source
from noetl.engine.catalog.playbook_record import PlaybookSource, decode_source
from noetl.engine.catalog.playbooks import LOCAL_HINT, LOCAL_REFUSED, PlaybookDocument
from noetl.engine.catalog.preflight import CannotRun
from noetl.engine.engine import BegunExecution
from noetl.model.errors import NoetlError
from noetl.model.normalisation import normalise
from noetl.model.outcome import ErrorInfo, ErrorKind
from noetl.ports.catalog import AuditEntry
from noetl.ports.http_api import (
    ExecutionDetail,
    StartedBatch,
    StartedExecution,
    StartExecution,
    StartExecutions,
)
from noetl.ports.page_api import PlanAnswer
from noetl.server.http.access import Caller, may_act_as
from noetl.server.http.endpoint import LARGE_BODY, Answer, ApiCall, Endpoint, decode_json_body
from noetl.server.http.execution_endpoints import WaitQuery, read_detail
from noetl.server.http.problems import ApiProblem, problem_of
from noetl.server.http.resources import ServerResources
from noetl.server.http.start_plan import plan_of_document, refused_plan

STARTED_TOGETHER = 32
INLINE_NAME = "<inline>"


class StartQuery(WaitQuery, frozen=True, forbid_unknown_fields=True):
    """With `dry_run` nothing is started or recorded, and the answer says what would be."""

    dry_run: bool = False


async def _start_executions(call: ApiCall) -> Answer:
    """One execution, or a batch of them with a verdict for each."""
    if call.query.dry_run:
        return Answer(await _plan_start(call, decode_json_body(call.body, StartExecution)))
    require_room(call.resources)
    if b'"executions"' in call.body and "executions" in (decode_json_body(call.body, dict[str, Any])):
        if call.query.wait:
            raise ApiProblem("invalid_request", "one end can be waited for, not many", pointer="/wait")
        batch = decode_json_body(call.body, StartExecutions)
        return Answer(StartedBatch(executions=await _start_batch(call, batch.executions)), 201)
    request = decode_json_body(call.body, StartExecution)
    audit = (call.audit_entry(201),)
    execution_id, new = await start_execution(call.resources, call.caller, request, audit)
    answer: StartedExecution | ExecutionDetail
    if call.query.wait:
        answer = await read_detail(call.resources, execution_id, call.query.wait)
    else:
        answer = await _read_started(call.resources, execution_id)
    headers = {"Location": f"/api/executions/{execution_id}"}
    return Answer(answer, 201 if new else 200, headers, audited=new)


async def _plan_start(call: ApiCall, request: StartExecution) -> PlanAnswer:
    """Raises ApiProblem for what is wrong with the request as such."""
    resources = call.resources
    _check_form(call.caller, request)
    try:
        document = await _find_document(resources, request)
    except (ApiProblem, PlaybookInvalid) as error:
        return refused_plan(request, _problem_for_caller(error))
    entry = await resources.store.catalog_entry(request.path, request.version or 0) if request.path else None
    version = entry.version if entry is not None else None
    try:
        _require_pool(resources, document)
        await resources.playbooks.fetch_children(document)
        return await plan_of_document(resources, request, document, version, None)
    except (ApiProblem, PlaybookInvalid, CannotRun) as error:
        return await plan_of_document(resources, request, document, version, _problem_for_caller(error))


def _problem_for_caller(error: ApiProblem | PlaybookInvalid | CannotRun) -> ApiProblem:
    problem = problem_of(error)
    assert problem is not None  # noqa: S101 - each of these has one
    return problem


async def _start_batch(call: ApiCall, requests: Sequence[StartExecution]) -> list[StartedExecution]:
    """Some at a time: these wait for the disk together, and between them others have their turn."""
    verdicts: list[StartedExecution] = []
    for first in range(0, len(requests), STARTED_TOGETHER):
        together = requests[first : first + STARTED_TOGETHER]
        verdicts += await asyncio.gather(*[_verdict(call.resources, call.caller, each) for each in together])
    return verdicts


async def _verdict(resources: ServerResources, caller: Caller, request: StartExecution) -> StartedExecution:
    try:
        begun = await start_execution(resources, caller, request)
        return await _read_started(resources, begun.execution_id)
    except NoetlError as error:
        problem = problem_of(error)
        if problem is None:
            raise
        return StartedExecution(execution_id=problem.execution_id, error=problem.document())


async def start_execution(
    resources: ServerResources, caller: Caller, request: StartExecution, audit: Iterable[AuditEntry] = ()
) -> BegunExecution:
    """An execution, durable, with `audit` if it is new.

    Raises ApiProblem, StoreError, KeyConflict.

    What is wrong with the request as such is not recorded; a playbook that cannot run is.
    """
    engine = resources.engine
    _check_form(caller, request)
    values: dict[str, Any] = {
        "workload": normalise(request.workload),
        "ctx": normalise(request.ctx),
        "labels": request.labels,
        "priority": request.priority,
        "by": caller.name,
    }
    try:
        document = await _find_document(resources, request)
        _require_pool(resources, document)
        await resources.playbooks.fetch_children(document)
        begun = await engine.begin(
            document.source,
            idempotency_key=request.idempotency_key,
            timeout=request.timeout,
            audit=audit,
            **values,
        )
    except (ApiProblem, PlaybookInvalid, CannotRun) as error:
        problem = _problem_for_caller(error)
        message = f"{problem}; {problem.hint}" if problem.hint else str(problem)
        error_kind: ErrorKind = "not_found" if problem.code == "not_found" else "input"
        problem.execution_id = await engine.refuse(
            request.path or "", ErrorInfo(kind=error_kind, message=message), **values
        )
        raise problem from None
    await engine.when_recorded(begun.execution_id)
    engine.forget_end(begun.execution_id)
    return begun


async def _read_started(resources: ServerResources, execution_id: str) -> StartedExecution:
    record = await resources.store.execution(execution_id)
    assert record is not None  # noqa: S101 - it is durable
    return StartedExecution(execution_id=record.execution_id, status=record.status)


def require_room(resources: ServerResources) -> None:
    """Raises ApiProblem `overloaded`: new work is put off before what runs must wait.

    Raises StoreError while nothing can be written: who asks for something new need not wait for that.
    """
    if resources.bell.closed:
        raise ApiProblem("overloaded", "the server is about to end")
    if (failure := resources.engine.write_failure) is not None:
        raise failure
    queued: int = getattr(resources.store, "queued_bytes", 0)
    limits = resources.limits
    if queued > limits.queued_bytes or resources.engine.live_executions >= limits.live_executions:
        raise ApiProblem("overloaded", "too much is running; try again", headers={"Retry-After": "1"})


def _check_form(caller: Caller, request: StartExecution) -> None:
    """Raises ApiProblem for what is not recorded: it names no playbook, or may not bring one."""
    names = [name for name in ("path", "playbook_id", "playbook") if getattr(request, name) is not None]
    if len(names) != 1:
        detail = "exactly one of `path`, `playbook_id` and `playbook` says what to run"
        raise ApiProblem("invalid_request", detail, pointer=f"/{names[1]}" if names else "")
    if request.version is not None and names != ["path"]:
        raise ApiProblem("invalid_request", "only a `path` has versions", pointer="/version")
    if request.dialect is not None and names != ["playbook"]:
        detail = "a registered playbook was read already; only an inline one is read as a dialect"
        raise ApiProblem("invalid_request", detail, pointer="/dialect")
    if request.playbook is not None and not may_act_as(caller.role, "author"):
        raise ApiProblem("forbidden", "an inline document needs the role `author`", pointer="/playbook")


async def _find_document(resources: ServerResources, request: StartExecution) -> PlaybookDocument:
    """Raises PlaybookInvalid, ApiProblem `not_found`."""
    playbooks = resources.playbooks
    if request.playbook is not None:
        return playbooks.read(inline_source(resources, request.playbook, request.dialect))
    if request.playbook_id is not None:
        data = await resources.store.playbook(request.playbook_id)
        if data is None:
            raise ApiProblem("not_found", f"no playbook has the id `{request.playbook_id}`")
        return playbooks.read(decode_source(data))
    assert request.path is not None  # noqa: S101 - `_check_form` looked
    entry = await resources.store.catalog_entry(request.path, request.version or 0)
    if entry is None:
        name = f"{request.path}@{request.version}" if request.version else request.path
        hint = "`noetl catalog list` names all"
        raise ApiProblem("not_found", f"no playbook `{name}` is registered", hint=hint)
    return playbooks.read(entry_source(entry, playbooks.directory))


def inline_source(
    resources: ServerResources, playbook: str | dict[str, Any], dialect: str | None
) -> PlaybookSource:
    """A document that came with a request: text, or the document itself."""
    text = playbook if isinstance(playbook, str) else json.dumps(playbook, indent=1, ensure_ascii=False)
    file = str(resources.directory / "inline.yaml")
    return PlaybookSource(text, INLINE_NAME, file, dialect)


def _require_pool(resources: ServerResources, document: PlaybookDocument) -> None:
    """Raises ApiProblem `refused` for what asks to run beside the store where that is not allowed."""
    if document.playbook.executor.kind == "local" and not resources.playbooks.allow_local:
        raise ApiProblem("refused", LOCAL_REFUSED, status=422, hint=LOCAL_HINT)


START_ENDPOINT = Endpoint(
    name="start_execution",
    method="POST",
    path="/api/executions",
    role="operator",
    summary=(
        "Start an execution, with `wait` until its end, or up to 1,000 with a verdict for each; "
        "`dry_run` says what one would do."
    ),
    handler=_start_executions,
    answers=(StartedExecution, StartedBatch, ExecutionDetail, PlanAnswer),
    status=201,
    also=(200,),
    query=StartQuery,
    body=bytes,
    largest=LARGE_BODY,
    codes=(
        "invalid_request",
        "invalid_playbook",
        "not_found",
        "refused",
        "conflict",
        "forbidden",
        "too_large",
        "overloaded",
    ),
)
