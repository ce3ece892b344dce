"""`noetl executions list`."""

from typing import Any

import click
from msgspec.structs import replace

from noetl.cli import console, options
from noetl.cli.command.executions.execution_filter import Matching, parse_label, require_path_of_version
from noetl.cli.command_failure import CommandFailure
from noetl.cli.format import duration_text, local_time, parse_time
from noetl.cli.store_access import (
    ExecutionOwner,
    find_owner,
    has_store,
    hint_without_store,
    server_here,
    status_text,
    with_store,
)
from noetl.model.timestamp import iso_time, now_micros
from noetl.ports.store import ENDED_STATUSES, ExecutionPage, ExecutionQuery, ExecutionRecord, Store
from noetl.stores.home_folder import Home

INTERRUPTED = "interrupted"
STATUSES = ("running", INTERRUPTED, "paused", *ENDED_STATUSES)
LIMIT = 50
_CHILD = "↳ "
"""Before the path of an execution that another one started."""


@click.command("list")
@click.option("--status", type=click.Choice(STATUSES), multiple=True, help="Only these. May be repeated.")
@click.option(
    "--path",
    type=options.TextArgument(empty=True),
    default="",
    metavar="PATH",
    help="Only playbooks whose path begins so.",
)
@click.option(
    "--label",
    "labels",
    type=options.TextArgument(),
    multiple=True,
    metavar="K=V",
    help="Only with this label. May be repeated.",
)
@click.option("--roots", is_flag=True, help="Leave out children: what tasks of others started.")
@click.option("--since", metavar="TIME", help="Only what began since then: 90m, 2h, 3d, or a time.")
@click.option("--until", metavar="TIME", help="Only what began before then.")
@click.option(
    "--version",
    type=click.IntRange(1),
    metavar="N",
    help="Only this version of the registered playbook that --path names.",
)
@click.option(
    "--error-kind",
    type=options.TextArgument(empty=True),
    default="",
    metavar="KIND",
    help="Only what ended with an error of this kind.",
)
@click.option(
    "--text",
    type=options.TextArgument(empty=True),
    default="",
    metavar="TEXT",
    help="Only with this text in id, path, labels or the message of the error.",
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), default=LIMIT, help=f"At most so many.  [default: {LIMIT}]"
)
@click.option("--cursor", default="", metavar="CURSOR", help="Go on where the page before ended.")
@options.store_or_server_options
def command(
    *,
    status: tuple[str, ...],
    path: str,
    labels: tuple[str, ...],
    roots: bool,
    since: str | None,
    until: str | None,
    version: int | None,
    error_kind: str,
    text: str,
    limit: int,
    cursor: str,
    **store_flags: str | None,
) -> None:
    """List executions, the newest first.

    A running one that no process works on is interrupted. Children have a mark before their path.
    """
    configuration = options.read_configuration(**store_flags)
    require_path_of_version(path, version)
    matching = Matching(
        status=status,
        path=path,
        labels=dict(map(parse_label, labels)),
        since=parse_time(since, "--since") if since is not None else 0,
        until=parse_time(until, "--until") if until is not None else 0,
        version=version,
        error_kind=error_kind,
        q=text,
        roots=roots,
    )
    if options.asks_server(configuration):
        from noetl.cli.server_executions import list_remote

        if INTERRUPTED in status:
            raise click.UsageError("a server has no executions that are interrupted: it runs them all")
        list_remote(configuration, **matching.fields(), cursor=cursor, limit=min(limit, 1_000))
        return

    async def read(home: Home, store: Store) -> tuple[ExecutionPage, dict[str, ExecutionOwner]]:
        return await _read_page(home, store, await matching.query(store, limit=limit, cursor=cursor))

    page, owners = ExecutionPage([], ""), dict[str, ExecutionOwner]()
    if has_store(configuration):
        page, owners = with_store(configuration, read)
    if configuration.settings.output == "json":
        executions = [record_json(record, owners.get(record.execution_id)) for record in page.executions]
        console.write_json({"executions": executions, "next": page.next or None})
        return
    if not page.executions:
        console.say("no executions")
        if not has_store(configuration) and server_here(configuration):
            console.say(f"  hint: {console.visible(hint_without_store(configuration))}")
    console.write_text(_table(page.executions, owners))
    if page.next:
        console.say(f"there are more: --cursor {page.next}")


async def _read_page(
    home: Home, store: Store, query: ExecutionQuery
) -> tuple[ExecutionPage, dict[str, ExecutionOwner]]:
    """Who owns an execution stands in no store: whether one is interrupted is asked of each that may be."""
    statuses = {INTERRUPTED, *query.status}
    stored = replace(
        query, status=tuple({"running" if name == INTERRUPTED else name for name in query.status})
    )
    records: list[ExecutionRecord] = []
    owners: dict[str, ExecutionOwner] = {}
    try:
        while True:
            page = await store.executions(replace(stored, limit=query.limit - len(records)))
            for record in page.executions:
                owner = None
                if record.status in ("running", "paused"):
                    owner = await find_owner(home, store, record)
                if query.status and status_text(record, owner) not in statuses:
                    continue
                if owner is not None:
                    owners[record.execution_id] = owner
                records.append(record)
            if not page.next or len(records) == query.limit:
                return ExecutionPage(records, page.next), owners
            stored = replace(stored, cursor=page.next)
    except ValueError as error:
        raise CommandFailure(
            "argument", f"--cursor: {error}", hint="`list -o json` prints it as `next`"
        ) from None


def record_json(record: ExecutionRecord, owner: ExecutionOwner | None) -> dict[str, Any]:
    """An execution in a list."""
    return {
        "execution_id": record.execution_id,
        "status": record.status,
        "path": record.path,
        "started_at": iso_time(record.started_at),
        "ended_at": iso_time(record.ended_at) if record.ended_at else None,
        "duration_ms": record_duration(record) // 1_000,
        "labels": record.labels,
        "priority": record.priority,
        "parent": record.parent or None,
        "forked_from": record.forked_from or None,
        "events": record.version,
        "owner": (owner.pid or None) if owner else None,
    }


def record_duration(record: ExecutionRecord) -> int:
    """Microseconds from its beginning to the last event."""
    return max(0, (record.ended_at or record.updated_at) - record.started_at)


def _table(records: list[ExecutionRecord], owners: dict[str, ExecutionOwner]) -> str:
    rows = [
        (
            record.execution_id,
            status_text(record, owners.get(record.execution_id)),
            local_time(record.started_at),
            duration_text(
                now_micros() - record.started_at if record.execution_id in owners else record_duration(record)
            ),
            f"{_CHILD if record.parent else ''}{console.visible(record.path)}",
            console.visible(" ".join(f"{key}={value}" for key, value in record.labels.items())),
        )
        for record in records
    ]
    return console.table_text(("EXECUTION", "STATUS", "STARTED", "DURATION", "PATH", "LABELS"), rows)
