"""`noetl executions show`."""

from typing import Any

import click
import msgspec
from msgspec import Struct

from noetl.cli import console, options
from noetl.cli.format import cut_lines, duration_text, local_time, yaml_lines
from noetl.cli.report.execution_report import MOST_LINES, ExecutionReport
from noetl.cli.report.explanation import (
    cancel_text,
    discarded_lines,
    run_lines,
    section_lines,
    wait_lines,
    waiting_run_lines,
)
from noetl.cli.report.failed_attempts import FailedAttempts, FailedChild, read_failed_children
from noetl.cli.report.follow_up import FollowUp, command_lines, next_commands
from noetl.cli.store_access import ExecutionOwner, find_owner, status_text, with_store
from noetl.engine.catalog.playbook_record import PlaybookSource, decode_source, registered_name
from noetl.engine.history.read import History, read_history
from noetl.engine.summary import execution_json, first_failure, marking_json
from noetl.engine.task_log import LogLine, TaskLog
from noetl.kernel.derived_rows import ready_run
from noetl.kernel.explain.explainer import Explanation, explain
from noetl.kernel.state.execution_state import StepSummary
from noetl.model.secret import printable_value
from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.store import ExecutionQuery, ExecutionRecord, Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home
from noetl.stores.ownership import SERVER

CHILDREN = 1_000


class ExecutionDetails(Struct, frozen=True):
    """All there is to say about an execution."""

    history: History
    source: PlaybookSource
    owner: ExecutionOwner | None
    children: list[ExecutionRecord]
    failed_attempts: FailedAttempts
    failed_children: tuple[FailedChild, ...]
    explanation: Explanation
    log: list[LogLine]
    """What its tasks printed, if it failed."""


@click.command("show")
@options.execution
@options.tools
@options.store_or_server_options
def command(*, name: str, **store_flags: str | None) -> None:
    """Show one execution: how it is, and why.

    Which guard chose which arc, why a token waits, what a join still waits for, and how to go on.
    """
    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        _show_remote(configuration, name)
        return
    details = with_store(configuration, lambda home, store: _read_details(home, store, name, configuration))
    if configuration.settings.output == "json":
        console.write_json(_json(details))
    else:
        console.write_text("\n".join(_text_lines(details, configuration)) + "\n")


def _show_remote(configuration: Configuration, name: str) -> None:
    from noetl.cli.report.remote_report import remote_report
    from noetl.cli.server_executions import show_remote

    detail, explanation = show_remote(configuration, name)
    if configuration.settings.output == "json":
        console.write_json({**msgspec.to_builtins(detail), "explanation": msgspec.to_builtins(explanation)})
        return
    paint = console.stdout_paint(color=configuration.settings.color)
    lines = remote_report(detail, explanation, FollowUp(configuration), paint)
    console.write_text("\n".join(lines) + "\n")


async def _read_details(
    home: Home, store: Store, name: str, configuration: Configuration
) -> ExecutionDetails:
    history = await read_history(store, name, configuration.settings.allow_kinds)
    record = history.record
    stored = decode_source(await store.playbook(record.playbook) or b"")
    children = await store.executions(ExecutionQuery(parent=record.execution_id, limit=CHILDREN))
    logs, attempts = TaskLog(home.logs), FailedAttempts()
    attempts.observe(record.execution_id, history.events)
    return ExecutionDetails(
        history,
        stored,
        await find_owner(home, store, record),
        children.executions[::-1],
        attempts,
        await read_failed_children(store, logs, history.state, attempts, configuration.settings.allow_kinds),
        explain(history.plan, record.execution_id, history.events),
        logs.tail(record.execution_id).read() if record.status == "failed" else [],
    )


def _json(details: ExecutionDetails) -> dict[str, Any]:
    history, record = details.history, details.history.record
    request = history.request
    state = history.state
    document = execution_json(state, version=request.version or None, last_ts=history.events[-1].ts)
    document["waiting"] += _waiting_runs(details)
    for step, micros in state.step_times(_last_ts(details)).items():
        document["steps"][step]["duration_ms"] = micros // 1_000
    return {
        **document,
        "started_at": iso_time(record.started_at),
        "ended_at": iso_time(state.ended_at) if state.over else None,
        "events": len(history.events),
        "hash": record.playbook,
        "file": _playbook_file(details) or None,
        "registered": registered_name(details.source) or None,
        "requested_by": request.requested_by or None,
        "labels": record.labels,
        "priority": record.priority,
        "parent": record.parent or None,
        "children": [
            {"execution_id": child.execution_id, "path": child.path, "status": child.status}
            for child in details.children
        ],
        "owner": details.owner.pid if details.owner else None,
        "workload": state.inputs.workload,
        "marking": marking_json(state),
        "explanation": _explanation_json(details),
    }


