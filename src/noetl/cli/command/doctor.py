"""`noetl doctor`."""

import asyncio
import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import click

from noetl.cli import console, options
from noetl.cli.format import pluralize

if TYPE_CHECKING:
    from noetl.client.http_client import AsyncClient
    from noetl.ports.admin_api import PoolItem, ServerStatus
    from noetl.ports.store import ExecutionRecord, Store
    from noetl.settings import Configuration
    from noetl.stores.home_folder import Home
    from noetl.stores.postgres.upkeep import DatabaseHealth

FREE_BYTES = 1 << 30
"""A disk with less than that is full soon."""
FEED_SECONDS = 10.0
"""By so much a feed is behind only if something is wrong."""
LONG_WAIT = 60.0
"""Seconds that a run may be ready before somebody should look for a worker."""
CLOCK_SECONDS = 5.0
"""By so much clocks may differ."""
FAILED_IN_ROW = 3
FULL_SHARE = 0.9
"""Of the connections of a database, after which the next server may get none."""
DEAD_ROWS = 100_000
"""In the table of ready runs, after which looking through it takes long."""
_NEWEST = 200
"""Executions among which those are looked for that failed in a row."""
_SECOND = 1_000_000


class Finding(NamedTuple):
    """What was looked at, and how it is. `warning` is what will be wrong, or may be."""

    level: Literal["ok", "warning", "error"]
    check: str
    message: str
    hint: str = ""


@click.command()
@options.store_or_server_options
def doctor(**store_flags: str | None) -> int:
    """Say what is wrong with store, server, workers or executions, or about to be.

    Looks at store, disk, clock and server, at workers for what waits, and at executions that are stuck.
    Exits with 1 if something is wrong, with 3 if the store or the server cannot be asked.
    """
    from noetl.cli.server_connection import ask_server

    configuration = options.read_configuration(**store_flags)
    if options.asks_server(configuration):
        findings = ask_server(configuration, _ask_server)
    else:
        findings = _look_at_home(configuration)
    if configuration.settings.output == "json":
        ok = all(finding.level != "error" for finding in findings)
        console.write_json({"ok": ok, "findings": [finding._asdict() for finding in findings]})
    else:
        console.write_text("".join(map(_finding_text, findings)))
    return 1 if any(finding.level == "error" for finding in findings) else 0


def _finding_text(finding: Finding) -> str:
    line = f"{finding.level:<8}{finding.check}: {console.visible(finding.message)}\n"
    return line + (f"        {console.visible(finding.hint)}\n" if finding.hint else "")


def _look_at_home(configuration: "Configuration") -> list[Finding]:
    from noetl.cli.store_access import has_store, hint_without_store, with_store
    from noetl.home import home_of, store_url
    from noetl.model.store_url import is_database_url
    from noetl.stores import store_file_of

    home, url = home_of(configuration), store_url(configuration)
    if not has_store(configuration):
        message = f"there are no executions here yet ({url})"
        return [Finding("warning", "store", message, hint_without_store(configuration))]
    findings = (
        _database_findings(url)
        if is_database_url(url)
        else [_store_finding(str(store_file_of(url))), _disk_finding(home)]
    )

    async def look(home: "Home", store: "Store") -> list[Finding]:
        return [*await _clock_findings(store), *await _execution_findings(home, store)]

    if any(finding.level != "ok" and finding.check == "store" for finding in findings) and is_database_url(
        url
    ):
        return findings
    findings += with_store(configuration, look)
    findings += _server_findings(configuration, home)
    return findings


def _database_findings(url: str) -> list[Finding]:
    """Raises StoreError if it cannot be asked."""
    from noetl.model.timestamp import now_micros
    from noetl.stores import read_database_health

    return describe_database(asyncio.run(read_database_health(url, now_micros())))


def describe_database(health: "DatabaseHealth") -> list[Finding]:
    """A finding for each thing that an operator of the database answers for; one where there is no store."""
    version = f"schema {health.schema_version}"
    if not health.schema_version:
        hint = "`noetl store migrate` makes one, and so does the first command that uses it"
        return [Finding("warning", "store", f"there is no store in {health.label} yet", hint)]
    store = Finding("ok", "store", f"{health.label}, PostgreSQL {health.server}, {version}")
    if health.schema_version != health.current_version:
        message = f"{health.label} has {version}, and {health.current_version} is current"
        newer = health.schema_version > health.current_version
        hint = "upgrade NoETL" if newer else "`noetl store migrate` brings it up to date"
        store = Finding("error", "store", message, hint)
    where = "ahead of" if health.clock_ahead > 0 else "behind"
    transactions = "none holds the feed back"
    if health.oldest_transaction:
        transactions = f"one of {health.oldest_owner} is open for {health.oldest_transaction:.0f} s"
    return [
        store,
        _measured(
            "database clock",
            f"{abs(health.clock_ahead):.1f} s {where} this one",
            wrong=abs(health.clock_ahead) > CLOCK_SECONDS,
            hint="set the clocks by one source",
        ),
        _measured(
            "partitions",
            f"{pluralize(health.weeks_missing, 'week')} to come without one"
            if health.weeks_missing
            else "those of the weeks to come are there",
            wrong=health.weeks_missing > 0,
            hint="any server makes them when it starts",
        ),
        _measured(
            "transactions",
            transactions,
            wrong=health.oldest_transaction > LONG_WAIT,
            hint="readers of events wait for it, and nothing is cleaned up meanwhile: end it",
        ),
        _measured(
            "connections",
            f"{health.connections} of {health.max_connections} are in use",
            wrong=health.connections > FULL_SHARE * health.max_connections,
            hint="raise max_connections",
        ),
        _measured(
            "vacuum",
            f"dead rows of `ready`: {health.dead_ready_rows:,}",
            wrong=health.dead_ready_rows > DEAD_ROWS,
            hint="look for a transaction that is open for long, and whether autovacuum runs",
        ),
    ]


