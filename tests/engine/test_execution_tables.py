"""The rows of an execution, of events that stand here: each status that a token, a run or an attempt can have."""

from typing import Any

from msgspec import structs

from noetl.engine.archive.execution_tables import ExecutionTables, event_row, reference_rows
from noetl.engine.archive.table_rows import (
    AttemptRow,
    ExecutionRow,
    StepRunRow,
    TableRow,
    TaskRunRow,
    TokenRow,
)
from noetl.events import bodies as of
from noetl.events.bodies import EventBody
from noetl.events.event import Event
from noetl.model.outcome import ErrorInfo, Outcome
from noetl.model.reference import list_chunk, manifest, value_reference
from noetl.ports.store import ExecutionRecord

EXECUTION = "01939d2e-0000-7000-8000-000000000001"
KEY = f"{EXECUTION}/{'a' * 64}"
RECORD = ExecutionRecord(
    execution_id=EXECUTION,
    version=9,
    updated_at=9_000,
    started_at=1_000,
    status="failed",
    path="p",
    playbook="h",
    namespace="",
    parent="",
    root="",
    labels={"team": "shop"},
    priority=3,
    fair_key="",
    next_wake=0,
    ended_at=9_500,
    expires_at=0,
    forked_from="",
)


def rows_of(*bodies: EventBody) -> list[TableRow]:
    """After these events, a millisecond apart, the first at 1 ms."""
    tables = ExecutionTables(EXECUTION)
    for number, body in enumerate(bodies, start=1):
        tables.follow(Event(number, number * 1_000, body))
    return list(tables.rows(RECORD, None))


def fields(rows: list[TableRow], row_type: type[TableRow], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(row, name) for name in names) for row in rows if type(row) is row_type]


def test_tokens_are_where_the_last_event_left_them() -> None:
    rows = rows_of(
        of.TokenEnqueued(step="a"),  # t1
        of.StepScheduled(step="a", tokens=("t1",)),  # r2
        of.TokenEnqueued(step="b", run="r2", arc=0, args={"n": 1}),
        of.TokenEnqueued(step="c", run="r2", arc=1),
        of.TokenEnqueued(step="d", run="r2", arc=2),
        of.TokenEnqueued(step="e", run="r2", arc=3),
        of.TokenParked(token="t3", mode="park"),
        of.TokenParked(token="t4", mode="wait"),
        of.TokenAdmitted(token="t5"),
        of.TokenParked(token="t6", mode="park"),
        of.TokenDiscarded(token="t6", reason="parked"),
    )
    names = ("token_id", "status", "reason", "from_step_run_id", "from_arc", "step_run_id", "ended_at")
    assert fields(rows, TokenRow, *names) == [
        ("t1", "consumed", None, None, None, "r2", 2_000),
        ("t3", "parked", None, "r2", 0, None, None),
        ("t4", "waiting", None, "r2", 1, None, None),
        ("t5", "joined", None, "r2", 2, None, None),
        ("t6", "discarded", "parked", "r2", 3, None, 11_000),
    ]
    assert fields(rows, TokenRow, "args", "enqueued_at", "as_of")[1] == ('{"n":1}', 3_000, 11)


def run_status(*bodies: EventBody) -> tuple[Any, ...]:
    """Of the run `r1`, after its scheduling and these."""
    rows = rows_of(of.StepScheduled(step="a"), *bodies)
    names = ("status", "claims", "worker", "claimed_at", "ended_at", "error_kind", "result")
    (row,) = fields(rows, StepRunRow, *names)
    return row


def test_runs_are_as_the_last_event_left_them() -> None:
    claim = of.TokenClaimed(run="r1", worker="w")
    failed = of.StepFailed(run="r1", error=ErrorInfo(kind="sql", message="no"))
    cancelled = of.StepFailed(run="r1", error=ErrorInfo(kind="cancelled", message="stop"))
    lost = of.LeaseExpired(run="r1", fence=2)
    assert run_status() == ("ready", 0, None, None, None, None, None)
    assert run_status(claim) == ("running", 1, "w", 2_000, None, None, None)
    assert run_status(claim, lost) == ("ready", 1, "w", 2_000, None, None, None)
    assert run_status(claim, lost, of.TokenClaimed(run="r1", worker="v"))[:4] == ("running", 2, "v", 2_000)
    suspended = of.RunSuspended(run="r1", reason="signal")
    assert run_status(claim, suspended)[0] == "waiting"
    assert run_status(claim, suspended, of.RunResumed(run="r1", reason="signal"))[0] == "ready"
    loop = of.LoopStarted(run="r1", total=3)
    assert run_status(claim, loop, suspended)[0] == "running"  # an iteration waits, and others do not
    assert run_status(claim, of.StepDone(run="r1", result=[1])) == (
        "completed",
        1,
        "w",
        2_000,
        3_000,
        None,
        "[1]",
    )
    assert run_status(claim, of.StepDone(run="r1"))[-1] == "null"
    assert run_status(of.StepSkipped(run="r1"))[0] == "skipped"
    assert run_status(of.StepCompletedByHand(run="r1", result=2))[::6] == ("completed", "2")
    assert run_status(claim, failed) == ("failed", 1, "w", 2_000, 3_000, "sql", None)
    assert run_status(claim, cancelled)[::5] == ("cancelled", "cancelled")
    assert run_status(claim, failed, of.ExecutionRetried(runs=("r1",)))[::4] == ("ready", None)
    assert run_status(claim, failed, of.ExecutionRetried(runs=("r1",)), of.StepDone(run="r1"))[5] is None


