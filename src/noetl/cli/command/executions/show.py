"""`noetl executions show`."""

from collections.abc import Sequence
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
from noetl.cli.report.follow_up import FollowUp, command_lines
from noetl.cli.store_access import ExecutionOwner, find_owner, status_text, with_store
from noetl.cli.task_logs import open_logs
from noetl.engine.history.execution_detail import execution_detail
from noetl.engine.history.failed_attempts import FailedAttempts
from noetl.engine.history.failure_chain import read_failures
from noetl.engine.history.read import History, read_history
from noetl.kernel.derived_rows import ready_run
from noetl.kernel.explain.explainer import explain
from noetl.kernel.explain.explanation_parts import Explanation
from noetl.model.secret import printable_value
from noetl.model.timestamp import now_micros, parse_iso
from noetl.ports.http_api import ExecutionDetail, FailureReport
from noetl.ports.store import ENDED_STATUSES, ExecutionQuery, Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home
from noetl.stores.ownership import SERVER

CHILDREN = 1_000


class ChildLine(Struct, frozen=True):
    """A child of an execution."""

    execution_id: str
    path: str
    status: str


class ExecutionView(Struct, frozen=True):
    """All there is to say about an execution, whether a store here said it or a server."""

    detail: ExecutionDetail
    explanation: Explanation
    failures: Sequence[FailureReport]
    children: Sequence[ChildLine]
    status: str
    """For people: one that nobody runs is interrupted."""
    owner: ExecutionOwner | None = None
    """Who runs it, of one in a store here."""
    on_server: bool = False


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
        view = _ask_for_execution(configuration, name)
    else:
        view = with_store(
            configuration, lambda home, store: _read_execution(home, store, name, configuration)
        )
    if configuration.settings.output == "json":
        console.write_json(_json(view))
    else:
        console.write_text("\n".join(_text_lines(view, configuration)) + "\n")


def _ask_for_execution(configuration: Configuration, name: str) -> ExecutionView:
    # Here, not above: who looks into a store shall not wait for the client of a server.
    from noetl.cli.server_connection import ask_server, find_remote_execution
    from noetl.client.http_client import AsyncClient

    async def work(client: AsyncClient) -> ExecutionView:
        execution_id = await find_remote_execution(client, name)
        detail = await client.show(execution_id)
        children = await client.list(parent=execution_id, limit=CHILDREN)
        return ExecutionView(
            detail,
            await client.explanation(execution_id),
            (await client.failures(execution_id)).failures if detail.error is not None else [],
            [ChildLine(item.execution_id, item.path, item.status) for item in children.executions[::-1]],
            detail.status,
            on_server=True,
        )

    return ask_server(configuration, work)


async def _read_execution(home: Home, store: Store, name: str, configuration: Configuration) -> ExecutionView:
    kinds = configuration.settings.allow_kinds
    history = await read_history(store, name, kinds)
    record, events = history.record, history.events
    owner = await find_owner(home, store, record)
    children = await store.executions(ExecutionQuery(parent=record.execution_id, limit=CHILDREN))
    state, attempts = history.state, FailedAttempts()
    attempts.observe(record.execution_id, events)
    async with open_logs(configuration, home, store) as logs:
        failures = await read_failures(store, logs, state, history.source, attempts, allow_kinds=kinds)
    return ExecutionView(
        # Its time counts until now while somebody runs it.
        execution_detail(
            record,
            history.request,
            state,
            history.source,
            until=now_micros() if owner else events[-1].ts,
            waiting=_waiting_runs(history, owner),
        ),
        explain(history.plan, record.execution_id, events),
        failures,
        [ChildLine(child.execution_id, child.path, child.status) for child in children.executions[::-1]],
        record.status if state.over else status_text(record, owner),
        owner,
    )


def _json(view: ExecutionView) -> dict[str, Any]:
    return {
        **msgspec.to_builtins(view.detail),
        "children": msgspec.to_builtins(view.children),
        "owner": (view.owner.pid or None) if view.owner else None,
        "explanation": _explanation_json(view),
        "failures": msgspec.to_builtins(view.failures),
    }


def _explanation_json(view: ExecutionView) -> dict[str, Any]:
    """The explanation; it knows tasks, and the document the line of what failed in them."""
    # Not by `to_builtins`, which leaves tuples: nobody looks for secrets in these.
    document = msgspec.json.decode(msgspec.json.encode(view.explanation))
    explanation: dict[str, Any] = printable_value(document)
    location = view.failures[0].location if view.failures else None
    if location is not None and location.in_playbook and "failure" in explanation:
        explanation["failure"] |= {"line": location.line, "column": location.column}
    return explanation