def _measured(check: str, message: str, *, wrong: bool, hint: str) -> Finding:
    return Finding("warning", check, message, hint) if wrong else Finding("ok", check, message)


def _store_finding(filename: str) -> Finding:
    """Raises StoreError if it is none."""
    from noetl.stores.sqlite.connection import SCHEMA_VERSION, file_faults, file_schema_version

    version = file_schema_version(filename)
    if faults := file_faults(filename):
        hint = "restore it from a copy; `noetl store check` says what else is wrong"
        return Finding("error", "store", f"{filename} is damaged: {faults[0]}", hint)
    if version < SCHEMA_VERSION:
        message = f"{filename} has schema {version}, and {SCHEMA_VERSION} is current"
        return Finding(
            "warning", "store", message, "the next command that writes migrates it; make a copy first"
        )
    return Finding("ok", "store", f"{filename}, schema {version}")


def _disk_finding(home: "Home") -> Finding:
    free = shutil.disk_usage(home.folder).free
    message = f"{free >> 20:,} MiB are free"
    if free < FREE_BYTES:
        hint = "`noetl store prune` deletes executions that ended long ago"
        return Finding("error" if free < FREE_BYTES >> 4 else "warning", "disk", message, hint)
    return Finding("ok", "disk", message)


async def _clock_findings(store: "Store") -> list[Finding]:
    from noetl.model.timestamp import iso_time, now_micros
    from noetl.ports.store import ExecutionQuery

    newest = (await store.executions(ExecutionQuery(limit=1))).executions
    if newest and newest[0].updated_at > now_micros() + CLOCK_SECONDS * _SECOND:
        message = f"the last event is of {iso_time(newest[0].updated_at)}, which is yet to come"
        return [Finding("error", "clock", message, "set the clock of this machine; timers fire by it")]
    return [Finding("ok", "clock", "no event is of the future")]


async def _execution_findings(home: "Home", store: "Store") -> list[Finding]:
    from noetl.cli.store_access import find_owner
    from noetl.model.timestamp import now_micros
    from noetl.ports.store import ExecutionQuery

    findings = []
    running = (
        await store.executions(ExecutionQuery(status=("running",), roots=True, limit=1_000))
    ).executions
    interrupted = [record for record in running if await find_owner(home, store, record) is None]
    if interrupted:
        message = f"{len(interrupted)} are running, and no process runs them: {_names(interrupted)}"
        hint = "`noetl run --resume ID` goes on with one, a server with all"
        findings.append(Finding("warning", "executions", message, hint))
    late = await store.timers(until=int(now_micros() - LONG_WAIT * _SECOND), limit=100)
    if late:
        message = f"{len(late)} timers are past due, the first of {late[0].execution_id}"
        findings.append(Finding("warning", "timers", message, "nobody runs these executions; a server would"))
    newest = (await store.executions(ExecutionQuery(roots=True, limit=_NEWEST))).executions
    findings += _failing([(record.path, record.status) for record in newest])
    return findings or [Finding("ok", "executions", f"{len(running)} are running")]


def _names(records: "list[ExecutionRecord]") -> str:
    names = [record.execution_id for record in records[:3]]
    return ", ".join(names) + (", …" if len(records) > len(names) else "")


def _failing(newest: list[tuple[str, str]]) -> Iterator[Finding]:
    """Playbooks whose last executions all failed; the newest first."""
    in_row: dict[str, int] = {}
    over: set[str] = set()
    for path, status in newest:
        if path not in over and status == "failed":
            in_row[path] = in_row.get(path, 0) + 1
        elif status == "completed":
            over.add(path)
    for path, count in in_row.items():
        if count >= FAILED_IN_ROW:
            hint = f"`noetl executions list --path {path} --status failed`"
            yield Finding("warning", "failures", f"the last {count} executions of {path} failed", hint)