def test_loops_count_their_iterations() -> None:
    rows = rows_of(
        of.StepScheduled(step="a"),
        of.LoopStarted(run="r1", total=3),
        of.LoopDone(run="r1", total=3, succeeded=2, failed=1, result=[]),
    )
    assert fields(rows, StepRunRow, "iterations", "iterations_failed", "duration_ms") == [(3, 1, 2.0)]


def test_attempts_belong_to_the_visit_of_their_task() -> None:
    error = ErrorInfo(kind="timeout", message="slow", retryable=True)
    rows = rows_of(
        of.StepScheduled(step="a"),
        of.TaskStarted(run="r1", task="t"),
        of.TaskStarted(run="r1", task="t", redelivery=2),
        of.TaskProcessed(run="r1", task="t", outcome=Outcome(status="error", error=error), do="retry"),
        of.TaskStarted(run="r1", task="t", attempt=2),
        of.TaskProcessed(
            run="r1", task="t", attempt=2, outcome=Outcome(status="ok", meta={"duration_ms": 1.5}), do="jump"
        ),
        of.TaskStarted(run="r1", task="t", visit=2),
    )
    assert fields(
        rows, TaskRunRow, "task_run_id", "attempts", "status", "directive", "started_at", "ended_at"
    ) == [
        ("r1/0/t/1", 2, "ok", "jump", 2_000, 6_000),
        ("r1/0/t/2", 1, "running", None, 7_000, None),
    ]
    names = ("task_run_id", "attempt", "status", "redeliveries", "error_kind", "retryable", "duration_ms")
    assert fields(rows, AttemptRow, *names) == [
        ("r1/0/t/1", 1, "error", 2, "timeout", True, None),
        ("r1/0/t/1", 2, "ok", 0, None, None, 1.5),
        ("r1/0/t/2", 1, "running", 0, None, None, None),
    ]
    assert fields(rows, AttemptRow, "started_at", "ended_at")[0] == (2_000, 4_000)


def test_an_execution_says_why_it_failed() -> None:
    error = ErrorInfo(kind="sql", message="no", details={"step": "a"})
    rows = rows_of(of.PlaybookProcessed(status="failed", error=error))
    names = (
        "error_kind",
        "error_step",
        "error_message",
        "duration_ms",
        "labels",
        "root",
        "events",
        "priority",
    )
    assert fields(rows, ExecutionRow, *names) == [("sql", "a", "no", 8.5, '{"team":"shop"}', EXECUTION, 1, 3)]
    refused = rows_of(of.PlaybookRequestEvaluated(error=error))
    assert fields(refused, ExecutionRow, "error_kind") == [("sql",)]
    retried = rows_of(of.PlaybookProcessed(status="failed", error=error), of.ExecutionRetried(runs=()))
    assert fields(retried, ExecutionRow, "error_kind") == [(None,)]


def test_references_and_manifests_stand_beside_the_event_that_names_them() -> None:
    reference_value = value_reference(KEY, [1], size=5)
    part = {**reference_value, "path": ["x"]}
    del part["size"]
    listed = manifest([list_chunk(KEY, 0, 2, 10), list_chunk(f"db:{KEY}", 2, 5, 20)])
    outcome = Outcome(status="ok", result={"a": reference_value, "b": [part, listed]})
    event = Event(4, 1, of.TaskProcessed(run="r1", task="t", outcome=outcome))
    reference, chunks = [structs.asdict(row) for row in reference_rows(event, EXECUTION)]
    where = {
        "execution_id": EXECUTION,
        "seq": 4,
        "step_run_id": "r1",
        "task_run_id": "r1/0/t/1/1",
        "store": "auto",
    }
    assert reference == {
        **where,
        "key": KEY,
        "size": 5,
        "media_type": "application/json",
        "checksum": f"sha256:{'a' * 64}",
    }
    assert chunks == {**where, "total": 5, "size": 30, "chunks": 2}
    assert list(reference_rows(Event(1, 1, of.TokenEnqueued(step="a")), EXECUTION)) == []
    assert event_row(event, EXECUTION).data.startswith('{"run":"r1"')
