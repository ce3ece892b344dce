"""Executions: lists, and one as it is."""

from typing import Annotated

from msgspec import UNSET, Meta, Struct

from noetl.engine.history.execution_detail import execution_detail
from noetl.engine.history.failed_attempts import FailedAttempts
from noetl.engine.history.failure_chain import read_failures
from noetl.engine.history.lookup import decode_rows, request_event_of, require_execution
from noetl.engine.history.read import History, RecordedHistory, read_history, read_recorded_source
from noetl.kernel.derived_rows import ready_run
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.timestamp import iso_time, optional_time, parse_iso
from noetl.ports.http_api import (
    MOST_AT_ONCE,
    ExecutionDetail,
    ExecutionFilter,
    ExecutionItem,
    ExecutionItems,
    FailureChain,
    PageSize,
    Status,
    VersionNumber,
)
from noetl.ports.store import ExecutionQuery, ExecutionRecord
from noetl.server.engine_observer import problem_of_run
from noetl.server.http.catalog_endpoints import find_entry
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.server.http.event_bell import wait_for_end
from noetl.server.http.problems import ApiProblem
from noetl.server.http.resources import ServerResources
from noetl.server.plane.worker_plane import WorkerPlane

MOST_WAIT = 300
"""Seconds that a request may wait for the end of an execution."""


class ListQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`id` and `path` begin theirs. `label` is `name=value`; it and `status` may be repeated.

    They began at `since` or later, and before `until`. `version` is a number of the catalog, and wants the
    whole `path`. `q` stands in id, path, labels or the message of the error.
    """

    id: str = ""
    status: tuple[Status, ...] = ()
    path: str = ""
    label: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    version: VersionNumber | None = None
    error_kind: str = ""
    q: str = ""
    parent: str = ""
    roots: bool = False
    cursor: str = ""
    limit: PageSize = 100


class WaitQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """`wait` for its end, but for no longer than so many seconds."""

    wait: Annotated[float, Meta(ge=0, le=MOST_WAIT)] = 0.0


async def _list_executions(call: ApiCall) -> Answer:
    query: ListQuery = call.query
    stored = ExecutionQuery(
        execution_id=query.id,
        status=query.status,
        path=query.path,
        labels=dict(map(_label, query.label)),
        since=_moment_of(query.since, "/since"),
        until=_moment_of(query.until, "/until"),
        playbook=await _hash_of_version(call, query.path, query.version),
        error_kind=query.error_kind,
        text=query.q,
        parent=query.parent,
        roots=query.roots,
        cursor=query.cursor,
        limit=query.limit,
    )
    try:
        page = await call.resources.searched_store.executions(stored)
    except ValueError as error:
        raise ApiProblem("invalid_request", str(error), pointer="/cursor") from None
    items = ExecutionItems(
        executions=list(map(execution_item, page.executions)), next_cursor=page.next or None
    )
    return Answer(items)


async def filtered_query(call: ApiCall, where: ExecutionFilter, statuses: tuple[str, ...]) -> ExecutionQuery:
    """What a filter in a body means, up to 1,000. Raises ApiProblem."""
    return ExecutionQuery(
        status=(where.status,) if where.status is not UNSET else statuses,
        path=where.path,
        labels=where.labels,
        since=_moment_of(where.since, "/where/since"),
        until=_moment_of(where.until, "/where/until"),
        playbook=await _hash_of_version(call, where.path, where.version),
        error_kind=where.error_kind,
        text=where.q,
        roots=where.roots,
        limit=MOST_AT_ONCE,
    )


async def _hash_of_version(call: ApiCall, path: str, version: int | None) -> str:
    """The hash of a registered document; empty for none."""
    if version is None:
        return ""
    if not path:
        raise ApiProblem("invalid_request", "a `version` is one of a `path`", pointer="/version")
    return (await find_entry(call, path, version)).hash


async def _read_execution(call: ApiCall) -> Answer:
    return Answer(await read_detail(call.resources, call.part("execution_id"), call.query.wait))


async def read_detail(resources: ServerResources, execution_id: str, wait: float) -> ExecutionDetail:
    """How it is; at its end if that comes within `wait` seconds. Raises ExecutionUnknown."""
    store = resources.store
    if wait:
        state = await wait_for_end(store, resources.bell, execution_id, wait, resources.engine.is_running)
        if state is not None:
            # What `_history` would fold from all of its events, which may be many.
            record = await require_execution(store, execution_id)
            first = decode_rows(execution_id, await store.read(execution_id, limit=1))
            source = await read_recorded_source(store, record)
            return execution_detail(record, request_event_of(first), state, source, until=0)

    def describe(history: RecordedHistory, state: ExecutionState) -> ExecutionDetail:
        waiting, last_ts = _waiting_runs(state, resources.plane), history.events[-1].ts
        return execution_detail(
            history.record, history.request, state, history.source, until=last_ts, waiting=waiting
        )

    await require_execution(store, execution_id)
    if (detail := await resources.views.ask_watched(execution_id, describe)) is not None:
        return detail
    history = await _history(resources, execution_id)
    return describe(history, history.state)


async def _read_failures(call: ApiCall) -> Answer:
    """How it failed, and the children that failed it."""
    history, resources = await _history(call.resources, call.part("execution_id")), call.resources
    attempts = FailedAttempts()
    attempts.observe(history.record.execution_id, history.events)
    kinds = resources.playbooks.allow_kinds
    chain = await read_failures(
        resources.store, resources.logs, history.state, history.source, attempts, allow_kinds=kinds
    )
    return Answer(FailureChain(failures=chain))


async def _history(resources: ServerResources, execution_id: str) -> History:
    record = await require_execution(resources.store, execution_id)
    return await read_history(resources.store, record.execution_id, resources.playbooks.allow_kinds)


def execution_item(record: ExecutionRecord) -> ExecutionItem:
    """An execution as lists have it."""
    last = record.ended_at or record.updated_at
    return ExecutionItem(
        execution_id=record.execution_id,
        status=record.status,
        path=record.path,
        started_at=iso_time(record.started_at),
        ended_at=optional_time(record.ended_at),
        duration_ms=max(0, last - record.started_at) // 1_000,
        labels=record.labels,
        priority=record.priority,
        parent=record.parent or None,
        forked_from=record.forked_from or None,
        events=record.version,
    )


def _waiting_runs(state: ExecutionState, plane: WorkerPlane) -> list[dict[str, str]]:
    """The steps with runs that are ready and that no worker takes, and why."""
    if state.over or state.paused or state.stopping:
        return []
    reasons: dict[tuple[str, str], None] = {}
    unproven = plane.needs_checks.unserved_pools(state.execution_id)
    for name in state.ready:
        run = state.runs[name]
        needs = ready_run(state, run)
        reason = problem_of_run(needs, plane.sessions)
        members = [session for session in plane.sessions if needs.pool in session.pools]
        if not reason and unproven:
            who = f"no worker of the pool `{unproven[0]}` is there"
            reason = f"{who} to say whether what it needs is there"
        elif not reason and all(session.credit <= 0 for session in members):
            reason = f"all workers of the pool `{needs.pool}` are busy"
        if reason:
            reasons[run.step.name, reason] = None
    return [{"step": step, "reason": reason} for step, reason in reasons]


def _label(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ApiProblem("invalid_request", f"`{text}` is no label: NAME=VALUE", pointer="/label")
    return name, value


def _moment_of(text: str, pointer: str) -> int:
    """Microseconds since 1970 of a time in ISO 8601; 0 for none."""
    try:
        return max(0, parse_iso(text)) if text else 0
    except (ValueError, OverflowError):
        raise ApiProblem("invalid_request", f"`{text}` is no time in ISO 8601", pointer=pointer) from None


EXECUTION_PATH = "/api/executions/{execution_id}"


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
        codes=("invalid_request", "not_found", "overloaded"),
    ),
    Endpoint(
        name="read_execution",
        method="GET",
        path=EXECUTION_PATH,
        role="viewer",
        summary="An execution as it is; with `wait`, at its end.",
        handler=_read_execution,
        answers=(ExecutionDetail,),
        query=WaitQuery,
        codes=("not_found", "invalid_request"),
    ),
    Endpoint(
        name="read_failures",
        method="GET",
        path=f"{EXECUTION_PATH}/failures",
        role="viewer",
        summary="How an execution failed, then the children that failed it, down to the lowest.",
        handler=_read_failures,
        answers=(FailureChain,),
        codes=("not_found",),
    ),
)