def _explanation_json(details: ExecutionDetails) -> dict[str, Any]:
    """The explanation; it knows tasks, and the document the line of what failed in them."""
    # Not by `to_builtins`, which leaves tuples: nobody looks for secrets in these.
    document = msgspec.json.decode(msgspec.json.encode(details.explanation))
    explanation: dict[str, Any] = printable_value(document)
    history, source = details.history, details.source
    error = first_failure(history.state)
    if error is None or "failure" not in explanation:
        return explanation
    # Only a failure needs what reads documents, and that is slow to import.
    from noetl.cli.report.failure_location import FailureLocator

    attempt = details.failed_attempts.attempt_with(history.state, error)
    location = FailureLocator(error, source, attempt).location()
    if location is not None and location.file == source.name:
        explanation["failure"] |= {"line": location.number, "column": location.column}
    return explanation


def _text_lines(details: ExecutionDetails, configuration: Configuration) -> list[str]:
    history = details.history
    state = history.state
    follow_up = FollowUp(configuration)
    paint = console.stdout_paint(color=configuration.settings.color)
    last_ts = _last_ts(details)
    status = "" if state.over else status_text(history.record, details.owner)
    report = ExecutionReport(
        state,
        follow_up,
        details.source,
        details.failed_attempts,
        last_ts,
        paint,
        status,
        children=details.failed_children,
        log=details.log,
    )
    parts = [report.ending(), *_fact_lines(details)]
    times = state.step_times(last_ts)
    steps = [
        (console.visible(name), status, _runs_text(state.summaries[name]), duration_text(times[name]))
        for name, status in state.step_statuses().items()
    ]
    if steps:
        parts += ["", console.table_text(("STEP", "STATUS", "RUNS", "TIME"), steps).rstrip()]
    parts += section_lines("what happened", run_lines(details.explanation))
    parts += section_lines("discarded", discarded_lines(details.explanation))
    waits = [*wait_lines(details.explanation), *waiting_run_lines(_waiting_runs(details))]
    parts += section_lines("waiting", waits)
    for title, value in (
        ("ctx", printable_value(state.ctx.values)),
        ("result", printable_value(state.result)),
    ):
        if value not in (None, {}):
            parts += [
                "",
                f"{title}:",
                *(f"  {line}" for line in cut_lines(list(yaml_lines(value)), MOST_LINES)),
            ]
    parts += command_lines(next_commands(state, details.owner, follow_up))
    return parts


def _waiting_runs(details: ExecutionDetails) -> list[dict[str, str]]:
    """Of an execution of a server, the steps with runs that no worker has taken yet."""
    state, owner = details.history.state, details.owner
    if owner is None or owner.execution_id != SERVER or state.over or state.paused or state.stopping:
        return []
    runs = [state.runs[name] for name in state.ready]
    pools = dict.fromkeys((run.step.name, ready_run(state, run).pool) for run in runs)
    hint = "`noetl doctor` says who is there"
    return [
        {"step": step, "reason": f"waits for a worker of the pool `{pool}`; {hint}"} for step, pool in pools
    ]


def _last_ts(details: ExecutionDetails) -> int:
    """Until when its time counts: now while somebody runs it."""
    return now_micros() if details.owner else details.history.events[-1].ts


def _runs_text(summary: StepSummary) -> str:
    counts = [
        f"{number} {word}"
        for number, word in (
            (summary.failed, "failed"),
            (summary.cancelled, "cancelled"),
            (summary.skipped, "skipped"),
        )
        if number and summary.runs > 1
    ]
    return f"{summary.runs} ({', '.join(counts)})" if counts else str(summary.runs)


def _playbook_file(details: ExecutionDetails) -> str:
    """Where its playbook was read; a fork may run another one than it began with."""
    if registered_name(details.source):
        return ""  # it was in no file
    request = details.history.request
    return request.file if details.history.record.playbook == request.hash else details.source.file


def _fact_lines(details: ExecutionDetails) -> list[str]:
    history, record = details.history, details.history.record
    request, state = history.request, history.state
    facts = {
        "started": local_time(record.started_at),
        "ended": local_time(state.ended_at) if state.over else "",
        "cancel": cancel_text(details.explanation),
        "events": str(len(history.events)),
        "version": request.version,
        "playbook": registered_name(details.source),
        "file": _playbook_file(details),
        "labels": " ".join(f"{key}={value}" for key, value in record.labels.items()),
        "priority": str(record.priority or ""),
        "fork of": f"{state.fork.source}, event {state.fork.seq}" if state.fork is not None else "",
        "parent": record.parent,
        "owner": f"process {details.owner.pid}" if details.owner else "",
    }
    lines = [f"  {name:<8}  {console.visible(value)}" for name, value in facts.items() if value]
    return [
        *lines,
        *(
            f"  child     {child.execution_id} {console.visible(child.path)}: {child.status}"
            for child in details.children
        ),
    ]
