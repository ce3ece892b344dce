"""Why an execution failed, with all that is known of it, down to the child where it began."""

from collections.abc import Iterable, Sequence

from noetl.engine.catalog.playbook_record import PlaybookSource, registered_name
from noetl.engine.history.failed_attempts import FailedAttempt, FailedAttempts
from noetl.engine.history.read import read_history
from noetl.engine.summary import first_failure
from noetl.engine.task_log import LogLine, TaskLog
from noetl.events.bodies import TaskStarted
from noetl.kernel.state.execution_state import ExecutionState
from noetl.model.outcome import ErrorInfo
from noetl.model.secret import printable_value
from noetl.ports.http_api import FailureReport
from noetl.ports.results import ResultError
from noetl.ports.store import Store, StoreError

MOST_PRINTED = 100
"""Lines that are kept of what the attempt printed."""


async def read_failures(
    store: Store,
    logs: TaskLog,
    state: ExecutionState,
    source: PlaybookSource,
    attempts: FailedAttempts,
    *,
    allow_kinds: Iterable[str] = (),
) -> list[FailureReport]:
    """Of this execution, then of the children that failed it; what cannot be read ends it.

    `attempts` must have observed this execution, and observes the children.
    """
    reports: list[FailureReport] = []
    if first_failure(state) is None:
        return reports
    while True:
        log = await _read_log(logs, state.execution_id)
        reports.append(describe_failure(state, source, attempts, log))
        child_id = _failed_child(state, attempts)
        if not child_id:
            return reports
        try:
            history = await read_history(store, child_id, allow_kinds)
            source = history.source
        except StoreError:
            return reports  # they say what failed without it
        state = history.state
        if state.failures and attempts.attempt_of(child_id, state.failures[0].run) is None:
            attempts.observe(child_id, history.events)


async def _read_log(logs: TaskLog, execution_id: str) -> list[LogLine]:
    """Where what was printed cannot be read, one line says so: the rest is known all the same."""
    try:
        return await logs.tail(execution_id).read()
    except ResultError as error:
        return [LogLine(ts="", text=f"the log cannot be read: {error}", full=True)]


def describe_failure(
    state: ExecutionState, source: PlaybookSource, attempts: FailedAttempts, log: Sequence[LogLine] = ()
) -> FailureReport:
    """How this execution failed; `log` is what its tasks printed."""
    error = first_failure(state)
    details = error.details if error is not None else {}
    location, traceback, attempt = None, "", None
    path = state.plan.playbook.metadata.path
    if error is not None:
        from noetl.engine.history.failure_location import (  # noqa: PLC0415 - it reads documents: slow to import
            FailureLocator,
        )

        attempt = attempts.attempt_with(state, error)
        locator = FailureLocator(error, source, attempt)
        traceback = locator.traceback_text() if locator.traceback.strip() else ""
        location = locator.location()
    return FailureReport(
        execution_id=state.execution_id,
        playbook=path,
        status=state.status,
        step=details.get("step") or None,
        task=details.get("task") or None,
        attempt=details.get("attempt") or None,
        iteration=details.get("index") if error is not None and error.kind == "iteration_failed" else None,
        kind=error.kind if error is not None else None,
        message=error.message if error is not None else "",
        cause=_cause(error),
        location=location,
        input=printable_value(attempt.started.input) if attempt is not None else None,
        printed=_printed_lines(log, attempt, locator.traceback) if attempt is not None else [],
        traceback=traceback,
        logged=bool(log),
        retriable=state.retriable,
        document=source.name,
        file="" if registered_name(path, source.file) else source.file,
    )


def _failed_child(state: ExecutionState, attempts: FailedAttempts) -> str:
    """The child whose failure is that of the execution; empty if something else is."""
    if state.status != "failed" or not state.failures:
        return ""
    attempt = attempts.attempt_of(state.execution_id, state.failures[0].run)
    if attempt is None or attempt.processed is None:
        return ""
    child = attempt.processed.outcome.helpers.get("playbook", {})
    return str(child["execution_id"]) if child.get("status") in ("failed", "cancelled") else ""


def _cause(error: ErrorInfo | None) -> str:
    """Empty also if what failed may pass by itself."""
    if error is None or error.retryable:
        return ""
    cause = error.details.get("cause")
    if error.kind == "iteration_failed" and isinstance(cause, dict):
        return str(cause.get("kind", error.kind))
    return error.kind


def _printed_lines(log: Iterable[LogLine], attempt: FailedAttempt, traceback: str) -> list[str]:
    """What this attempt printed, and whether something is missing from the log.

    A tool's traceback stands in its log, too, and is left out.
    """
    started: TaskStarted = attempt.started
    printed_by = (started.run, started.task, started.iteration, started.attempt)
    lines = [
        line.text
        for line in log
        if line.full or (line.run, line.task, line.iteration or 0, line.attempt) == printed_by
    ]
    ending = traceback.splitlines()
    if ending and lines[-len(ending) :] == ending:
        lines = lines[: -len(ending)]
    return lines[-MOST_PRINTED:]