def _text_lines(view: ExecutionView, configuration: Configuration) -> list[str]:
    detail, explanation = view.detail, view.explanation
    follow_up = FollowUp(configuration)
    paint = console.stdout_paint(color=configuration.settings.color)
    report = ExecutionReport(detail, follow_up, view.failures, paint, view.status)
    parts = [report.ending(), *_fact_lines(view)]
    steps = [
        (console.visible(name), step["status"], _runs_text(step), duration_text(step["duration_ms"] * 1_000))
        for name, step in detail.steps.items()
    ]
    if steps:
        parts += ["", console.table_text(("STEP", "STATUS", "RUNS", "TIME"), steps).rstrip()]
    parts += section_lines("what happened", run_lines(explanation))
    parts += section_lines("discarded", discarded_lines(explanation))
    # What waits for a retry stands in the report of the failure.
    waiting = [] if detail.status in ENDED_STATUSES else detail.waiting
    parts += section_lines("waiting", [*wait_lines(explanation), *waiting_run_lines(waiting)])
    for title, value in (("ctx", detail.ctx), ("result", detail.result)):
        if value not in (None, {}):
            parts += [
                "",
                f"{title}:",
                *(f"  {line}" for line in cut_lines(list(yaml_lines(value)), MOST_LINES)),
            ]
    return parts + command_lines(_next_commands(view, follow_up))


def _next_commands(view: ExecutionView, follow_up: FollowUp) -> list[tuple[str, str]]:
    """Commands for one that is not over, and what they do; those for a failure stand in its report."""
    name, status = view.detail.execution_id, view.detail.status
    if status in ENDED_STATUSES:
        return []
    signals = dict.fromkeys(wait.signal for run in view.explanation.runs for wait in run.waits if wait.signal)
    commands = [
        (follow_up.executions_command("signal", name, signal), "gives the signal that it waits for")
        for signal in signals
    ]
    if status == "paused":
        commands.append((follow_up.executions_command("resume", name), "goes on; it is paused"))
    elif view.on_server:
        commands.append((follow_up.executions_command("watch", name), "waits for its end"))
    elif view.owner is None:
        commands.append((follow_up.resume_command(name), "goes on; nobody runs it now"))
    else:
        follows = f"follows what {_owner_text(view.owner)} does"
        commands.append((follow_up.executions_command("watch", name), follows))
    return [*commands, (follow_up.executions_command("cancel", name), "ends it")]


def _waiting_runs(history: History, owner: ExecutionOwner | None) -> list[dict[str, str]]:
    """Of an execution of a server, the steps with runs that no worker has taken yet."""
    state = history.state
    if owner is None or owner.execution_id != SERVER or state.over or state.paused or state.stopping:
        return []
    runs = [state.runs[name] for name in state.ready]
    pools = dict.fromkeys((run.step.name, ready_run(state, run).pool) for run in runs)
    hint = "`noetl doctor` says who is there"
    return [
        {"step": step, "reason": f"waits for a worker of the pool `{pool}`; {hint}"} for step, pool in pools
    ]


def _runs_text(step: dict[str, Any]) -> str:
    counts = [
        f"{step[word]} {word}"
        for word in ("failed", "cancelled", "skipped")
        if step.get(word) and step["runs"] > 1
    ]
    return f"{step['runs']} ({', '.join(counts)})" if counts else str(step["runs"])


def _fact_lines(view: ExecutionView) -> list[str]:
    detail = view.detail
    facts = {
        "started": local_time(parse_iso(detail.started_at)),
        "ended": local_time(parse_iso(detail.ended_at)) if detail.ended_at else "",
        "cancel": cancel_text(view.explanation),
        "events": str(detail.events),
        "version": detail.version or "",
        "playbook": detail.registered or "",
        "file": detail.file or "",
        "labels": " ".join(f"{key}={value}" for key, value in detail.labels.items()),
        "priority": str(detail.priority or ""),
        "fork of": f"{detail.forked_from}, event {detail.forked_at}" if detail.forked_from else "",
        "parent": detail.parent or "",
        "by": detail.requested_by or "",
        "owner": _owner_text(view.owner) if view.owner else "",
    }
    lines = [f"  {name:<8}  {console.visible(value)}" for name, value in facts.items() if value]
    return [
        *lines,
        *(
            f"  child     {child.execution_id} {console.visible(child.path)}: {child.status}"
            for child in view.children
        ),
    ]


def _owner_text(owner: ExecutionOwner) -> str:
    return f"process {owner.pid}" if owner.pid else "a server"
