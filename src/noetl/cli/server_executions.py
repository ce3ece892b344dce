"""`noetl executions` for a server: what each verb asks it, and how the answer is printed."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from noetl.cli import console
from noetl.cli.command_failure import CommandFailure
from noetl.cli.file_access import write_file
from noetl.cli.format import duration_text, local_time, yaml_lines
from noetl.cli.report.execution_report import ExecutionReport
from noetl.cli.report.follow_up import FollowUp
from noetl.cli.server_connection import ask_server, find_remote_execution, find_server
from noetl.client.http_client import AsyncClient
from noetl.events.identifiers import run_id
from noetl.model.reference import MARKER
from noetl.model.timestamp import parse_iso
from noetl.ports.http_api import (
    ExecutionDetail,
    ExecutionItems,
    FailureReport,
    OperationAnswer,
    StartedExecution,
)
from noetl.ports.page_api import WaitItem
from noetl.ports.store import ENDED_STATUSES
from noetl.settings import Configuration

if TYPE_CHECKING:
    from noetl.engine.catalog.playbook_record import PlaybookSource

_RUN_ENDS = ("StepDone", "LoopDone", "StepFailed", "StepCompletedByHand", "StepSkipped")


def _wants_json(configuration: Configuration) -> bool:
    return configuration.settings.output == "json"


def list_remote(configuration: Configuration, **query: Any) -> None:
    """A page of executions."""
    page: ExecutionItems = ask_server(configuration, lambda client: client.list(**query))
    if _wants_json(configuration):
        document = msgspec.to_builtins(page)
        console.write_json({"executions": document["executions"], "next": page.next_cursor})
        return
    if not page.executions:
        console.say("no executions")
    rows = [
        (
            item.execution_id,
            item.status,
            local_time(parse_iso(item.started_at)),
            duration_text(item.duration_ms * 1_000),
            console.visible(item.path),
            console.visible(" ".join(f"{key}={value}" for key, value in item.labels.items())),
        )
        for item in page.executions
    ]
    head = ("EXECUTION", "STATUS", "STARTED", "DURATION", "PATH", "LABELS")
    console.write_text(console.table_text(head, rows))
    if page.next_cursor:
        console.say(f"there are more: --cursor {page.next_cursor}")


def waits_remote(configuration: Configuration, name: str) -> list[WaitItem]:
    """What waits for a person, of one execution if it is named. Raises CommandFailure."""

    async def read(client: AsyncClient) -> list[WaitItem]:
        execution_id = await find_remote_execution(client, name) if name else ""
        page = await client.waits(execution_id=execution_id, limit=1_000)
        waits = list(page.waits)
        while page.next_cursor is not None:
            page = await client.waits(execution_id=execution_id, limit=1_000, cursor=page.next_cursor)
            waits += page.waits
        return waits

    return ask_server(configuration, read)


def replay_remote(configuration: Configuration, name: str, at: int | None) -> None:
    async def work(client: AsyncClient) -> dict[str, Any]:
        return await client.state(await find_remote_execution(client, name), at=at or 0)

    _print_document(configuration, ask_server(configuration, work))


def events_remote(configuration: Configuration, name: str, *, after: int, follow: bool) -> None:
    """Envelopes: one document, or with `follow` one for each event, as they come."""
    as_json = _wants_json(configuration)

    async def work(client: AsyncClient) -> list[dict[str, Any]]:
        execution_id = await find_remote_execution(client, name)
        events: list[dict[str, Any]] = []
        if follow:
            async for envelope in client.stream(execution_id, after=after):
                if not _print_event(envelope, as_json=as_json):
                    break
            return events
        return await _all_events(client, execution_id, after)

    events = ask_server(configuration, work)
    if follow:
        return
    if as_json:
        console.write_json({"events": events})
        return
    for envelope in events:
        if not _print_event(envelope, as_json=False):
            return
    if not events:
        console.say("no such events")


async def _all_events(client: AsyncClient, execution_id: str, after: int = 0) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while True:
        page = await client.events(execution_id, after=after)
        events += page.events
        if page.next_cursor is None:
            return events
        after = int(page.next_cursor)


def _print_event(envelope: dict[str, Any], *, as_json: bool) -> bool:
    """False if nobody reads any more."""
    if as_json:
        return console.write_json_lines([envelope])
    time = local_time(parse_iso(envelope["timestamp"]))
    line = f"{envelope['seq']:>6}  {time}  {envelope['name']}  {envelope['entity_id']}  {envelope['status']}"
    return console.write_text(f"{console.visible(line)}\n")


async def _all_log_lines(
    client: AsyncClient, execution_id: str, step: str, task: str
) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        page = await client.logs(execution_id, step=step, task=task, after=after)
        lines += page.lines
        after = page.next_cursor
    return lines


def logs_remote(
    configuration: Configuration, name: str, *, step: str | None, task: str | None, follow: bool
) -> None:
    as_json = _wants_json(configuration)

    async def work(client: AsyncClient) -> list[dict[str, Any]]:
        execution_id = await find_remote_execution(client, name)
        if not follow:
            return await _all_log_lines(client, execution_id, step or "", task or "")
        async for line in client.follow_logs(execution_id, step=step or "", task=task or ""):
            if not _print_log_line(line, as_json=as_json):
                break
        return []

    lines = ask_server(configuration, work)
    if follow:
        return
    if as_json:
        console.write_json({"lines": lines})
    for line in [] if as_json else lines:
        _print_log_line(line, as_json=False)
    if not lines and not as_json:
        console.say("nothing was written")


def _print_log_line(line: dict[str, Any], *, as_json: bool) -> bool:
    if as_json:
        return console.write_json_lines([line])
    origin = "/".join(part for part in (line.get("step", ""), line.get("task", "")) if part)
    text = f"{local_time(parse_iso(line['ts']))}  {origin}  {line.get('text', '')}"
    return console.write_text(f"{console.visible(text)}\n")


def watch_remote(configuration: Configuration, name: str) -> int:
    """Waits for the end of an execution, and prints it; 1 unless it completed."""

    async def work(client: AsyncClient) -> "EndedExecution":
        return await read_at_end(client, await find_remote_execution(client, name))

    return print_ended(configuration, ask_server(configuration, work))


class EndedExecution(NamedTuple):
    """An execution of a server at its end, and what is known of its failure."""

    detail: ExecutionDetail
    failures: list[FailureReport]


async def read_at_end(client: AsyncClient, execution_id: str) -> EndedExecution:
    detail = await client.wait(execution_id)
    failed = detail.status == "failed"
    return EndedExecution(detail, (await client.failures(execution_id)).failures if failed else [])


def print_ended(configuration: Configuration, end: EndedExecution) -> int:
    """The result on stdout, how it ended on stderr, as `run` does; 1 unless it completed."""
    detail = end.detail
    if _wants_json(configuration):
        console.write_json(msgspec.to_builtins(detail))
    else:
        paint = console.stderr_paint(color=configuration.settings.color)
        follow_up = FollowUp(configuration, find_server(configuration).url)
        report = ExecutionReport(detail, follow_up, end.failures, paint)
        if detail.status == "completed":
            console.write_text(report.result())
        console.say(report.ending())
    return 0 if detail.status == "completed" else 1


def result_remote(configuration: Configuration, name: str, step: str | None, out: str | None) -> None:
    """The result of an execution, or of the last run of a step; a stored one is fetched."""

    async def work(client: AsyncClient) -> tuple[str, Any, bytes | None]:
        detail = await client.show(await find_remote_execution(client, name))
        execution_id = detail.execution_id
        if step is not None:
            result = _step_result(step, detail, await _all_events(client, execution_id))
        elif detail.status in ENDED_STATUSES:
            result = detail.result
        else:
            message = f"{execution_id} has no result yet: it is {detail.status}"
            hint = "name a step that has ended, or wait: `noetl executions watch`"
            raise CommandFailure("no-result", message, hint=hint)
        stored = isinstance(result, dict) and result.get(MARKER) == "ref"
        return execution_id, result, await client.result(result) if stored else None

    execution_id, result, data = ask_server(configuration, work)
    stored = data
    if data is None:
        data = result.encode() if isinstance(result, str) else console.json_bytes(result)
    if out is not None:
        write_file(out, data)
    if _wants_json(configuration):
        if stored is not None and out is None:
            result = msgspec.json.decode(stored)
        document = {"result": result} if out is None else {"file": out, "bytes": len(data)}
        console.write_json({"execution_id": execution_id, "step": step, **document})
    elif out is None:
        console.write_bytes(data if data.endswith(b"\n") else data + b"\n")
    else:
        console.say(f"wrote {console.visible(out)}")


def _step_result(step: str, detail: ExecutionDetail, events: list[dict[str, Any]]) -> Any:
    if step not in detail.steps:
        hint = f"those that have: {', '.join(detail.steps)}" if detail.steps else ""
        raise CommandFailure("no-result", f"no step `{step}` has run", hint=hint)
    runs: set[str] = set()
    last_end: dict[str, Any] | None = None
    for event in events:
        data = event["data"]
        if event["name"] == "StepScheduled" and data["step"] == step:
            runs.add(run_id(event["seq"]))
        elif event["name"] in _RUN_ENDS and data["run"] in runs:
            last_end = event
    if last_end is None:
        raise CommandFailure("no-result", f"no run of step `{step}` has ended")
    if last_end["name"] == "StepFailed":
        message = last_end["data"]["error"]["message"]
        raise CommandFailure("no-result", f"the last run of step `{step}` failed: {message}")
    if last_end["name"] == "StepSkipped":
        raise CommandFailure("no-result", f"the last run of step `{step}` was skipped")
    return last_end["data"].get("result")


def operate_remote(
    configuration: Configuration,
    name: str,
    done_text: str,
    work: Callable[[AsyncClient, str], Awaitable[OperationAnswer]],
) -> int:
    """Does something to an execution, and says what has become of it."""

    async def operate(client: AsyncClient) -> OperationAnswer:
        return await work(client, await find_remote_execution(client, name))

    answer = ask_server(configuration, operate)
    if _wants_json(configuration):
        console.write_json({**msgspec.to_builtins(answer), "warnings": []})
    elif answer.recorded:
        console.say(f"{answer.execution_id}: {done_text}; it is {answer.status}")
        if answer.steps:
            console.say(f"  runs again: {', '.join(map(console.visible, answer.steps))}")
    else:
        console.say(f"{answer.execution_id}: sent to its owner, which has not read it yet")
    return 0


def count_matching_remote(
    configuration: Configuration, verb: str, where: dict[str, Any], details: dict[str, Any]
) -> tuple[int, str]:
    """How many match, and whether there may be more."""
    fields = _filter_of(where)
    answer = ask_server(
        configuration,
        lambda client: client.bulk(verb, fields, everything=not fields, dry_run=True, **details),
    )
    return len(answer.executions), ", and those behind them" if answer.more else ""


def operate_on_matching_remote(
    configuration: Configuration, verb: str, where: dict[str, Any], details: dict[str, Any]
) -> list[dict[str, Any]]:
    """Does the same to all that match; a verdict for each."""
    fields = _filter_of(where)

    async def work(client: AsyncClient) -> list[StartedExecution]:
        verdicts: list[StartedExecution] = []
        more = True
        while more:
            answer = await client.bulk(verb, fields, everything=not fields, **details)
            verdicts += answer.executions
            # Those that were refused still match: without any other there would be no end.
            more = answer.more and any(verdict.error is None for verdict in answer.executions)
        return verdicts

    return [
        {
            "execution_id": verdict.execution_id,
            "status": verdict.status,
            **(
                {"error": {"code": verdict.error.code, "message": verdict.error.detail}}
                if verdict.error is not None
                else {}
            ),
        }
        for verdict in ask_server(configuration, work)
    ]


def _filter_of(where: dict[str, Any]) -> dict[str, Any]:
    """The `where` of a request: of a status there is one at most."""
    values = {name: value for name, value in where.items() if value}
    return {**values, "status": values["status"][0]} if "status" in values else values


def document_fields(source: "PlaybookSource | None") -> dict[str, Any]:
    """The document that a request goes on with, if there is one."""
    return {} if source is None else {"playbook": source.text, "dialect": source.dialect}


def _print_document(configuration: Configuration, document: dict[str, Any]) -> None:
    if _wants_json(configuration):
        console.write_json(document)
    else:
        console.write_text("".join(f"{line}\n" for line in yaml_lines(document)))
