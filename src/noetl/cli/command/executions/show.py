"""`noetl executions show`."""

from typing import Any

import click
import msgspec
from msgspec import Struct

from noetl.cli import console
from noetl.cli.command.executions import execution_options
from noetl.cli.execution_owner import Owner, owner_of, shown_status
from noetl.cli.report.execution_report import MOST_LINES, Report, report_json
from noetl.cli.report.explanation import cancel_told, losses_told, runs_told, section, waits_told
from noetl.cli.report.failed_attempts import Evidence
from noetl.cli.report.follow_up import Again
from noetl.cli.report.format import cut, yaml_lines
from noetl.cli.report.next_commands import ways_on
from noetl.cli.report.state_json import marking_json
from noetl.cli.store_access import consult
from noetl.cli.timestamps import clock, iso, now
from noetl.engine.catalog.playbook_record import Source, unpacked
from noetl.engine.history.read import History, read_history
from noetl.kernel.explain.explainer import Explanation, explain
from noetl.model.reference import unescape
from noetl.ports.store import ExecutionRecord, Query, Store
from noetl.settings import Configuration
from noetl.stores.home_folder import Home

CHILDREN = 1_000


class Shown(Struct, frozen=True):
    """All there is to say about an execution."""

    history: History
    source: Source
    owner: Owner | None
    children: list[ExecutionRecord]
    explanation: Explanation


@click.command("show")
@execution_options.execution
@execution_options.place
def command(*, name: str, **place: str | None) -> None:
    """Show one execution: how it is, and why.

    Which guard chose which arc, why a token waits, what a join still waits for, and how to go on.
    """
    configuration = execution_options.configured(**place)
    shown = consult(configuration, lambda home, store: _look(home, store, name, configuration))
    if configuration.settings.output == "json":
        console.write_json(_json(shown))
    else:
        console.write_text("\n".join(_text(shown, configuration)) + "\n")


async def _look(home: Home, store: Store, name: str, configuration: Configuration) -> Shown:
    history = await read_history(store, name, configuration.settings.allow_kinds)
    record = history.record
    stored = unpacked(await store.playbook(record.playbook) or b"")
    children = await store.executions(Query(parent=record.execution_id, limit=CHILDREN))
    return Shown(
        history,
        stored,
        await owner_of(home, store, record),
        children.executions[::-1],
        explain(history.plan, record.execution_id, history.events),
    )


def _json(shown: Shown) -> dict[str, Any]:
    history, record = shown.history, shown.history.record
    request = history.request
    state = history.state
    return {
        **report_json(state, version=request.version or None, last=history.events[-1].ts),
        "started_at": iso(record.started_at),
        "ended_at": iso(state.ended_at) if state.over else None,
        "events": len(history.events),
        "hash": record.playbook,
        "file": _file(shown) or None,
        "requested_by": request.requested_by or None,
        "labels": record.labels,
        "parent": record.parent or None,
        "children": [
            {"execution_id": child.execution_id, "path": child.path, "status": child.status}
            for child in shown.children
        ],
        "owner": shown.owner.pid if shown.owner else None,
        "workload": state.given.workload,
        "marking": marking_json(state),
        "explanation": msgspec.to_builtins(shown.explanation),
    }


def _text(shown: Shown, configuration: Configuration) -> list[str]:
    history = shown.history
    state = history.state
    again = Again(configuration)
    evidence = Evidence()
    evidence.see(state.execution_id, history.events)
    paint = console.paint_of_stdout(color=configuration.settings.color)
    last = now() if shown.owner else history.events[-1].ts
    status = "" if state.over else shown_status(history.record, shown.owner)
    report = Report(state, again, shown.source, evidence, last, paint, status)
    parts = [report.ending(), *_facts(shown)]
    steps = [(console.visible(name), one.status, str(one.runs)) for name, one in state.summaries.items()]
    if steps:
        parts += ["", console.table(("STEP", "STATUS", "RUNS"), steps).rstrip()]
    parts += section("what happened", runs_told(shown.explanation))
    parts += section("discarded", losses_told(shown.explanation))
    parts += section("waiting", waits_told(shown.explanation))
    for title, value in (("ctx", unescape(state.ctx.values)), ("result", unescape(state.result))):
        if value not in (None, {}):
            parts += ["", f"{title}:", *(f"  {line}" for line in cut(list(yaml_lines(value)), MOST_LINES))]
    if ways := ways_on(state, shown.owner, again):
        width = max(len(command) for command, _ in ways)
        parts += ["", *(f"  {command:<{width}}  {meaning}" for command, meaning in ways)]
    return parts


def _file(shown: Shown) -> str:
    """Where its playbook was read; a fork may run another one than it began with."""
    request = shown.history.request
    return request.file if shown.history.record.playbook == request.hash else shown.source.file


def _facts(shown: Shown) -> list[str]:
    history, record = shown.history, shown.history.record
    request = history.request
    facts = {
        "started": clock(record.started_at),
        "ended": clock(history.state.ended_at) if history.state.over else "",
        "cancel": cancel_told(shown.explanation),
        "events": str(len(history.events)),
        "version": request.version,
        "file": _file(shown),
        "labels": " ".join(f"{key}={value}" for key, value in record.labels.items()),
        "parent": record.parent,
        "owner": f"process {shown.owner.pid}" if shown.owner else "",
    }
    lines = [f"  {name:<8}  {console.visible(value)}" for name, value in facts.items() if value]
    return [
        *lines,
        *(
            f"  child     {child.execution_id} {console.visible(child.path)}: {child.status}"
            for child in shown.children
        ),
    ]