def _server_findings(configuration: "Configuration", home: "Home") -> list[Finding]:
    from noetl.cli.command_failure import CommandFailure
    from noetl.cli.server_connection import ask_server
    from noetl.stores.server_record import read_server_record

    if (record := read_server_record(home)) is not None:
        try:
            return ask_server(configuration, _ask_server)
        except CommandFailure as failure:
            message = f"process {record.pid} runs, and does not answer: {failure}"
            return [Finding("error", "server", message, f"{home.server_log} may say why")]
    if home.server.exists():
        message = "the last one was killed, and none runs since"
        return [Finding("warning", "server", message, "`noetl server start` goes on with what it ran")]
    return [Finding("ok", "server", "none runs here")]


async def _ask_server(client: "AsyncClient") -> list[Finding]:
    status = await client.status()
    findings = [
        Finding("ok", "server", f"release {status.release}, {status.store}")
        if status.ready
        else Finding("error", "server", f"it cannot serve: {status.problem}")
    ]
    findings += [
        *_server_clock(status),
        *_feed_findings(status),
        *_replica_findings(status),
        *_worker_findings(status, (await client.pools()).pools),
        describe_releases(status.release, [worker.release for worker in (await client.workers()).workers]),
    ]
    # Without its replica the server has no lists, which was said.
    if status.read_store is None or status.read_store.problem is None:
        newest = (await client.list(roots=True, limit=_NEWEST)).executions
        findings += _failing([(item.path, item.status) for item in newest])
    return findings


def describe_releases(server: str, workers: Sequence[str]) -> Finding:
    """Two that follow each other work side by side, as while servers and workers are replaced one by one."""
    from noetl.settings import installed_release

    here = installed_release()
    others = sorted({release for release in workers if release != server})
    if not others and here == server:
        return Finding("ok", "releases", f"server, workers and this command are {server}")
    different = [f"workers {release}" for release in others]
    if here != server:
        different.append(f"this command {here}")
    hint = "releases that follow each other work side by side; bring the others up to the same one"
    return Finding("warning", "releases", f"the server is {server}, {', '.join(different)}", hint)


def _server_clock(status: "ServerStatus") -> Iterator[Finding]:
    from noetl.model.timestamp import now_micros, parse_iso

    ahead = (parse_iso(status.started_at) - now_micros()) / _SECOND + status.uptime
    if abs(ahead) > CLOCK_SECONDS:
        where = "ahead of" if ahead > 0 else "behind"
        message = f"that of the server is {abs(ahead):.0f} s {where} this one"
        yield Finding("warning", "clock", message, "times in lists are the server's")


def _feed_findings(status: "ServerStatus") -> Iterator[Finding]:
    if (feed := status.feed) is None:
        return
    message = f"{feed.stream} is {feed.lag:.0f} s behind"
    if feed.problem is not None:
        hint = "executions go on; what waits is published when it can be"
        yield Finding("warning", "feed lag", f"{message}: {feed.problem}", hint)
    elif feed.lag > FEED_SECONDS:
        yield Finding("warning", "feed lag", message, "NATS or the network is slower than events come")
    else:
        yield Finding("ok", "feed lag", message)


def _replica_findings(status: "ServerStatus") -> Iterator[Finding]:
    if (replica := status.read_store) is None:
        return
    if replica.lag is None:
        hint = "lists, searches and histories get no answer until it is back; --read-store names another one"
        yield Finding("error", "read store", f"{replica.store} cannot be asked: {replica.problem}", hint)
    else:
        yield _measured(
            "read store",
            f"{replica.store} is {replica.lag:.0f} s behind",
            wrong=replica.lag > FEED_SECONDS,
            hint="lists and searches show what was then; see what the standby waits for",
        )


def _worker_findings(status: "ServerStatus", pools: "list[PoolItem]") -> Iterator[Finding]:
    """What waits, and whether anybody could take it."""
    waiting = [pool for pool in pools if pool.depth or pool.problem]
    for pool in waiting:
        if pool.problem is not None or pool.age > LONG_WAIT:
            name = pool.pool or "default"
            why = pool.problem or "all slots are in use"
            waits = "waits" if pool.depth == 1 else "wait"
            runs = f"{pluralize(pool.depth, 'run')} of the pool {name}"
            message = f"{runs} {waits} for up to {pool.age:.0f} s: {why}"
            level: Literal["warning", "error"] = "error" if pool.age > LONG_WAIT else "warning"
            yield Finding(level, "workers", message, f"`noetl worker start --pool {name}`")
    if status.stuck:
        hint = "`noetl executions list --status running`, and `show` says what each waits for"
        yield Finding("warning", "executions", f"{status.stuck} are stuck", hint)
    if not waiting and not status.stuck:
        busy = f"{status.claimed} of {status.slots} slots are in use"
        yield Finding("ok", "workers", f"{status.workers} are connected, {busy}; nothing waits")
