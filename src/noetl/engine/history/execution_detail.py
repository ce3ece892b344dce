"""All there is to say about an execution in one value, for programs here and over HTTP."""

from collections.abc import Iterable
from typing import Any

from noetl.dsl.document.problem import Problem
from noetl.engine.catalog.playbook_record import PlaybookSource, registered_name
from noetl.engine.summary import execution_of, marking_json
from noetl.events.bodies import PlaybookExecutionRequested
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.secret import printable_value
from noetl.model.timestamp import iso_time
from noetl.ports.http_api import DocumentProblem, ExecutionDetail
from noetl.ports.store import ExecutionRecord


def execution_detail(
    record: ExecutionRecord,
    request: PlaybookExecutionRequested,
    state: ExecutionState,
    source: PlaybookSource,
    *,
    until: int,
    waiting: Iterable[dict[str, str]] = (),
) -> ExecutionDetail:
    """`until` is up to when the time of one that is not over counts; `waiting`, what waits for somebody."""
    summary = execution_of(state, last=until)
    fields: dict[str, Any] = {name: getattr(summary, name) for name in summary.__struct_fields__}
    times = state.step_times(until)
    # The same document may have been stored by others before. A fork may run another one than it began with.
    file = request.file if record.playbook == request.hash else source.file
    registered = registered_name(record.path, file)
    fields |= {
        "version": request.version or summary.version,
        "warnings": document_problems(summary.warnings),
        "waiting": [*summary.waiting, *waiting],
        "steps": {
            name: {**step, **_troubled_runs(state, name), "duration_ms": times[name] // 1_000}
            for name, step in summary.steps.items()
        },
    }
    return ExecutionDetail(
        **fields,
        forked_at=state.fork.seq if state.fork is not None else None,
        marking=marking_json(state),
        workload=printable_value(state.inputs.workload),
        labels=record.labels,
        priority=record.priority,
        hash=record.playbook,
        file=None if registered else file or None,
        registered=registered or None,
        events=state.version,
        started_at=iso_time(record.started_at),
        ended_at=iso_time(state.ended_at) if state.over else None,
        parent=record.parent or None,
        requested_by=request.requested_by or None,
    )


def document_problems(problems: Iterable[Problem]) -> list[DocumentProblem]:
    return [
        DocumentProblem(
            file=problem.file,
            line=problem.line,
            column=problem.column,
            code=problem.code,
            severity=problem.severity,
            message=problem.message,
            hint=problem.hint,
        )
        for problem in problems
    ]


def _troubled_runs(state: ExecutionState, step: str) -> dict[str, int]:
    """How many of the runs of a step failed, were cancelled or skipped, if any."""
    summary = state.summaries[step]
    counts = {"failed": summary.failed, "cancelled": summary.cancelled, "skipped": summary.skipped}
    return {name: number for name, number in counts.items() if number}
