"""The rows of one execution, made of its events as they stand: nothing is decided or evaluated again."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from noetl.dsl.document.playbook import Playbook
from noetl.engine.archive.table_rows import (
    AttemptRow,
    EventLogRow,
    ExecutionRow,
    JsonText,
    ManifestRefRow,
    Micros,
    ResultRefRow,
    StepRunRow,
    TableRow,
    TaskRunRow,
    TokenRow,
)
from noetl.events import bodies as of
from noetl.events.event import Event, envelope_head
from noetl.events.identifiers import run_id, token_id
from noetl.model.outcome import ErrorInfo
from noetl.model.reference import JSON_MEDIA_TYPE, MARKER, MARKER_BYTES, OWN_STORE
from noetl.ports.store import ExecutionRecord

_STEP_ENDS = {
    of.StepDone: "completed",
    of.LoopDone: "completed",
    of.StepCompletedByHand: "completed",
    of.StepSkipped: "skipped",
}


def event_row(event: Event, execution_id: str) -> EventLogRow:
    head: dict[str, Any] = envelope_head(event, execution_id)
    return EventLogRow(
        execution_id=execution_id,
        seq=event.seq,
        timestamp=Micros(event.ts),
        name=head["name"],
        source=head["source"],
        entity=head["entity"],
        entity_id=head["entity_id"],
        status=head["status"],
        step_run_id=head.get("step_run_id"),
        task_run_id=head.get("task_run_id"),
        parent_id=head.get("parent_id"),
        worker=head.get("worker"),
        data=JsonText(event.body_bytes.decode()),
    )


def reference_rows(event: Event, execution_id: str) -> Iterator[ResultRefRow | ManifestRefRow]:
    """What an event says of stored bodies; each as often as it stands there."""
    if MARKER_BYTES not in event.body_bytes:
        return
    head: dict[str, Any] = envelope_head(event, execution_id)
    ids = {name: head.get(name) for name in ("step_run_id", "task_run_id")}
    for reference in _references(msgspec.json.decode(event.body_bytes)):
        if reference[MARKER] == "manifest":
            yield ManifestRefRow(
                execution_id=execution_id,
                seq=event.seq,
                store=reference.get("store", OWN_STORE),
                total=reference["total"],
                size=reference["size"],
                chunks=len(reference["chunks"]),
                **ids,
            )
        elif "size" in reference:  # what stands for a part says nothing about the whole
            yield ResultRefRow(
                execution_id=execution_id,
                seq=event.seq,
                key=reference["key"],
                store=reference.get("store", OWN_STORE),
                size=reference["size"],
                media_type=reference.get("media_type", JSON_MEDIA_TYPE),
                checksum=reference.get("checksum"),
                **ids,
            )


def _references(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get(MARKER) in ("ref", "manifest"):
            yield value
        for item in value.values():
            yield from _references(item)
    elif isinstance(value, list):
        for item in value:
            yield from _references(item)


class _Token(Struct):
    id: str
    step: str
    from_run: str
    from_arc: int
    enqueued_at: int
    args: dict[str, Any]
    status: str = "enqueued"
    reason: str | None = None
    run: str | None = None
    ended_at: int | None = None


class _StepRun(Struct):
    id: str
    step: str
    scheduled_at: int
    status: str = "ready"
    claimed_at: int | None = None
    ended_at: int | None = None
    worker: str | None = None
    claims: int = 0
    iterations: int | None = None
    iterations_failed: int | None = None
    error: ErrorInfo | None = None
    result: Any = msgspec.UNSET


class _Attempt(Struct):
    number: int
    status: str = "running"
    started_at: int | None = None
    ended_at: int | None = None
    duration_ms: float | None = None
    redeliveries: int = 0
    error: ErrorInfo | None = None


class _TaskRun(Struct):
    run: str
    iteration: int
    task: str
    visit: int
    directive: str | None = None
    attempts: dict[int, _Attempt] = {}


class ExecutionTables:
    """Follows the events of an execution, from the first; then it has the rows of all that they tell of."""

    def __init__(self, execution_id: str) -> None:
        self._execution_id = execution_id
        self._as_of = 0
        self._tokens: dict[str, _Token] = {}
        self._runs: dict[str, _StepRun] = {}
        self._task_runs: dict[tuple[str, int, str, int], _TaskRun] = {}
        self._error: ErrorInfo | None = None

    def follow(self, event: Event) -> None:
        self._as_of = event.seq
        match event.body:
            case (
                of.TokenEnqueued()
                | of.TokenParked()
                | of.TokenAdmitted()
                | of.TokenDiscarded()
                | of.StepScheduled()
            ) as body:
                self._follow_token(event, body)
            case of.TaskStarted() as body:
                attempt = self._attempt(body)
                attempt.started_at = attempt.started_at or event.ts
                attempt.redeliveries = body.redelivery
            case of.TaskProcessed() as body:
                self._end_attempt(event, body)
            case of.PlaybookProcessed() as body:
                self._error = body.error
            case of.PlaybookRequestEvaluated(error=ErrorInfo() as error):
                self._error = error
            case of.ExecutionRetried() as body:
                self._reopen(body.runs)
            case of.IterationsRedriven() as body:
                self._reopen(body.runs)
            case _:
                self._follow_run(event)

    def rows(self, record: ExecutionRecord, playbook: Playbook | None) -> Iterator[TableRow]:
        """All but those of single events. Without the playbook nothing is known of the kinds of tasks."""
        yield self._execution_row(record)
        for token in self._tokens.values():
            yield self._token_row(token)
        for run in self._runs.values():
            yield self._run_row(run)
        kinds = _kinds_of(playbook) if playbook is not None else {}
        for task_run in self._task_runs.values():
            yield from self._task_rows(task_run, kinds)

    def _follow_token(
        self,
        event: Event,
        body: of.TokenEnqueued | of.TokenParked | of.TokenAdmitted | of.TokenDiscarded | of.StepScheduled,
    ) -> None:
        match body:
            case of.TokenEnqueued():
                name = token_id(event.seq)
                self._tokens[name] = _Token(name, body.step, body.run, body.arc, event.ts, body.args)
            case of.TokenParked():
                self._tokens[body.token].status = "parked" if body.mode == "park" else "waiting"
            case of.TokenAdmitted():
                self._tokens[body.token].status = "joined"
            case of.TokenDiscarded():
                token = self._tokens[body.token]
                token.status, token.reason, token.ended_at = "discarded", body.reason, event.ts
            case of.StepScheduled():
                name = run_id(event.seq)
                self._runs[name] = _StepRun(name, body.step, event.ts)
                for token in (self._tokens[each] for each in body.tokens):
                    token.status, token.run, token.ended_at = "consumed", name, event.ts

    def _follow_run(self, event: Event) -> None:
        match event.body:
            case of.TokenClaimed() as body:
                run = self._runs[body.run]
                run.status, run.worker = "running", body.worker or None
                run.claimed_at = run.claimed_at or event.ts
                run.claims += 1
            case of.LeaseExpired() as body if self._runs[body.run].ended_at is None and body.shard < 0:
                self._runs[body.run].status = "ready"
            case of.RunSuspended() as body if self._runs[body.run].iterations is None:
                self._runs[body.run].status = "waiting"
            case of.RunResumed() as body if self._runs[body.run].status == "waiting":
                self._runs[body.run].status = "ready"
            case of.LoopStarted() as body:
                self._runs[body.run].iterations = body.total
            case of.StepFailed() as body:
                self._end_run(event, body.run, "cancelled" if body.error.kind == "cancelled" else "failed")
                self._runs[body.run].error = body.error
            case of.StepDone() | of.LoopDone() | of.StepCompletedByHand() | of.StepSkipped() as body:
                self._end_run(event, body.run, _STEP_ENDS[type(body)])
                run = self._runs[body.run]
                run.result = None if isinstance(body, of.StepSkipped) else body.result
                if isinstance(body, of.LoopDone):
                    run.iterations, run.iterations_failed = body.total, body.failed

    def _end_run(self, event: Event, name: str, status: str) -> None:
        run = self._runs[name]
        run.status, run.ended_at = status, event.ts
        run.error, run.result = None, msgspec.UNSET

    def _reopen(self, names: tuple[str, ...]) -> None:
        self._error = None
        for run in (self._runs[name] for name in names):
            run.status, run.ended_at, run.error, run.result = "ready", None, None, msgspec.UNSET

    def _attempt(self, body: of.TaskStarted | of.TaskProcessed) -> _Attempt:
        key = (body.run, body.iteration, body.task, body.visit)
        task_run = self._task_runs.setdefault(key, _TaskRun(*key))
        return task_run.attempts.setdefault(body.attempt, _Attempt(body.attempt))

    def _end_attempt(self, event: Event, body: of.TaskProcessed) -> None:
        attempt, outcome = self._attempt(body), body.outcome
        attempt.status, attempt.ended_at, attempt.error = outcome.status, event.ts, outcome.error
        if isinstance(duration := outcome.meta.get("duration_ms"), int | float):
            attempt.duration_ms = float(duration)
        self._task_runs[body.run, body.iteration, body.task, body.visit].directive = body.do

    def _execution_row(self, record: ExecutionRecord) -> ExecutionRow:
        error = self._error if record.status != "completed" else None
        return ExecutionRow(
            execution_id=self._execution_id,
            as_of=self._as_of,
            playbook=record.playbook,
            path=record.path,
            status=record.status,
            started_at=Micros(record.started_at),
            ended_at=Micros(record.ended_at) if record.ended_at else None,
            duration_ms=_milliseconds(record.started_at, record.ended_at or None),
            parent=record.parent or None,
            root=record.root or self._execution_id,
            forked_from=record.forked_from or None,
            labels=_json_text(record.labels),
            priority=record.priority,
            events=self._as_of,
            error_kind=error.kind if error else None,
            error_step=error.details.get("step") if error else None,
            error_message=error.message if error else None,
        )

    def _token_row(self, token: _Token) -> TokenRow:
        return TokenRow(
            execution_id=self._execution_id,
            as_of=self._as_of,
            token_id=token.id,
            step=token.step,
            status=token.status,
            reason=token.reason,
            from_step_run_id=token.from_run or None,
            from_arc=token.from_arc if token.from_arc >= 0 else None,
            step_run_id=token.run,
            enqueued_at=Micros(token.enqueued_at),
            ended_at=_micros(token.ended_at),
            args=_json_text(token.args),
        )

    def _run_row(self, run: _StepRun) -> StepRunRow:
        return StepRunRow(
            execution_id=self._execution_id,
            as_of=self._as_of,
            step_run_id=run.id,
            step=run.step,
            status=run.status,
            scheduled_at=Micros(run.scheduled_at),
            claimed_at=_micros(run.claimed_at),
            ended_at=_micros(run.ended_at),
            duration_ms=_milliseconds(run.scheduled_at, run.ended_at),
            worker=run.worker,
            claims=run.claims,
            iterations=run.iterations,
            iterations_failed=run.iterations_failed,
            error_kind=run.error.kind if run.error else None,
            error_message=run.error.message if run.error else None,
            result=None if run.result is msgspec.UNSET else _json_text(run.result),
        )

    def _task_rows(self, task_run: _TaskRun, kinds: Mapping[tuple[str, str], str]) -> Iterator[TableRow]:
        name = f"{task_run.run}/{task_run.iteration}/{task_run.task}/{task_run.visit}"
        step = self._runs[task_run.run].step
        attempts = [task_run.attempts[number] for number in sorted(task_run.attempts)]
        yield TaskRunRow(
            execution_id=self._execution_id,
            as_of=self._as_of,
            task_run_id=name,
            step_run_id=task_run.run,
            step=step,
            task=task_run.task,
            kind=kinds.get((step, task_run.task)),
            iteration=task_run.iteration,
            visit=task_run.visit,
            attempts=len(attempts),
            status=attempts[-1].status,
            directive=task_run.directive,
            started_at=_micros(attempts[0].started_at),
            ended_at=_micros(attempts[-1].ended_at),
        )
        for attempt in attempts:
            error = attempt.error
            yield AttemptRow(
                execution_id=self._execution_id,
                as_of=self._as_of,
                task_run_id=name,
                attempt=attempt.number,
                status=attempt.status,
                started_at=_micros(attempt.started_at),
                ended_at=_micros(attempt.ended_at),
                duration_ms=attempt.duration_ms,
                redeliveries=attempt.redeliveries,
                error_kind=error.kind if error else None,
                error_message=error.message if error else None,
                retryable=error.retryable if error else None,
            )


def _kinds_of(playbook: Playbook) -> dict[tuple[str, str], str]:
    return {(step.name, task.label): task.kind for step in playbook.workflow for task in step.tasks}


def _micros(value: int | None) -> Micros | None:
    return Micros(value) if value is not None else None


def _milliseconds(start: int, end: int | None) -> float | None:
    return (end - start) / 1_000 if end is not None else None


def _json_text(value: Any) -> JsonText:
    return JsonText(msgspec.json.encode(value).decode())
