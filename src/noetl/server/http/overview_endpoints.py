"""At a glance: what needs somebody, what runs, what waits in queues and why."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence

from msgspec import structs

from noetl.engine.history.lookup import decode_rows
from noetl.events.bodies import PlaybookProcessed
from noetl.model.outcome import ErrorInfo
from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.page_api import (
    FailureGroup,
    HourCount,
    LostWorker,
    Overview,
    QueueAnswer,
    QueuedRun,
    QueuePool,
)
from noetl.ports.store import ExecutionQuery, ExecutionRecord
from noetl.server.engine_observer import problem_of_run
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.server.http.execution_endpoints import execution_item
from noetl.server.http.inbox_endpoints import read_waits
from noetl.server.http.resources import ServerResources
from noetl.server.http.worker_endpoints import read_pools

MOST_SHOWN = 20
"""Executions, waits and groups of failures in an overview, and runs of a pool in the queue."""
MOST_COUNTED = 10_000
"""Executions of the last 24 hours that are looked at, the newest."""
MOST_FAILURES = 1_000
_HOUR = 3_600_000_000
_DAY = 24 * _HOUR


async def _read_overview(call: ApiCall) -> Answer:
    resources, now = call.resources, now_micros()
    recent = [record async for record in _executions(call, now - _DAY)]
    running = [record async for record in _executions(call, 0, "running", "paused")]
    waits = await read_waits(call)
    stuck = set(resources.observer.stuck_executions(resources.sessions))
    catalog = await resources.store.catalog_entries(limit=1_000)
    overview = Overview(
        failures=(await _failure_groups(call, recent))[:MOST_SHOWN],
        waits=waits[:MOST_SHOWN],
        waiting=len(waits),
        lost_workers=await _lost_workers(resources, now - _DAY),
        stuck=[execution_item(record) for record in running if record.execution_id in stuck][:MOST_SHOWN],
        executions=list(map(execution_item, running[:MOST_SHOWN])),
        running=sum(record.status == "running" for record in running),
        paused=sum(record.status == "paused" for record in running),
        hours=_hours(recent, now),
        playbooks=len(catalog.entries),
    )
    return Answer(overview)


async def _executions(call: ApiCall, since: int, *statuses: str) -> AsyncIterator[ExecutionRecord]:
    """Those that began since then, the newest first, no more than `MOST_COUNTED`."""
    cursor, left = "", MOST_COUNTED
    while left > 0:
        query = ExecutionQuery(status=statuses, since=since, cursor=cursor, limit=1_000)
        page = await call.resources.store.executions(query)
        for record in page.executions:
            yield record
        cursor, left = page.next, left - len(page.executions)
        if not cursor:
            return


async def _failure_groups(call: ApiCall, recent: Sequence[ExecutionRecord]) -> list[FailureGroup]:
    """By playbook and error, the most frequent first. A child's failure is that of its parent, too."""
    failed = [record for record in recent if record.status == "failed"][:MOST_FAILURES]
    groups: dict[tuple[str, str, str, str], list[ExecutionRecord]] = {}
    for record in failed:
        error = await _error_of(call, record)
        step = str(error.details.get("step", "")) if error is not None else ""
        kind, message = (error.kind, error.message) if error is not None else ("", "")
        groups.setdefault((record.path, step, kind, message), []).append(record)
    items = [
        FailureGroup(
            path=path,
            step=step,
            kind=kind,
            message=message,
            count=len(records),
            newest=records[0].execution_id,
            first_at=iso_time(min(record.ended_at for record in records)),
            last_at=iso_time(max(record.ended_at for record in records)),
        )
        for (path, step, kind, message), records in groups.items()
    ]
    return sorted(items, key=lambda group: (-group.count, group.path, group.message))


async def _error_of(call: ApiCall, record: ExecutionRecord) -> ErrorInfo | None:
    """What it ended with: its last event says so."""
    rows = await call.resources.store.read(record.execution_id, after=record.version - 1, limit=1)
    for event in decode_rows(record.execution_id, rows):
        if isinstance(event.body, PlaybookProcessed):
            return event.body.error
    return None


def _hours(recent: Sequence[ExecutionRecord], now: int) -> list[HourCount]:
    """The last 24, the oldest first, each from the full hour."""
    first = now // _HOUR * _HOUR - 23 * _HOUR
    counts: Counter[tuple[int, str]] = Counter()
    for record in recent:
        status = "running" if record.status == "paused" else record.status
        counts[record.started_at // _HOUR * _HOUR, status] += 1
    return [
        HourCount(
            at=iso_time(hour),
            running=counts[hour, "running"],
            completed=counts[hour, "completed"],
            failed=counts[hour, "failed"],
            cancelled=counts[hour, "cancelled"],
        )
        for hour in range(first, first + _DAY, _HOUR)
    ]


async def _lost_workers(resources: ServerResources, since: int) -> list[LostWorker]:
    """Who has come back under its name is not lost."""
    present = {session.worker for session in resources.sessions.workers}
    return [
        LostWorker(worker=lost.worker, lost_at=iso_time(lost.at), runs=lost.runs)
        for lost in await resources.lost_workers.since(since)
        if lost.worker not in present
    ]


async def _read_queue(call: ApiCall) -> Answer:
    runs: dict[str, list[QueuedRun]] = {}
    resources = call.resources
    for execution_id, name, waiting, age in resources.observer.waiting_runs():
        pool_runs = runs.setdefault(waiting.needs.pool, [])
        if len(pool_runs) >= MOST_SHOWN:
            continue
        record = await resources.store.execution(execution_id)
        problem = problem_of_run(waiting.needs, resources.sessions.workers)
        pool_runs.append(
            QueuedRun(
                execution_id=execution_id,
                path=record.path if record is not None else "",
                run=name,
                step=_step_of(resources, execution_id, name),
                kinds=list(waiting.needs.kinds),
                priority=waiting.needs.priority,
                age=age,
                reason=problem or "all slots of the workers that could take it are in use",
            )
        )
    pools = [QueuePool(**structs.asdict(pool), runs=runs.get(pool.pool, [])) for pool in read_pools(call)]
    return Answer(QueueAnswer(pools=pools))


def _step_of(resources: ServerResources, execution_id: str, run: str) -> str | None:
    """None for one that is not in memory at the moment."""
    live = resources.engine.live_state(execution_id)
    state = live.runs.get(run.partition("/")[0]) if live is not None else None
    return state.step.name if state is not None else None


OVERVIEW_ENDPOINTS = (
    Endpoint(
        name="read_overview",
        method="GET",
        path="/api/overview",
        role="viewer",
        summary="What needs somebody, what runs, and the last 24 hours.",
        handler=_read_overview,
        answers=(Overview,),
    ),
    Endpoint(
        name="read_queue",
        method="GET",
        path="/api/queue",
        role="viewer",
        summary="By pool: the oldest runs that are ready, and why no worker has them.",
        handler=_read_queue,
        answers=(QueueAnswer,),
    ),
)
