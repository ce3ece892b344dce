"""How the newest executions of a playbook went, and how long its steps took."""

import math
from collections import Counter
from collections.abc import Sequence

from noetl.engine.history.lookup import decode_rows
from noetl.events.bodies import LoopDone, StepDone, StepFailed, StepScheduled
from noetl.events.identifiers import run_id
from noetl.ports.page_api import PlaybookStatistics, StepStatistics
from noetl.ports.store import ExecutionQuery, ExecutionRecord
from noetl.server.http.catalog_endpoints import find_entry
from noetl.server.http.endpoint import Answer, ApiCall, Endpoint
from noetl.server.http.execution_endpoints import execution_item

MOST_EXECUTIONS = 50
"""Those that are looked at, the newest."""
MOST_EVENTS = 5_000
"""Of each of these: what comes after them has no part in the durations of steps."""


class _StepRuns:
    def __init__(self) -> None:
        self.milliseconds: list[float] = []
        self.failed = 0

    def statistics(self, step: str) -> StepStatistics:
        return StepStatistics(
            step=step,
            runs=len(self.milliseconds),
            failed=self.failed,
            median_ms=quantile(self.milliseconds, 0.5),
            p95_ms=quantile(self.milliseconds, 0.95),
            most_ms=max(self.milliseconds),
        )


async def _read_statistics(call: ApiCall) -> Answer:
    path = call.part("path")
    await find_entry(call, path, 0)
    records = await _newest(call, path)
    steps: dict[str, _StepRuns] = {}
    for record in records:
        await _measure_steps(call, record, steps)
    ended = [record for record in records if record.ended_at]
    lengths = [(record.ended_at - record.started_at) / 1_000 for record in ended]
    return Answer(
        PlaybookStatistics(
            path=path,
            executions=list(map(execution_item, records)),
            ended=dict(Counter(record.status for record in ended)),
            median_ms=quantile(lengths, 0.5),
            p95_ms=quantile(lengths, 0.95),
            steps=[runs.statistics(step) for step, runs in steps.items()],
        )
    )


async def _newest(call: ApiCall, path: str) -> list[ExecutionRecord]:
    """A query is for all paths that begin so."""
    records: list[ExecutionRecord] = []
    cursor = ""
    while len(records) < MOST_EXECUTIONS:
        query = ExecutionQuery(path=path, cursor=cursor, limit=1_000)
        page = await call.resources.searched_store.executions(query)
        records += [record for record in page.executions if record.path == path]
        cursor = page.next
        if not cursor:
            break
    return records[:MOST_EXECUTIONS]


async def _measure_steps(call: ApiCall, record: ExecutionRecord, steps: dict[str, _StepRuns]) -> None:
    """The ended runs of an execution, by step; one that went on after its end is measured to its first."""
    rows = await call.resources.searched_store.read(record.execution_id, limit=MOST_EVENTS)
    begun: dict[str, tuple[str, int]] = {}
    for event in decode_rows(record.execution_id, rows):
        match event.body:
            case StepScheduled() as body:
                begun[run_id(event.seq)] = body.step, event.ts
            case (StepDone() | StepFailed() | LoopDone()) as body if body.run in begun:
                step, since = begun.pop(body.run)
                runs = steps.setdefault(step, _StepRuns())
                runs.milliseconds.append((event.ts - since) / 1_000)
                runs.failed += isinstance(body, StepFailed)


def quantile(values: Sequence[float], part: float) -> float:
    """The least value that so great a part of them does not exceed; 0 if there are none."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)] if ordered else 0.0


STATISTICS_ENDPOINT = Endpoint(
    name="read_statistics",
    method="GET",
    path="/api/catalog/{path:path}/statistics",
    role="viewer",
    summary="The newest executions of a playbook, how they ended, and how long its steps took.",
    handler=_read_statistics,
    answers=(PlaybookStatistics,),
    codes=("not_found",),
)
"""Before the path of a playbook, which takes everything below it."""
